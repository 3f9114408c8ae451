// SPDX-License-Identifier: MIT
//
// Shapes of inputs and outputs, as text.

#include "model/port.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One axis of a shape: letter * times / over + plus, without a letter times / over + plus.
struct axis {
    const char *text; // in the shape
    int length;
    int64_t times, over, plus;
    int letter; // of the alphabet; -1: none
    bool is_lead, or_one;
};

enum { MAX_AXES = ATTNCL_MAX_RANK, NO_LETTER = -1 };

// -- parsing

static int64_t read_key(struct config_values config, const char *text, size_t length)
{
    char name[32];
    const struct key *key;
    assert(length < sizeof name);
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const void *value = attncl__config_value(config.keys, config.settings, name, &key);
    assert(value && key->type == KEY_INT);
    return *(const int64_t *)value;
}

static void apply(struct axis *axis, char operation, int64_t number)
{
    if (operation == '*')
        axis->times *= number;
    else if (operation == '/')
        axis->over *= number;
    else
        axis->plus += number;
}

static void parse_axis(struct axis *axis, struct config_values config)
{
    const char *t = axis->text, *end = axis->text + axis->length;
    char operation = '*';
    axis->is_lead = strncmp(t, "...", 3) == 0;
    while (t < end && !axis->is_lead) {
        size_t length = 1;
        if (isupper((unsigned char)*t)) {
            axis->letter = *t - 'A';
        } else if (isdigit((unsigned char)*t)) {
            apply(axis, operation, *t - '0');
        } else {
            length = strspn(t, "abcdefghijklmnopqrstuvwxyz_");
            apply(axis, operation, read_key(config, t, length));
        }
        t += length;
        if (t < end && *t == '|') {
            axis->or_one = true;
            break;
        }
        operation = t < end ? *t++ : 0;
    }
}

// The axes of the alternative up to `end`.
static int parse(const char *shape, const char *end, struct config_values config,
                 struct axis axes[MAX_AXES])
{
    int n = 0;
    for (const char *t = shape; t < end; ++n) {
        const int length = (int)strcspn(t, " ;");
        const struct key *key = NULL;
        char word[32];
        snprintf(word, sizeof word, "%.*s", length, t);
        const struct int_list *ints =
            config.keys ? attncl__config_value(config.keys, config.settings, word, &key) : NULL;
        axes[n] = (struct axis){.text = t, .length = length, 1, 1, 0, .letter = NO_LETTER};
        if (ints && key->type == KEY_INTS) {
            for (size_t i = 0; i < ints->n; ++i)
                axes[n + (int)i] = (struct axis){
                    .text = t, .length = length, ints->list[i], 1, 0, .letter = NO_LETTER};
            n += (int)ints->n - 1;
        } else {
            parse_axis(&axes[n], config);
        }
        t += length;
        t += *t == ' ';
    }
    return n;
}

static void swap(struct axis *a, struct axis *b)
{
    const struct axis before = *a;
    *a = *b;
    *b = before;
}

// Of alternatives the first, or another that has `rank` axes.
static int choose(const struct port *port, struct config_values config, int rank,
                  struct axis axes[MAX_AXES])
{
    const char *second = strstr(port->shape, "; ");
    int n = second ? parse(second + 2, second + strlen(second), config, axes) : -1;
    if (!second || n != rank)
        n = parse(port->shape, second ? second : port->shape + strlen(port->shape), config, axes);
    static const struct condition batch_first = {"batch_first", false, {"true"}};
    if (port->batch_first && attncl__config_holds(config.keys, config.settings, &batch_first))
        swap(&axes[0], &axes[1]);
    return n;
}

// -- extents

static bool is_known(const struct axis *axis, const struct axes *axes)
{
    return axis->letter == NO_LETTER || (axes && axes->bound[axis->letter]);
}

static int64_t extent_of(const struct axis *axis, const struct axes *axes)
{
    const int64_t letter = axis->letter == NO_LETTER ? 1 : axes->extent[axis->letter];
    return letter * axis->times / axis->over + axis->plus;
}

static bool axis_fits(const struct axis *axis, int64_t extent, struct axes *axes)
{
    if (axis->or_one && extent == 1)
        return true;
    if (is_known(axis, axes))
        return extent == extent_of(axis, axes);
    if (axis->length == 1 || axis->or_one) { // a letter alone
        axes->bound[axis->letter] = true;
        axes->extent[axis->letter] = extent;
    }
    return true;
}

static bool lead_fits(const int64_t *dim, int n, struct axes *axes)
{
    if (axes->has_lead)
        return n == axes->n_lead && memcmp(dim, axes->lead, (size_t)n * sizeof *dim) == 0;
    axes->has_lead = true;
    axes->n_lead = n;
    memcpy(axes->lead, dim, (size_t)n * sizeof *dim);
    return true;
}

bool attncl__port_fits(const struct port *port, struct config_values config,
                       const attncl_array *array, struct axes *axes)
{
    struct axis axis[MAX_AXES];
    struct axes bound = *axes;
    const int n = choose(port, config, array->rank, axis);
    const int first = n > 0 && axis[0].is_lead ? 1 : 0, n_lead = array->rank - (n - first);
    if (n_lead < 0 || (n_lead > 0 && !first))
        return false;
    if (strchr(port->name, '*'))
        bound.has_lead = false;
    if (first && !lead_fits(array->dim, n_lead, &bound))
        return false;
    for (int i = first; i < n; ++i)
        if (!axis_fits(&axis[i], array->dim[n_lead + i - first], &bound))
            return false;
    *axes = bound;
    return true;
}

int64_t attncl__port_below(const struct port *port, struct config_values config,
                           const struct axes *axes)
{
    struct axis axis[MAX_AXES];
    if (!port->below)
        return INT32_MAX;
    parse(port->below, port->below + strlen(port->below), config, axis);
    return extent_of(&axis[0], axes);
}

// -- text

// "d_model", "num_heads*B", "T + steps"
static void write_symbols(const struct axis *axis, struct strbuf *text)
{
    for (int i = 0; i < axis->length && axis->text[i] != '|'; ++i)
        attncl__strbuf_add(text, axis->text[i] == '+' ? " %c " : "%c", axis->text[i]);
}

// "64", "4*B", "T + 9"
static void write_numbers(const struct axis *axis, const struct axes *axes, struct strbuf *text)
{
    if (is_known(axis, axes)) {
        attncl__strbuf_add(text, "%" PRId64, extent_of(axis, axes));
        return;
    }
    if (axis->times > 1)
        attncl__strbuf_add(text, "%" PRId64 "*", axis->times);
    attncl__strbuf_add(text, "%c", 'A' + axis->letter);
    if (axis->plus > 0)
        attncl__strbuf_add(text, " + %" PRId64, axis->plus);
}

static void write_axes(const struct axis *axis, int n, const struct axes *axes, bool symbols,
                       struct strbuf *text)
{
    const char *comma = "";
    attncl__strbuf_add(text, "[");
    for (int i = 0; i < n; ++i) {
        const bool in_list = (i > 0 && axis[i].text == axis[i - 1].text) ||
                             (i + 1 < n && axis[i].text == axis[i + 1].text);
        if (axis[i].is_lead && axes && axes->has_lead) {
            for (int k = 0; k < axes->n_lead; ++k, comma = ", ")
                attncl__strbuf_add(text, "%s%" PRId64, comma, axes->lead[k]);
            continue;
        }
        attncl__strbuf_add(text, "%s", comma);
        if (axis[i].is_lead)
            attncl__strbuf_add(text, "...");
        else if (symbols && !in_list)
            write_symbols(&axis[i], text);
        else
            write_numbers(&axis[i], axes, text);
        if (axis[i].or_one && (!is_known(&axis[i], axes) || extent_of(&axis[i], axes) != 1))
            attncl__strbuf_add(text, " or 1");
        comma = ", ";
    }
    attncl__strbuf_add(text, "]");
}

void attncl__port_write_expected(const struct port *port, struct config_values config,
                                 const struct axes *axes, int rank, struct strbuf *text)
{
    struct axis axis[MAX_AXES];
    const int n = choose(port, config, rank, axis);
    write_axes(axis, n, axes, false, text);
}

void attncl__port_write_shape(const struct port *port, struct config_values config, bool symbols,
                              struct strbuf *text)
{
    struct axis axis[MAX_AXES];
    const char *second = strstr(port->shape, "; ");
    write_axes(axis, choose(port, config, -1, axis), NULL, symbols, text);
    if (second) {
        attncl__strbuf_add(text, " or ");
        write_axes(axis, parse(second + 2, second + strlen(second), config, axis), NULL, symbols,
                   text);
    }
}

// -- tables

bool attncl__port_applies(const struct port *port, struct config_values config)
{
    return !port->when.key || attncl__config_holds(config.keys, config.settings, &port->when);
}

const struct port *attncl__port_find(const struct port *table, struct config_values config,
                                     const char *name)
{
    for (const struct port *port = table; port && port->type; ++port) {
        const char *star = strchr(port->name, '*');
        const bool is_named = star ? strncmp(port->name, name, (size_t)(star - port->name)) == 0
                                   : strcmp(port->name, name) == 0;
        if (is_named && attncl__port_applies(port, config))
            return port;
    }
    return NULL;
}

const char *attncl__port_type_text(enum port_type type)
{
    static const char *const texts[] = {
        [PORT_F32] = "F32",         [PORT_INDEX] = "I64 or I32", [PORT_INT] = "I64 or I32",
        [PORT_MASK] = "BOOL or U8", [PORT_I32] = "I32",          [PORT_I64] = "I64",
        [PORT_BOOL] = "BOOL",
    };
    return texts[type];
}

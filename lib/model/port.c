// SPDX-License-Identifier: MIT
//
// Shapes of inputs and outputs, as text.

#include "model/inputs.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORDS = ATTNCL_MAX_RANK, WORD_BYTES = 40 };

// Ways to write the word "num_heads*B" of a shape: "num_heads*B", "4*B", "B".
enum form { WITH_NAMES, WITH_NUMBERS, TO_MATCH };

// -- words

static int64_t read_key(struct config_values config, const char *text, size_t length)
{
    char name[WORD_BYTES];
    const struct key *key;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const void *value = attncl__config_value(config.keys, config.settings, name, &key);
    assert(value && key->type == KEY_INT);
    return *(const int64_t *)value;
}

// letter * times / over + plus, without a letter times / over + plus
struct term {
    int64_t times, over, plus;
    char letter; // 0: none
};

static struct term parse_term(const char *t, size_t length, struct config_values config)
{
    struct term term = {1, 1, 0, 0};
    char operation = '*';
    for (const char *end = t + length; t < end; ++t) {
        int64_t number = 1;
        size_t part = 1;
        if (isupper((unsigned char)*t))
            term.letter = *t;
        else if (isdigit((unsigned char)*t))
            number = *t - '0';
        else
            number = read_key(config, t, part = strcspn(t, " |;*/+"));
        if (operation == '+')
            term.plus += number;
        else
            *(operation == '*' ? &term.times : &term.over) *= number;
        t += part;
        operation = *t;
    }
    return term;
}

static void write_word(const char *t, size_t length, struct config_values config, enum form form,
                       char text[WORD_BYTES])
{
    if (*t == '.' || form == WITH_NAMES) {
        snprintf(text, WORD_BYTES, "%.*s", (int)length, t);
        return;
    }
    const struct term term = parse_term(t, length, config);
    if (!term.letter)
        snprintf(text, WORD_BYTES, "%" PRId64, term.times / term.over + term.plus);
    else if (form == TO_MATCH || (term.times == 1 && term.plus == 0))
        snprintf(text, WORD_BYTES, "%c", term.letter);
    else if (term.plus > 0)
        snprintf(text, WORD_BYTES, "%c + %" PRId64, term.letter, term.plus);
    else
        snprintf(text, WORD_BYTES, "%" PRId64 "*%c", term.times, term.letter);
}

// The words of a shape up to its end or ';', without "|1".
static int list_words(const char *shape, struct config_values config, enum form form,
                      char words[MAX_WORDS][WORD_BYTES], bool or_one[MAX_WORDS])
{
    int n = 0;
    for (const char *t = shape; *t && *t != ';'; t += *t == ' ') {
        const size_t length = strcspn(t, " |;");
        char name[WORD_BYTES];
        const struct key *key = NULL;
        snprintf(name, sizeof name, "%.*s", (int)length, t);
        const struct int_list *ints =
            config.keys ? attncl__config_value(config.keys, config.settings, name, &key) : NULL;
        or_one[n] = t[length] == '|';
        if (ints && key->type == KEY_INTS && (form != WITH_NAMES || ints->n > 1))
            for (size_t i = 0; i < ints->n; ++i, or_one[n] = false)
                snprintf(words[n++], WORD_BYTES, "%" PRId64, ints->list[i]);
        else
            write_word(t, length, config, form, words[n++]);
        t += length + (t[length] == '|' ? 2 : 0);
    }
    return n;
}

static int list_axes(const struct port *port, const char *shape, struct config_values config,
                     enum form form, char words[MAX_WORDS][WORD_BYTES], bool or_one[MAX_WORDS])
{
    static const struct condition batch_first = {"batch_first", false, {"true"}};
    const int n = list_words(shape, config, form, words, or_one);
    if (port->batch_first && attncl__config_holds(config.keys, config.settings, &batch_first)) {
        char first[WORD_BYTES];
        memcpy(first, words[0], WORD_BYTES);
        memcpy(words[0], words[1], WORD_BYTES);
        memcpy(words[1], first, WORD_BYTES);
    }
    return n;
}

// -- shapes

const char *attncl__port_shape(const struct port *port, struct config_values config, int rank,
                               char text[PORT_SHAPE_BYTES])
{
    char words[MAX_WORDS][WORD_BYTES];
    bool or_one[MAX_WORDS];
    const char *second = strstr(port->shape, "; ");
    int n = second ? list_axes(port, second + 2, config, TO_MATCH, words, or_one) : 0;
    size_t used = 0;
    if (!second || n != rank)
        n = list_axes(port, port->shape, config, TO_MATCH, words, or_one);
    text[0] = '\0';
    for (int i = 0; i < n; ++i)
        used += (size_t)snprintf(text + used, PORT_SHAPE_BYTES - used, "%s%s%s", i ? " " : "",
                                 words[i], or_one[i] ? "|1" : "");
    return text;
}

static void write_shape(const struct port *port, const char *shape, struct config_values config,
                        bool symbols, struct strbuf *text)
{
    char words[MAX_WORDS][WORD_BYTES];
    bool or_one[MAX_WORDS];
    const int n =
        list_axes(port, shape, config, symbols ? WITH_NAMES : WITH_NUMBERS, words, or_one);
    attncl__strbuf_add(text, "[");
    for (int i = 0; i < n; ++i) {
        const char *plus = strchr(words[i], '+');
        const bool is_tight = plus && plus > words[i] && plus[-1] != ' ';
        attncl__strbuf_add(
            text, "%s%.*s%s%s%s", i ? ", " : "", (int)(is_tight ? plus - words[i] : WORD_BYTES),
            words[i], is_tight ? " + " : "", is_tight ? plus + 1 : "", or_one[i] ? " or 1" : "");
    }
    attncl__strbuf_add(text, "]");
}

void attncl__port_write_shape(const struct port *port, struct config_values config, bool symbols,
                              struct strbuf *text)
{
    const char *second = strstr(port->shape, "; ");
    write_shape(port, port->shape, config, symbols, text);
    if (second) {
        attncl__strbuf_add(text, " or ");
        write_shape(port, second + 2, config, symbols, text);
    }
}

int64_t attncl__port_below(const struct port *port, struct config_values config,
                           const struct axes *axes)
{
    const char *below = port->below;
    return !below                           ? INT32_MAX
           : isupper((unsigned char)*below) ? axes->of[(unsigned char)*below]
                                            : read_key(config, below, strlen(below));
}

// -- tables

bool attncl__port_applies(const struct port *port, struct config_values config)
{
    return !port->when.key || attncl__config_holds(config.keys, config.settings, &port->when);
}

bool attncl__port_is_named(const struct port *port, const char *name)
{
    const char *star = strchr(port->name, '*');
    return name && (star ? strncmp(port->name, name, (size_t)(star - port->name)) == 0
                         : strcmp(port->name, name) == 0);
}

const struct port *attncl__port_find(const struct port *table, struct config_values config,
                                     const char *name)
{
    for (const struct port *port = table; port && port->type; ++port)
        if (attncl__port_is_named(port, name) && attncl__port_applies(port, config))
            return port;
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

// SPDX-License-Identifier: MIT
//
// Inputs that are made up, and what their sizes say about an output's.

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "model/arch.h"

// Sizes of the free axes in each pass.  Their ratios differ from axis to axis, so that an extent in
// proportion to one follows no other.  T and S come first in the limits of sequences: they are short.
static const struct axis {
    char letter;
    int64_t size[PROBE_PASSES];
} axes[] = {
    {'T', {1, 2}},   {'S', {1, 3}},   {'B', {5, 9}},   {'Q', {7, 13}},
    {'K', {11, 21}}, {'N', {13, 27}}, {'M', {17, 35}}, {'C', {19, 29}},
    {'D', {23, 37}}, {'E', {29, 41}}, {'V', {31, 53}}, {AXES, {6, 8}},
};

enum { N_AXES = sizeof axes / sizeof axes[0], N_LIMITED = 2 };

const char *attncl__axis_text(int64_t dim, char text[AXIS_TEXT_BYTES])
{
    const int64_t times = -dim / 256 + 1;
    const char letter = (char)(-dim % 256);
    if (dim >= 0)
        snprintf(text, AXIS_TEXT_BYTES, "%" PRId64, dim);
    else if (letter == AXES)
        snprintf(text, AXIS_TEXT_BYTES, "...");
    else if (times > 1)
        snprintf(text, AXIS_TEXT_BYTES, "%" PRId64 "*%c", times, letter);
    else
        snprintf(text, AXIS_TEXT_BYTES, "%c", letter);
    return text;
}

static int64_t size_of(const struct probe *probe, int64_t dim)
{
    const int64_t letter = -dim % 256, times = -dim / 256 + 1;
    for (int i = 0; i < N_AXES; ++i)
        if (axes[i].letter == letter)
            return times * axes[i].size[i < N_LIMITED && probe->is_short ? 0 : probe->pass];
    assert(!"an axis without a size");
    return 0;
}

const attncl_array *attncl__probe_find(const struct probe *probe, const char *name)
{
    for (size_t i = 0; i < probe->n_inputs; ++i)
        if (strcmp(probe->inputs[i].name, name) == 0)
            return &probe->inputs[i].array;
    return NULL;
}

static const char *type_text(attncl_dtype dtype)
{
    switch (dtype) {
    case ATTNCL_I32:
    case ATTNCL_I64:
        return "I64 or I32";
    case ATTNCL_U8:
        return "BOOL or U8";
    default:
        return attncl_dtype_name(dtype);
    }
}

static struct probe_value *add(const struct probe *probe, struct probe_value *list, size_t *n,
                               const char *name, attncl_dtype dtype, int rank, const int64_t *dim)
{
    assert(*n < PROBE_MAX);
    struct probe_value *value = &list[(*n)++];
    *value = (struct probe_value){.name = name, .array = {.name = name, .dtype = dtype}};
    // Numbers of all axes that an op may be told of; indices leave one for what they select.
    const int any_rank = dtype == ATTNCL_F32 ? ATTNCL_MAX_RANK : 1;
    value->array.rank = rank < 0 ? any_rank : rank;
    for (int i = 0; i < value->array.rank; ++i) {
        const int64_t extent = rank < 0 ? AXIS(AXES) : dim[i];
        value->array.dim[i] = extent < 0 ? size_of(probe, extent) : extent;
    }
    return value;
}

struct probe_value *attncl__probe_input(struct probe *probe, const char *name, attncl_dtype dtype,
                                        int rank, const int64_t *dim)
{
    struct probe_value *value = add(probe, probe->inputs, &probe->n_inputs, name, dtype, rank, dim);
    value->type = type_text(dtype);
    value->optional = probe->optional && strcmp(probe->optional, name) == 0;
    return value;
}

struct probe_value *attncl__probe_output(struct probe *probe, const char *name, attncl_dtype dtype,
                                         int rank, const int64_t *dim)
{
    struct probe_value *value =
        add(probe, probe->outputs, &probe->n_outputs, name, dtype, rank, dim);
    value->type = attncl_dtype_name(dtype);
    return value;
}

static bool is_in_proportion(const struct axis *axis, int64_t a, int64_t b)
{
    return a % axis->size[0] == 0 && a * axis->size[1] == b * axis->size[0];
}

// The extents of one axis in both passes.
static void add_extent(struct strbuf *text, int64_t a, int64_t b, bool is_short,
                       const struct symbols *symbols)
{
    if (a == b) {
        attncl__symbols_write(symbols, a, text);
        return;
    }
    for (int i = is_short ? N_LIMITED : 0; i < N_AXES; ++i) {
        if (!is_in_proportion(&axes[i], a, b))
            continue;
        if (a > axes[i].size[0])
            attncl__symbols_write(symbols, a / axes[i].size[0], text);
        attncl__strbuf_add(text, "%s%c", a > axes[i].size[0] ? "*" : "", axes[i].letter);
        return;
    }
    for (int i = is_short ? N_LIMITED : 0; i < N_AXES; ++i) {
        if (b - a != axes[i].size[1] - axes[i].size[0])
            continue;
        attncl__strbuf_add(text, "%c + ", axes[i].letter);
        attncl__symbols_write(symbols, a - axes[i].size[0], text);
        return;
    }
    attncl__strbuf_add(text, "any");
}

void attncl__probe_shape(struct strbuf *text, const struct probe_value *first,
                         const struct probe_value *second, bool is_short,
                         const struct symbols *symbols)
{
    const attncl_array *a = &first->array, *b = &second->array;
    const struct axis *any = &axes[N_AXES - 1];
    bool in_any = false;
    const char *comma = "";
    attncl__strbuf_add(text, "[");
    for (int i = 0; i < a->rank; ++i) {
        const bool is_any = a->dim[i] == any->size[0] && b->dim[i] == any->size[1];
        if (is_any && in_any)
            continue;
        in_any = is_any;
        attncl__strbuf_add(text, "%s", comma);
        if (is_any)
            attncl__strbuf_add(text, "...");
        else
            add_extent(text, a->dim[i], b->dim[i], is_short, symbols);
        attncl__strbuf_add(text, "%s", first->or_one >> i & 1 ? " or 1" : "");
        comma = ", ";
    }
    attncl__strbuf_add(text, "]");
    if (first->or_shape)
        attncl__strbuf_add(text, " or %s", first->or_shape);
}

attncl_status attncl__arch_probe(const struct arch_class *arch, const void *settings,
                                 struct probe *probe, attncl_graph *g)
{
    const attncl_array any = {.name = arch->any_inputs};
    struct build b = {.graph = g,
                      .params = {.graph = g},
                      .inputs = &any,
                      .n_inputs = arch->any_inputs ? 1 : 0,
                      .probe = probe};
    attncl_shape shape;
    const char *name;
    if (arch->describe)
        return arch->describe(&b, settings);
    TRY(arch->build(&b, settings));
    TRY(attncl_graph_status(g));
    for (size_t i = 0; (name = attncl_graph_output_name(g, i, &shape)) != NULL; ++i)
        attncl__probe_output(probe, name, shape.dtype, shape.rank, shape.dim);
    return ATTNCL_OK;
}

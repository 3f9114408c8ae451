// SPDX-License-Identifier: MIT
//
// Parameters: listed and checked, then file -> device once, then values for every graph.

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/desc.h"
#include "base/dtype.h"
#include "base/try.h"
#include "layer/layer.h"
#include "model/params.h"

void attncl__param_table_free(struct param_table *table)
{
    for (size_t i = 0; i < table->n; ++i) {
        attncl_tensor_destroy(table->list[i].tensor);
        attncl__free(table->list[i].name);
    }
    for (size_t i = 0; i < table->n_pieces; ++i)
        attncl__free(table->pieces[i].name);
    attncl__free(table->pieces);
    attncl__free(table->list);
    *table = (struct param_table){0};
}

void attncl__params_enter(struct params *p, const char *fmt, ...)
{
    char name[64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);

    assert(p->depth < PARAM_MAX_DEPTH);
    const size_t used = strlen(p->prefix);
    p->marks[p->depth++] = used;
    snprintf(p->prefix + used, sizeof p->prefix - used, "%s.", name);
    if (p->graph)
        attncl_graph_push_scope(p->graph, name);
}

void attncl__params_leave(struct params *p)
{
    assert(p->depth > 0);
    p->prefix[p->marks[--p->depth]] = '\0';
    if (p->graph)
        attncl_graph_pop_scope(p->graph);
}

static void full_name(const struct params *p, const char *name, char ret[PARAM_NAME_BYTES])
{
    snprintf(ret, PARAM_NAME_BYTES, "%.160s%.80s", p->prefix, name);
}

static const struct param *find_loaded(const struct params *p, const char *name)
{
    const struct param_table *t = p->table;
    for (size_t i = 0; i < t->n; ++i) {
        const size_t at = (p->next + i) % t->n; // the order of loading: nearly always the first
        if (strcmp(t->list[at].name, name) == 0)
            return &t->list[at];
    }
    return NULL;
}

static attncl_value fetch(struct params *p, const char *name)
{
    const struct param *param = find_loaded(p, name);
    if (!param)
        return GRAPH_FAIL(p->graph, ATTNCL_ERR_STATE, "parameter %s was not loaded", name);
    p->next = (size_t)(param - p->table->list) + 1;
    return attncl_graph_weight(p->graph, param->tensor);
}

// Uploads the elements under a name and puts them at the table's end.
static attncl_status keep(struct param_table *t, const char *name, int rank, const int64_t *dim,
                          attncl_dtype dtype, const void *data)
{
    if (t->n == t->capacity) {
        const size_t capacity = t->capacity ? t->capacity * 2 : 32;
        struct param *list = attncl__grow_array(t->list, capacity, sizeof *list);
        REQUIRE(list, ATTNCL_ERR_NO_MEMORY, "parameter table of %zu", capacity);
        t->list = list;
        t->capacity = capacity;
    }
    struct param param = {.name = attncl__copy_text(name)};
    REQUIRE(param.name, ATTNCL_ERR_NO_MEMORY, "name of parameter %s", name);
    const attncl_status status =
        attncl_tensor_create(t->context, ATTNCL_F32, rank, dim, dtype, data, &param.tensor);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("parameter %s", name);
        attncl__free(param.name);
        return status;
    }
    t->list[t->n++] = param;
    return ATTNCL_OK;
}

static attncl_status load(const struct params *p, const char *name, int rank, const int64_t *dim)
{
    const attncl_array *a = attncl_safetensors_find(p->file, name);
    assert(a); // the list has been checked
    return keep(p->table, name, rank, dim, a->dtype, a->data);
}

// In a graph without a table: only the shape is known.
static attncl_value in_graph(struct params *p, const char *name, int rank, const int64_t *dim)
{
    return p->table ? fetch(p, name) : attncl__graph_placeholder(p->graph, ATTNCL_F32, rank, dim);
}

attncl_value attncl__param(struct params *p, const char *name, int rank, const int64_t *dim)
{
    char full[PARAM_NAME_BYTES];
    full_name(p, name, full);
    if (p->graph)
        return in_graph(p, full, rank, dim);
    if (p->status == ATTNCL_OK)
        p->status = p->list ? attncl__param_list_add(p->list, full, rank, dim, PARAM_REQUIRED)
                            : load(p, full, rank, dim);
    return ATTNCL_NONE_VALUE;
}

bool attncl__param_given(const struct params *p, const char *name)
{
    char full[PARAM_NAME_BYTES];
    full_name(p, name, full);
    if (p->graph)
        return !p->table || find_loaded(p, full);
    return p->file && attncl_safetensors_find(p->file, full);
}

attncl_value attncl__param_optional(struct params *p, const char *name, int rank,
                                    const int64_t *dim)
{
    char full[PARAM_NAME_BYTES];
    full_name(p, name, full);
    if (p->list && p->status == ATTNCL_OK)
        p->status = attncl__param_list_add(p->list, full, rank, dim, PARAM_OPTIONAL_WEIGHT);
    if (p->list || !attncl__param_given(p, name))
        return ATTNCL_NONE_VALUE;
    return attncl__param(p, name, rank, dim);
}

// 3 unless the file's table has two axes.
static int positions_rank(const struct params *p, const char *full)
{
    const attncl_array *a = p->file ? attncl_safetensors_find(p->file, full) : NULL;
    return a && a->rank == 2 ? 2 : 3;
}

attncl_value attncl__param_positions(struct params *p, const char *name, int64_t max_len,
                                     int64_t width)
{
    char full[PARAM_NAME_BYTES];
    full_name(p, name, full);
    return positions_rank(p, full) == 2 ? PARAM(p, name, max_len, width)
                                        : PARAM(p, name, max_len, 1, width);
}

struct param_stack attncl__param_stack_begin(struct params *p, const char *name, int64_t width)
{
    return (struct param_stack){.p = p, .name = name, .width = width};
}

// Reserves `count` more elements: grown as the file's parameters come, however many are announced.
static attncl_status reserve_rows(struct param_stack *s, size_t used, size_t count)
{
    size_t need;
    REQUIRE(ckd_add_size(used, count, &need), ATTNCL_ERR_NO_MEMORY, "parameter %s", s->name);
    if (need <= s->capacity)
        return ATTNCL_OK;
    const size_t capacity = need > 2 * s->capacity ? need : 2 * s->capacity;
    float *rows = attncl__grow_array(s->rows, capacity, sizeof *rows);
    REQUIRE(rows, ATTNCL_ERR_NO_MEMORY, "%zu elements of parameter %s", capacity, s->name);
    s->rows = rows;
    s->capacity = capacity;
    return ATTNCL_OK;
}

// Remembers where a parameter of the file is in the stack, which will be the table's next.
static attncl_status note_piece(struct param_table *t, const char *name, int64_t first,
                                int64_t n_rows)
{
    if (t->n_pieces == t->pieces_capacity) {
        const size_t capacity = t->pieces_capacity ? t->pieces_capacity * 2 : 16;
        struct param_piece *pieces = attncl__grow_array(t->pieces, capacity, sizeof *pieces);
        REQUIRE(pieces, ATTNCL_ERR_NO_MEMORY, "parameter table of %zu", capacity);
        t->pieces = pieces;
        t->pieces_capacity = capacity;
    }
    const struct param_piece piece = {attncl__copy_text(name), t->n, first, n_rows};
    REQUIRE(piece.name, ATTNCL_ERR_NO_MEMORY, "name of parameter %s", name);
    t->pieces[t->n_pieces++] = piece;
    return ATTNCL_OK;
}

static attncl_status stack_load(struct param_stack *s, const char *full, int64_t n_rows)
{
    const int64_t each = s->width ? s->width : 1;
    const size_t used = (size_t)(s->n_rows * each), count = (size_t)(n_rows * each);
    TRY(reserve_rows(s, used, count));
    if (full) {
        const attncl_array *a = attncl_safetensors_find(s->p->file, full);
        assert(a); // the list has been checked
        TRY(note_piece(s->p->table, full, s->n_rows, n_rows));
        return attncl__convert(a->dtype, a->data, ATTNCL_F32, s->rows + used, count);
    }
    memset(s->rows + used, 0, count * sizeof *s->rows);
    return ATTNCL_OK;
}

void attncl__param_stack_add(struct param_stack *s, const char *name, int64_t n_rows)
{
    struct params *p = s->p;
    const int64_t dim[2] = {n_rows, s->width};
    char full[PARAM_NAME_BYTES];
    if (name)
        full_name(p, name, full);
    if (p->list && name && p->status == ATTNCL_OK)
        p->status = attncl__param_list_add(p->list, full, s->width ? 2 : 1, dim, PARAM_REQUIRED);
    else if (!p->graph && !p->list && p->status == ATTNCL_OK)
        p->status = stack_load(s, name ? full : NULL, n_rows);
    s->n_rows += n_rows;
}

attncl_value attncl__param_stack_end(struct param_stack *s)
{
    struct params *p = s->p;
    const int64_t dim[2] = {s->n_rows, s->width};
    const int rank = s->width ? 2 : 1;
    char full[PARAM_NAME_BYTES];
    full_name(p, s->name, full);
    if (p->graph)
        return in_graph(p, full, rank, dim);
    if (!p->list && p->status == ATTNCL_OK)
        p->status = keep(p->table, full, rank, dim, ATTNCL_F32, s->rows);
    attncl__free(s->rows);
    s->rows = NULL;
    return ATTNCL_NONE_VALUE;
}

void attncl__param_linear(struct params *p, const char *name, int64_t out, int64_t in, bool bias,
                          attncl_value *weight_ret, attncl_value *bias_ret)
{
    attncl__params_enter(p, "%s", name);
    *weight_ret = PARAM(p, "weight", out, in);
    *bias_ret = PARAM_IF(bias, p, "bias", out);
    attncl__params_leave(p);
}

static attncl_status derive_sinusoid(const struct params *p, const char *name, int64_t n,
                                     int64_t width)
{
    const int64_t dim[3] = {n, 1, width};
    struct tensor_desc d;
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    TRY(attncl__desc_make(ATTNCL_F32, 3, dim, &d));
    TRY(attncl_context_device(p->table->context, &info));
    REQUIRE(attncl__desc_bytes(&d) <= info.max_buffer_bytes, ATTNCL_ERR_DEVICE_MEMORY,
            "%s %s takes %zu bytes, the device's largest buffer has %" PRIu64, name, SHAPE(&d),
            attncl__desc_bytes(&d), info.max_buffer_bytes);
    float *table = attncl__alloc_array((size_t)attncl__desc_count(&d), sizeof *table);
    REQUIRE(table, ATTNCL_ERR_NO_MEMORY, "%s %s", name, SHAPE(&d));
    attncl__sinusoid_fill(table, n, width);
    const attncl_status status = keep(p->table, name, 3, dim, ATTNCL_F32, table);
    attncl__free(table);
    return status;
}

attncl_value attncl__param_sinusoid(struct params *p, const char *name, int64_t max_len,
                                    int64_t n_needed, int64_t width)
{
    const int64_t dim[3] = {max_len, 1, width}, flat[2] = {max_len, width};
    char full[PARAM_NAME_BYTES];
    full_name(p, name, full);
    if (p->graph)
        return in_graph(p, full, 3, dim);
    if (p->status != ATTNCL_OK)
        return ATTNCL_NONE_VALUE;
    const int rank = positions_rank(p, full);
    if (p->list) {
        p->status =
            attncl__param_list_add(p->list, full, rank, rank == 2 ? flat : dim, PARAM_BUFFER);
        return ATTNCL_NONE_VALUE;
    }
    p->status = attncl_safetensors_find(p->file, full) ? load(p, full, rank, rank == 2 ? flat : dim)
                                                       : derive_sinusoid(p, full, n_needed, width);
    if (p->status == ATTNCL_OK)
        p->table->list[p->table->n - 1].fixed = true;
    return ATTNCL_NONE_VALUE;
}

void attncl__param_check_window(struct params *p, const char *name, int64_t n, int64_t window)
{
    char full[PARAM_NAME_BYTES];
    if (!p->list || p->status != ATTNCL_OK)
        return;
    full_name(p, name, full);
    p->status = attncl__param_list_add_window(p->list, full, n, window);
}

// SPDX-License-Identifier: MIT
//
// Parameters: list and check them, load them to the device once, then fetch them for every graph.

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layer/layer.h"
#include "model/config.h"
#include "model/params.h"

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

const char *attncl__params_name(struct params *p, const char *name)
{
    snprintf(p->full, sizeof p->full, "%.160s%.80s", p->prefix, name);
    return p->full;
}

static const struct param *find_loaded(const struct params *p, const char *name)
{
    const struct param_table *t = p->table;
    for (size_t i = 0; i < t->n; ++i) {
        const size_t at = (p->next + i) % t->n; // nearly always the first: same order as loading
        if (strcmp(t->list[at].name, name) == 0)
            return &t->list[at];
    }
    return NULL;
}

attncl_value attncl__params_fetch(struct params *p, const char *name)
{
    const struct param *param = find_loaded(p, name);
    if (!param)
        return GRAPH_FAIL(p->graph, ATTNCL_ERR_STATE, "parameter %s was not loaded", name);
    p->next = (size_t)(param - p->table->list) + 1;
    return attncl_graph_tensor(p->graph, param->tensor);
}

static attncl_status create_initial(const struct params *p, const char *name,
                                    const struct param_init *init, int rank, const int64_t *dim)
{
    struct tensor_desc d;
    TRY(attncl__desc_make(ATTNCL_F32, rank, dim, &d));
    const size_t count = (size_t)attncl__desc_count(&d);
    float *data = attncl__alloc_array(count, sizeof *data);
    REQUIRE(data, ATTNCL_ERR_NO_MEMORY, "%zu elements of parameter %s", count, name);
    attncl__initial_fill(p->initial, name, init, data, count);
    const attncl_status status =
        attncl__param_table_add(p->table, name, ATTNCL_F32, rank, dim, data);
    attncl__free(data);
    return status;
}

// Loads a quantised parameter; keep_narrow: it stays quantised on the device.
static attncl_status load_quantised(const struct params *p, const char *name, const attncl_array *a,
                                    int rank, const int64_t *dim, bool keep_narrow)
{
    attncl_status status = ATTNCL_OK;
    struct tensor_desc d;
    attncl_dtype dtype = ATTNCL_F32;
    int64_t stored[2];
    void *data = NULL;

    REQUIRE(!p->all_floats, ATTNCL_ERR_UNSUPPORTED,
            "parameter %s is in 8 or 4 bits, which are not trained; attncl convert --dtype f32 "
            "makes floats of it",
            name);
    if (keep_narrow) {
        TRY(attncl__param_read(p->file, a, &dtype, stored, &data));
    } else {
        TRY(attncl__desc_make(ATTNCL_F32, rank, dim, &d));
        data = attncl__alloc(attncl__desc_bytes(&d));
        REQUIRE(data, ATTNCL_ERR_NO_MEMORY, "%zu bytes of parameter %s", attncl__desc_bytes(&d),
                name);
        TRY_DONE(attncl__param_read_floats(p->file, a, data));
    }
    status = attncl__param_table_add(p->table, name, dtype, rank, dim, data);
done:
    attncl__free(data);
    return status;
}

// keep_narrow: elements of 16 bits or less keep their type on the device.
static attncl_status load_param(const struct params *p, const char *name,
                                const struct param_init *init, int rank, const int64_t *dim,
                                bool keep_narrow)
{
    if (attncl__param_table_find(p->table, name)) // a weight that is used twice
        return ATTNCL_OK;
    if (p->initial)
        return create_initial(p, name, init, rank, dim);
    const attncl_array *a = attncl_safetensors_find(p->file, name);
    assert(a); // the list has been checked
    if (a->dtype == ATTNCL_U8)
        return load_quantised(p, name, a, rank, dim, keep_narrow);
    const bool is_narrow = keep_narrow && !p->all_floats && attncl__is_16_bit(a->dtype);
    return attncl__param_table_load(p->table, name, is_narrow ? a->dtype : ATTNCL_F32, rank, dim,
                                    p->file, a);
}

static attncl_value add_param(struct params *p, const char *name, struct param_init init, int rank,
                              const int64_t *dim, bool keep_narrow)
{
    const char *full = attncl__params_name(p, name);
    if (p->graph)
        return attncl__params_fetch(p, full);
    if (p->status == ATTNCL_OK)
        p->status = p->list ? attncl__param_list_add(p->list, full, rank, dim,
                                                     keep_narrow ? PARAM_MAP : PARAM_REQUIRED)
                            : load_param(p, full, &init, rank, dim, keep_narrow);
    return ATTNCL_NONE_VALUE;
}

attncl_value attncl__param(struct params *p, const char *name, struct param_init init, int rank,
                           const int64_t *dim)
{
    return add_param(p, name, init, rank, dim, false);
}

attncl_value attncl__param_matrix(struct params *p, const char *name, struct param_init init,
                                  int64_t rows, int64_t columns)
{
    return add_param(p, name, init, 2, (const int64_t[]){rows, columns}, true);
}

bool attncl__param_given(struct params *p, const char *name)
{
    const char *full = attncl__params_name(p, name);
    return p->graph ? find_loaded(p, full) != NULL
                    : p->file && attncl_safetensors_find(p->file, full);
}

attncl_value attncl__param_optional(struct params *p, const char *name, int rank,
                                    const int64_t *dim)
{
    const char *full = attncl__params_name(p, name);
    if (p->list && p->status == ATTNCL_OK)
        p->status = attncl__param_list_add(p->list, full, rank, dim, PARAM_OPTIONAL_WEIGHT);
    if (p->list || !attncl__param_given(p, name))
        return ATTNCL_NONE_VALUE;
    return attncl__param(p, name, INIT_CONSTANT(0), rank, dim);
}

// The rank of a position table: 2 if the file's has two axes, else 3.
static int positions_rank(const struct params *p, const char *full)
{
    const attncl_array *a = p->file ? attncl_safetensors_find(p->file, full) : NULL;
    return a && a->rank == 2 ? 2 : 3;
}

attncl_value attncl__param_positions(struct params *p, const char *name, int64_t max_len,
                                     int64_t width)
{
    const struct param_init init = INIT_CONSTANT(0);
    return positions_rank(p, attncl__params_name(p, name)) == 2
               ? PARAM(p, name, init, max_len, width)
               : PARAM(p, name, init, max_len, 1, width);
}

void attncl__param_linear(struct params *p, const char *name, int64_t out, int64_t in, bool bias,
                          attncl_value *weight_ret, attncl_value *bias_ret)
{
    const struct param_init init = attncl__init_fan_in(in);
    attncl__params_enter(p, "%s", name);
    *weight_ret = attncl__param_matrix(p, "weight", init, out, in);
    *bias_ret = PARAM_IF(bias, p, "bias", init, out);
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
    REQUIRE(attncl__desc_bytes(&d) <= CONFIG_MAX_TABLE_BYTES, ATTNCL_ERR_SHAPE,
            "%s %s takes %zu bytes, at most %d are computed", name, SHAPE(&d),
            attncl__desc_bytes(&d), CONFIG_MAX_TABLE_BYTES);
    float *table = attncl__alloc_array((size_t)attncl__desc_count(&d), sizeof *table);
    REQUIRE(table, ATTNCL_ERR_NO_MEMORY, "%s %s", name, SHAPE(&d));
    attncl__sinusoid_fill(table, n, width);
    const attncl_status status = attncl__param_table_add(p->table, name, ATTNCL_F32, 3, dim, table);
    attncl__free(table);
    return status;
}

attncl_value attncl__param_sinusoid(struct params *p, const char *name, int64_t max_len,
                                    int64_t n_needed, int64_t width)
{
    const int64_t dim[3] = {max_len, 1, width}, flat[2] = {max_len, width};
    const char *full = attncl__params_name(p, name);
    if (p->graph)
        return attncl__params_fetch(p, full);
    if (p->status != ATTNCL_OK)
        return ATTNCL_NONE_VALUE;
    const int rank = positions_rank(p, full);
    if (p->list) {
        p->status =
            attncl__param_list_add(p->list, full, rank, rank == 2 ? flat : dim, PARAM_BUFFER);
        return ATTNCL_NONE_VALUE;
    }
    p->status = p->file && attncl_safetensors_find(p->file, full)
                    ? load_param(p, full, NULL, rank, rank == 2 ? flat : dim, false)
                    : derive_sinusoid(p, full, n_needed, width);
    if (p->status == ATTNCL_OK)
        p->table->list[p->table->n - 1].fixed = true;
    return ATTNCL_NONE_VALUE;
}

void attncl__param_check_window(struct params *p, const char *name, int64_t n, int64_t window)
{
    if (p->list && p->status == ATTNCL_OK)
        p->status = attncl__param_list_add_window(p->list, attncl__params_name(p, name), n, window);
}

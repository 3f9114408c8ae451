// SPDX-License-Identifier: MIT
//
// Checks of layers' arguments: structs, inputs, axes.

#include <inttypes.h>

#include "base/alloc.h"
#include "base/struct.h"
#include "layer/layer.h"

bool attncl__layer_struct(attncl_graph *g, const char *type, void *to, size_t size,
                          const void *from)
{
    if (attncl__graph_failed(g))
        return false;
    const attncl_status status = attncl__struct_read(type, to, size, from);
    if (status != ATTNCL_OK)
        GRAPH_FAIL(g, status, "%s", attncl_last_error());
    return status == ATTNCL_OK;
}

void attncl__layer_struct_write(attncl_graph *g, const char *type, void *to, const void *from,
                                size_t size)
{
    const attncl_status status = attncl__struct_write(type, to, from, size);
    if (status != ATTNCL_OK)
        GRAPH_FAIL(g, status, "%s", attncl_last_error());
}

void *attncl__layer_structs(attncl_graph *g, const char *type, size_t size, const void *from,
                            size_t n)
{
    const size_t step = from && n > 0 ? *(const size_t *)from : size;
    unsigned char *list = attncl__alloc_array(n, size);
    if (!list) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%zu of %s", n, type);
        return NULL;
    }
    for (size_t i = 0; i < n; ++i) {
        const unsigned char *element = from ? (const unsigned char *)from + i * step : NULL;
        if (!attncl__layer_struct(g, type, list + i * size, size, element)) {
            attncl__free(list);
            return NULL;
        }
    }
    return list;
}

bool attncl__layer_check_absent(attncl_graph *g, attncl_value v, const char *name)
{
    if (attncl__given(v))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s is given, this layer has none", name);
    return !attncl__graph_failed(g);
}

bool attncl__layer_check_layout(attncl_graph *g, attncl_layout layout)
{
    if (layout != ATTNCL_LAYOUT_TIME_FIRST && layout != ATTNCL_LAYOUT_BATCH_FIRST)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "layout %d is unknown", (int)layout);
    return !attncl__graph_failed(g);
}

bool attncl__layer_check_heads(attncl_graph *g, int64_t n_heads, int64_t width)
{
    if (n_heads < 1 || n_heads > width || width % n_heads != 0)
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "C = %" PRId64 " cannot be cut into H = %" PRId64 " heads",
                   width, n_heads);
    return !attncl__graph_failed(g);
}

bool attncl__layer_shape(attncl_graph *g, attncl_value v, const char *name, struct tensor_desc *ret)
{
    if (attncl__graph_failed(g))
        return false;
    if (attncl__graph_is_foreign(g, v)) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s is a value of another graph", name);
        return false;
    }
    const struct tensor_desc *d = attncl__graph_desc(g, v);
    if (!d || v.id == 0) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s is missing", name);
        return false;
    }
    *ret = *d;
    return true;
}

bool attncl__layer_axes(attncl_graph *g, attncl_value v, const char *name, int rank,
                        const char *axes, struct tensor_desc *ret)
{
    if (!attncl__layer_shape(g, v, name, ret))
        return false;
    if (ret->rank != rank)
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "%s has shape %s, expected %s", name, SHAPE(ret), axes);
    return !attncl__graph_failed(g);
}

attncl_value attncl__store_rows(attncl_graph *g, attncl_value x, attncl_dtype dtype,
                                attncl_value state)
{
    const attncl_value stored =
        attncl__graph_add(g, &attncl__op_store_rows_fwd, NULL, IN(x, state));
    return attncl__is_16_bit(dtype) ? stored : x;
}

attncl_value attncl__layer_row_at(attncl_graph *g, attncl_value x, attncl_value position)
{
    return attncl__given(x) && attncl__given(position)
               ? attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x, position))
               : x;
}

// SPDX-License-Identifier: MIT
//
// Views: the same memory under another shape.

#include <inttypes.h>

#include "layer/layer.h"

attncl_value attncl_reshape(attncl_graph *g, attncl_value x, int rank, const int64_t *dim)
{
    struct tensor_desc d, view;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    const attncl_status status = attncl__desc_make(d.dtype, rank, dim, &view);
    if (status != ATTNCL_OK)
        return GRAPH_FAIL(g, status, "%s", attncl_last_error());
    if (attncl__desc_count(&view) != attncl__desc_count(&d))
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "shape %s cannot become %s", SHAPE(&d),
                          SHAPE(&view));
    if (!attncl__desc_contiguous(&d))
        x = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, IN(x));
    return attncl__graph_view(g, x, &view);
}

attncl_value attncl_slice(attncl_graph *g, attncl_value x, int axis, int64_t begin, int64_t end)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    if (axis < 0 || axis >= d.rank)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "axis %d of a value of rank %d", axis, d.rank);
    if (begin < 0 || begin > end || end > d.dim[axis])
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                          "elements [%" PRId64 ", %" PRId64 ") of axis %d, which has %" PRId64,
                          begin, end, axis, d.dim[axis]);
    d.dim[axis] = end - begin;
    d.start = begin * d.stride[axis];
    return attncl__graph_view(g, x, &d);
}

attncl_value attncl_permute(attncl_graph *g, attncl_value x, const int *order)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;

    struct tensor_desc view = d;
    unsigned seen = 0;
    for (int i = 0; i < d.rank; ++i) {
        if (order[i] < 0 || order[i] >= d.rank || (seen >> order[i] & 1u))
            return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT,
                              "axis %d at position %d is no permutation of %d axes", order[i], i,
                              d.rank);
        seen |= 1u << order[i];
        view.dim[i] = d.dim[order[i]];
        view.stride[i] = d.stride[order[i]];
    }
    view.start = 0;
    return attncl__graph_view(g, x, &view);
}

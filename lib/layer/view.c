// SPDX-License-Identifier: MIT
//
// Views (the same memory with another shape), and concatenation.

#include <inttypes.h>

#include "base/alloc.h"
#include "layer/layer.h"

attncl_value attncl_reshape(attncl_graph *g, attncl_value x, int rank, const int64_t *dim)
{
    struct tensor_desc d, view;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    if (!dim && rank > 0)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "dim is NULL");
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
    if (!order && d.rank > 0)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "order is NULL");

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

// -- concatenation along any axis.  The op concatenates up to 8 values [A, M_i, C] along the middle
// axis; n values take log8 n passes.

enum { AT_ONCE = 8 };

static bool check_values(attncl_graph *g, size_t n, const attncl_value *values, int axis,
                         struct tensor_desc *ret)
{
    if (n < 1 || !values) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%zu values to concat, must be at least 1", n);
        return false;
    }
    if (!attncl__layer_shape(g, values[0], "value 0", ret))
        return false;
    if (axis < 0 || axis >= ret->rank) {
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "axis %d of a value of rank %d", axis, ret->rank);
        return false;
    }
    for (size_t i = 1; i < n; ++i) {
        struct tensor_desc d, like;
        if (!attncl__layer_shape(g, values[i], "a value to concat", &d))
            return false;
        like = d;
        like.dim[axis] = ret->dim[axis];
        if (!attncl__desc_same_shape(&like, ret)) {
            GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                       "value %zu is %s, value 0 is %s: only axis %d may differ", i, SHAPE(&d),
                       SHAPE(ret), axis);
            return false;
        }
    }
    return true;
}

// One pass: replaces the `n` values by fewer, at the front of the list.  Returns how many.
static size_t concat_groups(attncl_graph *g, attncl_value *list, size_t n)
{
    size_t n_left = 0;
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t left = n - first;
        list[n_left++] = left == 1
                             ? list[first]
                             : attncl__graph_add(g, &attncl__op_concat_fwd, NULL, list + first,
                                                 (int)(left < AT_ONCE ? left : AT_ONCE));
    }
    return n_left;
}

attncl_value attncl_concat(attncl_graph *g, size_t n, const attncl_value *values, int axis)
{
    struct tensor_desc d;
    if (attncl__graph_failed(g) || !check_values(g, n, values, axis, &d))
        return ATTNCL_NONE_VALUE;
    if (n == 1)
        return values[0];
    attncl_value *list = attncl__alloc_array(n, sizeof *list);
    if (!list)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%zu values to concat", n);

    int64_t dim[3] = {1, 0, 1};
    for (int i = 0; i < d.rank; ++i)
        if (i != axis)
            dim[i < axis ? 0 : 2] *= d.dim[i];
    d.dim[axis] = 0;
    for (size_t i = 0; i < n; ++i) {
        dim[1] = attncl_graph_shape(g, values[i]).dim[axis];
        d.dim[axis] += dim[1];
        list[i] = attncl_reshape(g, values[i], 3, dim);
    }
    while (n > 1)
        n = concat_groups(g, list, n);
    const attncl_value y = list[0];
    attncl__free(list);
    return attncl_reshape(g, y, d.rank, d.dim);
}

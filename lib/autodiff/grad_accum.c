// SPDX-License-Identifier: MIT
//
// Accumulation of gradients.  A value may be used several times, as a whole and through views.  The
// gradient of a view of all elements (a reshape, a permutation) is permuted to the base's layout
// and added; those of views of some elements are collected (view_grads.c) until the sum is requested.

#include "autodiff/internal.h"

#include <stdlib.h>

static int by_tensor(const void *a, const void *b)
{
    const struct value *x = *(const struct value *const *)a, *y = *(const struct value *const *)b;

    if (x->tensor != y->tensor)
        return (uintptr_t)x->tensor < (uintptr_t)y->tensor ? -1 : 1;
    return x < y ? -1 : x > y;
}

// A tensor that was added to the graph several times has one gradient, that of its first value.
static attncl_status unify_tensors(struct grad_accum *a)
{
    const struct value *values = a->g->values;
    size_t n = 0;
    const struct value **list = attncl__alloc_array((size_t)a->n_values, sizeof *list);
    REQUIRE(list, ATTNCL_ERR_NO_MEMORY, "gradients of %d values", a->n_values);

    for (int i = 1; i < a->n_values; ++i)
        if (values[i].kind == VALUE_TENSOR)
            list[n++] = &values[i];
    qsort(list, n, sizeof *list, by_tensor);
    for (size_t i = 1; i < n; ++i)
        if (list[i]->tensor == list[i - 1]->tensor)
            a->root[list[i] - values] = a->root[list[i - 1] - values];
    attncl__free(list);
    return ATTNCL_OK;
}

attncl_status attncl__grad_accum_begin(struct grad_accum *a, attncl_graph *g)
{
    const size_t n = (size_t)g->n_values;

    *a = (struct grad_accum){.g = g, .n_values = g->n_values};
    a->root = attncl__alloc_array(n, sizeof *a->root);
    a->slots = attncl__alloc_array(n, sizeof *a->slots);
    REQUIRE(a->root && a->slots, ATTNCL_ERR_NO_MEMORY, "gradients of %zu values", n);
    for (int i = 0; i < a->n_values; ++i) {
        a->root[i] = i;
        a->slots[i] = (struct grad_slot){.whole = 0, .first_view_grad = -1};
    }
    TRY(unify_tensors(a));
    for (int i = 0; i < a->n_values; ++i)
        a->root[i] = a->root[g->values[i].base];
    return ATTNCL_OK;
}

void attncl__grad_accum_free(struct grad_accum *a)
{
    attncl__free(a->root);
    attncl__free(a->slots);
    attncl__view_grads_free(&a->view_grads);
}

// The same elements, contiguous, in the shape of `like`.
static attncl_value reshaped(attncl_graph *g, attncl_value x, const struct tensor_desc *like)
{
    const struct tensor_desc *d = attncl__graph_desc(g, x);
    struct tensor_desc view;

    if (!d || attncl__desc_same_shape(d, like))
        return x;
    assert(attncl__desc_count(d) == attncl__desc_count(like));
    const attncl_status status = attncl__desc_make(d->dtype, like->rank, like->dim, &view);
    assert(status == ATTNCL_OK);
    (void)status;
    if (!attncl__desc_contiguous(d))
        x = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &x, 1);
    return attncl__graph_view(g, x, &view);
}

// The view's axes of more than one element, sorted by descending stride.  Returns their number.
static int axes_in_memory(const struct tensor_desc *view, int axis[ATTNCL_MAX_RANK])
{
    int n = 0;

    for (int i = 0; i < view->rank; ++i) {
        if (view->dim[i] == 1)
            continue;
        int at = n++;
        for (; at > 0 && view->stride[axis[at - 1]] < view->stride[i]; --at)
            axis[at] = axis[at - 1];
        axis[at] = i;
    }
    return n;
}

// True when the view covers every element of its base, in any order.
static bool covers_base(const struct tensor_desc *view, const struct tensor_desc *base)
{
    int axis[ATTNCL_MAX_RANK];
    const int n = axes_in_memory(view, axis);
    int64_t expect = 1;

    if (view->start != 0 || attncl__desc_count(view) != attncl__desc_count(base))
        return false;
    for (int i = n - 1; i >= 0; --i) {
        if (view->stride[axis[i]] != expect)
            return false;
        expect *= view->dim[axis[i]];
    }
    return true;
}

// The gradient of a base from that of a view of all its elements: the axes in memory order, then
// reshaped to the base's shape.
static attncl_value unpermute_grad(attncl_graph *g, attncl_value gradient,
                                   const struct tensor_desc *view, const struct tensor_desc *base)
{
    const struct tensor_desc *d = attncl__graph_desc(g, gradient);
    int axis[ATTNCL_MAX_RANK];

    if (!d)
        return ATTNCL_NONE_VALUE;
    struct tensor_desc unpermuted = {.dtype = d->dtype, .rank = axes_in_memory(view, axis)};
    bool same_order = true;
    for (int i = 0; i < unpermuted.rank; ++i) {
        unpermuted.dim[i] = d->dim[axis[i]];
        unpermuted.stride[i] = d->stride[axis[i]];
        same_order = same_order && (i == 0 || axis[i] > axis[i - 1]);
    }
    return reshaped(g, same_order ? gradient : attncl__graph_view(g, gradient, &unpermuted), base);
}

void attncl__grad_accum_add(struct grad_accum *a, int value, attncl_value gradient)
{
    if (attncl__graph_failed(a->g) || gradient.id == 0)
        return;
    assert(value < a->n_values);
    // Copies: adding nodes moves the values.
    const struct tensor_desc view = a->g->values[value].desc;
    const struct tensor_desc base = a->g->values[a->root[value]].desc;
    struct grad_slot *slot = &a->slots[a->root[value]];

    if (attncl__desc_count(&view) == 0)
        return;
    gradient = reshaped(a->g, gradient, &view);
    if (covers_base(&view, &base))
        slot->whole =
            attncl__grad_sum(a->g, slot->whole, unpermute_grad(a->g, gradient, &view, &base)).id;
    else
        attncl__view_grads_add(&a->view_grads, a->g, a->root[value], &view, gradient,
                               &slot->first_view_grad);
}

bool attncl__grad_accum_any(const struct grad_accum *a, int value)
{
    const struct grad_slot *slot = &a->slots[a->root[value]];
    return slot->whole != 0 || slot->first_view_grad >= 0;
}

attncl_value attncl__grad_accum_get(struct grad_accum *a, int value)
{
    const int root = a->root[value];
    const struct tensor_desc base = a->g->values[root].desc;
    struct grad_slot *slot = &a->slots[root];

    if (slot->first_view_grad < 0)
        return attncl__graph_handle(a->g, slot->whole);
    const attncl_value y =
        attncl__view_grads_sum(&a->view_grads, a->g, slot->first_view_grad, slot->whole, &base);
    slot->whole = reshaped(a->g, y, &base).id;
    slot->first_view_grad = -1;
    return attncl__graph_handle(a->g, slot->whole);
}

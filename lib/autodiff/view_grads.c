// SPDX-License-Identifier: MIT
//
// Gradients of views of some elements.  They are scattered into their base together: ten at a time,
// sorted by address, each time into no more than the range they span, so that T slices of a sequence
// cost about log10 T passes over it instead of T.

#include "autodiff/internal.h"

#include <stdlib.h>
#include <string.h>

void attncl__view_grads_free(struct view_grads *v)
{
    attncl__free(v->list);
    attncl__free(v->buckets);
}

attncl_value attncl__grad_sum(attncl_graph *g, int a, attncl_value b)
{
    return a ? attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(attncl__graph_handle(g, a), b))
             : b;
}

// One past the last element of a view.
static int64_t end_of(const struct tensor_desc *view)
{
    int64_t last = view->start;

    for (int i = 0; i < view->rank; ++i)
        last += (view->dim[i] - 1) * view->stride[i];
    return last + 1;
}

static bool same_view(const struct tensor_desc *a, const struct tensor_desc *b)
{
    return a->start == b->start && attncl__desc_same_shape(a, b) &&
           memcmp(a->stride, b->stride, (size_t)a->rank * sizeof a->stride[0]) == 0;
}

static size_t bucket_of(const struct view_grads *v, int root, const struct tensor_desc *view)
{
    uint64_t hash = (uint64_t)root * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)view->start;

    for (int i = 0; i < view->rank; ++i)
        hash = (hash ^ (uint64_t)view->dim[i] ^ (uint64_t)view->stride[i] << 24) *
               UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32) % v->capacity;
}

static void link(struct view_grads *v, int i)
{
    int *const bucket = &v->buckets[bucket_of(v, v->list[i].root, &v->list[i].view)];

    v->list[i].next_hash = *bucket;
    *bucket = i;
}

// Space for one more, with the buckets that go with it.
static bool grow(struct view_grads *v, attncl_graph *g)
{
    if ((size_t)v->n < v->capacity)
        return true;
    struct view_grad *list = attncl__grow_list(v->list, (size_t)v->n, &v->capacity, sizeof *list);
    if (list)
        v->list = list;
    int *buckets = list ? attncl__alloc_array(v->capacity, sizeof *buckets) : NULL;
    if (!buckets) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%d gradients of views", v->n);
        return false;
    }
    attncl__free(v->buckets);
    v->buckets = buckets;
    memset(buckets, -1, v->capacity * sizeof *buckets);
    for (int i = 0; i < v->n; ++i)
        link(v, i);
    return true;
}

void attncl__view_grads_add(struct view_grads *v, attncl_graph *g, int root,
                            const struct tensor_desc *view, attncl_value gradient, int *first)
{
    if (!grow(v, g))
        return;
    for (int i = v->buckets[bucket_of(v, root, view)]; i >= 0; i = v->list[i].next_hash) {
        if (v->list[i].root != root || !same_view(&v->list[i].view, view))
            continue;
        v->list[i].value = attncl__grad_sum(g, v->list[i].value, gradient).id;
        return;
    }
    v->list[v->n] = (struct view_grad){.view = *view,
                                       .low = view->start,
                                       .high = end_of(view),
                                       .value = gradient.id,
                                       .next = *first,
                                       .root = root};
    link(v, v->n);
    *first = v->n++;
}

static int by_address(const void *a, const void *b)
{
    const struct view_grad *x = a, *y = b;

    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

// Sums `n` view gradients into one that fills a contiguous range: theirs, or the base's when no
// others remain.
static struct view_grad scatter(attncl_graph *g, const struct view_grad *list, int n, int64_t low,
                                int64_t high)
{
    struct view_scatter_add_fwd_params params = {.count = high - low};
    attncl_value in[VIEW_SCATTER_ADD_MAX_IN];

    for (int i = 0; i < n; ++i) {
        params.view[i] = list[i].view;
        params.view[i].start -= low;
        in[i] = attncl__graph_handle(g, list[i].value);
    }
    const attncl_value y = attncl__graph_add(g, &attncl__op_view_scatter_add_fwd, &params, in, n);
    const struct tensor_desc line = {
        .dtype = ATTNCL_F32, .rank = 1, .dim = {high - low}, .stride = {1}, .start = low};
    return (struct view_grad){.view = line, .low = low, .high = high, .value = y.id};
}

// Scatters all `n` view gradients of the list; the one that remains fills the base.
static attncl_value scatter_all(attncl_graph *g, struct view_grad *list, int n, int64_t count)
{
    for (bool last = false; !last && !attncl__graph_failed(g);) {
        int n_left = 0;
        last = n <= VIEW_SCATTER_ADD_MAX_IN;
        qsort(list, (size_t)n, sizeof *list, by_address);
        for (int first = 0; first < n; first += VIEW_SCATTER_ADD_MAX_IN) {
            const int here =
                n - first < VIEW_SCATTER_ADD_MAX_IN ? n - first : VIEW_SCATTER_ADD_MAX_IN;
            int64_t high = 0;
            for (int i = first; i < first + here; ++i)
                high = list[i].high > high ? list[i].high : high;
            list[n_left++] =
                scatter(g, list + first, here, last ? 0 : list[first].low, last ? count : high);
        }
        n = n_left;
    }
    return attncl__graph_handle(g, list[0].value);
}

attncl_value attncl__view_grads_sum(struct view_grads *v, attncl_graph *g, int first, int whole,
                                    const struct tensor_desc *base)
{
    const int64_t count = attncl__desc_count(base);
    int n = 0;

    for (int i = first; i >= 0; i = v->list[i].next)
        ++n;
    struct view_grad *list = attncl__alloc_array((size_t)n + 1, sizeof *list);
    if (!list)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%d gradients of views", n);
    n = 0;
    for (int i = first; i >= 0; i = v->list[i].next) {
        list[n++] = v->list[i];
        v->list[i].root = -1;
    }
    if (whole)
        list[n++] = (struct view_grad){.view = *base, .high = count, .value = whole};
    const attncl_value y = scatter_all(g, list, n, count);
    attncl__free(list);
    return y;
}

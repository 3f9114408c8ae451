// SPDX-License-Identifier: MIT
//
// Sums of gradients.  A value may be used several times, as a whole and through views.  What comes
// by a view of all elements (a reshape, a permutation) is turned around and added; what comes by a
// view of some is a piece.  Pieces are put in their places together when the sum is asked for: ten
// at a time, in the order of memory, each time into no more than the stretch they span, so that T
// slices of a sequence cost about log10 T passes over it and not T.

#include "graph/arrivals.h"

#include <stdlib.h>

#include "base/alloc.h"

static int by_tensor(const void *a, const void *b)
{
    const struct value *x = *(const struct value *const *)a, *y = *(const struct value *const *)b;

    if (x->tensor != y->tensor)
        return (uintptr_t)x->tensor < (uintptr_t)y->tensor ? -1 : 1;
    return x < y ? -1 : x > y;
}

// A tensor that was given to the graph several times is one: the first of its values stands for
// all.
static attncl_status join_tensors(struct arrivals *a)
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

attncl_status attncl__arrivals_begin(struct arrivals *a, attncl_graph *g)
{
    const size_t n = (size_t)g->n_values;

    *a = (struct arrivals){.g = g, .n_values = g->n_values};
    a->root = attncl__alloc_array(n, sizeof *a->root);
    a->at = attncl__alloc_array(n, sizeof *a->at);
    REQUIRE(a->root && a->at, ATTNCL_ERR_NO_MEMORY, "gradients of %zu values", n);
    for (int i = 0; i < a->n_values; ++i) {
        a->root[i] = i;
        a->at[i] = (struct arrival){.whole = 0, .first_piece = -1};
    }
    TRY(join_tensors(a));
    for (int i = 0; i < a->n_values; ++i)
        a->root[i] = a->root[g->values[i].base];
    return ATTNCL_OK;
}

void attncl__arrivals_free(struct arrivals *a)
{
    attncl__free(a->root);
    attncl__free(a->at);
    attncl__free(a->pieces);
}

static attncl_value sum_of(attncl_graph *g, int a, attncl_value b)
{
    return a ? attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN({a}, b)) : b;
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

// The view's axes of more than one element, outermost in memory first.  Returns how many.
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

// True when the view shows every element of its base, in whatever order.
static bool shows_all(const struct tensor_desc *view, const struct tensor_desc *base)
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

// The gradient of a base from that of a view of all its elements: the axes back in the order of
// memory, then the base's shape.
static attncl_value turned_back(attncl_graph *g, attncl_value gradient,
                                const struct tensor_desc *view, const struct tensor_desc *base)
{
    const struct tensor_desc *d = attncl__graph_desc(g, gradient);
    int axis[ATTNCL_MAX_RANK];

    if (!d)
        return ATTNCL_NONE_VALUE;
    struct tensor_desc turned = {.dtype = d->dtype, .rank = axes_in_memory(view, axis)};
    bool same_order = true;
    for (int i = 0; i < turned.rank; ++i) {
        turned.dim[i] = d->dim[axis[i]];
        turned.stride[i] = d->stride[axis[i]];
        same_order = same_order && (i == 0 || axis[i] > axis[i - 1]);
    }
    return reshaped(g, same_order ? gradient : attncl__graph_view(g, gradient, &turned), base);
}

// One past the last element a view shows.
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

static void add_piece(struct arrivals *a, struct arrival *at, const struct tensor_desc *view,
                      attncl_value gradient)
{
    for (int i = at->first_piece; i >= 0; i = a->pieces[i].next) {
        if (!same_view(&a->pieces[i].view, view))
            continue;
        a->pieces[i].value = sum_of(a->g, a->pieces[i].value, gradient).id;
        return;
    }
    struct piece *pieces =
        attncl__graph_grow(a->pieces, a->n_pieces, &a->pieces_room, sizeof *pieces);
    if (!pieces) {
        GRAPH_FAIL(a->g, ATTNCL_ERR_NO_MEMORY, "%d gradients of views", a->n_pieces);
        return;
    }
    a->pieces = pieces;
    pieces[a->n_pieces] =
        (struct piece){*view, view->start, end_of(view), gradient.id, at->first_piece};
    at->first_piece = a->n_pieces++;
}

void attncl__arrivals_add(struct arrivals *a, int value, attncl_value gradient)
{
    if (attncl__graph_failed(a->g) || gradient.id == 0)
        return;
    assert(value < a->n_values);
    // Copies: adding nodes moves the values.
    const struct tensor_desc view = a->g->values[value].desc;
    const struct tensor_desc base = a->g->values[a->root[value]].desc;
    struct arrival *at = &a->at[a->root[value]];

    if (attncl__desc_count(&view) == 0)
        return;
    gradient = reshaped(a->g, gradient, &view);
    if (shows_all(&view, &base))
        at->whole = sum_of(a->g, at->whole, turned_back(a->g, gradient, &view, &base)).id;
    else
        add_piece(a, at, &view, gradient);
}

bool attncl__arrivals_any(const struct arrivals *a, int value)
{
    const struct arrival *at = &a->at[a->root[value]];
    return at->whole != 0 || at->first_piece >= 0;
}

static int in_memory(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

// `n` pieces as one piece that fills a stretch of memory: theirs, or the base's when they are all
// there are.
static struct piece place(attncl_graph *g, const struct piece *pieces, int n, int64_t low,
                          int64_t high)
{
    struct place_fwd_params params = {.count = high - low};
    attncl_value in[PLACE_MAX_IN];

    for (int i = 0; i < n; ++i) {
        params.view[i] = pieces[i].view;
        params.view[i].start -= low;
        in[i] = (attncl_value){pieces[i].value};
    }
    const attncl_value y = attncl__graph_add(g, &attncl__op_place_fwd, &params, in, n);
    const struct tensor_desc line = {
        .dtype = ATTNCL_F32, .rank = 1, .dim = {high - low}, .stride = {1}, .start = low};
    return (struct piece){.view = line, .low = low, .high = high, .value = y.id};
}

// Places all pieces of the list, `n` of them; what is left is one that fills the base.
static attncl_value place_all(attncl_graph *g, struct piece *list, int n, int64_t count)
{
    for (bool last = false; !last && !attncl__graph_failed(g);) {
        int n_left = 0;
        last = n <= PLACE_MAX_IN;
        qsort(list, (size_t)n, sizeof *list, in_memory);
        for (int first = 0; first < n; first += PLACE_MAX_IN) {
            const int here = n - first < PLACE_MAX_IN ? n - first : PLACE_MAX_IN;
            int64_t high = 0;
            for (int i = first; i < first + here; ++i)
                high = list[i].high > high ? list[i].high : high;
            list[n_left++] =
                place(g, list + first, here, last ? 0 : list[first].low, last ? count : high);
        }
        n = n_left;
    }
    return (attncl_value){list[0].value};
}

attncl_value attncl__arrivals_sum(struct arrivals *a, int value)
{
    const int root = a->root[value];
    const struct tensor_desc base = a->g->values[root].desc;
    struct arrival *at = &a->at[root];
    int n = 0;

    if (at->first_piece < 0)
        return (attncl_value){at->whole};
    for (int i = at->first_piece; i >= 0; i = a->pieces[i].next)
        ++n;
    struct piece *list = attncl__alloc_array((size_t)n + 1, sizeof *list);
    if (!list)
        return GRAPH_FAIL(a->g, ATTNCL_ERR_NO_MEMORY, "%d gradients of views", n);
    n = 0;
    for (int i = at->first_piece; i >= 0; i = a->pieces[i].next)
        list[n++] = a->pieces[i];
    if (at->whole)
        list[n++] = (struct piece){base, 0, attncl__desc_count(&base), at->whole, -1};
    const attncl_value y = place_all(a->g, list, n, attncl__desc_count(&base));
    attncl__free(list);
    at->whole = reshaped(a->g, y, &base).id;
    at->first_piece = -1;
    return (attncl_value){at->whole};
}

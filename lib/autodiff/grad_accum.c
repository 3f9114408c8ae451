// SPDX-License-Identifier: MIT
//
// Accumulation of gradients.  A value may be used several times, as a whole and through views.  The
// gradient of a view of all elements (a reshape, a permutation) is permuted to the base's layout and
// added immediately.  Gradients of partial views are collected until the sum is requested and then
// scattered together: ten at a time, sorted by address, into no more than the range they span.  The T
// slices of a sequence thus cost about log10 T passes over it instead of T.

#include "autodiff/internal.h"

#include <stdlib.h>
#include <string.h>

// The gradient of a partial view.
struct view_grad {
    struct tensor_desc view; // in elements of the base
    int64_t low, high;       // the view spans elements [low, high) of the base
    int value;               // the gradient
    int next;                // next gradient of a view of the same base; -1: none
    int root;                // the base's root; -1: already summed
    int next_in_bucket;      // -1: none
};

// A tensor that was added to the graph several times has one gradient: that of its first value.
static attncl_status unify_tensors(struct grad_accum *accum)
{
    const struct value *values = accum->g->values;
    size_t n = 0;
    const struct value **list = attncl__alloc_array((size_t)accum->n_values, sizeof *list);
    REQUIRE(list, ATTNCL_ERR_NO_MEMORY, "gradients of %d values", accum->n_values);

    for (int i = 1; i < accum->n_values; ++i)
        if (values[i].kind == VALUE_TENSOR)
            list[n++] = &values[i];
    qsort(list, n, sizeof *list, attncl__compare_by_tensor);
    for (size_t i = 1; i < n; ++i)
        if (list[i]->tensor == list[i - 1]->tensor)
            accum->root[list[i] - values] = accum->root[list[i - 1] - values];
    attncl__free(list);
    return ATTNCL_OK;
}

attncl_status attncl__grad_accum_begin(struct grad_accum *accum, attncl_graph *g)
{
    const size_t n = (size_t)g->n_values;

    *accum = (struct grad_accum){.g = g, .n_values = g->n_values};
    accum->root = attncl__alloc_array(n, sizeof *accum->root);
    accum->slots = attncl__alloc_array(n, sizeof *accum->slots);
    REQUIRE(accum->root && accum->slots, ATTNCL_ERR_NO_MEMORY, "gradients of %zu values", n);
    for (int i = 0; i < accum->n_values; ++i) {
        accum->root[i] = i;
        accum->slots[i] = (struct grad_slot){.whole = 0, .first_view_grad = -1};
    }
    TRY(unify_tensors(accum));
    for (int i = 0; i < accum->n_values; ++i)
        accum->root[i] = accum->root[g->values[i].base];
    return ATTNCL_OK;
}

void attncl__grad_accum_free(struct grad_accum *accum)
{
    attncl__free(accum->root);
    attncl__free(accum->slots);
    attncl__free(accum->view_grads);
    attncl__free(accum->buckets);
}

// Returns a + b; `a`, a value's id, may be 0.
static attncl_value add_gradients(attncl_graph *g, int a, attncl_value b)
{
    return a ? attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(attncl__graph_handle(g, a), b))
             : b;
}

static bool is_same_view(const struct tensor_desc *a, const struct tensor_desc *b)
{
    return a->start == b->start && attncl__desc_same_shape(a, b) &&
           memcmp(a->stride, b->stride, (size_t)a->rank * sizeof a->stride[0]) == 0;
}

static size_t find_bucket(const struct grad_accum *accum, int root, const struct tensor_desc *view)
{
    uint64_t hash = (uint64_t)root * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)view->start;

    for (int i = 0; i < view->rank; ++i)
        hash = (hash ^ (uint64_t)view->dim[i] ^ (uint64_t)view->stride[i] << 24) *
               UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32) % accum->view_grads_capacity;
}

static void add_to_bucket(struct grad_accum *accum, int i)
{
    struct view_grad *const v = &accum->view_grads[i];
    int *const bucket = &accum->buckets[find_bucket(accum, v->root, &v->view)];

    v->next_in_bucket = *bucket;
    *bucket = i;
}

// Makes space for one more view gradient and rebuilds the buckets when the list grows.
static bool reserve_view_grad(struct grad_accum *accum)
{
    const int n = accum->n_view_grads;

    if ((size_t)n < accum->view_grads_capacity)
        return true;
    int *buckets = GROW_LIST(accum->view_grads, n, accum->view_grads_capacity)
                       ? attncl__alloc_array(accum->view_grads_capacity, sizeof *buckets)
                       : NULL;
    if (!buckets) {
        GRAPH_FAIL(accum->g, ATTNCL_ERR_NO_MEMORY, "%d gradients of views", n);
        return false;
    }
    attncl__free(accum->buckets);
    accum->buckets = buckets;
    memset(buckets, -1, accum->view_grads_capacity * sizeof *buckets);
    for (int i = 0; i < n; ++i)
        add_to_bucket(accum, i);
    return true;
}

// The gradients of equal views are summed immediately.
static void add_view_grad(struct grad_accum *accum, int root, const struct tensor_desc *view,
                          attncl_value gradient)
{
    int *const first = &accum->slots[root].first_view_grad;

    if (!reserve_view_grad(accum))
        return;
    for (int i = accum->buckets[find_bucket(accum, root, view)]; i >= 0;
         i = accum->view_grads[i].next_in_bucket) {
        struct view_grad *const v = &accum->view_grads[i];
        if (v->root != root || !is_same_view(&v->view, view))
            continue;
        v->value = add_gradients(accum->g, v->value, gradient).id;
        return;
    }
    accum->view_grads[accum->n_view_grads] = (struct view_grad){.view = *view,
                                                                .low = view->start,
                                                                .high = attncl__desc_end(view),
                                                                .value = gradient.id,
                                                                .next = *first,
                                                                .root = root};
    add_to_bucket(accum, accum->n_view_grads);
    *first = accum->n_view_grads++;
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

// Adds n view gradients into one gradient of elements [low, high) of the base.
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

// Reduces the list to one gradient that covers the whole base, of `count` elements.
static attncl_value scatter_all(attncl_graph *g, struct view_grad *list, int n, int64_t count)
{
    for (bool last = false; !last && !attncl__graph_failed(g);) {
        int n_left = 0;
        last = n <= VIEW_SCATTER_ADD_MAX_IN;
        qsort(list, (size_t)n, sizeof *list, by_address);
        for (int first = 0; first < n; first += VIEW_SCATTER_ADD_MAX_IN) {
            const int n_in =
                n - first < VIEW_SCATTER_ADD_MAX_IN ? n - first : VIEW_SCATTER_ADD_MAX_IN;
            int64_t high = 0;
            for (int i = first; i < first + n_in; ++i)
                high = list[i].high > high ? list[i].high : high;
            list[n_left++] =
                scatter(g, list + first, n_in, last ? 0 : list[first].low, last ? count : high);
        }
        n = n_left;
    }
    return attncl__graph_handle(g, list[0].value);
}

// Sums the slot's view gradients and its whole one, and empties the list.  Returns as many contiguous
// elements as `base` has; the null value when the graph fails.
static attncl_value sum_view_grads(struct grad_accum *accum, struct grad_slot *slot,
                                   const struct tensor_desc *base)
{
    const int64_t count = attncl__desc_count(base);
    int n = 0;

    for (int i = slot->first_view_grad; i >= 0; i = accum->view_grads[i].next)
        ++n;
    struct view_grad *list = attncl__alloc_array((size_t)n + 1, sizeof *list);
    if (!list)
        return GRAPH_FAIL(accum->g, ATTNCL_ERR_NO_MEMORY, "%d gradients of views", n);
    n = 0;
    for (int i = slot->first_view_grad; i >= 0; i = accum->view_grads[i].next) {
        list[n++] = accum->view_grads[i];
        accum->view_grads[i].root = -1;
    }
    if (slot->whole)
        list[n++] = (struct view_grad){.view = *base, .high = count, .value = slot->whole};
    const attncl_value y = scatter_all(accum->g, list, n, count);
    attncl__free(list);
    slot->first_view_grad = -1;
    return y;
}

// Returns the elements of x, contiguous, in the shape of `like`.
static attncl_value reshape_like(attncl_graph *g, attncl_value x, const struct tensor_desc *like)
{
    const struct tensor_desc *d = attncl__graph_desc(g, x);
    struct tensor_desc view;

    if (!d || attncl__desc_same_shape(d, like))
        return x;
    assert(attncl__desc_count(d) == attncl__desc_count(like));
    (void)attncl__desc_make(d->dtype, like->rank, like->dim, &view); // cannot fail: `like` is valid
    if (!attncl__desc_contiguous(d))
        x = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &x, 1);
    return attncl__graph_view(g, x, &view);
}

// Lists the view's axes of more than one element by descending stride.  Returns their number.
static int list_axes_by_stride(const struct tensor_desc *view, int axis[ATTNCL_MAX_RANK])
{
    int n = 0;

    for (int i = 0; i < view->rank; ++i) {
        if (view->dim[i] == 1)
            continue;
        int slot = n++;
        for (; slot > 0 && view->stride[axis[slot - 1]] < view->stride[i]; --slot)
            axis[slot] = axis[slot - 1];
        axis[slot] = i;
    }
    return n;
}

// True when the view covers every element of its base, in any order.
static bool covers_base(const struct tensor_desc *view, const struct tensor_desc *base)
{
    int axis[ATTNCL_MAX_RANK];
    const int n = list_axes_by_stride(view, axis);
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

// Turns the gradient of a view of all elements into its base's: puts the axes into memory order, then
// reshapes.
static attncl_value unpermute_grad(attncl_graph *g, attncl_value gradient,
                                   const struct tensor_desc *view, const struct tensor_desc *base)
{
    const struct tensor_desc *d = attncl__graph_desc(g, gradient);
    int axis[ATTNCL_MAX_RANK];

    if (!d)
        return ATTNCL_NONE_VALUE;
    struct tensor_desc unpermuted = {.dtype = d->dtype, .rank = list_axes_by_stride(view, axis)};
    bool same_order = true;
    for (int i = 0; i < unpermuted.rank; ++i) {
        unpermuted.dim[i] = d->dim[axis[i]];
        unpermuted.stride[i] = d->stride[axis[i]];
        same_order = same_order && (i == 0 || axis[i] > axis[i - 1]);
    }
    return reshape_like(g, same_order ? gradient : attncl__graph_view(g, gradient, &unpermuted),
                        base);
}

void attncl__grad_accum_add(struct grad_accum *accum, int value, attncl_value gradient)
{
    if (attncl__graph_failed(accum->g) || gradient.id == 0)
        return;
    assert(value < accum->n_values);
    // Copies: adding nodes moves the values.
    const struct tensor_desc view = accum->g->values[value].desc;
    const struct tensor_desc base = accum->g->values[accum->root[value]].desc;
    struct grad_slot *slot = &accum->slots[accum->root[value]];

    if (attncl__desc_count(&view) == 0)
        return;
    gradient = reshape_like(accum->g, gradient, &view);
    if (covers_base(&view, &base))
        slot->whole =
            add_gradients(accum->g, slot->whole, unpermute_grad(accum->g, gradient, &view, &base))
                .id;
    else
        add_view_grad(accum, accum->root[value], &view, gradient);
}

bool attncl__grad_accum_has(const struct grad_accum *accum, int value)
{
    const struct grad_slot *slot = &accum->slots[accum->root[value]];
    return slot->whole != 0 || slot->first_view_grad >= 0;
}

attncl_value attncl__grad_accum_get(struct grad_accum *accum, int value)
{
    const int root = accum->root[value];
    const struct tensor_desc base = accum->g->values[root].desc;
    struct grad_slot *slot = &accum->slots[root];

    if (slot->first_view_grad >= 0)
        slot->whole = reshape_like(accum->g, sum_view_grads(accum, slot, &base), &base).id;
    return attncl__graph_handle(accum->g, slot->whole);
}

// SPDX-License-Identifier: MIT
// Ops of plans without a spec: views.

#include <string.h>

#include "attncl/attention.h"
#include "attncl/ops.h"
#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

// -- slice
static bool slice_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    int64_t dim[ATTNCL_MAX_RANK];
    const int64_t axis = s->number[0] = plan_number(p, 0, h->rank - 1);
    s->number[1] = plan_number(p, 0, h->dim[axis] - 1);
    s->number[2] = plan_number(p, s->number[1] + 1, h->dim[axis]);
    memcpy(dim, h->dim, sizeof dim);
    dim[axis] = s->number[2] - s->number[1];
    return plan_view(p, s, h->rank, dim);
}

static void slice_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = IN(0);
    struct host *y = OUT;
    const int axis = (int)s->number[0];
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; ++i)
        inner *= x->dim[i];
    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t rest = i % inner, k = i / inner % y->dim[axis],
                      outer = i / inner / y->dim[axis];
        y->data[i] = x->data[(outer * x->dim[axis] + s->number[1] + k) * inner + rest];
    }
}
PLAN_BUILD(slice, attncl_slice(b->g, V(0), (int)s->number[0], s->number[1], s->number[2]))

// -- permute
static bool permute_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    int64_t dim[ATTNCL_MAX_RANK];
    if (h->rank > 4)
        return false;
    for (int i = 0; i < h->rank; ++i)
        s->number[i] = i;
    for (int i = h->rank - 1; i > 0; --i) {
        const int64_t k = plan_number(p, 0, i), other = s->number[k];
        s->number[k] = s->number[i];
        s->number[i] = other;
    }
    for (int i = 0; i < h->rank; ++i)
        dim[i] = h->dim[s->number[i]];
    return plan_view(p, s, h->rank, dim);
}

static void permute_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = IN(0);
    struct host *y = OUT;
    for (int64_t i = 0; i < y->count; ++i) {
        int64_t place[ATTNCL_MAX_RANK] = {0}, rest = i, from = 0;
        for (int axis = y->rank - 1; axis >= 0; --axis) {
            place[s->number[axis]] = rest % y->dim[axis];
            rest /= y->dim[axis];
        }
        for (int axis = 0; axis < x->rank; ++axis)
            from = from * x->dim[axis] + place[axis];
        y->data[i] = x->data[from];
    }
}

static attncl_value permute_build(struct builder *b, const struct plan_step *s)
{
    const int order[4] = {(int)s->number[0], (int)s->number[1], (int)s->number[2],
                          (int)s->number[3]};
    return attncl_permute(b->g, V(0), order);
}

// -- reshape: two axes become one, or one two, or all one
static bool reshape_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    int64_t *dim = s->number + 1;
    const int axis = (int)plan_number(p, 0, h->rank - 1);
    int rank = 0;
    for (int i = 0; i < h->rank; ++i) {
        if (i == axis && h->rank < 4 && h->dim[i] % 2 == 0 && plan_chance(p, 70)) {
            dim[rank++] = h->dim[i] / 2;
            dim[rank++] = 2;
        } else if (i == axis && i + 1 < h->rank) {
            dim[rank++] = h->dim[i] * h->dim[i + 1];
            ++i;
        } else {
            dim[rank++] = h->dim[i];
        }
    }
    s->number[0] = rank;
    return plan_view(p, s, rank, dim);
}

PLAN_EVALUATE(reshape, memcpy(OUT->data, IN(0)->data, (size_t)OUT->count * sizeof(double)))

static attncl_value reshape_build(struct builder *b, const struct plan_step *s)
{
    const int64_t *d = s->number + 1;
    return attncl_reshape(b->g, V(0), (int)s->number[0], d);
}

// -- split_heads and merge_heads: number: heads, layout
static bool split_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int64_t heads = s->number[0] = plan_number(p, 1, 4);
    const bool batch_first = plan_chance(p, 50);
    if (h->rank != 3 || h->dim[2] % heads != 0)
        return false;
    s->number[1] = batch_first;
    plan_result(
        p, s, 4,
        (const int64_t[]){h->dim[!batch_first], heads, h->dim[batch_first], h->dim[2] / heads});
    p->value[s->out].is_view = true;
    return true;
}

// Element i of the heads [B, H, T, D] in [T, B, H D] or [B, T, H D].
static int64_t merged_place(const struct host *heads, bool batch_first, int64_t i)
{
    const int64_t d = i % heads->dim[3], t = i / heads->dim[3] % heads->dim[2];
    const int64_t row = i / heads->dim[3] / heads->dim[2], h = row % heads->dim[1],
                  b = row / heads->dim[1];
    return ((batch_first ? b * heads->dim[2] + t : t * heads->dim[0] + b) * heads->dim[1] + h) *
               heads->dim[3] +
           d;
}

static void split_evaluate(const struct plan *p, const struct plan_step *s)
{
    struct host *y = OUT;
    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = IN(0)->data[merged_place(y, s->number[1], i)];
}
PLAN_BUILD(split, attncl_split_heads(b->g, V(0), s->number[0], (attncl_layout)s->number[1]))

static bool merge_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const bool batch_first = plan_chance(p, 50);
    if (h->rank != 4)
        return false;
    s->number[1] = batch_first;
    return plan_view(p, s, 3,
                     (const int64_t[]){h->dim[batch_first ? 0 : 2], h->dim[batch_first ? 2 : 0],
                                       h->dim[1] * h->dim[3]});
}

static void merge_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = IN(0);
    for (int64_t i = 0; i < x->count; ++i)
        OUT->data[merged_place(x, s->number[1], i)] = x->data[i];
}
PLAN_BUILD(merge, attncl_merge_heads(b->g, V(0), (attncl_layout)s->number[1]))

const struct plan_op plan_views[] = {
    {PLAN_OP("slice", slice)},       {PLAN_OP("permute", permute)},   {PLAN_OP("reshape", reshape)},
    {PLAN_OP("split_heads", split)}, {PLAN_OP("merge_heads", merge)},
};
const int plan_n_views = sizeof plan_views / sizeof plan_views[0];

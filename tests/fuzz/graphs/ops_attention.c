// SPDX-License-Identifier: MIT
// Ops of plans: attention and its heads.

#include <math.h>

#include "attncl/attention.h"
#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

// -- attention: 0 query, 1 key, 2 value, 3 mask, 4 lengths, 5 step; number: causal, window, layout, plan_dropout()
static bool attention_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *q = p->value[x].h;
    if (q->rank != 4)
        return false;
    const int64_t n_keys = plan_chance(p, 50) ? q->dim[2] : plan_number(p, 1, 9);
    const int64_t width = plan_chance(p, 60) ? q->dim[3] : plan_number(p, 1, 6);
    s->in[1] = plan_operand(p, 4, (const int64_t[]){q->dim[0], q->dim[1], n_keys, q->dim[3]});
    s->in[2] = plan_operand(p, 4, (const int64_t[]){q->dim[0], q->dim[1], n_keys, width});
    switch (plan_number(p, 0, 4)) {
    case 0:
        s->in[3] = plan_mask(p, 3,
                             (const int64_t[]){plan_chance(p, 50) ? 1 : q->dim[2], n_keys,
                                               plan_chance(p, 50) ? 1 : q->dim[0]});
        break;
    case 1:
        s->in[4] = plan_lengths(p, 0, n_keys, (int)plan_number(p, 1, 2),
                                (const int64_t[]){q->dim[0], q->dim[2]});
        break;
    case 2:
        s->number[0] = 1;
        break;
    case 3:
        s->number[1] = plan_number(p, 1, 4);
        break;
    }
    s->number[2] = plan_number(p, 0, 1);
    s->real = plan_chance(p, 50) ? 0 : 0.5;
    if (plan_chance(p, 30))
        plan_dropout(p, s, 3, 5);
    return plan_result(p, s, 4, (const int64_t[]){q->dim[0], q->dim[1], q->dim[2], width});
}

static void attention_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *q = IN(0), *k = IN(1), *v = IN(2);
    struct host *y = OUT;
    const struct ref_attention a = {.scale = s->real > 0 ? s->real : 1 / sqrt((double)q->dim[3]),
                                    .causal = (int)s->number[0],
                                    .window = s->number[1],
                                    .mask = IN(3),
                                    .valid_lens = IN(4),
                                    .dropout = plan_dropout_mask(p, s, 3, 5)};
    const int64_t n_heads = q->dim[1], n = q->dim[2], width = v->dim[3];
    struct host *weights = host_new(ATTNCL_F32, DIMS(q->dim[0], n_heads, n, k->dim[2]));
    struct host *mixed = host_new(ATTNCL_F32, DIMS(q->dim[0], n, n_heads, width));
    ref_attention_weights(&a, q, k, weights);
    ref_attention_drop(&a, weights);
    ref_attention_mix(weights, v, false, mixed);
    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t e = i % width, t = i / width % n, h = i / width / n % n_heads;
        const int64_t batch = i / width / n / n_heads;
        y->data[i] = mixed->data[((batch * n + t) * n_heads + h) * width + e];
    }
}

static attncl_value attention_build(struct builder *b, const struct plan_step *s)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_attention_inputs inputs = ATTNCL_ATTENTION_INPUTS_INIT;
    const attncl_dropout_desc dropout = plan_dropout_desc(b, s, 3, 5);
    desc.dropout = &dropout;
    desc.scale = (float)s->real;
    desc.causal = (int)s->number[0];
    desc.window = s->number[1];
    desc.layout = (attncl_layout)s->number[2];
    inputs.query = V(0);
    inputs.key = V(1);
    inputs.value = V(2);
    inputs.mask = V(3);
    inputs.valid_lens = V(4);
    return attncl_attention(b->g, &desc, &inputs, NULL);
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

// -- additive_attention: 0 q, 1 k, 2 v, 3 w, 4 lengths
static bool additive_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *q = p->value[x].h;
    const int64_t n_keys = plan_number(p, 1, 6), width = plan_number(p, 1, 6);
    if (q->rank != 3)
        return false;
    s->in[1] = plan_operand(p, 3, (const int64_t[]){q->dim[0], n_keys, q->dim[2]});
    s->in[2] = plan_operand(p, 3, (const int64_t[]){q->dim[0], n_keys, width});
    s->in[3] = plan_operand(p, 1, &q->dim[2]);
    if (plan_chance(p, 50))
        s->in[4] = plan_lengths(p, 0, n_keys, 1, q->dim);
    return plan_result(p, s, 3, (const int64_t[]){q->dim[0], q->dim[1], width});
}

static void additive_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *q = IN(0), *k = IN(1);
    ref_additive_attention(q, k, IN(2), IN(3), IN(4), OUT,
                           host_new(ATTNCL_F32, DIMS(q->dim[0], q->dim[1], k->dim[1])));
}
PLAN_BUILD(additive, attncl_additive_attention(b->g, V(0), V(1), V(2), V(3), V(4), NULL))

// -- attention_pooling: 0 keys, 1 values, 2 queries; number: kernel
static bool pooling_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int64_t n = plan_number(p, 1, 12), place = plan_number(p, 0, 2);
    if (h->rank != 1)
        return false;
    for (int i = 0; i < 3; ++i)
        s->in[i] = i == place ? x : plan_operand(p, 1, place < 2 && i < 2 ? h->dim : &n);
    s->number[0] = plan_number(p, ATTNCL_POOL_GAUSSIAN, ATTNCL_POOL_EPANECHIKOV);
    s->real = plan_chance(p, 50) ? 1 : 0.5;
    return plan_result_like(p, s, s->in[2]);
}

static void pooling_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *keys = IN(0), *queries = IN(2);
    ref_attention_pooling_fwd((int)s->number[0], s->real, keys, IN(1), queries, OUT,
                              host_new(ATTNCL_F32, DIMS(keys->count, queries->count)));
}

// Tiny distances of either sign: their slopes cancel.
static bool pooling_near_corners(const struct plan *p, const struct plan_step *s)
{
    const struct host *keys = IN(0), *queries = IN(2);
    for (int64_t i = 0; i < keys->count * queries->count; ++i) {
        const double u = fabs(keys->data[i / queries->count] - queries->data[i % queries->count]);
        if (s->number[0] == ATTNCL_POOL_EPANECHIKOV && fmin(u, fabs(u - 1)) < 1e-3)
            return true;
    }
    return false;
}
PLAN_BUILD(pooling, attncl_attention_pooling(b->g, (attncl_pooling_kernel)s->number[0],
                                             (float)s->real, V(0), V(1), V(2), NULL))

static const struct plan_op ops[] = {
    {PLAN_OP("attention", attention)},
    {PLAN_OP("split_heads", split)},
    {PLAN_OP("merge_heads", merge)},
    {PLAN_OP("additive_attention", additive)},
    {PLAN_OP("attention_pooling", pooling), .near_corners = pooling_near_corners},
};
const struct plan_ops plan_ops_attention = {ops, sizeof ops / sizeof ops[0]};

// SPDX-License-Identifier: MIT
// Ops of plans: what mixes rows (attention, AFT, recurrent), and the loss.

#include <math.h>

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/ops.h"
#include "attncl/recurrent.h"
#include "fuzz/graphs/plan.h"
#include "ref/layers.h"

static int64_t last_of(const struct host *h)
{
    return h->dim[h->rank - 1];
}

// -- attention: 0 query, 1 key, 2 value, 3 mask, 4 lengths; number: causal, window, layout
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
    plan_result(p, s, 4, (const int64_t[]){q->dim[0], q->dim[1], q->dim[2], width});
    return true;
}

static void attention_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *q = operand(p, s, 0), *k = operand(p, s, 1), *v = operand(p, s, 2);
    struct host *y = result(p, s);
    const struct ref_attention a = {.scale = s->real > 0 ? s->real : 1 / sqrt((double)q->dim[3]),
                                    .causal = (int)s->number[0],
                                    .window = s->number[1],
                                    .mask = operand(p, s, 3),
                                    .valid_lens = operand(p, s, 4)};
    const int64_t n_heads = q->dim[1], n = q->dim[2], width = v->dim[3];
    struct host *weights = host_new(ATTNCL_F32, DIMS(q->dim[0], n_heads, n, k->dim[2]));
    struct host *mixed = host_new(ATTNCL_F32, DIMS(q->dim[0], n, n_heads, width));
    ref_attention_weights(&a, q, k, weights);
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
    desc.scale = (float)s->real;
    desc.causal = (int)s->number[0];
    desc.window = s->number[1];
    desc.layout = (attncl_layout)s->number[2];
    inputs.query = taken(b, s, 0);
    inputs.key = taken(b, s, 1);
    inputs.value = taken(b, s, 2);
    inputs.mask = taken(b, s, 3);
    inputs.valid_lens = taken(b, s, 4);
    return CALL(b, s, attncl_attention(b->g, &desc, &inputs, NULL),
                "attncl_attention(g, &(const attncl_attention_desc){sizeof(attncl_attention_desc), "
                "%gf, %d, %d, %d, NULL}, &(const attncl_attention_inputs){"
                "sizeof(attncl_attention_inputs), %s, %s, %s, %s, %s, ATTNCL_VALUE_INIT}, NULL)",
                s->real, (int)s->number[0], (int)s->number[1], (int)s->number[2],
                program_name(s, 0), program_name(s, 1), program_name(s, 2), program_name(s, 3),
                program_name(s, 4));
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
    struct host *y = result(p, s);
    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = operand(p, s, 0)->data[merged_place(y, s->number[1], i)];
}

static attncl_value split_build(struct builder *b, const struct plan_step *s)
{
    const int layout = (int)s->number[1];
    return CALL(b, s, attncl_split_heads(b->g, taken(b, s, 0), s->number[0], (attncl_layout)layout),
                "attncl_split_heads(g, %s, %d, %d)", program_name(s, 0), (int)s->number[0], layout);
}

static bool merge_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const bool batch_first = plan_chance(p, 50);
    if (h->rank != 4)
        return false;
    s->number[1] = batch_first;
    plan_result(p, s, 3,
                (const int64_t[]){h->dim[batch_first ? 0 : 2], h->dim[batch_first ? 2 : 0],
                                  h->dim[1] * h->dim[3]});
    p->value[s->out].is_view = true;
    return true;
}

static void merge_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0);
    for (int64_t i = 0; i < x->count; ++i)
        result(p, s)->data[merged_place(x, s->number[1], i)] = x->data[i];
}

static attncl_value merge_build(struct builder *b, const struct plan_step *s)
{
    const int layout = (int)s->number[1];
    return CALL(b, s, attncl_merge_heads(b->g, taken(b, s, 0), (attncl_layout)layout),
                "attncl_merge_heads(g, %s, %d)", program_name(s, 0), layout);
}

// -- aft_mix: 0 q, 1 k, 2 v, 3 pos_bias, 4 mask; number: kind, window, causal
static bool aft_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *q = p->value[x].h;
    if (q->rank != 3)
        return false;
    const int64_t kind = s->number[0] = plan_number(p, ATTNCL_AFT_LOCAL, ATTNCL_AFT_SIMPLE);
    const int64_t n = q->dim[0] + plan_number(p, 0, 2);
    s->in[1] = plan_operand(p, 3, q->dim);
    s->in[2] = plan_operand(p, 3, q->dim);
    if (kind != ATTNCL_AFT_SIMPLE)
        s->in[3] = plan_operand(p, 2, (const int64_t[]){n, n});
    s->number[1] = kind == ATTNCL_AFT_LOCAL ? plan_number(p, 1, 4) : 0;
    s->number[2] = plan_chance(p, 40);
    if (!s->number[2] && plan_chance(p, 40))
        s->in[4] = plan_mask(p, 3,
                             (const int64_t[]){plan_chance(p, 50) ? 1 : q->dim[0], q->dim[0],
                                               plan_chance(p, 50) ? 1 : q->dim[1]});
    plan_result(p, s, 3, q->dim);
    return true;
}

static void aft_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *q = operand(p, s, 0);
    const int window = s->number[0] == ATTNCL_AFT_FULL ? (int)q->dim[0] : (int)s->number[1];
    ref_aft_local_fwd(q, operand(p, s, 1), operand(p, s, 2), operand(p, s, 3), operand(p, s, 4),
                      window, (int)s->number[2], result(p, s), host_like(q));
}

static attncl_value aft_build(struct builder *b, const struct plan_step *s)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    desc.kind = (attncl_aft_kind)s->number[0];
    desc.window = s->number[1];
    desc.causal = (int)s->number[2];
    return CALL(b, s,
                attncl_aft_mix(b->g, &desc, taken(b, s, 0), taken(b, s, 1), taken(b, s, 2),
                               taken(b, s, 3), taken(b, s, 4)),
                "attncl_aft_mix(g, &(const attncl_aft_desc){sizeof(attncl_aft_desc), %d, %d, %d}, "
                "%s, %s, %s, %s, %s)",
                (int)s->number[0], (int)s->number[1], (int)s->number[2], program_name(s, 0),
                program_name(s, 1), program_name(s, 2), program_name(s, 3), program_name(s, 4));
}

// -- gru: 0 x, 1 weight_ih, 2 bias_ih, 3 weight_hh, 4 bias_hh, 5 h0; number: layout
static bool gru_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int64_t width = plan_number(p, 1, 5), layout = s->number[0] = plan_number(p, 0, 1);
    if (h->rank != 3 || h->dim[0] > 5 || h->dim[1] > 5)
        return false;
    s->in[1] = plan_operand(p, 2, (const int64_t[]){3 * width, h->dim[2]});
    s->in[2] = plan_operand(p, 1, (const int64_t[]){3 * width});
    s->in[3] = plan_operand(p, 2, (const int64_t[]){3 * width, width});
    s->in[4] = plan_operand(p, 1, (const int64_t[]){3 * width});
    s->in[5] = plan_maybe(p, 50, 2, (const int64_t[]){h->dim[!layout], width});
    plan_result(p, s, 3, (const int64_t[]){h->dim[0], h->dim[1], width});
    return true;
}

static void gru_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0), *weight = operand(p, s, 3);
    struct host *xi = host_new(ATTNCL_F32, DIMS(x->dim[0], x->dim[1], weight->dim[0]));
    ref_dense(x, operand(p, s, 1), operand(p, s, 2), xi);
    ref_gru_fwd(xi, weight, operand(p, s, 4), operand(p, s, 5), s->number[0] == 0, result(p, s));
}

static attncl_value gru_build(struct builder *b, const struct plan_step *s)
{
    attncl_gru_params params = ATTNCL_GRU_PARAMS_INIT;
    params.weight_ih = taken(b, s, 1);
    params.bias_ih = taken(b, s, 2);
    params.weight_hh = taken(b, s, 3);
    params.bias_hh = taken(b, s, 4);
    return CALL(b, s,
                attncl_gru(b->g, &params, taken(b, s, 0), taken(b, s, 5),
                           (attncl_layout)s->number[0], NULL),
                "attncl_gru(g, &(const attncl_gru_params){sizeof(attncl_gru_params), %s, %s, %s, "
                "%s, NULL}, %s, %s, %d, NULL)",
                program_name(s, 1), program_name(s, 2), program_name(s, 3), program_name(s, 4),
                program_name(s, 0), program_name(s, 5), (int)s->number[0]);
}

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
    plan_result(p, s, 3, (const int64_t[]){q->dim[0], q->dim[1], width});
    return true;
}

static void additive_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *q = operand(p, s, 0), *k = operand(p, s, 1);
    ref_additive_attention(q, k, operand(p, s, 2), operand(p, s, 3), operand(p, s, 4), result(p, s),
                           host_new(ATTNCL_F32, DIMS(q->dim[0], q->dim[1], k->dim[1])));
}

static attncl_value additive_build(struct builder *b, const struct plan_step *s)
{
    return CALL(b, s,
                attncl_additive_attention(b->g, taken(b, s, 0), taken(b, s, 1), taken(b, s, 2),
                                          taken(b, s, 3), taken(b, s, 4), NULL),
                "attncl_additive_attention(g, %s, %s, %s, %s, %s, NULL)", program_name(s, 0),
                program_name(s, 1), program_name(s, 2), program_name(s, 3), program_name(s, 4));
}

// -- cross_entropy: 0 logits, 1 targets; number: reduction, pad
static bool entropy_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->number[0] = plan_number(p, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE);
    s->number[1] = plan_chance(p, 50) ? -1 : 0;
    s->real = plan_chance(p, 70) ? 0 : 0.25;
    s->in[1] = plan_lengths(p, 0, last_of(h) - 1, h->rank - 1, h->dim);
    plan_result(p, s, s->number[0] == ATTNCL_REDUCE_NONE ? h->rank - 1 : 0, h->dim);
    return true;
}

static void entropy_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_cross_entropy_fwd(operand(p, s, 0), operand(p, s, 1), (int)s->number[0], s->number[1],
                          s->real, result(p, s));
}

static attncl_value entropy_build(struct builder *b, const struct plan_step *s)
{
    const int reduction = (int)s->number[0];
    return CALL(b, s,
                attncl_cross_entropy_smoothed(b->g, taken(b, s, 0), taken(b, s, 1),
                                              (attncl_reduction)reduction, s->number[1], s->real),
                "attncl_cross_entropy_smoothed(g, %s, %s, %d, %d, %g)", program_name(s, 0),
                program_name(s, 1), reduction, (int)s->number[1], s->real);
}

const struct plan_op plan_ops_mixing[] = {
    {"attention", attention_choose, attention_evaluate, attention_build},
    {"split_heads", split_choose, split_evaluate, split_build},
    {"merge_heads", merge_choose, merge_evaluate, merge_build},
    {"aft_mix", aft_choose, aft_evaluate, aft_build},
    {"gru", gru_choose, gru_evaluate, gru_build},
    {"additive_attention", additive_choose, additive_evaluate, additive_build},
    {"cross_entropy", entropy_choose, entropy_evaluate, entropy_build},
};
const int n_plan_ops_mixing = sizeof plan_ops_mixing / sizeof plan_ops_mixing[0];

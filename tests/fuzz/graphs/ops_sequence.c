// SPDX-License-Identifier: MIT
// Ops of plans: what mixes positions without attention: AFT, gMLP, recurrent.

#include "attncl/aft.h"
#include "attncl/gmlp.h"
#include "attncl/recurrent.h"
#include "fuzz/graphs/plan.h"
#include "ref/layers.h"

// -- aft_mix: 0 q, 1 k, 2 v, 3 pos_bias, 4 mask; number: kind, window, causal
// Key and position bias; AFT-conv has some heads, and an odd number of distances.
static bool aft_operands(struct plan *p, struct plan_step *s, const struct host *q)
{
    const bool per_head = s->number[0] == ATTNCL_AFT_CONV;
    const int64_t n = q->dim[0] + plan_number(p, 0, 2), heads = plan_number(p, 1, 3);
    if (per_head && q->dim[2] % heads != 0)
        return false;
    s->in[1] =
        plan_operand(p, 3, (const int64_t[]){q->dim[0], q->dim[1], per_head ? heads : q->dim[2]});
    s->in[2] = plan_operand(p, 3, q->dim);
    if (per_head)
        s->in[3] = plan_operand(p, 2, (const int64_t[]){heads, 2 * plan_number(p, 0, 4) + 1});
    else if (s->number[0] != ATTNCL_AFT_SIMPLE)
        s->in[3] = plan_operand(p, 2, (const int64_t[]){n, n});
    return true;
}

static bool aft_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *q = p->value[x].h;
    if (q->rank != 3)
        return false;
    s->number[0] = plan_number(p, ATTNCL_AFT_LOCAL, ATTNCL_AFT_CONV);
    if (!aft_operands(p, s, q))
        return false;
    s->number[1] = s->number[0] == ATTNCL_AFT_LOCAL ? plan_number(p, 0, 4) : 0;
    s->number[2] = plan_chance(p, 40);
    if (!s->number[2] && plan_chance(p, 40))
        s->in[4] = plan_mask(p, 3,
                             (const int64_t[]){plan_chance(p, 50) ? 1 : q->dim[0], q->dim[0],
                                               plan_chance(p, 50) ? 1 : q->dim[1]});
    return plan_result(p, s, 3, q->dim);
}

static void aft_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *q = IN(0);
    const struct ref_aft_data data = {.q = IN(0),
                                      .k = IN(1),
                                      .v = IN(2),
                                      .pos_bias = IN(3),
                                      .mask = IN(4),
                                      .window = s->number[0] == ATTNCL_AFT_FULL ? (int)q->dim[0]
                                                                                : (int)s->number[1],
                                      .causal = (int)s->number[2],
                                      .per_head = s->number[0] == ATTNCL_AFT_CONV};
    ref_aft_fwd(&data, OUT, host_like(q));
}

static attncl_value aft_build(struct builder *b, const struct plan_step *s)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    desc.kind = (attncl_aft_kind)s->number[0];
    desc.window = s->number[1];
    desc.causal = (int)s->number[2];
    return attncl_aft_mix(b->g, &desc, V(0), V(1), V(2), V(3), V(4));
}

// -- gru: 0 x, 1 weight_ih, 2 bias_ih, 3 weight_hh, 4 bias_hh, 5 h0; number: layout
static bool gru_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int64_t width = plan_number(p, 1, 5), layout = s->number[0] = plan_number(p, 0, 1);
    if (h->rank != 3 || h->dim[0] > 5 || h->dim[1] > 5)
        return false;
    s->in[1] = plan_matrix(p, 3 * width, h->dim[2]);
    s->in[2] = plan_operand(p, 1, (const int64_t[]){3 * width});
    s->in[3] = plan_operand(p, 2, (const int64_t[]){3 * width, width});
    s->in[4] = plan_operand(p, 1, (const int64_t[]){3 * width});
    s->in[5] = plan_maybe(p, 50, 2, (const int64_t[]){h->dim[!layout], width});
    return plan_result(p, s, 3, (const int64_t[]){h->dim[0], h->dim[1], width});
}

static void gru_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = IN(0), *weight = IN(3);
    struct host *xi = host_new(ATTNCL_F32, DIMS(x->dim[0], x->dim[1], weight->dim[0]));
    ref_dense(x, IN(1), IN(2), xi);
    ref_gru_fwd(xi, weight, IN(4), IN(5), s->number[0] == 0, OUT);
}

static attncl_value gru_build(struct builder *b, const struct plan_step *s)
{
    attncl_gru_params params = ATTNCL_GRU_PARAMS_INIT;
    params.weight_ih = V(1);
    params.bias_ih = V(2);
    params.weight_hh = V(3);
    params.bias_hh = V(4);
    return attncl_gru(b->g, &params, V(0), V(5), (attncl_layout)s->number[0], NULL);
}

// -- spatial_gating_unit: 0 z, 1 norm_weight, 2 norm_bias, 3 weight, 4 bias, 5 mask; number: causal
static bool gating_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *z = p->value[x].h;
    if (z->rank != 3 || z->dim[2] % 2 != 0)
        return false;
    const int64_t half = z->dim[2] / 2, n = z->dim[0] + plan_number(p, 0, 2);
    s->in[1] = plan_operand(p, 1, &half);
    s->in[2] = plan_operand(p, 1, &half);
    s->in[3] = plan_operand(p, 2, (const int64_t[]){n, n});
    s->in[4] = plan_operand(p, 1, &n);
    s->number[0] = plan_chance(p, 40);
    if (!s->number[0] && plan_chance(p, 40))
        s->in[5] =
            plan_mask(p, 3, (const int64_t[]){plan_chance(p, 50) ? 1 : z->dim[0], z->dim[0], 1});
    s->real = plan_chance(p, 50) ? 0 : 1e-2;
    return plan_result(p, s, 3, (const int64_t[]){z->dim[0], z->dim[1], half});
}

static void gating_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *z = IN(0);
    struct host *z1 = host_like(OUT), *z2 = host_like(z1), *normed = host_like(z1);
    const int64_t half = last_extent(z1);
    for (int64_t i = 0; i < z1->count; ++i) {
        z1->data[i] = z->data[i / half * 2 * half + i % half];
        z2->data[i] = z->data[i / half * 2 * half + half + i % half];
    }
    ref_layer_norm_fwd(z2, IN(1), IN(2), s->real > 0 ? (float)s->real : 1e-5, normed);
    ref_spatial_gate_fwd(IN(3), IN(4), normed, z1, IN(5), s->number[0], OUT);
}

static attncl_value gating_build(struct builder *b, const struct plan_step *s)
{
    attncl_sgu_params params = ATTNCL_SGU_PARAMS_INIT;
    params.norm_weight = V(1);
    params.norm_bias = V(2);
    params.weight = V(3);
    params.bias = V(4);
    params.norm_eps = s->real;
    return attncl_spatial_gating_unit(b->g, &params, V(0), (int)s->number[0], V(5));
}

static const struct plan_op ops[] = {
    {PLAN_OP("aft_mix", aft)},
    {PLAN_OP("spatial_gating_unit", gating)},
    {PLAN_OP("gru", gru), .terms = 1},
};
const struct plan_ops plan_ops_sequence = {ops, sizeof ops / sizeof ops[0]};

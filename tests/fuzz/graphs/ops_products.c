// SPDX-License-Identifier: MIT
// Ops of plans: positions, linear maps, products, embedding.

#include <string.h>

#include "attncl/ops.h"
#include "fuzz/graphs/plan.h"
#include "ref/layers.h"

// -- add_positions
static bool positions_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    if (h->rank != 3)
        return false;
    s->number[0] = plan_number(p, 0, 1);
    s->in[1] = plan_operand(p, 2, (const int64_t[]){h->dim[s->number[0]], h->dim[2]});
    return plan_result_like(p, s, x);
}

PLAN_EVALUATE(positions, ref_add_positions_fwd(IN(0), IN(1), (int)s->number[0], OUT))
PLAN_BUILD(positions, attncl_add_positions(b->g, V(0), V(1), (attncl_layout)s->number[0]))

// -- linear and linear_fused: 0 x, 1 weight, 2 bias, 3 gate, 4 residual
// Makes weight and bias; `dim`: the result's extents.
static void linear_params(struct plan *p, struct plan_step *s, int x, int64_t dim[ATTNCL_MAX_RANK])
{
    const struct host *h = p->value[x].h;
    const int64_t out = plan_number(p, 1, 9);
    s->in[1] = plan_matrix(p, out, last_extent(h));
    s->in[2] = plan_maybe(p, 60, 1, &out);
    memcpy(dim, h->dim, sizeof h->dim);
    dim[h->rank - 1] = out;
}

static bool linear_choose(struct plan *p, struct plan_step *s, int x)
{
    int64_t dim[ATTNCL_MAX_RANK];
    linear_params(p, s, x, dim);
    return plan_result(p, s, p->value[x].h->rank, dim);
}

PLAN_EVALUATE(linear, ref_dense(IN(0), IN(1), IN(2), OUT))
PLAN_BUILD(linear, attncl_linear(b->g, V(0), V(1), V(2)))

static bool fused_choose(struct plan *p, struct plan_step *s, int x)
{
    int64_t dim[ATTNCL_MAX_RANK];
    const int rank = p->value[x].h->rank;
    linear_params(p, s, x, dim);
    s->in[3] = plan_maybe(p, 40, rank, dim);
    s->in[4] = plan_maybe(p, 40, rank, dim);
    s->number[0] = plan_number(p, ATTNCL_IDENTITY, ATTNCL_GELU_TANH);
    return plan_result(p, s, rank, dim);
}

static void fused_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *gate = IN(3), *residual = IN(4);
    struct host *y = OUT;
    linear_evaluate(p, s);
    ref_activation_fwd(y, (int)s->number[0], y);
    if (gate)
        ref_mul_fwd(y, gate, y);
    if (residual)
        ref_add_fwd(y, residual, y);
}

static attncl_value fused_build(struct builder *b, const struct plan_step *s)
{
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    desc.activation = (attncl_activation)s->number[0];
    desc.gate = V(3);
    desc.residual = V(4);
    return attncl_linear_fused(b->g, &desc, V(0), V(1), V(2));
}

// -- bmm
static bool bmm_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int64_t out = plan_number(p, 1, 9);
    if (h->rank != 3)
        return false;
    s->in[1] = plan_operand(p, 3, (const int64_t[]){h->dim[0], h->dim[2], out});
    return plan_result(p, s, 3, (const int64_t[]){h->dim[0], h->dim[1], out});
}

static void bmm_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *a = IN(0), *b = IN(1);
    struct host *y = OUT;
    const int64_t n = a->dim[1], m = a->dim[2], out = b->dim[2];
    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t c = i % out, row = i / out, batch = row / n;
        y->data[i] = 0;
        for (int64_t k = 0; k < m; ++k)
            y->data[i] += a->data[row * m + k] * b->data[(batch * m + k) * out + c];
    }
}
PLAN_BUILD(bmm, attncl_bmm(b->g, V(0), V(1)))

// -- embedding: x is the table
static bool embedding_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int64_t dim[3] = {plan_number(p, 1, 4), plan_number(p, 1, 3), last_extent(h)};
    if (h->rank != 2)
        return false;
    s->in[1] = plan_lengths(p, 0, h->dim[0] - 1, 2, dim);
    if (plan_chance(p, 20))
        s->in[0] = plan_matrix(p, h->dim[0], h->dim[1]);
    s->real = plan_chance(p, 50) ? 1 : 2.5;
    return plan_result(p, s, 3, dim);
}

PLAN_EVALUATE(embedding, ref_embedding_fwd(IN(1), IN(0), s->real, OUT))
PLAN_BUILD(embedding, attncl_embedding(b->g, V(1), V(0), (float)s->real))

static const struct plan_op ops[] = {
    {PLAN_OP("add_positions", positions)}, {PLAN_OP("linear", linear)},
    {PLAN_OP("linear_fused", fused)},      {PLAN_OP("bmm", bmm)},
    {PLAN_OP("embedding", embedding)},
};
const struct plan_ops plan_ops_products = {ops, sizeof ops / sizeof ops[0]};

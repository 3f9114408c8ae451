// SPDX-License-Identifier: MIT
// Ops of plans: elements and rows.

#include <math.h>

#include "attncl/ops.h"
#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

// -- activate
static bool activate_choose(struct plan *p, struct plan_step *s, int x)
{
    s->number[0] = plan_number(p, ATTNCL_IDENTITY, ATTNCL_GELU_TANH);
    plan_result_like(p, s, x);
    return true;
}

static void activate_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_activation_fwd(operand(p, s, 0), (int)s->number[0], result(p, s));
}

static attncl_value activate_build(struct builder *b, const struct plan_step *s)
{
    const int kind = (int)s->number[0];
    return attncl_activate(b->g, taken(b, s, 0), (attncl_activation)kind);
}

// -- bias_activate
static bool bias_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->in[1] = plan_operand(p, 1, &h->dim[h->rank - 1]);
    return activate_choose(p, s, x);
}

static void bias_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0), *bias = operand(p, s, 1);
    struct host *y = result(p, s);
    for (int64_t i = 0; i < x->count; ++i)
        y->data[i] = x->data[i] + bias->data[i % bias->count];
    ref_activation_fwd(y, (int)s->number[0], y);
}

static attncl_value bias_build(struct builder *b, const struct plan_step *s)
{
    const int kind = (int)s->number[0];
    return attncl_bias_activate(b->g, taken(b, s, 0), taken(b, s, 1), (attncl_activation)kind);
}

// -- add, mul
static bool pair_choose(struct plan *p, struct plan_step *s, int x)
{
    s->in[1] = plan_operand(p, p->value[x].h->rank, p->value[x].h->dim);
    plan_result_like(p, s, x);
    return true;
}

static void add_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_add_fwd(operand(p, s, 0), operand(p, s, 1), result(p, s));
}

static attncl_value add_build(struct builder *b, const struct plan_step *s)
{
    return attncl_add(b->g, taken(b, s, 0), taken(b, s, 1));
}

static void mul_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_mul_fwd(operand(p, s, 0), operand(p, s, 1), result(p, s));
}

static attncl_value mul_build(struct builder *b, const struct plan_step *s)
{
    return attncl_mul(b->g, taken(b, s, 0), taken(b, s, 1));
}

// -- softmax over any axis
static bool softmax_choose(struct plan *p, struct plan_step *s, int x)
{
    s->number[0] = plan_number(p, -p->value[x].h->rank, p->value[x].h->rank - 1);
    plan_result_like(p, s, x);
    return true;
}

static void softmax_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, 0);
    struct host *y = result(p, s);
    const int axis = (int)(s->number[0] < 0 ? s->number[0] + x->rank : s->number[0]);
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; ++i)
        inner *= x->dim[i];
    const int64_t n = x->dim[axis];
    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t first = i / (n * inner) * n * inner + i % inner;
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < n; ++k)
            largest = fmax(largest, x->data[first + k * inner]);
        for (int64_t k = 0; k < n; ++k)
            sum += exp(x->data[first + k * inner] - largest);
        y->data[i] = exp(x->data[i] - largest) / sum;
    }
}

static attncl_value softmax_build(struct builder *b, const struct plan_step *s)
{
    return attncl_softmax(b->g, taken(b, s, 0), (int)s->number[0]);
}

// -- masked_softmax
static bool masked_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    if (h->rank != 3)
        return false;
    s->in[1] = plan_lengths(p, 0, h->dim[2], (int)plan_number(p, 1, 2), h->dim);
    plan_result_like(p, s, x);
    return true;
}

static void masked_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_masked_softmax_fwd(operand(p, s, 0), operand(p, s, 1), result(p, s));
}

static attncl_value masked_build(struct builder *b, const struct plan_step *s)
{
    return attncl_masked_softmax(b->g, taken(b, s, 0), taken(b, s, 1));
}

// -- layer_norm over one or two trailing axes
static bool norm_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int n = h->rank > 1 && plan_chance(p, 25) ? 2 : 1;
    s->in[1] = plan_operand(p, n, h->dim + h->rank - n);
    s->in[2] = plan_operand(p, n, h->dim + h->rank - n);
    s->real = plan_chance(p, 50) ? 1e-5 : 1e-2;
    plan_result_like(p, s, x);
    return true;
}

static void norm_evaluate(const struct plan *p, const struct plan_step *s)
{
    ref_layer_norm_fwd(operand(p, s, 0), operand(p, s, 1), operand(p, s, 2), (float)s->real,
                       result(p, s));
}

static attncl_value norm_build(struct builder *b, const struct plan_step *s)
{
    return attncl_layer_norm(b->g, taken(b, s, 0), taken(b, s, 1), taken(b, s, 2), (float)s->real);
}

static const struct plan_op ops[] = {
    {PLAN_OP("activate", activate)},
    {PLAN_OP("bias_activate", bias)},
    {.name = "add", .choose = pair_choose, .evaluate = add_evaluate, .build = add_build},
    {.name = "mul", .choose = pair_choose, .evaluate = mul_evaluate, .build = mul_build},
    {PLAN_OP("softmax", softmax)},
    {PLAN_OP("masked_softmax", masked)},
    {PLAN_OP("layer_norm", norm)},
};
const struct plan_ops plan_ops_rows = {ops, sizeof ops / sizeof ops[0]};

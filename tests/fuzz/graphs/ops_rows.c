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
    return plan_result_like(p, s, x);
}

PLAN_EVALUATE(activate, ref_activation_fwd(IN(0), (int)s->number[0], OUT))
PLAN_BUILD(activate, attncl_activate(b->g, V(0), (attncl_activation)s->number[0]))

// -- bias_activate
static bool bias_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->in[1] = plan_operand(p, 1, &h->dim[h->rank - 1]);
    return activate_choose(p, s, x);
}

static void bias_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = IN(0), *bias = IN(1);
    struct host *y = OUT;
    for (int64_t i = 0; i < x->count; ++i)
        y->data[i] = x->data[i] + bias->data[i % bias->count];
    ref_activation_fwd(y, (int)s->number[0], y);
}
PLAN_BUILD(bias, attncl_bias_activate(b->g, V(0), V(1), (attncl_activation)s->number[0]))

// -- add, mul
static bool pair_choose(struct plan *p, struct plan_step *s, int x)
{
    s->in[1] = plan_operand(p, p->value[x].h->rank, p->value[x].h->dim);
    return plan_result_like(p, s, x);
}

PLAN_EVALUATE(add, ref_add_fwd(IN(0), IN(1), OUT))
PLAN_BUILD(add, attncl_add(b->g, V(0), V(1)))

PLAN_EVALUATE(mul, ref_mul_fwd(IN(0), IN(1), OUT))
PLAN_BUILD(mul, attncl_mul(b->g, V(0), V(1)))

// -- softmax over any axis
static bool softmax_choose(struct plan *p, struct plan_step *s, int x)
{
    s->number[0] = plan_number(p, -p->value[x].h->rank, p->value[x].h->rank - 1);
    return plan_result_like(p, s, x);
}

static void softmax_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = IN(0);
    struct host *y = OUT;
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
PLAN_BUILD(softmax, attncl_softmax(b->g, V(0), (int)s->number[0]))

// -- masked_softmax
static bool masked_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    if (h->rank != 3)
        return false;
    s->in[1] = plan_lengths(p, 0, h->dim[2], (int)plan_number(p, 1, 2), h->dim);
    return plan_result_like(p, s, x);
}

PLAN_EVALUATE(masked, ref_masked_softmax_fwd(IN(0), IN(1), OUT))
PLAN_BUILD(masked, attncl_masked_softmax(b->g, V(0), V(1)))

// -- layer_norm over one or two trailing axes
static bool norm_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    const int n = h->rank > 1 && plan_chance(p, 25) ? 2 : 1;
    s->in[1] = plan_operand(p, n, h->dim + h->rank - n);
    s->in[2] = plan_operand(p, n, h->dim + h->rank - n);
    s->real = plan_chance(p, 50) ? 1e-5 : 1e-2;
    return plan_result_like(p, s, x);
}

PLAN_EVALUATE(norm, ref_layer_norm_fwd(IN(0), IN(1), IN(2), (float)s->real, OUT))
PLAN_BUILD(norm, attncl_layer_norm(b->g, V(0), V(1), V(2), (float)s->real))

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

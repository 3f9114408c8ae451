// SPDX-License-Identifier: MIT
// Ops of plans: steps of optimisers, clipping.  They have no gradients: only each other take their results.

#include "attncl/optim.h"

#include <math.h>

#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

static const double learning_rate = 0.1;

// A value, now and then; 0 is what ref_adam_step() takes for none.
static int choose_rate(struct plan *p)
{
    if (!plan_chance(p, 40))
        return ABSENT;
    const int i = plan_positive(p, 0, NULL);
    double *at = p->value[i].h->data;
    *at = *at > 0 ? *at : 0.5;
    return i;
}

// The rate of the step: a value, or learning_rate.
static double rate(const struct plan *p, const struct plan_step *s, int i)
{
    const struct host *at = IN(i);
    return at ? at->data[0] : (float)learning_rate;
}

// -- adam_step: 0 param, 1 grad, 2 exp_avg, 3 exp_avg_sq, 4 max_exp_avg_sq, 5 steps taken, 6 learning rate;
// number: which of the values after it, weight decay in hundredths, decoupled, optimized, scheduled_decay; real: eps
static bool adam_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->in[1] = plan_operand(p, h->rank, h->dim);
    s->in[2] = plan_operand(p, h->rank, h->dim);
    s->in[3] = plan_positive(p, h->rank, h->dim);
    if (plan_chance(p, 40))
        s->in[4] = plan_positive(p, h->rank, h->dim);
    s->in[5] = plan_lengths(p, 0, 20, 0, NULL);
    s->in[6] = choose_rate(p);
    s->number[0] = plan_number(p, 0, s->in[4] == ABSENT ? 2 : 3);
    s->number[1] = plan_chance(p, 50) ? 0 : 3;
    for (int i = 2; i < 5; ++i)
        s->number[i] = plan_number(p, 0, 1);
    s->real = plan_chance(p, 50) ? 1e-8 : 1e-2;
    return plan_result_like(p, s, x);
}

static void adam_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct ref_adam adam = {.learning_rate = learning_rate,
                                  .beta1 = 0.9,
                                  .beta2 = 0.999,
                                  .eps = s->real,
                                  .weight_decay = (double)s->number[1] / 100,
                                  .decoupled = (int)s->number[2],
                                  .optimized = (int)s->number[3],
                                  .scheduled_decay = (int)s->number[4],
                                  .now = rate(p, s, 6)};
    struct host *after[] = {host_copy(IN(0)), host_copy(IN(2)), host_copy(IN(3)), NULL};
    if (s->in[4] != ABSENT)
        after[3] = host_copy(IN(4));
    ref_adam_step(&adam, (int64_t)IN(5)->data[0], after[0], IN(1), after[1], after[2], after[3]);
    host_set(OUT, after[s->number[0]]->data);
}

static attncl_value adam_after(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                               attncl_value grad, const attncl_adam_values *before, int64_t which)
{
    attncl_adam_values after = ATTNCL_ADAM_VALUES_INIT;
    attncl_adam_step(g, desc, rates, grad, before, &after);
    return which == 0   ? after.param
           : which == 1 ? after.exp_avg
           : which == 2 ? after.exp_avg_sq
                        : after.max_exp_avg_sq;
}

static attncl_value adam_build(struct builder *b, const struct plan_step *s)
{
    attncl_adam_desc desc = ATTNCL_ADAM_DESC_INIT;
    desc.learning_rate = learning_rate;
    desc.eps = s->real;
    desc.weight_decay = (double)s->number[1] / 100;
    desc.decoupled = (int)s->number[2];
    desc.optimized = (int)s->number[3];
    desc.scheduled_decay = (int)s->number[4];
    const attncl_adam_values before = {sizeof before, V(0), V(2), V(3), V(4)};
    return adam_after(b->g, &desc, attncl_adam_rates_at(b->g, &desc, V(6), V(5)), V(1), &before,
                      s->number[0]);
}

// -- sgd_step: 0 param, 1 grad, 2 momentum_buffer, 3 steps taken, 4 learning rate; number: which of the values
// after it, momentum and dampening in tenths, weight decay in hundredths, nesterov
static bool sgd_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->in[1] = plan_operand(p, h->rank, h->dim);
    s->number[1] = plan_chance(p, 70) ? 9 : 0;
    if (s->number[1] > 0)
        s->in[2] = plan_maybe(p, 80, h->rank, h->dim);
    s->in[3] = plan_lengths(p, 0, s->in[2] == ABSENT ? 0 : 3, 0, NULL);
    s->in[4] = choose_rate(p);
    s->number[0] = plan_number(p, 0, s->number[1] > 0);
    s->number[4] = s->number[1] > 0 && plan_chance(p, 30);
    s->number[2] = s->number[4] || plan_chance(p, 50) ? 0 : 4;
    s->number[3] = plan_chance(p, 50) ? 0 : 3;
    return plan_result_like(p, s, x);
}

static void sgd_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct ref_sgd sgd = {.learning_rate = rate(p, s, 4),
                                .momentum = (double)s->number[1] / 10,
                                .dampening = (double)s->number[2] / 10,
                                .weight_decay = (double)s->number[3] / 100,
                                .nesterov = (int)s->number[4]};
    struct host *after[] = {host_copy(IN(0)),
                            s->in[2] == ABSENT ? host_like(OUT) : host_copy(IN(2))};
    ref_sgd_step(&sgd, (int64_t)IN(3)->data[0], after[0], IN(1), after[1]);
    host_set(OUT, after[s->number[0]]->data);
}

static attncl_value sgd_after(attncl_graph *g, const attncl_sgd_desc *desc, attncl_value rates,
                              attncl_value grad, const attncl_sgd_values *before, int64_t which)
{
    attncl_sgd_values after = ATTNCL_SGD_VALUES_INIT;
    attncl_sgd_step(g, desc, rates, grad, before, &after);
    return which == 0 ? after.param : after.momentum_buffer;
}

static attncl_value sgd_build(struct builder *b, const struct plan_step *s)
{
    const attncl_sgd_desc desc = {sizeof desc,
                                  learning_rate,
                                  (double)s->number[1] / 10,
                                  (double)s->number[2] / 10,
                                  (double)s->number[3] / 100,
                                  (int)s->number[4]};
    const attncl_sgd_values before = {sizeof before, V(0), V(2)};
    return sgd_after(b->g, &desc, attncl_sgd_rates(b->g, &desc, V(4), V(3)), V(1), &before,
                     s->number[0]);
}

// -- clip_grad_norm and clip_grad_value: 0, 1 gradients; number: how many, which result, style; real: the limit
static bool clip_choose(struct plan *p, struct plan_step *s, int x)
{
    const int64_t other[2] = {plan_number(p, 1, 6), plan_number(p, 1, 6)};
    s->number[0] = plan_number(p, 1, 2);
    if (s->number[0] == 2)
        s->in[1] = plan_operand(p, 2, other);
    s->number[1] = plan_number(p, 0, s->number[0] - 1);
    s->real = plan_chance(p, 50) ? 1 : 0.25;
    (void)x;
    return plan_result_like(p, s, s->in[s->number[1]]);
}

static void clip_value_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = operand(p, s, (int)s->number[1]);
    for (int64_t i = 0; i < x->count; ++i)
        OUT->data[i] = fmin(fmax(x->data[i], -s->real), s->real);
}

static attncl_value clip_value(attncl_graph *g, size_t n, const attncl_value *grads, double limit,
                               int64_t which)
{
    attncl_value clipped[2];
    attncl_clip_grad_value(g, n, grads, limit, clipped);
    return clipped[which];
}

static attncl_value clip_value_build(struct builder *b, const struct plan_step *s)
{
    const attncl_value grads[2] = {V(0), V(1)};
    const int n = (int)s->number[0];
    return clip_value(b->g, (size_t)n, grads, s->real, s->number[1]);
}

// The norm itself, or a gradient.
static bool clip_norm_choose(struct plan *p, struct plan_step *s, int x)
{
    s->number[2] = plan_number(p, ATTNCL_CLIP_EPSILON, ATTNCL_CLIP_EXACT);
    s->number[3] = plan_chance(p, 30);
    if (!s->number[3])
        return clip_choose(p, s, x);
    s->number[0] = 1;
    s->real = 1;
    return plan_result(p, s, 0, NULL);
}

static void clip_norm_evaluate(const struct plan *p, const struct plan_step *s)
{
    struct host *const grads[2] = {IN(0), IN(1)};
    const double norm = ref_norm(grads, (int)s->number[0]);
    const double factor = ref_clip_factor(norm, s->real, (int)s->number[2]);
    struct host *y = OUT;
    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = s->number[3] ? norm : factor * grads[s->number[1]]->data[i];
}

static attncl_value clip_norm(attncl_graph *g, const struct plan_step *s, const attncl_value *grads)
{
    attncl_value clipped[2];
    const attncl_value norm = attncl_clip_grad_norm(g, (size_t)s->number[0], grads, s->real,
                                                    (attncl_clip_style)s->number[2], clipped);
    return s->number[3] ? norm : clipped[s->number[1]];
}

static attncl_value clip_norm_build(struct builder *b, const struct plan_step *s)
{
    const attncl_value grads[2] = {V(0), V(1)};
    return clip_norm(b->g, s, grads);
}

static const struct plan_op ops[] = {
    {PLAN_OP("adam_step", adam), .has_no_gradient = true},
    {PLAN_OP("sgd_step", sgd), .has_no_gradient = true},
    {PLAN_OP("clip_grad_norm", clip_norm), .has_no_gradient = true},
    {.name = "clip_grad_value",
     .choose = clip_choose,
     .evaluate = clip_value_evaluate,
     .build = clip_value_build,
     .has_no_gradient = true},
};
const struct plan_ops plan_ops_optimiser = {ops, sizeof ops / sizeof ops[0]};

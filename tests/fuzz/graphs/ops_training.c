// SPDX-License-Identifier: MIT
// Ops of plans: what training adds: the loss.

#include "attncl/ops.h"
#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

// -- cross_entropy: 0 logits, 1 targets; number: reduction, pad
static bool entropy_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->number[0] = plan_number(p, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE);
    s->number[1] = plan_chance(p, 50) ? -1 : 0;
    s->real = plan_chance(p, 70) ? 0 : 0.25;
    s->in[1] = plan_lengths(p, 0, last_extent(h) - 1, h->rank - 1, h->dim);
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

static const struct plan_op ops[] = {
    {"cross_entropy", entropy_choose, entropy_evaluate, entropy_build},
};
const struct plan_ops plan_ops_training = {ops, sizeof ops / sizeof ops[0]};

// SPDX-License-Identifier: MIT
// Ops of plans: what training adds: dropout, the loss.

#include "attncl/dropout.h"
#include "attncl/ops.h"
#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

// -- dropout: 0 x, 1 step, 2 position, 3 residual; number: as plan_dropout(), batch_begin, batch_total, batch_axis
static bool dropout_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    plan_dropout(p, s, 0, 1);
    if (s->number[0] == 0 && plan_chance(p, 80))
        return false;
    if (plan_chance(p, 30))
        s->in[2] = plan_lengths(p, 0, 20, 1, (const int64_t[]){1});
    s->in[3] = plan_maybe(p, 40, h->rank, h->dim);
    if (h->rank > 1 && plan_chance(p, 40)) {
        s->number[5] = plan_number(p, 0, h->rank - 2);
        s->number[3] = plan_number(p, 0, 3);
        s->number[4] = s->number[3] + h->dim[s->number[5]] + plan_number(p, 0, 3);
    }
    plan_result_like(p, s, x);
    p->value[s->out].is_view = s->number[0] == 0 && s->in[3] == ABSENT;
    return true;
}

// Row r of x among those of the whole batch, of which `rows_ret` there are.
static int64_t row_of_batch(const struct plan_step *s, const struct host *x, int64_t r,
                            int64_t *rows_ret)
{
    const int64_t n_rows = x->count / last_extent(x), total = s->number[4];
    *rows_ret = n_rows;
    if (total == 0)
        return r;
    const int64_t n = x->dim[s->number[5]];
    int64_t inner = 1;
    for (int i = (int)s->number[5] + 1; i < x->rank - 1; ++i)
        inner *= x->dim[i];
    *rows_ret = n_rows / n * total;
    return (r / (n * inner) * total + s->number[3] + r / inner % n) * inner + r % inner;
}

static void dropout_evaluate(const struct plan *p, const struct plan_step *s)
{
    const struct host *x = IN(0), *position = IN(2), *residual = IN(3);
    const struct ref_dropout mask = plan_dropout_mask(p, s, 0, 1);
    const int64_t width = last_extent(x);
    for (int64_t i = 0; i < x->count; ++i) {
        int64_t n_rows;
        const int64_t row = row_of_batch(s, x, i / width, &n_rows);
        const int64_t first = position ? (int64_t)position->data[0] * n_rows : 0;
        OUT->data[i] = x->data[i] * ref_dropout_factor(&mask, first + row, width, i % width) +
                       (residual ? residual->data[i] : 0);
    }
}

static attncl_value dropout_build(struct builder *b, const struct plan_step *s)
{
    attncl_dropout_desc desc = plan_dropout_desc(b, s, 0, 1);
    desc.position = V(2);
    desc.residual = V(3);
    desc.batch_begin = s->number[3];
    desc.batch_total = s->number[4];
    desc.batch_axis = (int)s->number[5];
    return attncl_dropout(b->g, V(0), &desc);
}

// -- cross_entropy: 0 logits, 1 targets; number: reduction, pad
static bool entropy_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *h = p->value[x].h;
    s->number[0] = plan_number(p, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE);
    s->number[1] = plan_chance(p, 50) ? -1 : 0;
    s->real = plan_chance(p, 70) ? 0 : 0.25;
    s->in[1] = plan_lengths(p, 0, last_extent(h) - 1, h->rank - 1, h->dim);
    return plan_result(p, s, s->number[0] == ATTNCL_REDUCE_NONE ? h->rank - 1 : 0, h->dim);
}

PLAN_EVALUATE(entropy,
              ref_cross_entropy_fwd(IN(0), IN(1), (int)s->number[0], s->number[1], s->real, OUT))
PLAN_BUILD(entropy, attncl_cross_entropy_smoothed(b->g, V(0), V(1), (attncl_reduction)s->number[0],
                                                  s->number[1], s->real))

static const struct plan_op ops[] = {
    {PLAN_OP("dropout", dropout)},
    {PLAN_OP("cross_entropy", entropy)},
};
const struct plan_ops plan_ops_training = {ops, sizeof ops / sizeof ops[0]};

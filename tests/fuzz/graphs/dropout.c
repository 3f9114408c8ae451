// SPDX-License-Identifier: MIT
// Dropout in plans: an op of its own, or of the weights of another.

#include "attncl/dropout.h"

#include <inttypes.h>

#include "fuzz/graphs/plan.h"
#include "ref/ref.h"

static double probability(const struct plan_step *s, int number)
{
    return (double)s->number[number] / 10;
}

void plan_dropout(struct plan *p, struct plan_step *s, int number, int step)
{
    static const int64_t tenths[] = {0, 1, 3, 5, 9, 10};
    enum { N_TENTHS = sizeof tenths / sizeof tenths[0] };
    s->number[number] = tenths[plan_number(p, 0, N_TENTHS - 1)];
    s->number[number + 1] = plan_number(p, 0, INT64_MAX - 1);
    s->number[number + 2] = plan_number(p, 0, UINT32_MAX);
    if (s->number[number] > 0 || plan_chance(p, 50))
        s->in[step] = plan_lengths(p, 0, 1 << 20, 0, NULL);
}

struct ref_dropout plan_dropout_mask(const struct plan *p, const struct plan_step *s, int number,
                                     int step)
{
    const struct host *at = operand(p, s, step);
    return (struct ref_dropout){.p = probability(s, number),
                                .seed = (uint64_t)s->number[number + 1],
                                .site = (uint32_t)s->number[number + 2],
                                .step = at ? (uint32_t)at->data[0] : 0};
}

attncl_dropout_desc plan_dropout_desc(const struct builder *b, const struct plan_step *s,
                                      int number, int step)
{
    attncl_dropout_desc desc = ATTNCL_DROPOUT_DESC_INIT;
    desc.p = probability(s, number);
    desc.seed = (uint64_t)s->number[number + 1];
    desc.site = (uint32_t)s->number[number + 2];
    desc.step = taken(b, s, step);
    return desc;
}

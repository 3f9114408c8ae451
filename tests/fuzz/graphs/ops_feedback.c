// SPDX-License-Identifier: MIT
// Ops of plans: attention to the memory of a feedback transformer.

#include "attncl/feedback.h"
#include "fuzz/graphs/plan.h"
#include "ref/layers.h"

enum {
    QUERY,
    KEY,
    VALUE,
    QUERY_WEIGHT,
    KEY_WEIGHT,
    VALUE_WEIGHT,
    VALUE_BIAS,
    OUTPUT_WEIGHT,
    OUTPUT_BIAS,
    PLACES,
    QUERY_BIAS,
    PLACE_BIAS,
    RESIDUAL,
    STEP
};
enum { HEADS, DROPOUT }; // numbers

// Of rows of memories, by maps of their own or given as heads.
static void choose_memories(struct plan *p, struct plan_step *s, int64_t n, int64_t batch,
                            int64_t width)
{
    if (plan_chance(p, 50)) {
        const int64_t dim[4] = {n, batch, s->number[HEADS], width / s->number[HEADS]};
        s->in[KEY] = plan_operand(p, 4, dim);
        s->in[VALUE] = plan_operand(p, 4, dim);
        return;
    }
    s->in[KEY] = plan_operand(p, 3, (const int64_t[]){n, batch, width});
    s->in[VALUE] = plan_operand(p, 3, (const int64_t[]){n, batch, width});
    s->in[KEY_WEIGHT] = plan_matrix(p, width, width);
    s->in[VALUE_WEIGHT] = plan_matrix(p, width, width);
    s->in[VALUE_BIAS] = plan_maybe(p, 70, 1, &width);
}

static bool feedback_choose(struct plan *p, struct plan_step *s, int x)
{
    const struct host *q = p->value[x].h;
    const int64_t heads = s->number[HEADS] = plan_number(p, 1, 3), n = plan_number(p, 1, 6);
    if (q->rank != 2 || q->dim[1] % heads != 0)
        return false;
    const int64_t width = q->dim[1];
    const int64_t places[3] = {n + plan_number(p, 0, 2), heads, width / heads};
    choose_memories(p, s, n, q->dim[0], width);
    s->in[QUERY_WEIGHT] = plan_matrix(p, width, width);
    s->in[OUTPUT_WEIGHT] = plan_matrix(p, width, width);
    s->in[OUTPUT_BIAS] = plan_maybe(p, 70, 1, &width);
    s->in[PLACES] = plan_operand(p, 3, places);
    s->in[QUERY_BIAS] = plan_operand(p, 2, places + 1);
    s->in[PLACE_BIAS] = plan_maybe(p, 50, 2, places);
    s->in[RESIDUAL] = plan_maybe(p, 40, 2, q->dim);
    if (plan_chance(p, 30))
        plan_dropout(p, s, DROPOUT, STEP);
    return plan_result(p, s, 2, q->dim);
}

static struct host *mapped(const struct host *x, const struct host *weight, const struct host *bias)
{
    struct host *y = host_like(x);
    ref_dense(x, weight, bias, y);
    return y;
}

static void feedback_evaluate(const struct plan *p, const struct plan_step *s)
{
    struct host *k = IN(KEY), *v = IN(VALUE), *y = OUT;
    struct host *mixed = host_like(y);
    if (s->in[KEY_WEIGHT] != ABSENT) {
        k = mapped(k, IN(KEY_WEIGHT), NULL);
        v = mapped(v, IN(VALUE_WEIGHT), IN(VALUE_BIAS));
    }
    const struct ref_feedback data = {.q = mapped(IN(QUERY), IN(QUERY_WEIGHT), NULL),
                                      .k = k,
                                      .v = v,
                                      .places = IN(PLACES),
                                      .u = IN(QUERY_BIAS),
                                      .place_bias = IN(PLACE_BIAS),
                                      .dropout = plan_dropout_mask(p, s, DROPOUT, STEP)};
    ref_feedback_attention_fwd(&data, k->dim[0], mixed, NULL, host_like(y));
    ref_dense(mixed, IN(OUTPUT_WEIGHT), IN(OUTPUT_BIAS), y);
    if (s->in[RESIDUAL] != ABSENT)
        ref_add_fwd(y, IN(RESIDUAL), y);
}

static attncl_value feedback_build(struct builder *b, const struct plan_step *s)
{
    const attncl_dropout_desc dropout = plan_dropout_desc(b, s, DROPOUT, STEP);
    const attncl_feedback_params params = {sizeof params,   V(QUERY_WEIGHT), V(KEY_WEIGHT),
                                           V(VALUE_WEIGHT), V(VALUE_BIAS),   V(OUTPUT_WEIGHT),
                                           V(OUTPUT_BIAS),  V(PLACES),       V(QUERY_BIAS),
                                           V(PLACE_BIAS),   &dropout};
    attncl_attention_inputs inputs = ATTNCL_ATTENTION_INPUTS_INIT;
    inputs.query = V(QUERY);
    inputs.key = V(KEY);
    inputs.value = V(VALUE);
    inputs.residual = V(RESIDUAL);
    return attncl_feedback_attention(b->g, &params, s->number[HEADS], &inputs, NULL);
}

static const struct plan_op ops[] = {
    {PLAN_OP("feedback_attention", feedback)},
};
const struct plan_ops plan_ops_feedback = {ops, sizeof ops / sizeof ops[0]};

// SPDX-License-Identifier: MIT
//
// Operations on rows and elements.  They are cheap to define, so results are checked whole, but for
// arrays far beyond any cache: some of their rows.

#include <math.h>

#include "cases/define.h"

enum { N_CHECKED_ROWS = 4096 };

// Of an array [M, N]: all, or rows spread over it.
static struct host *rows(const struct case_data *t, const struct sizes *s, const char *name)
{
    return PART(t, name, part_spread(N_CHECKED_ROWS, s->M), ALL);
}

static attncl_value input(struct case_data *t, const struct sizes *s, double spread)
{
    return case_input(t, "x", spread, DIMS(s->M, s->N));
}

static attncl_value build_softmax(struct case_data *t, const struct sizes *s)
{
    return attncl_softmax(t->graph, input(t, s, 4), -1);
}

CHECKED(softmax, SUITE_OP, s->N, rows(t, s, "y"), ref_softmax_fwd(rows(t, s, "x"), want))

static attncl_value build_masked_softmax(struct case_data *t, const struct sizes *s)
{
    const attncl_value x = case_input(t, "x", 4, DIMS(s->B, s->M, s->N));
    const attncl_value lens = case_indices(t, "valid_lens", 0, s->N + 1, DIMS(s->B, s->M));

    return attncl_masked_softmax(t->graph, x, lens);
}

CHECKED(masked_softmax, SUITE_OP, s->N, WHOLE("y"),
        ref_masked_softmax_fwd(WHOLE("x"), WHOLE("valid_lens"), want))

static attncl_value build_layer_norm(struct case_data *t, const struct sizes *s)
{
    const attncl_value x = input(t, s, 2), weight = ARRAY("weight", 1, s->N);
    const attncl_value bias = ARRAY("bias", 1, s->N);

    return attncl_layer_norm(t->graph, x, weight, bias, LAYER_NORM_EPS);
}

CHECKED(layer_norm, SUITE_OP, s->N, rows(t, s, "y"),
        want = define_layer_norm(rows(t, s, "x"), WHOLE("weight"), WHOLE("bias")))

static attncl_value build_gelu(struct case_data *t, const struct sizes *s)
{
    return attncl_activate(t->graph, input(t, s, 4), ATTNCL_GELU);
}

CHECKED(gelu, SUITE_OP, 1, rows(t, s, "y"), ref_activation_fwd(rows(t, s, "x"), ATTNCL_GELU, want))

static attncl_value build_bias_gelu(struct case_data *t, const struct sizes *s)
{
    const attncl_value x = input(t, s, 4), bias = ARRAY("bias", 1, s->N);

    return attncl_bias_activate(t->graph, x, bias, ATTNCL_GELU);
}

static void check_bias_gelu(const struct case_data *t, const struct sizes *s, struct check *c)
{
    struct host *x = rows(t, s, "x"), *bias = case_whole(t, "bias"), *want = host_like(x);

    for (int64_t i = 0; i < x->count; ++i)
        x->data[i] += bias->data[i % bias->count];
    ref_activation_fwd(x, ATTNCL_GELU, want);
    check_compare(c, 1, rows(t, s, "y"), want);
}

PLAIN_FAMILY(bias_gelu, SUITE_OP)

static float embedding_scale(const struct sizes *s)
{
    return (float)sqrt((double)s->C);
}

static attncl_value build_embedding(struct case_data *t, const struct sizes *s)
{
    const attncl_value tokens = case_indices(t, "tokens", 0, s->V, DIMS(s->M));
    const attncl_value weight = ARRAY("weight", 1, s->V, s->C);

    return attncl_embedding(t->graph, tokens, weight, embedding_scale(s));
}

CHECKED(embedding, SUITE_OP, 1, WHOLE("y"),
        ref_embedding_fwd(WHOLE("tokens"), WHOLE("weight"), embedding_scale(s), want))

// Unreduced, so that each row's loss is checked: a mean would hide a wrong row.
static attncl_value build_cross_entropy(struct case_data *t, const struct sizes *s)
{
    const attncl_value logits = case_input(t, "logits", 4, DIMS(s->M, s->V));
    const attncl_value targets = case_indices(t, "targets", 0, s->V, DIMS(s->M));

    const attncl_cross_entropy_desc each = {sizeof each, ATTNCL_REDUCE_NONE, -1, 0};
    return attncl_cross_entropy(t->graph, logits, targets, &each);
}

CHECKED(cross_entropy, SUITE_OP, s->V, WHOLE("y"),
        ref_cross_entropy_fwd(WHOLE("logits"), WHOLE("targets"), ATTNCL_REDUCE_NONE, -1, 0, want))

// SPDX-License-Identifier: MIT
//
// Operations on rows and elements.  They are cheap to define, so results are checked whole, but for
// arrays far beyond any cache: some of their rows.

#include <math.h>

#include "cases/define.h"

enum { N_CHECKED_ROWS = 4096 };

// Of an array [M, N]: all, or rows spread over it.
static struct host *rows(const struct case_data *t, const char *name)
{
    return PART(t, name, part_spread(N_CHECKED_ROWS, t->c->sizes.M), ALL);
}

static attncl_value input(struct case_data *t, double spread)
{
    return case_input(t, "x", spread, DIMS(t->c->sizes.M, t->c->sizes.N));
}

static void build_softmax(struct case_data *t)
{
    attncl_graph_output(t->graph, "y", attncl_softmax(t->graph, input(t, 4), -1));
}

static void check_softmax(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(rows(t, "y"));

    ref_softmax_fwd(rows(t, "x"), want);
    check_compare(c, (double)t->c->sizes.N, rows(t, "y"), want);
}

const struct family bench_softmax = {
    .name = "softmax", .build = build_softmax, .check = check_softmax};

static void build_masked_softmax(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_input(t, "x", 4, DIMS(s->B, s->M, s->N));
    const attncl_value lens = case_indices(t, "valid_lens", 0, s->N + 1, DIMS(s->B, s->M));

    attncl_graph_output(t->graph, "y", attncl_masked_softmax(t->graph, x, lens));
}

static void check_masked_softmax(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(case_whole(t, "y"));

    ref_masked_softmax_fwd(case_whole(t, "x"), case_whole(t, "valid_lens"), want);
    check_compare(c, (double)t->c->sizes.N, case_whole(t, "y"), want);
}

const struct family bench_masked_softmax = {
    .name = "masked_softmax", .build = build_masked_softmax, .check = check_masked_softmax};

static void build_layer_norm(struct case_data *t)
{
    const attncl_value x = input(t, 2), weight = ARRAY("weight", 1, t->c->sizes.N);
    const attncl_value bias = ARRAY("bias", 1, t->c->sizes.N);

    attncl_graph_output(t->graph, "y",
                        attncl_layer_norm(t->graph, x, weight, bias, LAYER_NORM_EPS));
}

static void check_layer_norm(const struct case_data *t, struct check *c)
{
    check_compare(c, (double)t->c->sizes.N, rows(t, "y"),
                  define_layer_norm(rows(t, "x"), WHOLE("weight"), WHOLE("bias")));
}

const struct family bench_layer_norm = {
    .name = "layer_norm", .build = build_layer_norm, .check = check_layer_norm};

static void build_gelu(struct case_data *t)
{
    attncl_graph_output(t->graph, "y", attncl_activate(t->graph, input(t, 4), ATTNCL_GELU));
}

static void check_gelu(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(rows(t, "y"));

    ref_activation_fwd(rows(t, "x"), ATTNCL_GELU, want);
    check_compare(c, 1, rows(t, "y"), want);
}

const struct family bench_gelu = {.name = "gelu", .build = build_gelu, .check = check_gelu};

static void build_bias_gelu(struct case_data *t)
{
    const attncl_value x = input(t, 4), bias = ARRAY("bias", 1, t->c->sizes.N);

    attncl_graph_output(t->graph, "y", attncl_bias_activate(t->graph, x, bias, ATTNCL_GELU));
}

static void check_bias_gelu(const struct case_data *t, struct check *c)
{
    struct host *x = rows(t, "x"), *bias = case_whole(t, "bias"), *want = host_like(x);

    for (int64_t i = 0; i < x->count; ++i)
        x->data[i] += bias->data[i % bias->count];
    ref_activation_fwd(x, ATTNCL_GELU, want);
    check_compare(c, 1, rows(t, "y"), want);
}

const struct family bench_bias_gelu = {
    .name = "bias_gelu", .build = build_bias_gelu, .check = check_bias_gelu};

static float embedding_scale(const struct case_data *t)
{
    return (float)sqrt((double)t->c->sizes.C);
}

static void build_embedding(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value tokens = case_indices(t, "tokens", 0, s->V, DIMS(s->M));
    const attncl_value weight = ARRAY("weight", 1, s->V, s->C);

    attncl_graph_output(t->graph, "y",
                        attncl_embedding(t->graph, tokens, weight, embedding_scale(t)));
}

static void check_embedding(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(case_whole(t, "y"));

    ref_embedding_fwd(case_whole(t, "tokens"), case_whole(t, "weight"), embedding_scale(t), want);
    check_compare(c, 1, case_whole(t, "y"), want);
}

const struct family bench_embedding = {
    .name = "embedding", .build = build_embedding, .check = check_embedding};

// Unreduced, so that each row's loss is checked: a mean would hide a wrong row.
static void build_cross_entropy(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value logits = case_input(t, "logits", 4, DIMS(s->M, s->V));
    const attncl_value targets = case_indices(t, "targets", 0, s->V, DIMS(s->M));

    attncl_graph_output(t->graph, "y",
                        attncl_cross_entropy(t->graph, logits, targets, ATTNCL_REDUCE_NONE, -1));
}

static void check_cross_entropy(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(case_whole(t, "y"));

    ref_cross_entropy_fwd(case_whole(t, "logits"), case_whole(t, "targets"), ATTNCL_REDUCE_NONE, -1,
                          0, want);
    check_compare(c, (double)t->c->sizes.V, case_whole(t, "y"), want);
}

const struct family bench_cross_entropy = {
    .name = "cross_entropy", .build = build_cross_entropy, .check = check_cross_entropy};

// SPDX-License-Identifier: MIT
//
// Operations on rows and elements.  They are cheap to define, so results are checked whole, but for
// arrays far beyond any cache: some of their rows.

#include <math.h>

#include "cases/define.h"
#include "families.h"
#include "harness/check.h"
#include "ref/ref.h"

enum { N_CHECKED_ROWS = 4096 };

// Of an array [M, N]: all, or rows spread over it.
static struct host *rows(const struct case_data *t, const char *name)
{
    return PART(t, name, part_spread(N_CHECKED_ROWS, t->c->sizes.M), ALL);
}

static double by_n(const struct sizes *s)
{
    return (double)s->N;
}

static double no_sum(const struct sizes *s)
{
    (void)s;
    return 1;
}

static double by_v(const struct sizes *s)
{
    return (double)s->V;
}

static void build_softmax(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 4, DIMS(s->M, s->N));

    attncl_graph_output(t->graph, "y", attncl_softmax(t->graph, x, -1));
}

static void check_softmax(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(rows(t, "y"));

    ref_softmax_fwd(rows(t, "x"), want);
    check_compare(c, rows(t, "y"), want);
}

const struct family bench_softmax = {
    .name = "softmax", .build = build_softmax, .check = check_softmax, .sum_length = by_n};

static void build_masked_softmax(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 4, DIMS(s->B, s->M, s->N));
    const attncl_value lens = case_data_indices(t, "valid_lens", 0, s->N + 1, DIMS(s->B, s->M));

    attncl_graph_output(t->graph, "y", attncl_masked_softmax(t->graph, x, lens));
}

static void check_masked_softmax(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(case_data_whole(t, "y"));

    ref_masked_softmax_fwd(case_data_whole(t, "x"), case_data_whole(t, "valid_lens"), want);
    check_compare(c, case_data_whole(t, "y"), want);
}

const struct family bench_masked_softmax = {.name = "masked_softmax",
                                            .build = build_masked_softmax,
                                            .check = check_masked_softmax,
                                            .sum_length = by_n};

static void build_layer_norm(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 2, DIMS(s->M, s->N));
    const attncl_value weight = case_data_weight(t, "weight", 1, DIMS(s->N));
    const attncl_value bias = case_data_weight(t, "bias", 1, DIMS(s->N));

    attncl_graph_output(t->graph, "y",
                        attncl_layer_norm(t->graph, x, weight, bias, LAYER_NORM_EPS));
}

static void check_layer_norm(const struct case_data *t, struct check *c)
{
    check_compare(
        c, rows(t, "y"),
        define_layer_norm(rows(t, "x"), case_data_whole(t, "weight"), case_data_whole(t, "bias")));
}

const struct family bench_layer_norm = {
    .name = "layer_norm", .build = build_layer_norm, .check = check_layer_norm, .sum_length = by_n};

static void build_gelu(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 4, DIMS(s->M, s->N));

    attncl_graph_output(t->graph, "y", attncl_activate(t->graph, x, ATTNCL_GELU));
}

static void check_gelu(const struct case_data *t, struct check *c)
{
    check_compare(c, rows(t, "y"), define_activation(rows(t, "x"), ATTNCL_GELU));
}

const struct family bench_gelu = {
    .name = "gelu", .build = build_gelu, .check = check_gelu, .sum_length = no_sum};

static void build_bias_gelu(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 4, DIMS(s->M, s->N));
    const attncl_value bias = case_data_weight(t, "bias", 1, DIMS(s->N));

    attncl_graph_output(t->graph, "y", attncl_bias_activate(t->graph, x, bias, ATTNCL_GELU));
}

static void check_bias_gelu(const struct case_data *t, struct check *c)
{
    const struct host *x = rows(t, "x"), *bias = case_data_whole(t, "bias");
    struct host *sum = host_like(x);

    for (int64_t i = 0; i < x->count; ++i)
        sum->data[i] = x->data[i] + bias->data[i % bias->count];
    check_compare(c, rows(t, "y"), define_activation(sum, ATTNCL_GELU));
}

const struct family bench_bias_gelu = {
    .name = "bias_gelu", .build = build_bias_gelu, .check = check_bias_gelu, .sum_length = no_sum};

static float embedding_scale(const struct sizes *s)
{
    return (float)sqrt((double)s->C);
}

static void build_embedding(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value tokens = case_data_indices(t, "tokens", 0, s->V, DIMS(s->M));
    const attncl_value weight = case_data_weight(t, "weight", 1, DIMS(s->V, s->C));

    attncl_graph_output(t->graph, "y",
                        attncl_embedding(t->graph, tokens, weight, embedding_scale(s)));
}

static void check_embedding(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(case_data_whole(t, "y"));

    ref_embedding_fwd(case_data_whole(t, "tokens"), case_data_whole(t, "weight"),
                      embedding_scale(&t->c->sizes), want);
    check_compare(c, case_data_whole(t, "y"), want);
}

const struct family bench_embedding = {
    .name = "embedding", .build = build_embedding, .check = check_embedding, .sum_length = no_sum};

// Unreduced, so that each row's loss is checked: a mean would hide a wrong row.
static void build_cross_entropy(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value logits = case_data_input(t, "logits", 4, DIMS(s->M, s->V));
    const attncl_value targets = case_data_indices(t, "targets", 0, s->V, DIMS(s->M));

    attncl_graph_output(t->graph, "y",
                        attncl_cross_entropy(t->graph, logits, targets, ATTNCL_REDUCE_NONE, -1));
}

static void check_cross_entropy(const struct case_data *t, struct check *c)
{
    struct host *want = host_like(case_data_whole(t, "y"));

    ref_cross_entropy_fwd(case_data_whole(t, "logits"), case_data_whole(t, "targets"),
                          ATTNCL_REDUCE_NONE, -1, want);
    check_compare(c, case_data_whole(t, "y"), want);
}

const struct family bench_cross_entropy = {.name = "cross_entropy",
                                           .build = build_cross_entropy,
                                           .check = check_cross_entropy,
                                           .sum_length = by_v};

// SPDX-License-Identifier: MIT
//
// GEMMs and the networks that consist of little else.  A row of the result depends on one row of
// the input, so full-size runs are checked on a few rows spread over all, the last one included.

#include "cases/define.h"
#include "families.h"
#include "harness/check.h"

enum { N_CHECKED_ROWS = 12 };

static double by_k(const struct sizes *s)
{
    return (double)s->K;
}

static double by_hidden(const struct sizes *s)
{
    return (double)(s->C + s->F);
}

static struct part checked_rows(const struct case_data *t)
{
    return part_spread(N_CHECKED_ROWS, t->c->sizes.M);
}

// A plain GEMM has no builder of its own: A B is a batch of one, A B^T a linear map.
static void build_gemm(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    attncl_value y;

    if (s->transposed) {
        const attncl_value a = case_data_input(t, "a", 1, DIMS(s->M, s->K));
        y = attncl_linear(t->graph, a, case_data_map(t, "b", s->N, s->K), ATTNCL_NONE_VALUE);
    } else {
        const attncl_value a = case_data_input(t, "a", 1, DIMS(1, s->M, s->K));
        y = attncl_bmm(t->graph, a, case_data_weight(t, "b", 1, DIMS(1, s->K, s->N)));
    }
    attncl_graph_output(t->graph, "y", y);
}

static void check_gemm(const struct case_data *t, struct check *c)
{
    const struct part rows = checked_rows(t);

    if (t->c->sizes.transposed)
        check_compare(c, PART(t, "y", rows, ALL),
                      define_linear(PART(t, "a", rows, ALL), case_data_whole(t, "b"), NULL));
    else
        check_compare(c, PART(t, "y", ALL, rows, ALL),
                      define_bmm(PART(t, "a", ALL, rows, ALL), case_data_whole(t, "b")));
}

const struct family bench_gemm = {
    .name = "gemm", .build = build_gemm, .check = check_gemm, .sum_length = by_k};

static void build_bmm(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value a = case_data_input(t, "a", 1, DIMS(s->B, s->M, s->K));
    const attncl_value b = case_data_input(t, "b", 1, DIMS(s->B, s->K, s->N));

    attncl_graph_output(t->graph, "y", attncl_bmm(t->graph, a, b));
}

static void check_bmm(const struct case_data *t, struct check *c)
{
    const struct part rows = checked_rows(t);

    check_compare(c, PART(t, "y", ALL, rows, ALL),
                  define_bmm(PART(t, "a", ALL, rows, ALL), case_data_whole(t, "b")));
}

const struct family bench_bmm = {
    .name = "bmm", .build = build_bmm, .check = check_bmm, .sum_length = by_k};

static void build_linear(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 1, DIMS(s->M, s->K));
    const attncl_value weight = case_data_map(t, "weight", s->N, s->K);
    const attncl_value bias = case_data_weight(t, "bias", 1, DIMS(s->N));

    attncl_graph_output(t->graph, "y", attncl_linear(t->graph, x, weight, bias));
}

static void check_linear(const struct case_data *t, struct check *c)
{
    const struct part rows = checked_rows(t);

    check_compare(c, PART(t, "y", rows, ALL),
                  define_linear(PART(t, "x", rows, ALL), case_data_whole(t, "weight"),
                                case_data_whole(t, "bias")));
}

const struct family bench_linear = {
    .name = "linear", .build = build_linear, .check = check_linear, .sum_length = by_k};

static void build_feed_forward(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 1, DIMS(s->M, s->C));
    const attncl_ffn_params params = {
        .layer1_weight = case_data_map(t, "layer1.weight", s->F, s->C),
        .layer1_bias = case_data_weight(t, "layer1.bias", 1, DIMS(s->F)),
        .layer2_weight = case_data_map(t, "layer2.weight", s->C, s->F),
        .layer2_bias = case_data_weight(t, "layer2.bias", 1, DIMS(s->C)),
    };

    attncl_graph_output(t->graph, "y",
                        attncl_feed_forward(t->graph, &params, ATTNCL_GELU, x, ATTNCL_NONE_VALUE));
}

static void check_feed_forward(const struct case_data *t, struct check *c)
{
    const struct part rows = checked_rows(t);
    struct host *h = define_linear(PART(t, "x", rows, ALL), case_data_whole(t, "layer1.weight"),
                                   case_data_whole(t, "layer1.bias"));

    h = define_linear(define_activation(h, ATTNCL_GELU), case_data_whole(t, "layer2.weight"),
                      case_data_whole(t, "layer2.bias"));
    check_compare(c, PART(t, "y", rows, ALL), h);
}

const struct family bench_feed_forward = {.name = "feed_forward",
                                          .suite = SUITE_LAYER,
                                          .build = build_feed_forward,
                                          .check = check_feed_forward,
                                          .sum_length = by_hidden};

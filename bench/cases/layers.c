// SPDX-License-Identifier: MIT
//
// A pre-norm encoder layer over AFT-local:  x += aft(LN x);  x += ffn(LN x)
// Checked on the last batch entry, and after the mixing on a few of its positions.

#include "cases/define.h"
#include "families.h"
#include "harness/check.h"

enum { N_CHECKED_POSITIONS = 16 };

static double by_layer(const struct sizes *s)
{
    return (double)(3 * s->C + s->F + s->T);
}

static attncl_aft_params mixing_params(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;

    return (attncl_aft_params){
        .query_weight = case_data_map(t, "query.weight", s->C, s->C),
        .query_bias = case_data_weight(t, "query.bias", 1, DIMS(s->C)),
        .key_weight = case_data_map(t, "key.weight", s->C, s->C),
        .key_bias = case_data_weight(t, "key.bias", 1, DIMS(s->C)),
        .value_weight = case_data_map(t, "value.weight", s->C, s->C),
        .value_bias = case_data_weight(t, "value.bias", 1, DIMS(s->C)),
        .pos_bias = case_data_weight(t, "pos_bias", 1, DIMS(s->T, s->T)),
        .output_weight = case_data_map(t, "output.weight", s->C, s->C),
        .output_bias = case_data_weight(t, "output.bias", 1, DIMS(s->C)),
    };
}

static void build_encoder_layer(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    attncl_graph *g = t->graph;
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    const attncl_value x = case_data_input(t, "x", 1, DIMS(s->T, s->B, s->C));
    const attncl_aft_params mixing = mixing_params(t);
    const attncl_ffn_params ffn = {
        .layer1_weight = case_data_map(t, "layer1.weight", s->F, s->C),
        .layer1_bias = case_data_weight(t, "layer1.bias", 1, DIMS(s->F)),
        .layer2_weight = case_data_map(t, "layer2.weight", s->C, s->F),
        .layer2_bias = case_data_weight(t, "layer2.bias", 1, DIMS(s->C)),
    };

    desc.window = s->window;
    desc.causal = s->causal;
    const attncl_value n1 = attncl_layer_norm(
        g, x, case_data_weight(t, "norm_self_attn.weight", 1, DIMS(s->C)),
        case_data_weight(t, "norm_self_attn.bias", 1, DIMS(s->C)), LAYER_NORM_EPS);
    const attncl_value h = attncl_aft(g, &desc, &mixing, n1, n1, n1, ATTNCL_NONE_VALUE, x);
    const attncl_value n2 =
        attncl_layer_norm(g, h, case_data_weight(t, "norm_ff.weight", 1, DIMS(s->C)),
                          case_data_weight(t, "norm_ff.bias", 1, DIMS(s->C)), LAYER_NORM_EPS);
    attncl_graph_output(g, "y", attncl_feed_forward(g, &ffn, ATTNCL_RELU, n2, h));
}

static struct host *map(const struct case_data *t, const struct host *x, const char *weight,
                        const char *bias)
{
    return define_linear(x, case_data_whole(t, weight), case_data_whole(t, bias));
}

static void check_encoder_layer(const struct case_data *t, struct check *c)
{
    const struct sizes *s = &t->c->sizes;
    const struct part batch = part_one(s->B - 1);
    const struct part positions = part_spread(N_CHECKED_POSITIONS, s->T);
    const struct host *x = PART(t, "x", ALL, batch, ALL);
    struct host *n = define_layer_norm(x, case_data_whole(t, "norm_self_attn.weight"),
                                       case_data_whole(t, "norm_self_attn.bias"));
    struct host *h =
        define_aft(map(t, n, "query.weight", "query.bias"), map(t, n, "key.weight", "key.bias"),
                   map(t, n, "value.weight", "value.bias"), case_data_whole(t, "pos_bias"),
                   ATTNCL_AFT_LOCAL, s->window, s->causal);

    h = define_add(define_pick(x, positions),
                   map(t, define_pick(h, positions), "output.weight", "output.bias"));
    n = define_layer_norm(h, case_data_whole(t, "norm_ff.weight"),
                          case_data_whole(t, "norm_ff.bias"));
    n = define_activation(map(t, n, "layer1.weight", "layer1.bias"), ATTNCL_RELU);
    check_compare(c, PART(t, "y", positions, batch, ALL),
                  define_add(h, map(t, n, "layer2.weight", "layer2.bias")));
}

const struct family bench_encoder_layer = {.name = "encoder_layer",
                                           .suite = SUITE_LAYER,
                                           .build = build_encoder_layer,
                                           .check = check_encoder_layer,
                                           .sum_length = by_layer};

// SPDX-License-Identifier: MIT
//
// gMLP.  Batch entries do not see each other: full-size runs are checked on the last one, the block
// on a few of its positions after the gate, which mixes them all.

#include "cases/define.h"
#include "families.h"
#include "harness/check.h"

enum { N_CHECKED_POSITIONS = 16 };

static double by_gate(const struct sizes *s)
{
    return (double)(s->F / 2 + s->T);
}

static double by_block(const struct sizes *s)
{
    return (double)(2 * s->C + s->F + s->T);
}

static attncl_sgu_params gate_params(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;

    return (attncl_sgu_params){
        .norm_weight = case_data_weight(t, "sgu.norm.weight", 1, DIMS(s->F / 2)),
        .norm_bias = case_data_weight(t, "sgu.norm.bias", 1, DIMS(s->F / 2)),
        .weight = case_data_weight(t, "sgu.weight", 0.1, DIMS(s->T, s->T)),
        .bias = case_data_weight(t, "sgu.bias", 1, DIMS(s->T)),
    };
}

static struct host *define_gate(const struct case_data *t, const struct host *z)
{
    return define_spatial_gate(
        z, case_data_whole(t, "sgu.norm.weight"), case_data_whole(t, "sgu.norm.bias"),
        case_data_whole(t, "sgu.weight"), case_data_whole(t, "sgu.bias"), t->c->sizes.causal);
}

static void build_spatial_gate(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value z = case_data_input(t, "z", 2, DIMS(s->T, s->B, s->F));
    const attncl_sgu_params params = gate_params(t);

    attncl_graph_output(
        t->graph, "y",
        attncl_spatial_gating_unit(t->graph, &params, z, s->causal, ATTNCL_NONE_VALUE));
}

static void check_spatial_gate(const struct case_data *t, struct check *c)
{
    const struct part batch = part_one(t->c->sizes.B - 1);

    check_compare(c, PART(t, "y", ALL, batch, ALL), define_gate(t, PART(t, "z", ALL, batch, ALL)));
}

const struct family bench_spatial_gate = {.name = "spatial_gate",
                                          .build = build_spatial_gate,
                                          .check = check_spatial_gate,
                                          .sum_length = by_gate};

static void build_gmlp_block(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_data_input(t, "x", 1, DIMS(s->T, s->B, s->C));
    const attncl_gmlp_params params = {
        .norm_weight = case_data_weight(t, "norm.weight", 1, DIMS(s->C)),
        .norm_bias = case_data_weight(t, "norm.bias", 1, DIMS(s->C)),
        .proj1_weight = case_data_map(t, "proj1.weight", s->F, s->C),
        .proj1_bias = case_data_weight(t, "proj1.bias", 1, DIMS(s->F)),
        .sgu = gate_params(t),
        .proj2_weight = case_data_map(t, "proj2.weight", s->C, s->F / 2),
        .proj2_bias = case_data_weight(t, "proj2.bias", 1, DIMS(s->C)),
    };

    attncl_graph_output(t->graph, "y",
                        attncl_gmlp_block(t->graph, &params, x, s->causal, ATTNCL_NONE_VALUE));
}

static void check_gmlp_block(const struct case_data *t, struct check *c)
{
    const struct part batch = part_one(t->c->sizes.B - 1);
    const struct part positions = part_spread(N_CHECKED_POSITIONS, t->c->sizes.T);
    const struct host *x = PART(t, "x", ALL, batch, ALL);
    struct host *h =
        define_layer_norm(x, case_data_whole(t, "norm.weight"), case_data_whole(t, "norm.bias"));

    h = define_linear(h, case_data_whole(t, "proj1.weight"), case_data_whole(t, "proj1.bias"));
    h = define_pick(define_gate(t, define_activation(h, ATTNCL_GELU)), positions);
    h = define_linear(h, case_data_whole(t, "proj2.weight"), case_data_whole(t, "proj2.bias"));
    check_compare(c, PART(t, "y", positions, batch, ALL), define_add(define_pick(x, positions), h));
}

const struct family bench_gmlp_block = {.name = "gmlp_block",
                                        .suite = SUITE_LAYER,
                                        .build = build_gmlp_block,
                                        .check = check_gmlp_block,
                                        .sum_length = by_block};

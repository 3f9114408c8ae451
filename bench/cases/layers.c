// SPDX-License-Identifier: MIT
//
// gMLP's gate and block, and a pre-norm encoder layer over AFT-local:
//   x += aft(LN x);  x += ffn(LN x)
// Batch entries do not see each other: the last one is checked.

#include "cases/define.h"

static attncl_value build_spatial_gate(struct case_data *t, const struct sizes *s)
{
    const attncl_value z = case_input(t, "z", 2, DIMS(s->T, s->B, s->F));
    const attncl_sgu_params params = {.struct_size = sizeof params, GATE_FIELDS(ARRAY)};

    return attncl_spatial_gating_unit(t->graph, &params, z, s->causal, ATTNCL_NONE_VALUE);
}

CHECKED(spatial_gate, SUITE_OP, s->F / 2 + s->T, PART(t, "y", ALL, LAST, ALL),
        ref_spatial_gating_unit(&(const struct ref_sgu){GATE_FIELDS(WHOLE)}, s->causal,
                                PART(t, "z", ALL, LAST, ALL), NULL, want))

static attncl_value build_gmlp_block(struct case_data *t, const struct sizes *s)
{
    const attncl_value x = case_input(t, "x", 1, DIMS(s->T, s->B, s->C));
    const attncl_sgu_params gate = {.struct_size = sizeof gate, GATE_FIELDS(ARRAY)};
    const attncl_gmlp_params params = {
        .struct_size = sizeof params, .sgu = &gate, GMLP_FIELDS(MAP, ARRAY)};

    return attncl_gmlp_block(t->graph, &params, x, s->causal, ATTNCL_NONE_VALUE);
}

CHECKED(gmlp_block, SUITE_LAYER, 2 * s->C + s->F + s->T, PART(t, "y", ALL, LAST, ALL),
        ref_gmlp_block(&(const struct ref_gmlp){.sgu = {GATE_FIELDS(WHOLE)},
                                                GMLP_FIELDS(WHOLE, WHOLE)},
                       s->causal, PART(t, "x", ALL, LAST, ALL), NULL, want))

#define ENCODER_MIXING_FIELDS(MAP, ARRAY)                                                          \
    MIXING_FIELDS("", "", MAP, ARRAY), .pos_bias = ARRAY("pos_bias", 1, s->T, s->T)

static attncl_value build_encoder_layer(struct case_data *t, const struct sizes *s)
{
    attncl_graph *g = t->graph;
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    const attncl_value x = case_input(t, "x", 1, DIMS(s->T, s->B, s->C));
    const attncl_aft_params mixing = {.struct_size = sizeof mixing,
                                      ENCODER_MIXING_FIELDS(MAP, ARRAY)};
    const attncl_ffn_params ffn = {.struct_size = sizeof ffn, FFN_FIELDS("", MAP, ARRAY)};

    desc.window = s->window;
    desc.causal = s->causal;
    const attncl_value n1 =
        attncl_layer_norm(g, x, ARRAY("norm_self_attn.weight", 1, s->C),
                          ARRAY("norm_self_attn.bias", 1, s->C), LAYER_NORM_EPS);
    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = n1, .key = n1, .value = n1, .residual = x};
    const attncl_value h = attncl_aft(g, &desc, &mixing, &in);
    const attncl_value n2 = attncl_layer_norm(g, h, ARRAY("norm_ff.weight", 1, s->C),
                                              ARRAY("norm_ff.bias", 1, s->C), LAYER_NORM_EPS);
    return attncl_feed_forward(g, &ffn, ATTNCL_RELU, n2, h);
}

static void check_encoder_layer(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct ref_aft mixing = {ENCODER_MIXING_FIELDS(WHOLE, WHOLE)};
    const struct ref_ffn ffn = {FFN_FIELDS("", WHOLE, WHOLE)};
    const struct host *x = PART(t, "x", ALL, LAST, ALL);
    struct host *h = host_like(x), *y = host_like(x);

    ref_aft_layer(
        &mixing, (int)s->window, s->causal,
        define_layer_norm(x, WHOLE("norm_self_attn.weight"), WHOLE("norm_self_attn.bias")), NULL,
        h);
    h = define_add(x, h);
    ref_feed_forward(&ffn, ATTNCL_RELU,
                     define_layer_norm(h, WHOLE("norm_ff.weight"), WHOLE("norm_ff.bias")), y);
    check_compare(c, (double)(3 * s->C + s->F + s->T), PART(t, "y", ALL, LAST, ALL),
                  define_add(h, y));
}

PLAIN_FAMILY(encoder_layer, SUITE_LAYER)

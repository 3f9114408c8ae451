// SPDX-License-Identifier: MIT
// Public steps of layers, lib/layer/aft.c, gmlp.c, attention.c and feedback_transformer.c: they give the rows of the causal layer.

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/feedback.h"
#include "attncl/gmlp.h"
#include "support/layer_test.h"

enum { T = 7, B = 2, C = 6, H = 2, F = 8 };

static attncl_value map(struct rig *b, unsigned seed, int64_t out, int64_t in)
{
    struct host *h = host_random(seed, DIMS(out, in));
    host_scale(h, 0.4);
    return rig_in(b, h);
}

static attncl_value row(struct rig *b, unsigned seed, int64_t n)
{
    return rig_in(b, host_random(seed, DIMS(n)));
}

// A layer of the sequence x or, with a position, of one row.
typedef attncl_value layer_fn(struct rig *b, attncl_value x, attncl_value position);

static attncl_value aft(struct rig *b, attncl_value x, attncl_value position)
{
    const attncl_value square = map(b, 1, C, C);
    const attncl_aft_params p = {.struct_size = sizeof p,
                                 .query_weight = square,
                                 .key_weight = map(b, 2, C, C),
                                 .value_weight = square,
                                 .pos_bias = map(b, 3, T, T),
                                 .output_weight = square};
    const attncl_attention_inputs in = {.struct_size = sizeof in, .query = x, .key = x, .value = x};
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;

    desc.kind = ATTNCL_AFT_LOCAL;
    desc.window = 3;
    desc.causal = 1;
    return position.id ? attncl_aft_step(b->g, &desc, &p, x, position, ATTNCL_NONE_VALUE)
                       : attncl_aft(b->g, &desc, &p, &in);
}

static attncl_value gmlp(struct rig *b, attncl_value x, attncl_value position)
{
    const attncl_sgu_params sgu = {.struct_size = sizeof sgu,
                                   .norm_weight = row(b, 1, F / 2),
                                   .norm_bias = row(b, 2, F / 2),
                                   .weight = map(b, 3, T, T),
                                   .bias = row(b, 4, T)};
    const attncl_gmlp_params p = {.struct_size = sizeof p,
                                  .norm_weight = row(b, 5, C),
                                  .norm_bias = row(b, 6, C),
                                  .proj1_weight = map(b, 7, F, C),
                                  .proj1_bias = row(b, 8, F),
                                  .sgu = &sgu,
                                  .proj2_weight = map(b, 9, C, F / 2),
                                  .proj2_bias = row(b, 10, C)};

    return position.id ? attncl_gmlp_step(b->g, &p, x, position)
                       : attncl_gmlp_block(b->g, &p, x, 1, ATTNCL_NONE_VALUE);
}

static attncl_value attention(struct rig *b, attncl_value x, attncl_value position)
{
    const attncl_value square = map(b, 1, C, C);
    const attncl_mha_params p = {.struct_size = sizeof p,
                                 .query_weight = square,
                                 .key_weight = map(b, 2, C, C),
                                 .value_weight = square,
                                 .output_weight = square};
    const attncl_attention_inputs in = {.struct_size = sizeof in, .query = x, .key = x, .value = x};
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;

    desc.causal = 1;
    return position.id
               ? attncl_multi_head_attention_step(b->g, &p, H, T, x, position, ATTNCL_NONE_VALUE)
               : attncl_multi_head_attention(b->g, &desc, &p, H, &in, NULL);
}

static attncl_value feedback(struct rig *b, attncl_value x, attncl_value position)
{
    const attncl_value square = map(b, 1, C, C), norm = row(b, 2, C);
    const attncl_feedback_params attn = {
        .struct_size = sizeof attn,
        .query_weight = square,
        .key_weight = map(b, 3, C, C),
        .value_weight = square,
        .output_weight = square,
        .output_bias = norm,
        .key_pos_embeddings = rig_in(b, host_random(4, DIMS(T, H, C / H))),
        .query_pos_bias = rig_in(b, host_random(5, DIMS(H, C / H)))};
    const attncl_ffn_params ffn = {
        .struct_size = sizeof ffn, .layer1_weight = square, .layer2_weight = square};
    const attncl_feedback_layer_params layer = {.struct_size = sizeof layer,
                                                .norm_attn_weight = norm,
                                                .norm_attn_bias = norm,
                                                .attn = &attn,
                                                .norm_ffn_weight = norm,
                                                .norm_ffn_bias = norm,
                                                .ffn = &ffn};
    const attncl_feedback_transformer_params p = {.struct_size = sizeof p,
                                                  .layers = &layer,
                                                  .n_layers = 1,
                                                  .n_heads = H,
                                                  .weights = row(b, 6, 2),
                                                  .norm_weight = norm,
                                                  .norm_bias = norm};

    return position.id ? attncl_feedback_transformer_step(b->g, &p, T, x, position, NULL)
                       : attncl_feedback_transformer(b->g, &p, x, NULL);
}

static layer_fn *const layers[] = {aft, gmlp, attention, feedback};

TABLE_TEST(steps_are_rows_of_the_causal_layer, layers)
{
    struct host *x = host_random(40, DIMS(T, B, C)), *want = host_like(x);
    struct host *x_row = host_new(ATTNCL_F32, DIMS(B, C)), *y_row = host_like(x_row);
    struct host *position = host_new(ATTNCL_I32, DIMS(1));
    struct rig b;

    rig_open(&b);
    rig_out(&b, layers[_i](&b, rig_in(&b, x), ATTNCL_NONE_VALUE), want);
    rig_run_once(&b);
    rig_open(&b);
    rig_out(&b, layers[_i](&b, rig_in(&b, x_row), rig_in(&b, position)), y_row);
    ck_ok(rig_compile(&b));
    for (int64_t t = 0; t < 2 * T; ++t) { // position 0 starts anew
        position->data[0] = (double)(t % T);
        host_set(x_row, host_row(x, t % T)->data);
        rig_run(&b);
        ck_near(y_row, host_row(want, t % T), 2e-5, 2e-5);
    }
    rig_close(&b);
}

// SPDX-License-Identifier: MIT
// What feedback layers refuse.  Golden models have results and gradients of layers and transformers (tests/model), with
// steps by decoders.

#include "attncl/feedback.h"
#include "support/layer_test.h"

enum { B = 2, C = 6, H = 3, D = C / H, P = 5 };

// What is wrong, and the words that say so.
enum mistake { LONG_SEQUENCE, LONG_MEMORY, HEADS, OTHER_BATCH, STACK, N_MISTAKES };
static const char *const words[N_MISTAKES] = {
    "7 steps have 6 memories, key_pos_embeddings has positions for 5",
    "6 memories, key_pos_embeddings has positions for 5",
    "C = 6 cannot be cut into H = 4 heads",
    "key has B = 3, query has B = 2",
    "key_value_weight has shape [6, 6], expected [2 N C, C] with C = 6, N = 1 or 2",
};

LOOP_TEST(refusals, 0, N_MISTAKES)
{
    const enum mistake mistake = (enum mistake)_i;
    struct rig b;

    rig_open(&b);
    const attncl_value square = rig_in(&b, host_new(ATTNCL_F32, DIMS(C, C))),
                       row = rig_in(&b, host_new(ATTNCL_F32, DIMS(C)));
    const attncl_feedback_params attn = {
        .struct_size = sizeof attn,
        .query_weight = square,
        .key_weight = square,
        .value_weight = square,
        .value_bias = row,
        .output_weight = square,
        .output_bias = row,
        .key_pos_embeddings = rig_in(&b, host_new(ATTNCL_F32, DIMS(P, H, D))),
        .query_pos_bias = rig_in(&b, host_new(ATTNCL_F32, DIMS(H, D)))};
    const attncl_ffn_params ffn = {.struct_size = sizeof ffn,
                                   .layer1_weight = square,
                                   .layer1_bias = row,
                                   .layer2_weight = square,
                                   .layer2_bias = row};
    const attncl_feedback_layer_params layer = {.struct_size = sizeof layer,
                                                .norm_attn_weight = row,
                                                .norm_attn_bias = row,
                                                .attn = &attn,
                                                .norm_ffn_weight = row,
                                                .norm_ffn_bias = row,
                                                .ffn = &ffn};
    const attncl_feedback_layer_params layers[] = {layer, layer};
    attncl_feedback_transformer_params p = {.struct_size = sizeof p,
                                            .layers = layers,
                                            .n_layers = COUNT_OF(layers),
                                            .n_heads = H,
                                            .weights = rig_in(&b, host_new(ATTNCL_F32, DIMS(3))),
                                            .norm_weight = row,
                                            .norm_bias = row};
    const int64_t n = mistake == LONG_MEMORY ? 6 : 2, batch = mistake == OTHER_BATCH ? 3 : B;
    const attncl_value x = rig_in(&b, host_new(ATTNCL_F32, DIMS(B, C)));
    const attncl_value memory = rig_in(&b, host_new(ATTNCL_F32, DIMS(n, batch, C)));
    if (mistake == STACK)
        p.key_value_weight = square;
    if (mistake == LONG_SEQUENCE || mistake == STACK)
        attncl_feedback_transformer(b.g, &p, rig_in(&b, host_new(ATTNCL_F32, DIMS(7, B, C))), NULL);
    else
        attncl_feedback_layer(b.g, &layer, mistake == HEADS ? 4 : H, x, memory);
    ck_fails(attncl_graph_status(b.g), ATTNCL_ERR_SHAPE, words[mistake]);
    rig_close(&b);
}

// SPDX-License-Identifier: MIT
// Gradients of the ops beside attention's, AFT-local's and those of rows.

#include "kernels/gpu_cases.h"

#include "attncl/kinds.h"

#define AT         EXTENTS(I32, 1)
#define MEMORY     DIM(64, 8, 8, 64), DIM(64, 8, 8, 64)
#define PLACES     DIM(64, 8, 64), DIM(8, 64)
#define CACHE      DIM(2, 8, 8, 64, 64)
#define PLACE_BIAS DIM(64, 8)
#define SCORES     DIM(2, 8, 8, 64)
#define SEQUENCE   DIM(1024, 8, 512)
#define ACTIVATION(name, which)                                                                    \
    OP_CASE(name ", gradient", activation_bwd, VALUES(.kind = GEMM_ACT_##which), DIM(1 << 20),     \
            DIM(1 << 20))
// A matrix of 64 and a view of it without its last column.
#define WHOLE                                                                                      \
    {                                                                                              \
        .dtype = ATTNCL_F32, .rank = 2, .dim = {64, 64}, .stride = { 64, 1 }                       \
    }
#define CUT                                                                                        \
    {                                                                                              \
        .dtype = ATTNCL_F32, .rank = 2, .dim = {64, 63}, .stride = { 64, 1 }                       \
    }

const struct resource_case resource_gradients[] = {
    ACTIVATION("GELU", GELU),
    ACTIVATION("ReLU", RELU),
    ACTIVATION("sigmoid", SIGMOID),
    ACTIVATION("tanh", TANH),
    ACTIVATION("SiLU", SILU),
    ACTIVATION("GELU by tanh", GELU_TANH),
    OP_CASE("epilogue of linear, gradient", linear_bwd_epilogue,
            VALUES(.activation = GEMM_ACT_GELU), DIM(1 << 20), DIM(1 << 20), DIM(1 << 20)),
    OP_CASE("linear, gradient of x", linear_bwd_input, VALUES(0), DIM(2048, 1024), DIM(1024, 1024)),
    OP_CASE("linear, gradient of the weight", linear_bwd_weight, VALUES(0), DIM(2048, 1024),
            DIM(2048, 1024)),
    OP_CASE("linear, gradient of the bias", linear_bwd_bias, VALUES(0), DIM(2048, 1024)),
    OP_CASE("product, gradient of a", bmm_bwd_a, VALUES(0), DIM(8, 256, 256), DIM(8, 256, 256)),
    OP_CASE("product, gradient of b", bmm_bwd_b, VALUES(0), DIM(8, 256, 256), DIM(8, 256, 256)),
    OP_CASE("embedding, gradient", embedding_bwd, VALUES(.scale = 1), EXTENTS(I32, 8, 1024),
            DIM(50257, 512), DIM(8, 1024, 512)),
    OP_CASE("positions, gradient", add_positions_bwd, VALUES(0), DIM(8, 1024, 512), DIM(1024, 512)),
    OP_CASE("mean cross entropy, gradient", cross_entropy_bwd,
            VALUES(.loss = {.reduction = ATTNCL_REDUCE_MEAN, .pad = 0}), DIM(4096, 1024),
            EXTENTS(I32, 4096), {.dtype = ATTNCL_F32}),
    OP_CASE("mean cross entropy, smoothed", cross_entropy_fwd,
            VALUES(.reduction = ATTNCL_REDUCE_MEAN, .pad = 0, .smoothing = 0.1), DIM(4096, 1024),
            EXTENTS(I32, 4096)),
    OP_CASE("spatial gate, gradient of the gate", spatial_gate_bwd_gate, VALUES(0),
            DIM(8, 1024, 512), SEQUENCE, SEQUENCE),
    OP_CASE("spatial gate, gradient of the weight", spatial_gate_bwd_weight,
            VALUES(.gate = {.causal = 1}), DIM(1024, 1024), SEQUENCE, SEQUENCE),
    OP_CASE("spatial gate, gradient of u", spatial_gate_bwd_input, VALUES(.gate = {.causal = 1}),
            DIM(1024, 1024), SEQUENCE, EXTENTS(U8, 1024, 1024)),
    OP_CASE("spatial gate, gradient of the bias", spatial_gate_bwd_bias, VALUES(0), DIM(1024),
            SEQUENCE),
    OP_CASE("AFT-simple, gradients", aft_bwd, VALUES(0), QKV(4096, 8), ABSENT, ABSENT,
            QKV(4096, 8)),
    OP_CASE("AFT-simple, causal, gradients", aft_bwd, VALUES(.forward = {.causal = 1}),
            QKV(4096, 8), ABSENT, ABSENT, QKV(4096, 8)),
    OP_CASE("AFT-full, gradients", aft_bwd, VALUES(.forward = {.window = 4096}), QKV(4096, 8),
            DIM(4096, 4096), ABSENT, QKV(4096, 8)),
    OP_CASE("AFT-local, causal, gradients", aft_bwd, VALUES(.forward = {.window = 64, .causal = 1}),
            QKV(4096, 8), DIM(4096, 4096), ABSENT, QKV(4096, 8)),
    OP_CASE("AFT-local, mask, gradients", aft_bwd, VALUES(.forward = {.window = 64}), QKV(4096, 1),
            DIM(4096, 4096), EXTENTS(U8, 4096, 4096, 1), QKV(4096, 1)),
    OP_CASE("AFT-conv, gradients", aft_bwd, VALUES(.forward = {.per_head = 1}), DIM(4096, 8, 512),
            DIM(4096, 8, 8), DIM(4096, 8, 512), DIM(8, 63), ABSENT, QKV(4096, 8)),
    OP_CASE("attention D 64, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(2048, 64), HEADS(2048, 64), HEADS(2048, 64), ABSENT, ABSENT, DIM(2048, 1, 16, 64),
            ABSENT, HEADS(2048, 2), DIM(2048, 1, 16, 64)),
    OP_CASE("attention D 32, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(2048, 32), HEADS(2048, 32), HEADS(2048, 32), ABSENT, ABSENT, DIM(2048, 1, 16, 32),
            ABSENT, HEADS(2048, 2), DIM(2048, 1, 16, 32)),
    OP_CASE("attention D 96, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(2048, 96), HEADS(2048, 96), HEADS(2048, 96), ABSENT, ABSENT, DIM(2048, 1, 16, 96),
            ABSENT, HEADS(2048, 2), DIM(2048, 1, 16, 96)),
    OP_CASE("attention D 64, causal, gradients", attention_bwd,
            VALUES(.attention = {.scale = 1, .causal = 1}), HEADS(2048, 64), HEADS(2048, 64),
            HEADS(2048, 64), ABSENT, ABSENT, DIM(2048, 1, 16, 64), ABSENT, HEADS(2048, 2),
            DIM(2048, 1, 16, 64)),
    OP_CASE("attention D 64, T 8192, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(8192, 64), HEADS(8192, 64), HEADS(8192, 64), ABSENT, ABSENT, DIM(8192, 1, 16, 64),
            ABSENT, HEADS(8192, 2), DIM(8192, 1, 16, 64)),
    OP_CASE("attention D 128, lengths, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(2048, 128), HEADS(2048, 128), HEADS(2048, 128), ABSENT, EXTENTS(I32, 1),
            DIM(2048, 1, 16, 128), ABSENT, HEADS(2048, 2), DIM(2048, 1, 16, 128)),
    OP_CASE("attention D 64, mask, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(2048, 64), HEADS(2048, 64), HEADS(2048, 64), EXTENTS(U8, 2048, 2048, 1), ABSENT,
            DIM(2048, 1, 16, 64), ABSENT, HEADS(2048, 2), DIM(2048, 1, 16, 64)),
    OP_CASE("attention D 63, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(2048, 63), HEADS(2048, 63), HEADS(2048, 63), ABSENT, ABSENT, DIM(2048, 1, 16, 63),
            ABSENT, HEADS(2048, 2), DIM(2048, 1, 16, 63)),
    OP_CASE("attention D 256, gradients", attention_bwd, VALUES(.attention = {.scale = 1}),
            HEADS(2048, 256), HEADS(2048, 256), HEADS(2048, 256), ABSENT, ABSENT,
            DIM(2048, 1, 16, 256), ABSENT, HEADS(2048, 2), DIM(2048, 1, 16, 256)),
    OP_CASE("attention D 128, dropout, gradients", attention_bwd,
            VALUES(.attention = {.scale = 1, .dropout = {.p = 0.1}}), HEADS(2048, 128),
            HEADS(2048, 128), HEADS(2048, 128), ABSENT, ABSENT, DIM(2048, 1, 16, 128), ABSENT,
            HEADS(2048, 2), DIM(2048, 1, 16, 128), ABSENT, INDEX),
    OP_CASE("additive attention, gradients", additive_attention_bwd, VALUES(0), DIM(8, 64, 256),
            DIM(8, 64, 256), DIM(8, 64, 256), DIM(256), ABSENT, ABSENT, ABSENT, DIM(8, 64, 256)),
    OP_CASE("additive attention, dropout, gradients", additive_attention_bwd,
            VALUES(.attention = {.dropout = {.p = 0.1}}), DIM(8, 64, 256), DIM(8, 64, 256),
            DIM(8, 64, 256), DIM(256), ABSENT, INDEX, ABSENT, DIM(8, 64, 256)),
    OP_CASE("additive attention, lengths, gradients", additive_attention_bwd, VALUES(0),
            DIM(8, 64, 256), DIM(8, 64, 256), DIM(8, 64, 256), DIM(256), EXTENTS(I32, 8), ABSENT,
            ABSENT, DIM(8, 64, 256), DIM(8, 64, 64)),
    OP_CASE("attention pooling, Gaussian, gradients", attention_pooling_bwd,
            VALUES(.pooling = {.kind = 0, .sigma = 1}), DIM(1024), DIM(1024), DIM(1024), DIM(1024)),
    OP_CASE("attention pooling, boxcar, gradients", attention_pooling_bwd,
            VALUES(.pooling = {.kind = 1}), DIM(1024), DIM(1024), DIM(1024), DIM(1024)),
    OP_CASE("attention pooling, constant, gradients", attention_pooling_bwd,
            VALUES(.pooling = {.kind = 3}), DIM(1024), DIM(1024), DIM(1024), DIM(1024)),
    OP_CASE("attention pooling, weights, gradients", attention_pooling_bwd,
            VALUES(.pooling = {.kind = 2}), DIM(1024), DIM(1024), DIM(1024), DIM(1024),
            DIM(1024, 1024)),
    OP_CASE("feedback attention, gradients", feedback_attention_bwd_query, VALUES(0), DIM(8, 512),
            MEMORY, PLACES, PLACE_BIAS, AT, DIM(8, 512)),
    OP_CASE("feedback attention, joint, gradients", feedback_attention_bwd_query, VALUES(0),
            DIM(8, 512), MEMORY, PLACES, ABSENT, ABSENT, DIM(8, 512), DIM(8, 8, 64)),
    OP_CASE("feedback attention, dropout, gradients", feedback_attention_bwd_query,
            VALUES(.attention = {.dropout = {.p = 0.1}}), DIM(8, 512), MEMORY, PLACES, PLACE_BIAS,
            AT, DIM(8, 512), ABSENT, INDEX),
    OP_CASE("feedback attention, cache's gradient", feedback_attention_bwd_accumulate, VALUES(0),
            DIM(8, 512), MEMORY, PLACES, PLACE_BIAS, AT, DIM(8, 512), CACHE),
    OP_CASE("feedback attention, memory's gradient", feedback_attention_bwd_memory, VALUES(0),
            DIM(8, 512), DIM(8, 64), SCORES, DIM(8, 512), DIM(64, 8, 8, 64)),
    OP_CASE("feedback attention, positions' gradient", feedback_attention_bwd_positions, VALUES(0),
            DIM(8, 512), DIM(8, 64), SCORES, DIM(8, 512), DIM(64, 8, 64), PLACE_BIAS, AT),
    OP_CASE("feedback mix of 3, gradients", feedback_mix_bwd, VALUES(0), DIM(8), DIM(8, 512),
            DIM(8, 512), DIM(8, 512), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, DIM(8, 512)),
    OP_CASE("GRU, gradients", gru_bwd, VALUES(0), DIM(768, 256), DIM(8, 256), DIM(64, 8, 256),
            DIM(64, 8, 1024), DIM(64, 8, 256)),
    OP_CASE("rotation, gradient", rotate_bwd, VALUES(0), DIM(8, 512), DIM(2, 512)),
    OP_CASE("zeros", zeros_fwd, VALUES(.shape = WHOLE)),
    OP_CASE("view, gradient", view_scatter_add_fwd, VALUES(.count = 64 * 64, .view = {WHOLE, CUT}),
            DIM(64, 64), DIM(64, 63)),
};
const size_t n_resource_gradients = sizeof resource_gradients / sizeof resource_gradients[0];

// SPDX-License-Identifier: MIT
// Decoding steps, recurrence, memories, embeddings and views.

#include "kernels/gpu_cases.h"

#include "attncl/kinds.h"

#define SCALAR                                                                                     \
    {                                                                                              \
        .dtype = ATTNCL_F32                                                                        \
    }
#define AT              EXTENTS(I32, 1)
#define TOKENS          EXTENTS(I32, 8, 1024)
#define MEMORY_OF(type) EXTENTS(type, 64, 8, 8, 64), EXTENTS(type, 64, 8, 8, 64)
#define MEMORY          MEMORY_OF(F32)
#define PLACES          DIM(64, 8, 64), DIM(8, 64)
#define CACHE           DIM(2, 8, 8, 64, 64)
#define PLACE_BIAS      DIM(64, 8)
#define SEQUENCE        DIM(1024, 8, 512)
#define LINEAR(name, type, rows, ...)                                                              \
    OP_CASE(name, linear_fwd, VALUES(__VA_ARGS__), DIM(rows, 1024), EXTENTS(type, 1024, 1024),     \
            DIM(1024))
#define ATTENTION_LINEAR(name, type, cache, rows, kind)                                            \
    OP_CASE("attention step and linear map, " name, fused_attention_linear_fwd,                    \
            VALUES({.scale = 1, .n_heads = 8}, {.activation = (kind)}), DIM(rows, 512),            \
            DIM(rows, 512), DIM(rows, 512), AT, EXTENTS(cache, 1024, rows, 512),                   \
            EXTENTS(cache, 1024, rows, 512), EXTENTS(type, 512, 512), DIM(512), ABSENT,            \
            DIM(rows, 512))
#define FEEDBACK_LINEAR(name, cache, rows, bias)                                                   \
    OP_CASE("feedback attention step and linear map, " name, fused_feedback_linear_fwd,            \
            VALUES({.activation = 0}), DIM(rows, 512), EXTENTS(cache, 64, rows, 8, 64),            \
            EXTENTS(cache, 64, rows, 8, 64), PLACES, bias, AT, DIM(512, 512), DIM(512),            \
            DIM(rows, 512), DIM(rows, 512))
// Whose sums are cut along k, so that a kernel of its own applies the epilogue.
#define SPLIT_K(name, which)                                                                       \
    {                                                                                              \
        .label = "64 x 64 x 65536 " name, .gemm = {                                                \
            .batch = 1,                                                                            \
            .m = 64,                                                                               \
            .n = 64,                                                                               \
            .k = 65536,                                                                            \
            .activation = GEMM_ACT_##which                                                         \
        }                                                                                          \
    }

const struct resource_case resource_steps[] = {
    LINEAR("linear of 8", F32, 8, 0),
    LINEAR("linear of 1, F16", F16, 1, 0),
    LINEAR("linear of 1, BF16", BF16, 1, 0),
    LINEAR("linear of 2048, F16", F16, 2048, 0),
    LINEAR("linear of 2048, BF16, GELU", BF16, 2048, .activation = GEMM_ACT_GELU),

    LINEAR("linear of 2048, ReLU", F32, 2048, .activation = GEMM_ACT_RELU),
    LINEAR("linear of 2048, sigmoid", F32, 2048, .activation = GEMM_ACT_SIGMOID),
    LINEAR("linear of 2048, tanh", F32, 2048, .activation = GEMM_ACT_TANH),
    LINEAR("linear of 2048, SiLU", F32, 2048, .activation = GEMM_ACT_SILU),
    LINEAR("linear of 2048, GELU by tanh", F32, 2048, .activation = GEMM_ACT_GELU_TANH),
    LINEAR("linear of 1, ReLU", F32, 1, .activation = GEMM_ACT_RELU),
    LINEAR("linear of 1, sigmoid", F32, 1, .activation = GEMM_ACT_SIGMOID),
    LINEAR("linear of 1, tanh", F32, 1, .activation = GEMM_ACT_TANH),
    LINEAR("linear of 1, SiLU", F32, 1, .activation = GEMM_ACT_SILU),
    LINEAR("linear of 1, GELU by tanh", F32, 1, .activation = GEMM_ACT_GELU_TANH),
    SPLIT_K("ReLU", RELU),
    SPLIT_K("sigmoid", SIGMOID),
    SPLIT_K("tanh", TANH),
    SPLIT_K("SiLU", SILU),
    SPLIT_K("GELU by tanh", GELU_TANH),

    OP_CASE("attention step", attention_step_fwd, VALUES(.scale = 1, .n_heads = 8), DIM(1, 512),
            DIM(1, 512), DIM(1, 512), AT, DIM(1024, 1, 512), DIM(1024, 1, 512)),
    OP_CASE("attention step, heads of 30", attention_step_fwd, VALUES(.scale = 1, .n_heads = 8),
            DIM(1, 240), DIM(1, 240), DIM(1, 240), AT, DIM(1024, 1, 240), DIM(1024, 1, 240)),
    OP_CASE("attention step, F16", attention_step_fwd, VALUES(.scale = 1, .n_heads = 8),
            DIM(1, 512), DIM(1, 512), DIM(1, 512), AT, EXTENTS(F16, 1024, 1, 512),
            EXTENTS(F16, 1024, 1, 512)),
    OP_CASE("attention step, BF16", attention_step_fwd, VALUES(.scale = 1, .n_heads = 8),
            DIM(1, 512), DIM(1, 512), DIM(1, 512), AT, EXTENTS(BF16, 1024, 1, 512),
            EXTENTS(BF16, 1024, 1, 512)),
    ATTENTION_LINEAR("1 row", F32, F32, 1, 0),
    ATTENTION_LINEAR("1 row of F16", F16, F16, 1, 0),
    ATTENTION_LINEAR("2 rows of BF16, GELU", BF16, F32, 2, ATTNCL_GELU),
    ATTENTION_LINEAR("8 rows", F32, F32, 8, 0),
    ATTENTION_LINEAR("32 rows of F16", F16, F16, 32, 0),
    FEEDBACK_LINEAR("1 row", F32, 1, ABSENT),
    FEEDBACK_LINEAR("8 rows of F16, split scores", F16, 8, PLACE_BIAS),
    OP_CASE("stored rows, F16", store_rows_fwd, VALUES(0), DIM(512, 1, 512),
            EXTENTS(F16, 1024, 1, 512)),
    OP_CASE("stored rows, BF16", store_rows_fwd, VALUES(0), DIM(512, 1, 512),
            EXTENTS(BF16, 1024, 1, 512)),
    OP_CASE("AFT step", aft_step_fwd, VALUES(.window = 64), DIM(1, 512), DIM(1, 512), DIM(1, 512),
            DIM(1024, 1024), AT, DIM(3, 512), DIM(64, 512), DIM(64, 512)),
    OP_CASE("AFT step without biases", aft_step_fwd, VALUES(0), DIM(1, 512), DIM(1, 512),
            DIM(1, 512), ABSENT, AT, DIM(3, 512), DIM(1, 512), DIM(1, 512)),
    OP_CASE("AFT prefill", aft_prefill_fwd, VALUES(.window = 64), DIM(1024, 1, 512),
            DIM(1024, 1, 512), AT, DIM(3, 512), DIM(64, 512), DIM(64, 512)),
    OP_CASE("AFT-conv prefill", aft_prefill_fwd, VALUES(.per_head = 1, .window = 32),
            DIM(1024, 1, 8), DIM(1024, 1, 512), AT, DIM(3, 512), DIM(32, 512), DIM(32, 512)),
    OP_CASE("AFT-conv prefill, F16", aft_prefill_fwd, VALUES(.per_head = 1, .window = 32),
            DIM(1024, 1, 8), DIM(1024, 1, 512), AT, DIM(3, 512), EXTENTS(F16, 32, 512),
            EXTENTS(F16, 32, 512)),
    OP_CASE("AFT-conv prefill, BF16", aft_prefill_fwd, VALUES(.per_head = 1, .window = 32),
            DIM(1024, 1, 8), DIM(1024, 1, 512), AT, DIM(3, 512), EXTENTS(BF16, 32, 512),
            EXTENTS(BF16, 32, 512)),
    OP_CASE("AFT-conv step, F16", aft_step_fwd, VALUES(.per_head = 1), DIM(1, 512), DIM(1, 8),
            DIM(1, 512), DIM(8, 63), AT, DIM(3, 512), EXTENTS(F16, 32, 512), EXTENTS(F16, 32, 512)),
    OP_CASE("AFT-conv step, BF16", aft_step_fwd, VALUES(.per_head = 1), DIM(1, 512), DIM(1, 8),
            DIM(1, 512), DIM(8, 63), AT, DIM(3, 512), EXTENTS(BF16, 32, 512),
            EXTENTS(BF16, 32, 512)),
    OP_CASE("AFT-conv step", aft_step_fwd, VALUES(.per_head = 1), DIM(1, 512), DIM(1, 8),
            DIM(1, 512), DIM(8, 63), AT, DIM(3, 512), DIM(32, 512), DIM(32, 512)),
    OP_CASE("spatial gate step", spatial_gate_step_fwd, VALUES(0), DIM(1024, 1024), DIM(1024),
            DIM(8, 512), DIM(8, 512), AT, DIM(1024, 8, 512)),
    OP_CASE("spatial gate step, F16", spatial_gate_step_fwd, VALUES(0), DIM(1024, 1024), DIM(1024),
            DIM(8, 512), DIM(8, 512), AT, EXTENTS(F16, 1024, 8, 512)),
    OP_CASE("spatial gate step, BF16", spatial_gate_step_fwd, VALUES(0), DIM(1024, 1024), DIM(1024),
            DIM(8, 512), DIM(8, 512), AT, EXTENTS(BF16, 1024, 8, 512)),
    OP_CASE("spatial gate", spatial_gate_fwd, VALUES(.causal = 1), DIM(1024, 1024), DIM(1024),
            SEQUENCE, SEQUENCE),
    OP_CASE("spatial gate, mask", spatial_gate_fwd, VALUES(0), DIM(1024, 1024), DIM(1024), SEQUENCE,
            SEQUENCE, EXTENTS(U8, 1024, 1024, 1)),
    OP_CASE("split-K reduction", split_k_reduce_fwd, VALUES(0), DIM(8, 16, 512), DIM(512),
            DIM(16, 512)),

    OP_CASE("additive attention", additive_attention_fwd, VALUES(0), DIM(8, 64, 256),
            DIM(8, 64, 256), DIM(8, 64, 256), DIM(256)),
    OP_CASE("additive attention, lengths", additive_attention_fwd, VALUES(.want_weights = 1),
            DIM(8, 64, 256), DIM(8, 64, 256), DIM(8, 64, 256), DIM(256), EXTENTS(I32, 8)),
    OP_CASE("additive attention, dropout", additive_attention_fwd, VALUES(.dropout = {.p = 0.1}),
            DIM(8, 64, 256), DIM(8, 64, 256), DIM(8, 64, 256), DIM(256), ABSENT, INDEX),
    OP_CASE("attention pooling, Gaussian", attention_pooling_fwd, VALUES(.kind = 0, .sigma = 1),
            DIM(1024), DIM(1024), DIM(1024)),
    OP_CASE("attention pooling, weights", attention_pooling_fwd,
            VALUES(.kind = 1, .want_weights = 1), DIM(1024), DIM(1024), DIM(1024)),
    OP_CASE("attention pooling, boxcar", attention_pooling_fwd, VALUES(.kind = 2), DIM(1024),
            DIM(1024), DIM(1024)),
    OP_CASE("attention pooling, constant", attention_pooling_fwd, VALUES(.kind = 3), DIM(1024),
            DIM(1024), DIM(1024)),

    OP_CASE("feedback attention", feedback_attention_fwd, VALUES(0), DIM(8, 512), MEMORY, PLACES,
            PLACE_BIAS, AT),
    OP_CASE("feedback attention, joint", feedback_attention_fwd, VALUES(.want_weights = 1),
            DIM(8, 512), MEMORY, PLACES),
    OP_CASE("feedback attention of a step, joint", feedback_attention_fwd, VALUES(0), DIM(8, 512),
            MEMORY, PLACES, ABSENT, AT),
    OP_CASE("feedback attention, dropout", feedback_attention_fwd, VALUES(.dropout = {.p = 0.1}),
            DIM(8, 512), MEMORY, PLACES, PLACE_BIAS, AT, ABSENT, INDEX),
    OP_CASE("feedback attention of a step, F16", feedback_attention_fwd, VALUES(0), DIM(8, 512),
            MEMORY_OF(F16), PLACES, PLACE_BIAS, AT),
    OP_CASE("feedback attention, dropout, F16", feedback_attention_fwd,
            VALUES(.dropout = {.p = 0.1}), DIM(8, 512), MEMORY_OF(F16), PLACES, PLACE_BIAS, AT,
            ABSENT, INDEX),
    OP_CASE("feedback attention, dropout, BF16", feedback_attention_fwd,
            VALUES(.dropout = {.p = 0.1}), DIM(8, 512), MEMORY_OF(BF16), PLACES, PLACE_BIAS, AT,
            ABSENT, INDEX),
    OP_CASE("feedback mix of 1", feedback_mix_fwd, VALUES(0), DIM(8), ABSENT, DIM(8, 512)),
    OP_CASE("feedback mix of 3", feedback_mix_fwd, VALUES(0), DIM(8), ABSENT, DIM(8, 512),
            DIM(8, 512), DIM(8, 512)),
    OP_CASE("feedback mix of 8", feedback_mix_fwd, VALUES(0), DIM(8), ABSENT, DIM(8, 512),
            DIM(8, 512), DIM(8, 512), DIM(8, 512), DIM(8, 512), DIM(8, 512), DIM(8, 512),
            DIM(8, 512)),
    OP_CASE("feedback store", feedback_store_fwd, VALUES(0), DIM(8, 1024), AT, CACHE),
    OP_CASE("feedback store, F16", feedback_store_fwd, VALUES(0), DIM(8, 1024), AT,
            EXTENTS(F16, 2, 8, 8, 64, 64)),
    OP_CASE("feedback store, BF16", feedback_store_fwd, VALUES(0), DIM(8, 1024), AT,
            EXTENTS(BF16, 2, 8, 8, 64, 64)),
    OP_CASE("feedback gate", feedback_gate_fwd, VALUES(0), DIM(8, 512), AT),
    OP_CASE("feedback load", feedback_load_fwd, VALUES(.n_slots = 2, .n_steps = 64), CACHE, AT),

    OP_CASE("GRU", gru_fwd, VALUES(0), DIM(64, 8, 768), DIM(768, 256), DIM(768), DIM(8, 256)),
    OP_CASE("token stored", sample_store_fwd, VALUES(0), EXTENTS(I32, 8), EXTENTS(I32, 9),
            EXTENTS(I32, 256, 8)),
    OP_CASE("loop index", loop_index_fwd, VALUES(.trip_count = 8), AT),
    OP_CASE("loop row", loop_row_fwd, VALUES(0), DIM(64, 8, 512), AT),
    OP_CASE("loop stack", loop_stack_fwd, VALUES(.n_rows = 64), DIM(8, 512), AT),
    OP_CASE("loop sum", loop_sum_fwd, VALUES(0), DIM(8, 512), AT),
    OP_CASE("loop copies", fused_loop_copies_fwd, VALUES(.n = 3, .kinds = 0x24, .n_rows = 64), AT,
            DIM(64, 8, 512), DIM(8, 512), DIM(8, 512)),

    OP_CASE("embedding", embedding_fwd, VALUES(.scale = 1), TOKENS, DIM(50257, 512)),
    OP_CASE("embedding, F16", embedding_fwd, VALUES(.scale = 1), TOKENS, EXTENTS(F16, 50257, 512)),
    OP_CASE("embedding, BF16", embedding_fwd, VALUES(.scale = 1), TOKENS,
            EXTENTS(BF16, 50257, 511)),
    OP_CASE("positions", add_positions_fwd, VALUES(0), DIM(8, 1024, 512), DIM(1024, 512)),
    OP_CASE("position of a step", add_position_at_fwd, VALUES(0), DIM(8, 512), DIM(1024, 512), AT),
    OP_CASE("concat", concat_fwd, VALUES(0), DIM(8, 64, 512), DIM(8, 64, 512)),
    OP_CASE("copy", copy_fwd, VALUES(0), DIM(64, 8, 512)),
    OP_CASE("copy of bytes", copy_fwd, VALUES(0), EXTENTS(U8, 64, 8, 512)),
    OP_CASE("rotation", rotate_fwd, VALUES(0), DIM(8, 512), DIM(2, 512)),

    OP_CASE("ReLU", activation_fwd, VALUES(.kind = GEMM_ACT_RELU), DIM(1 << 20)),
    OP_CASE("sigmoid", activation_fwd, VALUES(.kind = GEMM_ACT_SIGMOID), DIM(1 << 20)),
    OP_CASE("layer norm of pieces", layer_norm_fwd, VALUES(.eps = 1e-5f),
            {.dtype = ATTNCL_F32, .rank = 3, .dim = {4096, 8, 64}, .gap = 64}, DIM(8, 64),
            DIM(8, 64)),

    OP_CASE("schedule", schedule_rate_fwd, VALUES(.kind = ATTNCL_RATE_COSINE, .n_steps = 100),
            INDEX),
    OP_CASE("Adam's rates", adam_rates_fwd, VALUES(.beta1 = .9, .beta2 = .999), INDEX, SCALAR),
    OP_CASE("Adam", adam_step_fwd, VALUES(.beta1 = .9, .beta2 = .999), DIM(512, 512), DIM(512, 512),
            DIM(512, 512), DIM(512, 512), DIM(3)),
    OP_CASE("AMSGrad", adam_update_fwd, VALUES(.adam = {.beta1 = .9, .beta2 = .999}), DIM(512, 512),
            DIM(512, 512), DIM(512, 512), DIM(512, 512), DIM(3), DIM(512, 512)),
    OP_CASE("SGD's rates", sgd_rates_fwd, VALUES(.momentum = .9), INDEX, SCALAR),
    OP_CASE("SGD", sgd_step_fwd, VALUES(0), DIM(512, 512), DIM(512, 512), DIM(3)),
    OP_CASE("SGD with momentum", sgd_update_fwd, VALUES(.sgd = {.momentum = .9}), DIM(512, 512),
            DIM(512, 512), DIM(3), DIM(512, 512)),
    OP_CASE("sum of squares", sum_squares_fwd, VALUES(0), DIM(512, 512), DIM(3)),
    OP_CASE("clipping factor", clip_factor_fwd, VALUES(.max_norm = 1), DIM(3)),
    OP_CASE("scale by a factor", scale_by_fwd, VALUES(0), DIM(512, 512), SCALAR),
    OP_CASE("clamp", clamp_fwd, VALUES(.limit = 1), DIM(512, 512)),
    OP_CASE("accumulate", accumulate_fwd, VALUES(.keep = 1, .gain = 1), DIM(512, 512),
            DIM(512, 512)),
};
const size_t n_resource_steps = sizeof resource_steps / sizeof resource_steps[0];

// SPDX-License-Identifier: MIT
// Specs, of sizes alone, for what attncl-gpu-variants launches and no spec beside a reference has: parts of fused graphs,
// decoding steps, loops and views.

#include "attncl/kinds.h"
#include "graph/graph.h"
#include "support/op_spec.h"

// clang-format off
// A matrix of 64 and a view of it without its last column.
#define WHOLE {.dtype = ATTNCL_F32, .rank = 2, .dim = {64, 64}, .stride = {64, 1}}
#define CUT   {.dtype = ATTNCL_F32, .rank = 2, .dim = {64, 63}, .stride = {64, 1}}
#define LINEAR(which) {#which, SPEC_PARAMS(linear_fwd, ATTNCL_##which)}
// clang-format on

#define MAP(kind) SPEC_PARAMS(fused_linear_fwd, {.activation = (kind)}, .eps = 1e-5f)
// Rows, or parts of attention.
#define NORM       "norm_weight f32 C; norm_bias f32 C;"
#define PARTS      "x f32 B H P D+2; position i32 1; bias f32 C; residual f32 B C;"
#define MAPS(type) "weight " type " C C; key " type " C C; value " type " C C;"
OP_SPEC(fused_linear_fwd,
        .in = "x f32 B C; weight f32 C C; bias? f32 C; gate? f32 B C; residual? f32 B C; "
              "norm_weight? f32 C; norm_bias? f32 C; position? i32 1; key? f32 C C; "
              "key_bias? f32 C; value? f32 C C; value_bias? f32 C",
        .out = "",
        .cases = {
            {"norm", MAP(0), NORM, .gpu = "B=1 C=512"},
            {"norm, GELU", MAP(ATTNCL_GELU), NORM, .gpu = "B=4,32 C=512"},
            {"norm, F16", MAP(0), NORM "weight f16 C C", .gpu = "B=1,8 C=512"},
            {"norm, BF16", MAP(0), NORM "weight bf16 C C", .gpu = "B=4 C=512"},
            {"three", MAP(0), MAPS("f32"), .gpu = "B=1 C=512"},
            {"three, norm", MAP(0), MAPS("f32") NORM, .gpu = "B=1,32 C=512"},
            {"three, norm, F16", MAP(0), MAPS("f16") NORM, .gpu = "B=4 C=512"},
            {"three, BF16", MAP(0), MAPS("bf16"), .gpu = "B=8 C=512"},
            {"parts", MAP(0), PARTS, .gpu = "B=1,8 C=512 H=8 P=4 D=64"},
            {"parts, F16", MAP(0), PARTS "weight f16 C C", .gpu = "B=1,32 C=512 H=8 P=4 D=64"},
            {"parts, BF16, GELU", MAP(ATTNCL_GELU), PARTS "weight bf16 C C; gate f32 B C",
             .gpu = "B=2 C=512 H=8 P=4 D=64"}});

#define DROPS       SPEC_PARAMS(feedback_attention_fwd, .dropout = {.p = 0.1})
#define CACHE(type) "key " type " S B H D; value " type " S B H D; dcache? f32;"
// Where keys and values of memories grow, gradients too.
OP_SPEC(feedback_attention_fwd,
        .in = "query f32 B C; key f32 S B H D; value f32 S B H D; key_pos_embeddings f32 S H D; "
              "query_pos_bias f32 H D; key_pos_bias f32 S H; position i32 1; "
              "dcache f32 2 B H S D; step? i32",
        .out = "", .grad = "query key_pos_embeddings query_pos_bias key_pos_bias",
        .gpu = "B=8 C=512 S=64 H=8 D=64",
        .cases = {
            {"growing, split", SPEC_PARAMS(feedback_attention_fwd, 0)},
            {"growing, joint", SPEC_PARAMS(feedback_attention_fwd, 0), "key_pos_bias? f32 S H"},
            {"F16, split", SPEC_PARAMS(feedback_attention_fwd, 0), CACHE("f16"), ""},
            {"F16, split, dropout", DROPS, CACHE("f16") "step i32", ""},
            {"BF16, split, dropout", DROPS, CACHE("bf16") "step i32", ""}});
OP_SPEC(feedback_load_fwd, .in = "cache f32 2 B H S D; position i32 1", .out = "",
        .gpu = "B=8 H=8 S=64 D=64",
        .cases = {{"all", SPEC_PARAMS(feedback_load_fwd, .n_slots = 2, .n_steps = 64)}});

#define AFT_STEP(...) SPEC_PARAMS(aft_step_fwd, __VA_ARGS__)
#define PREFILL(...)  SPEC_PARAMS(aft_prefill_fwd, __VA_ARGS__)
#define HEADS         "k f32 B H; pos_bias f32 H S;"
#define ROWS(type)    "keys " type " W C; values " type " W C"
OP_SPEC(aft_step_fwd,
        .in = "q f32 B C; k f32 B C; v f32 B C; pos_bias? f32 N N; position i32 1; "
              "sums f32 3 C; keys f32 W C; values f32 W C",
        .out = "", .gpu = "B=1 C=512 H=8 S=63 W=32",
        .cases = {
            {"table", AFT_STEP(.window = 64), "pos_bias f32 N N", .gpu = "B=1 C=512 N=1024 W=64"},
            {"no table", AFT_STEP(0), .gpu = "B=1 C=512 W=1"},
            {"heads", AFT_STEP(.per_head = 1), HEADS},
            {"heads, F16", AFT_STEP(.per_head = 1), HEADS ROWS("f16")},
            {"heads, BF16", AFT_STEP(.per_head = 1), HEADS ROWS("bf16")}});
OP_SPEC(aft_prefill_fwd,
        .in = "k f32 T B C; v f32 T B C; position i32 1; sums f32 3 C; keys f32 W C; "
              "values f32 W C",
        .out = "", .gpu = "T=1024 B=1 C=512 H=8 W=32",
        .cases = {
            {"table", PREFILL(.window = 64), .gpu = "T=1024 B=1 C=512 W=64"},
            {"heads", PREFILL(.per_head = 1, .window = 32), "k f32 T B H"},
            {"heads, F16", PREFILL(.per_head = 1, .window = 32), "k f32 T B H;" ROWS("f16")},
            {"heads, BF16", PREFILL(.per_head = 1, .window = 32), "k f32 T B H;" ROWS("bf16")}});
// AFT-full: the window is all of it.
OP_SPEC(aft_fwd, .in = "q f32 T B C; k f32 T B C; v f32 T B C; pos_bias f32 T T", .out = "",
        .grad = "q k v pos_bias", .gpu = "T=4096 B=8 C=512",
        .cases = {{"full", SPEC_PARAMS(aft_fwd, .window = 4096)}});

// The activations that its own spec leaves to theirs.  65536 terms are cut along k: a kernel of its own applies the epilogue.
OP_SPEC(linear_fwd, .in = "x f32 R K; weight f32 N K; bias f32 N", .out = "",
        .gpu = "R=1,8,2048 K=1024 N=1024; R=64 K=65536 N=64",
        .cases = {{"GELU", SPEC_PARAMS(linear_fwd, ATTNCL_GELU), "bias? f32 N",
                   .gpu = "R=8,16 K=8192 N=65536; R=4,4096 K=4096 N=4096"},
                  LINEAR(RELU),
                  LINEAR(SIGMOID),
                  LINEAR(TANH),
                  LINEAR(SILU),
                  LINEAR(GELU_TANH)});

OP_SPEC(loop_index_fwd, .in = "index i32 1", .out = "", .gpu = "N=1",
        .cases = {{"8", SPEC_PARAMS(loop_index_fwd, .trip_count = 8)}});
OP_SPEC(loop_row_fwd, .in = "x f32 T R*; index i32 1", .out = "", .gpu = "T=64 R=8x512");
OP_SPEC(loop_stack_fwd, .in = "x f32 R*; index i32 1", .out = "", .gpu = "R=8x512",
        .cases = {{"64", SPEC_PARAMS(loop_stack_fwd, .n_rows = 64)}});
OP_SPEC(loop_sum_fwd, .in = "x f32 R*; index i32 1", .out = "", .gpu = "R=8x512");

OP_SPEC(zeros_fwd, .in = "", .out = "", .gpu = "N=1",
        .cases = {{"matrix", SPEC_PARAMS(zeros_fwd, .shape = WHOLE)}});
OP_SPEC(view_scatter_add_fwd, .in = "whole f32 M M; cut f32 M N", .out = "", .gpu = "M=64 N=63",
        .cases = {
            {"matrix", SPEC_PARAMS(view_scatter_add_fwd, .count = 64 * 64, .view = {WHOLE, CUT})}});

OP_SPEC(schedule_rate_fwd, .in = "step i32", .out = "", .gpu = "N=1",
        .cases = {{"cosine",
                   SPEC_PARAMS(schedule_rate_fwd, .kind = ATTNCL_RATE_COSINE, .n_steps = 100)}});

// Rows of several axes that are parts of longer ones.
static void norm_pieces(attncl_graph *g, const void *params, const attncl_value *in,
                        attncl_value *out)
{
    struct tensor_desc part = *attncl__graph_desc(g, in[0]);

    part.dim[2] /= 2;
    out[0] = attncl__graph_add(g, &attncl__op_layer_norm_fwd, params,
                               IN(attncl__graph_view(g, in[0], &part), in[1], in[2]));
}
OP_SPEC(layer_norm_of_pieces, .in = "x f32 R H D+D; weight f32 H D; bias f32 H D", .out = "",
        .build = norm_pieces, .gpu = "R=4096 H=8 D=64",
        .cases = {{"rows", SPEC_PARAMS(layer_norm_fwd, .eps = 1e-5f)}});

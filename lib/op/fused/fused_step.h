// SPDX-License-Identifier: MIT
// What fused_ffn_fwd, fused_aft_step_fwd and fused_attention_step_fwd share: the residual stream
// with split-K partial sums still to add (cl/common/prenorm_prologue.clh), results as partial sums,
// channel blocks; and for the last two: the query, key, value and output projections around a
// mixing step, and where that is found in a graph.
#ifndef ATTNCL_OP_FUSED_FUSED_STEP_H
#define ATTNCL_OP_FUSED_FUSED_STEP_H

#include "op/fused/split_k_reduce.h"
#include "op/matmul/linear.h"

// The first inputs of all.
enum {
    FUSED_X,        // [..., d]
    FUSED_NORM_W,   // [d]
    FUSED_NORM_B,   // [d]
    FUSED_PARTIALS, // [S, m, d] split-K partial sums, or absent: x is complete
    FUSED_PARTIALS_BIAS,
    FUSED_INPUTS
};

// The next ones of the ops with projections: weights [C, d], biases [C] or absent; [d_out, C].
enum {
    FUSED_WQ = FUSED_INPUTS,
    FUSED_BQ,
    FUSED_WK,
    FUSED_BK,
    FUSED_WV,
    FUSED_BV,
    FUSED_WO,
    FUSED_QKV_INPUTS
};
#define FUSED_QKV_OPTIONAL                                                                         \
    (1u << FUSED_PARTIALS | 1u << FUSED_PARTIALS_BIAS | 1u << FUSED_BQ | 1u << FUSED_BK |          \
     1u << FUSED_BV)

// The first outputs: partial sums [n_blocks, m, d_out]; x', like x, absent where x is complete.
enum { FUSED_PARTIAL_SUMS, FUSED_RESIDUAL_OUT };

// m; d
int64_t attncl__fused_step_rows(const struct op_sig *sig);
int64_t attncl__fused_step_width(const struct op_sig *sig);

// ERR_SHAPE unless they fit each other; fills both outputs.
attncl_status attncl__fused_step_infer(struct op_sig *sig, int64_t n_blocks, int64_t d_out);

// Whether the kernels run on this device: few rows, every input contiguous, widths of whole
// vectors, `local` floats beside the rows in local memory.
bool attncl__fused_step_supported(const struct op_sig *sig, const int64_t *widths, int n_widths,
                                  int64_t local);

// Channel blocks of `width` for this device, where all of them take `fmas` FMAs; and how wide
// each but the last is.
int32_t attncl__fused_step_blocks(const struct device_caps *caps, int64_t width, int64_t fmas);
int64_t attncl__fused_step_block_width(const struct device_caps *caps, int64_t width,
                                       int64_t n_blocks);

// PRENORM_PARAMS and residual_out; the number of arguments.
enum { FUSED_ARGS = 11 };
void attncl__fused_step_args(const struct op_call *call, float eps, struct arg args[FUSED_ARGS]);

// With projections, around a mixing step.  infer: stream, projections, and the step by itself,
// which has q, k and v first and then what the op has after FUSED_QKV_INPUTS; supported: `local`
// floats more; args: up to the local arrays rows, q, k and v of cl/fused/fused_aft_step.cl.
attncl_status attncl__fused_step_infer_qkv(struct op_sig *sig, int64_t n_blocks,
                                           const struct op_class *step, const void *step_params);
bool attncl__fused_step_supported_qkv(const struct op_sig *sig, int64_t block_width, int64_t local);
enum { FUSED_QKV_ARGS = FUSED_ARGS + 18 };
void attncl__fused_step_qkv_args(const struct device_caps *caps, const struct op_call *call,
                                 float eps, int64_t block_width, struct arg args[FUSED_QKV_ARGS]);
void attncl__fused_step_qkv_macros(const struct device_caps *caps, const struct op_call *call,
                                   struct kspec *spec);
// FMAs of the projections.
int64_t attncl__fused_step_qkv_fmas(const struct op_sig *sig);
// Floating-point operations of the projections, and bytes of their weights.
void attncl__fused_step_qkv_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret);

// The norm's eps where all projections are plain and share it.
bool attncl__fused_step_projections_plain(const void *const *part_params, float *eps_ret);

// The chain [split_k_reduce ->] three fused_norm_linear -> step -> linear, whose step has q, k and
// v as its first inputs, becomes a fused step -> split_k_reduce.  STEP_INPUTS: what the step reads
// besides.
enum { CHAIN_OUTER, CHAIN_STEP, CHAIN_Q, CHAIN_K, CHAIN_V, CHAIN_STREAM };
#define CHAIN_NORM_W N_LINEAR_INPUTS
#define CHAIN_NORM_B (N_LINEAR_INPUTS + 1)
#define CHAIN_SAME(map)                                                                            \
    {IN_OF(CHAIN_Q, LINEAR_X), IN_OF(map, LINEAR_X)},                                              \
        {IN_OF(CHAIN_Q, CHAIN_NORM_W), IN_OF(map, CHAIN_NORM_W)},                                  \
    {                                                                                              \
        IN_OF(CHAIN_Q, CHAIN_NORM_B), IN_OF(map, CHAIN_NORM_B)                                     \
    }
#define CHAIN_PLAIN(map)     IN_OF(map, LINEAR_GATE), IN_OF(map, LINEAR_RESIDUAL)
#define CHAIN_MAP(w, b, map) [w] = IN_OF(map, LINEAR_WEIGHT), [b] = IN_OF(map, LINEAR_BIAS)
#define CHAIN_PARTS(step)                                                                          \
    [CHAIN_OUTER] = {&attncl__op_linear_fwd}, [CHAIN_STEP] = {&(step), CHAIN_OUTER, LINEAR_X},     \
    [CHAIN_Q] = {&attncl__op_fused_norm_linear_fwd, CHAIN_STEP, 0},                                \
    [CHAIN_K] = {&attncl__op_fused_norm_linear_fwd, CHAIN_STEP, 1},                                \
    [CHAIN_V] = {&attncl__op_fused_norm_linear_fwd, CHAIN_STEP, 2}
#define CHAIN_MAPS                                                                                 \
    [FUSED_NORM_W] = IN_OF(CHAIN_Q, CHAIN_NORM_W), [FUSED_NORM_B] = IN_OF(CHAIN_Q, CHAIN_NORM_B),  \
    CHAIN_MAP(FUSED_WQ, FUSED_BQ, CHAIN_Q), CHAIN_MAP(FUSED_WK, FUSED_BK, CHAIN_K),                \
    CHAIN_MAP(FUSED_WV, FUSED_BV, CHAIN_V), [FUSED_WO] = IN_OF(CHAIN_OUTER, LINEAR_WEIGHT)
#define CHAIN_RULES                                                                                \
    .same = {CHAIN_SAME(CHAIN_K), CHAIN_SAME(CHAIN_V)},                                            \
    .absent = {IN_OF(CHAIN_OUTER, LINEAR_GATE), CHAIN_PLAIN(CHAIN_Q), CHAIN_PLAIN(CHAIN_K),        \
               CHAIN_PLAIN(CHAIN_V)}
#define CHAIN_JOIN                                                                                 \
    {                                                                                              \
        &attncl__op_split_k_reduce_fwd,                                                            \
        {                                                                                          \
            [SPLIT_K_PARTIALS] = OUT_OF(CHAIN_STEP, 0),                                            \
            [SPLIT_K_BIAS] = IN_OF(CHAIN_OUTER, LINEAR_BIAS),                                      \
            [SPLIT_K_RESIDUAL] = IN_OF(CHAIN_OUTER, LINEAR_RESIDUAL)                               \
        }                                                                                          \
    }
#define CHAIN_REWRITE(step, made_op, prepares, ...)                                                \
    {                                                                                              \
        .n_parts = 6,                                                                              \
        .part = {CHAIN_PARTS(step), [CHAIN_STREAM] = {&attncl__op_split_k_reduce_fwd, CHAIN_Q,     \
                                                      LINEAR_X}},                                  \
        CHAIN_RULES, .passed_on = CHAIN_STREAM,                                                    \
        .made = {{&(made_op),                                                                      \
                  {[FUSED_X] = IN_OF(CHAIN_STREAM, SPLIT_K_RESIDUAL),                              \
                   [FUSED_PARTIALS] = IN_OF(CHAIN_STREAM, SPLIT_K_PARTIALS),                       \
                   [FUSED_PARTIALS_BIAS] = IN_OF(CHAIN_STREAM, SPLIT_K_BIAS),                      \
                   CHAIN_MAPS,                                                                     \
                   __VA_ARGS__}},                                                                  \
                 CHAIN_JOIN},                                                                      \
        .prepare = (prepares),                                                                     \
    }
// The same where the residual stream is complete.
#define CHAIN_REWRITE_FIRST(step, made_op, prepares, ...)                                          \
    {                                                                                              \
        .n_parts = 5, .part = {CHAIN_PARTS(step)}, CHAIN_RULES,                                    \
        .made = {{&(made_op), {[FUSED_X] = IN_OF(CHAIN_Q, LINEAR_X), CHAIN_MAPS, __VA_ARGS__}},    \
                 CHAIN_JOIN},                                                                      \
        .prepare = (prepares),                                                                     \
    }

#endif

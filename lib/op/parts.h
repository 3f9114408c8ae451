// SPDX-License-Identifier: MIT
// What ffn_parts_fwd, aft_parts_fwd and attention_parts_fwd share: the residual stream with an
// addend in parts (cl/common/joined_rows.clh), results in parts, slices; and the last two: maps of
// query, key, value and output around a step of mixing, and where that is found in a graph.
#ifndef ATTNCL_OP_PARTS_H
#define ATTNCL_OP_PARTS_H

#include "op/join.h"
#include "op/linear.h"

// The first inputs of all.
enum {
    PARTS_X,      // [..., d]
    PARTS_NORM_W, // [d]
    PARTS_NORM_B, // [d]
    PARTS_BEFORE, // [S, m, d], or absent: x is whole
    PARTS_BEFORE_BIAS,
    PARTS_INPUTS
};

// The next ones where steps are mixed: weights [C, d], biases [C] or absent; [d_out, C].
enum {
    PARTS_WQ = PARTS_INPUTS,
    PARTS_BQ,
    PARTS_WK,
    PARTS_BK,
    PARTS_WV,
    PARTS_BV,
    PARTS_WO,
    PARTS_MAPPED_INPUTS
};
#define PARTS_MAPPED_OPTIONAL                                                                      \
    (1u << PARTS_BEFORE | 1u << PARTS_BEFORE_BIAS | 1u << PARTS_BQ | 1u << PARTS_BK |              \
     1u << PARTS_BV)

// The first outputs: [n_slices, m, d_out]; x', like x, absent where x is whole.
enum { PARTS_RESULT, PARTS_WHOLE };

// m; d
int64_t attncl__parts_rows(const struct op_sig *sig);
int64_t attncl__parts_width(const struct op_sig *sig);

// ERR_SHAPE unless they fit each other; fills both outputs.
attncl_status attncl__parts_infer(struct op_sig *sig, int64_t n_slices, int64_t d_out);

// Whether the kernels run on this device: few rows, every input contiguous, widths of whole
// vectors, `local` floats beside the rows in local memory.
bool attncl__parts_suit(const struct op_sig *sig, const int64_t *widths, int n_widths,
                        int64_t local);

// Slices of `width` for this device, where all of them take `products` multiply-adds; and how wide
// each but the last is.
int32_t attncl__parts_slices(const struct device_caps *caps, int64_t width, int64_t products);
int64_t attncl__parts_slice(const struct device_caps *caps, int64_t width, int64_t n_slices);

// JOINED_PARAMS and x_whole; the number of arguments.
enum { PARTS_ARGS = 11 };
void attncl__parts_args(const struct op_call *call, float eps, struct arg args[PARTS_ARGS]);

// The same around a step of mixing.  infer: stream, maps, and the step by itself, which has q, k
// and v first and then what the op has behind PARTS_MAPPED_INPUTS; suit: `local` floats more; args:
// up to the local arrays rows, q, k and v of cl/op/aft_parts.cl.
attncl_status attncl__parts_infer_mapped(struct op_sig *sig, int64_t n_slices,
                                         const struct op_class *step, const void *step_params);
bool attncl__parts_suit_mapped(const struct op_sig *sig, int64_t slice, int64_t local);
enum { PARTS_MAPPED_ARGS = PARTS_ARGS + 18 };
void attncl__parts_mapped_args(const struct device_caps *caps, const struct op_call *call,
                               float eps, int64_t slice, struct arg args[PARTS_MAPPED_ARGS]);
void attncl__parts_mapped_form(const struct device_caps *caps, const struct op_call *call,
                               struct kspec *spec);
// Multiply-adds of the maps.
int64_t attncl__parts_mapped_products(const struct op_sig *sig);
// Floating-point operations of the maps, and bytes of their weights.
void attncl__parts_mapped_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret);

// The norm's eps where all maps are plain and share it.
bool attncl__parts_maps_plain(const void *const *part_params, float *eps_ret);

// The chain [join ->] three norm_linear -> step -> linear, whose step has q, k and v as its first
// inputs, becomes a step in parts -> join.  STEP_INPUTS: what the step reads besides.
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
    [CHAIN_Q] = {&attncl__op_norm_linear_fwd, CHAIN_STEP, 0},                                      \
    [CHAIN_K] = {&attncl__op_norm_linear_fwd, CHAIN_STEP, 1},                                      \
    [CHAIN_V] = {&attncl__op_norm_linear_fwd, CHAIN_STEP, 2}
#define CHAIN_MAPS                                                                                 \
    [PARTS_NORM_W] = IN_OF(CHAIN_Q, CHAIN_NORM_W), [PARTS_NORM_B] = IN_OF(CHAIN_Q, CHAIN_NORM_B),  \
    CHAIN_MAP(PARTS_WQ, PARTS_BQ, CHAIN_Q), CHAIN_MAP(PARTS_WK, PARTS_BK, CHAIN_K),                \
    CHAIN_MAP(PARTS_WV, PARTS_BV, CHAIN_V), [PARTS_WO] = IN_OF(CHAIN_OUTER, LINEAR_WEIGHT)
#define CHAIN_RULES                                                                                \
    .same = {CHAIN_SAME(CHAIN_K), CHAIN_SAME(CHAIN_V)},                                            \
    .absent = {IN_OF(CHAIN_OUTER, LINEAR_GATE), CHAIN_PLAIN(CHAIN_Q), CHAIN_PLAIN(CHAIN_K),        \
               CHAIN_PLAIN(CHAIN_V)}
#define CHAIN_JOIN                                                                                 \
    {                                                                                              \
        &attncl__op_join_fwd,                                                                      \
        {                                                                                          \
            [JOIN_PARTS] = OUT_OF(CHAIN_STEP, 0), [JOIN_BIAS] = IN_OF(CHAIN_OUTER, LINEAR_BIAS),   \
            [JOIN_RESIDUAL] = IN_OF(CHAIN_OUTER, LINEAR_RESIDUAL)                                  \
        }                                                                                          \
    }
#define CHAIN_REWRITE(step, made_op, prepares, ...)                                                \
    {                                                                                              \
        .n_parts = 6,                                                                              \
        .part = {CHAIN_PARTS(step), [CHAIN_STREAM] = {&attncl__op_join_fwd, CHAIN_Q, LINEAR_X}},   \
        CHAIN_RULES, .passed_on = CHAIN_STREAM,                                                    \
        .made = {{&(made_op),                                                                      \
                  {[PARTS_X] = IN_OF(CHAIN_STREAM, JOIN_RESIDUAL),                                 \
                   [PARTS_BEFORE] = IN_OF(CHAIN_STREAM, JOIN_PARTS),                               \
                   [PARTS_BEFORE_BIAS] = IN_OF(CHAIN_STREAM, JOIN_BIAS),                           \
                   CHAIN_MAPS,                                                                     \
                   __VA_ARGS__}},                                                                  \
                 CHAIN_JOIN},                                                                      \
        .prepare = (prepares),                                                                     \
    }
// The same where the residual stream is whole.
#define CHAIN_REWRITE_FIRST(step, made_op, prepares, ...)                                          \
    {                                                                                              \
        .n_parts = 5, .part = {CHAIN_PARTS(step)}, CHAIN_RULES,                                    \
        .made = {{&(made_op), {[PARTS_X] = IN_OF(CHAIN_Q, LINEAR_X), CHAIN_MAPS, __VA_ARGS__}},    \
                 CHAIN_JOIN},                                                                      \
        .prepare = (prepares),                                                                     \
    }

#endif

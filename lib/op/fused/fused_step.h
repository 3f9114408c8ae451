// SPDX-License-Identifier: MIT
// What fused_ffn_fwd, fused_aft_step_fwd and fused_attention_step_fwd share: the residual stream
// with split-K partial sums still to add (cl/common/prenorm_prologue.clh), results as partial sums,
// channel blocks; and for the last two: the query, key, value and output projections around a
// mixing step.
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

// What compile/fusion_rules.c asks before it creates one: the parameters, from those of the inner
// step (of the FFN: of its fused_norm_linear); false where this device has no such step or loses by
// it.  sig: of the op, without outputs.
bool attncl__fused_aft_step_prepare(const struct op_sig *sig, const void *step_params, float eps,
                                    void *params);
bool attncl__fused_attention_step_prepare(const struct op_sig *sig, const void *step_params,
                                          float eps, void *params);
bool attncl__fused_ffn_prepare(const struct op_sig *sig, const void *step_params, float eps,
                               void *params);
enum { FUSED_MAX_INPUTS = FUSED_QKV_INPUTS + 5 };

#endif

// SPDX-License-Identifier: MIT
// The linear map of attention of one position, whose rows it merges from the parts that the attention leaves
// (gemm.h: struct gemm_merge): what fused_attention_linear.c and fused_feedback_linear.c share.
#ifndef ATTNCL_OP_MERGING_LINEAR_H
#define ATTNCL_OP_MERGING_LINEAR_H

#include "op/attention/attention_split.h"
#include "op/matmul/linear.h"

struct merging_linear {
    const struct linear_fwd_params *params;
    int query, weight, position; // inputs of the op; bias, gate and residual follow the weight
    int64_t n_heads, limit;      // of the attention: heads and positions
    bool stores;                 // the position's own key is one of its keys
};

// Output 0: [B, out] where the query is [B, C].
attncl_status attncl__merging_linear_infer(struct op_sig *sig, const struct merging_linear *m);
// Whether its kernels run on this device and are faster than a launch more.
bool attncl__merging_linear_supported(const struct op_sig *sig, const struct merging_linear *m);
// Both launches.  An empty batch has none.
attncl_status attncl__merging_linear_launch(struct launcher *l, const struct op_call *call,
                                            const struct merging_linear *m,
                                            const struct attention_split *parts);
void attncl__merging_linear_cost(const struct op_sig *sig, const struct merging_linear *m,
                                 double *flop_ret, double *bytes_ret);

#endif

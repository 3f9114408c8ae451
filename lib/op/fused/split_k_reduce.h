// SPDX-License-Identifier: MIT
// Inputs of split_k_reduce_fwd, for the patterns that create it.
#ifndef ATTNCL_OP_FUSED_SPLIT_K_REDUCE_H
#define ATTNCL_OP_FUSED_SPLIT_K_REDUCE_H

enum { SPLIT_K_PARTIALS, SPLIT_K_BIAS, SPLIT_K_RESIDUAL, N_SPLIT_K_INPUTS };

#endif

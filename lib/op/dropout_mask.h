// SPDX-License-Identifier: MIT
// The dropout mask, a function of seed, site, step and element index (cl/common/dropout.clh), as ops
// pass it to their kernels.  A value with part of a batch gets that part of the whole batch's mask.
#ifndef ATTNCL_OP_DROPOUT_MASK_H
#define ATTNCL_OP_DROPOUT_MASK_H

#include <math.h>

#include "op/op.h"

// Entries of the whole batch, for a value with n of them.
static inline int64_t attncl__dropout_batch(const struct dropout_fwd_params *mask, int64_t n)
{
    return mask->batch_total > 0 ? mask->batch_total : n;
}

// The least random word that keeps an element, p 2^32; and the factor of kept elements.
static inline uint32_t attncl__dropout_threshold(double p)
{
    const double words = ceil(p * 4294967296.0);
    return words < 4294967296.0 ? (uint32_t)words : UINT32_MAX; // p is 1: the factor is 0
}

static inline float attncl__dropout_scale(double p)
{
    return p < 1 ? (float)(1 / (1 - p)) : 0.0f;
}

// Arguments for DROPOUT_PARAMS: four words, a factor, and the step.
#define DROPOUT_ARGS(mask, step)                                                                   \
    arg_i32((int32_t)(uint32_t)(mask)->seed), arg_i32((int32_t)(uint32_t)((mask)->seed >> 32)),    \
        arg_i32((int32_t)(uint32_t)(mask)->site),                                                  \
        arg_i32((int32_t)attncl__dropout_threshold((mask)->p)),                                    \
        arg_f32(attncl__dropout_scale((mask)->p)), arg_mem(step)

#endif

// SPDX-License-Identifier: MIT
// The mask of dropout, a function of seed, site, step and the element's place (cl/common/dropout.clh):
// what ops that have one check and pass to their kernels.  A value that holds part of a batch gets that
// part of the whole batch's mask.
#ifndef ATTNCL_OP_DROPOUT_MASK_H
#define ATTNCL_OP_DROPOUT_MASK_H

#include "op/op.h"

// ERR_ARGUMENT unless p is in [0, 1], the site fits a word, `step` is there where p is not 0, and `n`
// entries from batch_begin on are part of batch_total, where that is given.
attncl_status attncl__check_dropout(const struct dropout_fwd_params *mask,
                                    const struct tensor_desc *step, int64_t n);

// Entries of the whole batch, of which the value has n.
static inline int64_t attncl__dropout_batch(const struct dropout_fwd_params *mask, int64_t n)
{
    return mask->batch_total > 0 ? mask->batch_total : n;
}

// The least word of the generator that keeps an element, and what a kept one is multiplied by.
uint32_t attncl__dropout_threshold(double p);
float attncl__dropout_scale(double p);

// What DROPOUT_PARAMS takes: the bits of four words, a factor, and the step.
#define DROPOUT_ARGS(mask, step)                                                                   \
    arg_i32((int32_t)(uint32_t)(mask)->seed), arg_i32((int32_t)(uint32_t)((mask)->seed >> 32)),    \
        arg_i32((int32_t)(uint32_t)(mask)->site),                                                  \
        arg_i32((int32_t)attncl__dropout_threshold((mask)->p)),                                    \
        arg_f32(attncl__dropout_scale((mask)->p)), arg_mem(step)

#endif

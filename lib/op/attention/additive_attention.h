// SPDX-License-Identifier: MIT
// What additive attention (additive_attention.c) and its gradients (additive_attention_bwd.c) share:
// the first inputs, the place of the mask of dropout, how their rows are launched.
#ifndef ATTNCL_OP_ATTENTION_ADDITIVE_ATTENTION_H
#define ATTNCL_OP_ATTENTION_ADDITIVE_ATTENTION_H

#include "op/dropout_mask.h"
#include "op/row_launch.h"

enum additive_input { IN_Q, IN_K, IN_V, IN_W, IN_LENS, IN_STEP, IN_POSITION, N_ADDITIVE_INPUTS };

// Position, rows of the whole batch, first row of this part of it, dropout.
#define ADDITIVE_MASK(call, mask)                                                                  \
    arg_mem((call)->in[IN_POSITION]), arg_i32(attncl__desc_present(&(call)->sig.in[IN_POSITION])), \
        arg_i64(attncl__dropout_batch(mask, (call)->sig.in[IN_Q].dim[0]) *                         \
                (call)->sig.in[IN_Q].dim[1]),                                                      \
        arg_i64((mask)->batch_begin *(call)->sig.in[IN_Q].dim[1]),                                 \
        DROPOUT_ARGS(mask, (call)->in[IN_STEP])

// A work-group for each of `rows`, in as many launches as a driver's watchdog asks for.  The kernel takes the first
// row of its launch, then `args`.
attncl_status attncl__additive_attention_launch(struct launcher *l, const struct group_launch *p,
                                                int64_t rows, const struct arg *args,
                                                size_t n_args);

#endif

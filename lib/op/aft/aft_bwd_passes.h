// SPDX-License-Identifier: MIT
// The small passes around the gradients of attention-free mixing.
#ifndef ATTNCL_OP_AFT_AFT_BWD_PASSES_H
#define ATTNCL_OP_AFT_AFT_BWD_PASSES_H

#include "op/aft/aft_tiling.h"

// dq, output 0 of aft_bwd.
attncl_status attncl__aft_bwd_gate(struct launcher *l, const struct op_call *call);

attncl_status attncl__aft_bwd_zero(struct launcher *l, struct span x, int64_t start, int64_t count);

// Biases as keys see them, into the scratch.
attncl_status attncl__aft_bwd_turn(struct launcher *l, const struct op_call *call,
                                   const struct aft_tiling *p, int64_t turned_at);

// Sums of each of `count` rows of `n` columns, or with `down` of each of `count` columns of `n` rows.
struct aft_sums {
    struct span x, y;
    int64_t x_start, x_row, y_start;
    int64_t n, count;
    bool down;
};
attncl_status attncl__aft_bwd_sums(struct launcher *l, const struct aft_sums *s);

#endif

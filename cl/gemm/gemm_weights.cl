// SPDX-License-Identifier: MIT
// Weights that are stored in 16 bits as floats, for GEMMs whose kernels take floats alone.  Host side:
// lib/gemm/gemm_weights.c
//
//   to[i, :] = from[i, :]        [rows, columns], rows of `from` ld elements apart
//
//   Work      one work-group = one row, its work-items share the columns
//   Memory    reads and writes everything once
//   Numerics  exact
//
//   Macro     Meaning                                              Values
//   VW        vector width                                         1 (GPU) | 4 | 8 | 16
//   LS        work-group size                                      1 (CPU) .. 256
//   WTYPE     as in weights.clh                                    1 | 2

#include "common/weights.clh"

KERNEL void gemm_weights_to_float(int columns, __global const WEIGHT *restrict from, long start,
                                  long ld, __global float *restrict to, long to_start)
{
    __global const WEIGHT *x = from + start + (long)get_group_id(0) * ld;
    __global float *y = to + to_start + (long)get_group_id(0) * columns;

    for (int c = VW * (int)get_local_id(0); c < columns; c += VW * LS) {
        const int left = columns - c;
        if (left >= VW)
            VSTORE(load_weights(x + c), y + c);
        else
            store_part(load_weights_part(x + c, left), y + c, left);
    }
}

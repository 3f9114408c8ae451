// SPDX-License-Identifier: MIT
// Adds partial sums of dk and dv: of attention_bwd_cpu.cl's work-items, and of query heads that share a key
// head.  Host side: lib/op/attention/attention_bwd.c
//
//   Work      one work-group = `rows` rows of one key head; grid (key heads, pieces)
//   Memory    reads `parts` padded rows per row, writes it once
//   Numerics  float, in the order of the parts

#include "common/vector.clh"

// sums: [heads][parts][padded_rows][pitch] from `start` on -> to [heads][n_rows][width]
KERNEL void attention_bwd_sum(__global const float *restrict sums, long start, int parts,
                              int padded_rows, int pitch, __global float *restrict to, int n_rows,
                              int width, int rows)
{
    const int head = get_group_id(0), first = (int)get_group_id(1) * rows;
    const long part = (long)padded_rows * pitch;

    sums += start + (long)head * parts * part;
    to += (long)head * n_rows * width;
    for (int j = first; j < min(first + rows, n_rows); j++)
        for (int d = VW * (int)get_local_id(0); d < width; d += VW * LS) {
            FV sum = VLOAD(sums + (long)j * pitch + d);
            for (int p = 1; p < parts; p++)
                sum += VLOAD(sums + p * part + (long)j * pitch + d);
            store_some(sum, to + (long)j * width + d, width - d);
        }
}

// SPDX-License-Identifier: MIT
// What the work-items of attention_bwd_cpu.cl made of dk and dv, added.  Host side:
// lib/op/attention/attention_bwd.c
//
//   Work      one work-item = `rows` rows of one head; grid (heads, pieces)
//   Memory    reads `parts` padded rows for each, writes it once
//   Numerics  float, in the order of the parts

#include "common/vector.clh"

// sums: [parts][heads][padded_rows][pitch] from `start` on -> to [heads][n_rows][width]
KERNEL void attention_bwd_cpu_sum(__global const float *restrict sums, long start, int parts,
                                  int padded_rows, int pitch, __global float *restrict to,
                                  int n_rows, int width, int rows)
{
    const int head = get_group_id(0), first = (int)get_group_id(1) * rows;
    const long part = (long)get_num_groups(0) * padded_rows * pitch;

    sums += start + (long)head * padded_rows * pitch;
    to += (long)head * n_rows * width;
    for (int j = first; j < min(first + rows, n_rows); j++)
        for (int d = 0; d < width; d += VW) {
            FV sum = VLOAD(sums + (long)j * pitch + d);
            for (int p = 1; p < parts; p++)
                sum += VLOAD(sums + p * part + (long)j * pitch + d);
            store_some(sum, to + (long)j * width + d, width - d);
        }
}

// SPDX-License-Identifier: MIT
// Sums of blocks of rows, column by column.  Host side: lib/op/matmul/column_sum.c
//
//   Work      a work-group sums `block` rows of one chunk of 4 VW LS columns, work-item i vectors i,
//             i + LS, i + 2 LS and i + 3 LS of them
//   Memory    reads x once; writes one row per block
//   Numerics  rows are added in order

#include "common/vector.clh"

enum { STEP = VW * LS, CHUNK = 4 * STEP };

// x: [batch, rows, width]; y: [batch, blocks, width]; work-group = (batch, block, chunk)
KERNEL void column_sum_blocks(__global const float *restrict x, __global float *restrict y,
                              long rows, long width, long block, long blocks, long n_chunks)
{
    const long group = (long)get_group_id(0);
    const long chunk = group % n_chunks, place = group / n_chunks;
    const long first = place % blocks * block;
    const long end = min(first + block, rows);
    const long c = chunk * CHUNK + VW * (int)get_local_id(0);
    const int left = (int)min((long)CHUNK, width - c); // columns from c on; none if <= 0
    FV s0 = (FV)(0.0f), s1 = s0, s2 = s0, s3 = s0;

    x += (place / blocks * rows + first) * width + c;
    y += place * width + c;
    if (left >= 3 * STEP + VW) {
        for (long row = first; row < end; ++row, x += width) {
            s0 += VLOAD(x);
            s1 += VLOAD(x + STEP);
            s2 += VLOAD(x + 2 * STEP);
            s3 += VLOAD(x + 3 * STEP);
        }
        VSTORE(s0, y);
        VSTORE(s1, y + STEP);
        VSTORE(s2, y + 2 * STEP);
        VSTORE(s3, y + 3 * STEP);
        return;
    }
    for (int at = 0; at < left; at += STEP) {
        FV s = (FV)(0.0f);
        for (long row = 0; row < end - first; ++row)
            s += load_some(x + row * width + at, left - at, 0.0f);
        store_some(s, y + at, left - at);
    }
}

// Sums parts, [blocks, sums, width], over blocks, one vector per work-item: the gradients dw, and if sums is 2 db, of a
// norm's weight and bias (lib/op/norm/layer_norm_bwd.c).
KERNEL void column_sum_pair(__global const float *restrict parts, __global float *restrict dw,
                            __global float *restrict db, int width, long blocks, int sums)
{
    const int c = VW * (int)get_global_id(0), n = width - c;
    FV w = (FV)(0.0f), b = w;

    if (n <= 0)
        return;
    for (long k = 0; k < blocks; ++k) {
        __global const float *part = parts + sums * k * width + c;
        w += load_some(part, n, 0.0f);
        if (sums > 1)
            b += load_some(part + width, n, 0.0f);
    }
    store_some(w, dw + c, n);
    if (sums > 1)
        store_some(b, db + c, n);
}

// SPDX-License-Identifier: MIT
// Rotation of pairs of channels by positions.  Host side: lib/op/view/rotate.c
//
//   y_a = cos x_a - sin x_b,   y_b = cos x_b + sin x_a
//
//   Work      a work-group takes `rows_per_group` consecutive rows, work-item i vectors i, i + LS ... of
//             each
//   Memory    reads x once, writes y once; rows of the table stay in cache
//   Numerics  two products and their sum

#include "common/vector.clh"

// The row of the table for row `row` of x: that of its time, or the position there is for its time and batch entry.
static inline int table_row(long row, int n_positions, long per_time, long per_batch,
                            __global const int *position, int given, int time_stride,
                            int batch_stride)
{
    if (n_positions == 1)
        return 0;
    const long t = row / per_time;
    if (!given)
        return (int)t;
    const long b = row % per_time / per_batch;
    return clamp(position[t * time_stride + b * batch_stride], 0, n_positions - 1);
}

// x: `rows` rows of `width` from `start`, `stride` apart; y: contiguous; table: [n_positions, 2, pairs] cosines and sines;
// half_apart: a pair's channels are i and i + pairs, else 2 i and 2 i + 1; sign: -1 turns back
KERNEL void rotate_rows(__global const float *restrict x, __global const float *restrict table,
                        __global const int *restrict position, __global float *restrict y,
                        long start, long stride, int width, long rows, int rows_per_group,
                        int pairs, int n_positions, long per_time, long per_batch, int given,
                        int time_stride, int batch_stride, int half_apart, float sign)
{
    const long first = (long)get_group_id(0) * rows_per_group;
    const long end = min(first + rows_per_group, rows);
    const int item = (int)get_local_id(0);

    for (long row = first; row < end; ++row) {
        const int p = table_row(row, n_positions, per_time, per_batch, position, given, time_stride,
                                batch_stride);
        __global const float *xr = x + start + row * stride;
        __global const float *cosines = table + (long)p * 2 * pairs, *sines = cosines + pairs;
        __global float *yr = y + row * width;

        if (half_apart)
            for (int c = VW * item; c < pairs; c += VW * LS) {
                const int n = pairs - c;
                const FV a = load_some(xr + c, n, 0.0f), b = load_some(xr + pairs + c, n, 0.0f);
                const FV cosine = load_some(cosines + c, n, 0.0f);
                const FV sine = sign * load_some(sines + c, n, 0.0f);
                store_some(cosine * a - sine * b, yr + c, n);
                store_some(cosine * b + sine * a, yr + pairs + c, n);
            }
        else
            for (int i = item; i < pairs; i += LS) {
                const float a = xr[2 * i], b = xr[2 * i + 1], sine = sign * sines[i];
                yr[2 * i] = cosines[i] * a - sine * b;
                yr[2 * i + 1] = cosines[i] * b + sine * a;
            }
        for (int c = 2 * pairs + VW * item; c < width; c += VW * LS)
            store_some(load_some(xr + c, width - c, 0.0f), yr + c, width - c);
    }
}

// SPDX-License-Identifier: MIT
// One position of a causal spatial gate, on GPUs: several work-groups share the positions before it.  Host side:
// lib/op/matmul/spatial_gate_step.c
//
//   Work      partial: a work-item takes one channel of one batch entry and one part of the positions;
//             merge: a work-item takes one channel
//   Memory    reads a row of weights, and the history up to the position once; a part writes its sums
//             [B, width]
//   Numerics  four running sums by position modulo 4, then the parts in order.  VW is 1

#include "common/stored.clh"

#if !defined LS || !defined CACHE_TYPE
#error "LS and CACHE_TYPE must be defined"
#endif

enum { MIN_ROWS = 32 }; // rows of a part, at least

// Positions of each of n_parts parts of t positions.
static inline int rows_per_part(int t, int n_parts)
{
    return max(MIN_ROWS, (t + n_parts - 1) / n_parts);
}

#define ROW(i) load_stored_one(h, (i)*all, CACHE_TYPE)

// weight: [n_positions, n_positions]; u: [B, width]; history: [n_positions, B, width], row `position`
// becomes u, rounded to its type; sums: [n_parts, B, width]
KERNEL void spatial_gate_step_gpu_partial_fwd(__global const float *restrict weight,
                                              __global const float *restrict u,
                                              __global const int *restrict position,
                                              __global void *history, __global float *restrict sums,
                                              int n_positions, int width)
{
    const int c = (int)get_global_id(0), part = (int)get_group_id(2);
    const long all = (long)get_num_groups(1) * width, at = (long)get_group_id(1) * width + c;
    const int t = clamp(position[0], 0, n_positions - 1);
    const int per_part = rows_per_part(t, (int)get_num_groups(2));
    const int end = min((part + 1) * per_part, t);
    int j = part * per_part;
    if (c >= width)
        return;
    if (part == 0)
        store_stored_one(u[at], history, t * all + at, CACHE_TYPE);
    if (j >= end)
        return;

    __global const float *w = weight + (long)t * n_positions;
    __global const void *h = stored_at(history, j * all + at, CACHE_TYPE);
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
    for (; j + 8 <= end; j += 8, h = stored_at(h, 8 * all, CACHE_TYPE)) {
        s0 += w[j] * ROW(0), s1 += w[j + 1] * ROW(1);
        s2 += w[j + 2] * ROW(2), s3 += w[j + 3] * ROW(3);
        s0 += w[j + 4] * ROW(4), s1 += w[j + 5] * ROW(5);
        s2 += w[j + 6] * ROW(6), s3 += w[j + 7] * ROW(7);
    }
    for (; j < end; ++j, h = stored_at(h, all, CACHE_TYPE))
        s0 += w[j] * ROW(0);
    sums[part * all + at] = (s0 + s1) + (s2 + s3);
}

// bias: [n_positions]; y: [B, width]; z1: rows `stride` apart
KERNEL void spatial_gate_step_gpu_merge_fwd(
    __global const float *restrict weight, __global const float *restrict bias,
    __global const void *restrict history, __global const float *restrict z1,
    __global const int *restrict position, __global const float *restrict sums,
    __global float *restrict y, long start, long stride, int n_positions, int width, int n_parts)
{
    const int c = (int)get_global_id(0);
    const long b = get_group_id(1), all = (long)get_num_groups(1) * width, at = b * width + c;
    const int t = clamp(position[0], 0, n_positions - 1);
    const int n = (t + rows_per_part(t, n_parts) - 1) / rows_per_part(t, n_parts);
    if (c >= width)
        return;
    const float now = load_stored_one(history, t * all + at, CACHE_TYPE);
    float gate = weight[(long)t * n_positions + t] * now + bias[t];
    for (int i = 0; i < n; ++i)
        gate += sums[i * all + at];
    y[at] = z1[start + b * stride + c] * gate;
}

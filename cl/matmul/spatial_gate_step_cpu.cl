// SPDX-License-Identifier: MIT
// One position of a causal spatial gate, on CPUs.  Host side: lib/op/matmul/spatial_gate_step.c
//
//   Work      a work-item takes `per_group` channels of one batch entry
//   Memory    reads a row of weights and the history up to the position, once
//   Numerics  four running sums by position modulo 4
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       4 | 8 | 16
//   LS        work-group size                          1

#include "common/vector.clh"

// weight: [n_positions, n_positions]; bias: [n_positions]; u, y: [B, width]; z1: rows `stride`
// apart; history: [n_positions, B, width], of which row `position` becomes u.
KERNEL void
spatial_gate_step_cpu_fwd(__global const float *restrict weight,
                          __global const float *restrict bias, __global const float *restrict u,
                          __global const float *restrict z1, __global const int *restrict position,
                          __global float *history, __global float *restrict y, long start,
                          long stride, int n_positions, int width, int per_group)
{
    const long b = get_group_id(1);
    const long step = (long)get_num_groups(1) * width; // between positions of the history
    const int t = clamp(position[0], 0, n_positions - 1);
    const int first = (int)get_group_id(0) * per_group;
    const int end = min(first + per_group, width);
    __global const float *w = weight + (long)t * n_positions;

    for (int c = first; c < end; c += VW) {
        const int n = end - c;
        const FV now = load_some(u + b * width + c, n, 0.0f);
        __global float *h = history + b * width + c;
        store_some(now, h + t * step, n);

        FV s0 = w[t] * now + bias[t], s1 = (FV)(0.0f), s2 = (FV)(0.0f), s3 = (FV)(0.0f);
        int j = 0;
        for (; j + 4 <= t; j += 4, h += 4 * step) {
            s0 += w[j] * load_some(h, n, 0.0f);
            s1 += w[j + 1] * load_some(h + step, n, 0.0f);
            s2 += w[j + 2] * load_some(h + 2 * step, n, 0.0f);
            s3 += w[j + 3] * load_some(h + 3 * step, n, 0.0f);
        }
        for (; j < t; ++j, h += step)
            s0 += w[j] * load_some(h, n, 0.0f);
        const FV gate = (s0 + s1) + (s2 + s3);
        store_some(load_some(z1 + start + b * stride + c, n, 0.0f) * gate, y + b * width + c, n);
    }
}

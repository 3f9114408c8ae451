// SPDX-License-Identifier: MIT
// One position of a causal spatial gate, on CPUs.  Host side: lib/op/matmul/spatial_gate_step.c
//
//   Work      a work-item takes `per_group` channels of one batch entry
//   Memory    reads a row of weights and the history up to the position, once
//   Numerics  four running sums by position modulo 4

#include "common/stored.clh"

#ifndef CACHE_TYPE
#error "CACHE_TYPE: type of the history"
#endif

// weight: [n_positions, n_positions]; bias: [n_positions]; u, y: [B, width]; z1: rows `stride`
// apart; history: [n_positions, B, width]; row `position` becomes u, rounded to its type.
KERNEL void spatial_gate_step_cpu_fwd(__global const float *restrict weight,
                                      __global const float *restrict bias,
                                      __global const float *restrict u,
                                      __global const float *restrict z1,
                                      __global const int *restrict position, __global void *history,
                                      __global float *restrict y, long start, long stride,
                                      int n_positions, int width, int per_group)
{
    const long b = get_group_id(1);
    const long step = (long)get_num_groups(1) * width; // elements per position of the history
    const int t = clamp(position[0], 0, n_positions - 1);
    const int first = (int)get_group_id(0) * per_group;
    const int end = min(first + per_group, width);
    __global const float *w = weight + (long)t * n_positions;

    for (int c = first; c < end; c += VW) {
        const int n = end - c;
        const FV u_now = load_some(u + b * width + c, n, 0.0f);
        __global const void *h = stored_at(history, b * width + c, CACHE_TYPE);
        store_stored_some(u_now, history, t * step + b * width + c, n, CACHE_TYPE);
#if CACHE_TYPE != STORED_FLOAT
        mem_fence(CLK_GLOBAL_MEM_FENCE); // the history is read as another type
#endif
        const FV now = CACHE_TYPE ? load_stored_some(h, t * step, n, CACHE_TYPE) : u_now;

        FV s0 = w[t] * now + bias[t], s1 = (FV)(0.0f), s2 = (FV)(0.0f), s3 = (FV)(0.0f);
        int j = 0;
        for (; j + 4 <= t; j += 4, h = stored_at(h, 4 * step, CACHE_TYPE)) {
            s0 += w[j] * load_stored_some(h, 0, n, CACHE_TYPE);
            s1 += w[j + 1] * load_stored_some(h, step, n, CACHE_TYPE);
            s2 += w[j + 2] * load_stored_some(h, 2 * step, n, CACHE_TYPE);
            s3 += w[j + 3] * load_stored_some(h, 3 * step, n, CACHE_TYPE);
        }
        for (; j < t; ++j, h = stored_at(h, step, CACHE_TYPE))
            s0 += w[j] * load_stored_some(h, 0, n, CACHE_TYPE);
        const FV gate = (s0 + s1) + (s2 + s3);
        store_some(load_some(z1 + start + b * stride + c, n, 0.0f) * gate, y + b * width + c, n);
    }
}

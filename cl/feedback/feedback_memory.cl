// SPDX-License-Identifier: MIT
// What a step of a feedback transformer does with its memory.  Host side:
// lib/op/feedback/feedback_memory.c
//
//   Work      store: a work-group takes `per_group` rows of `width`, work-item i vectors i, i + LS ... of
//             each; mix, gate: a work-group takes `per_group` elements
//   Memory    store reads and writes a step's keys and values once; mix reads each value once
//   Numerics  mix subtracts the largest weight; sums in the order of the values
//
//   Macro       Meaning                        Values
//   N_X         values that are mixed at once  1 .. 8; 0: not for mixing
//   CACHE_TYPE  type of the cache              0 | 1 | 2; 0: not for storing

#include "common/math.clh"
#include "common/stored.clh"

#if !defined N_X || !defined CACHE_TYPE
#error "N_X and CACHE_TYPE must be defined"
#endif

// x: [B, n_slots, H, width]; cache: [.., B, H, limit, width], of which row position[0] of n_slots
// slots from `slot` on becomes x.  A position outside 0 .. limit - 1 is not stored.
KERNEL void feedback_memory_store_fwd(__global const float *restrict x,
                                      __global const int *restrict position,
                                      __global void *restrict cache, int slot, int n_slots,
                                      int n_heads, int limit, int width, long rows, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const long n_batch = rows / n_slots / n_heads;
    const int place = position[0];
    if (place < 0 || place >= limit)
        return;

    for (long row = first; row < end; ++row) {
        const long h = row % n_heads, s = row / n_heads % n_slots, b = row / n_heads / n_slots;
        __global const float *from = x + row * width;
        const long to = ((((slot + s) * n_batch + b) * n_heads + h) * limit + place) * width;
        for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS)
            store_stored_some(load_some(from + c, width - c, 0.0f), cache, to + c, width - c,
                              CACHE_TYPE);
    }
}

// y = 1 after position 0, where there are memories to attend to, else 0.
KERNEL void feedback_memory_gate_fwd(__global const int *restrict position,
                                     __global float *restrict y, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);
    const float open = position[0] > 0 ? 1.0f : 0.0f;

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS)
        store_some((FV)(open), y + i, (int)min(end - i, (long)VW));
}

#if N_X > 0

// y = sum + softmax(weights)[first_x] x0 + softmax(weights)[first_x + 1] x1 ...; `sum` when
// `continued`; all [count]
KERNEL void feedback_memory_mix_fwd(__global const float *restrict weights,
                                    __global const float *sum, __global const float *x0,
                                    __global const float *x1, __global const float *x2,
                                    __global const float *x3, __global const float *x4,
                                    __global const float *x5, __global const float *x6,
                                    __global const float *x7, __global float *restrict y,
                                    int n_weights, int first_x, int continued, long count,
                                    int per_group)
{
    __global const float *const x[8] = {x0, x1, x2, x3, x4, x5, x6, x7};
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);
    float row_max = -INFINITY, total = 0.0f, share[N_X];

    for (int i = 0; i < n_weights; ++i)
        row_max = fmax(row_max, weights[i]);
    for (int i = 0; i < n_weights; ++i)
        total += exp_nonpos_f(weights[i] - row_max);
    for (int i = 0; i < N_X; ++i)
        share[i] = exp_nonpos_f(weights[first_x + i] - row_max) / total;

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        FV all = continued ? load_some(sum + i, n, 0.0f) : (FV)(0.0f);
        for (int k = 0; k < N_X; ++k)
            all += share[k] * load_some(x[k] + i, n, 0.0f);
        store_some(all, y + i, n);
    }
}

#endif

// SPDX-License-Identifier: MIT
// Backward pass of a feedback transformer's memory.  Host side:
// lib/op/feedback/feedback_memory_bwd.c
//
//   forward   y = sum + sum_f p_f x_f,   p = softmax(weights)
//   backward  dx_f = p_f dy,   dot_f = dy . x_f,   dweights_i = p_i ([i was mixed] dot_i - sum_f p_f
//             dot_f)
//
//   Work      parts: a work-group takes `per_group` elements; dots: a work-group takes one x; weights: one
//             work-item; load: a work-group takes `per_group` rows of `width`, work-item i vectors i,
//             i + LS ... of each
//   Memory    parts and dots read dy and every x once
//   Numerics  sums over elements in an order that depends on LS alone
//
//   Macro  Meaning                         Values
//   N_X    values that were mixed at once  1 .. 8; 0: not for mixing

#include "common/math.clh"
#include "common/rows.clh"

#ifndef N_X
#error "N_X: values that were mixed at once"
#endif

// The gradient of what a step stored: row position[0] of n_slots slots from `slot` on of the
// gradients [.., B, H, limit, width], 0 for a position outside 0 .. limit - 1, which was not stored,
// and for position n_steps - 1, which no step read.  y: [B, n_slots, H, width]
KERNEL void feedback_memory_bwd_load(__global const float *restrict cache,
                                     __global const int *restrict position,
                                     __global float *restrict y, int slot, int n_slots, int n_heads,
                                     int limit, int n_steps, int width, long rows, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const long n_batch = rows / n_slots / n_heads;
    const int place = position[0], is_read = place >= 0 && place < limit && place < n_steps - 1;

    for (long row = first; row < end; ++row) {
        const long h = row % n_heads, s = row / n_heads % n_slots, b = row / n_heads / n_slots;
        __global const float *from =
            cache +
            ((((slot + s) * n_batch + b) * n_heads + h) * limit + (is_read ? place : 0)) * width;
        for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS)
            store_some(is_read ? load_some(from + c, width - c, 0.0f) : (FV)(0.0f),
                       y + row * width + c, width - c);
    }
}

#if N_X > 0

// dx: [N_X][count]
KERNEL void feedback_memory_bwd_parts(__global const float *restrict weights,
                                      __global const float *restrict dy,
                                      __global float *restrict dx, int n_weights, int first_x,
                                      long count, int per_group)
{
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
        const FV g = load_some(dy + i, n, 0.0f);
        for (int k = 0; k < N_X; ++k)
            store_some(share[k] * g, dx + k * count + i, n);
    }
}

// dots: [N_X]
KERNEL void feedback_memory_bwd_dots(__global const float *dy, __global const float *x0,
                                     __global const float *x1, __global const float *x2,
                                     __global const float *x3, __global const float *x4,
                                     __global const float *x5, __global const float *x6,
                                     __global const float *x7, __global float *restrict dots,
                                     long count)
{
    GROUP_SPACE(tmp);
    const int k = (int)get_group_id(0);
    // Chosen without an array of pointers, which GPUs keep in memory.
    __global const float *const low = k < 2 ? (k == 0 ? x0 : x1) : (k == 2 ? x2 : x3);
    __global const float *const high = k < 6 ? (k == 4 ? x4 : x5) : (k == 6 ? x6 : x7);
    __global const float *const x = k < 4 ? low : high;
    FV sum_v = (FV)(0.0f);

    for (long i = VW * (long)get_local_id(0); i < count; i += VW * LS) {
        const int n = (int)min(count - i, (long)VW);
        sum_v += load_some(dy + i, n, 0.0f) * load_some(x + i, n, 0.0f);
    }
    const float sum = GROUP_SUM(horizontal_sum(sum_v), tmp);
    if (get_local_id(0) == 0)
        dots[k] = sum;
}

KERNEL void feedback_memory_bwd_weights(__global const float *restrict weights,
                                        __global const float *restrict dots,
                                        __global float *restrict dweights, int n_weights,
                                        int first_x)
{
    float row_max = -INFINITY, total = 0.0f, mean = 0.0f;

    for (int i = 0; i < n_weights; ++i)
        row_max = fmax(row_max, weights[i]);
    for (int i = 0; i < n_weights; ++i)
        total += exp_nonpos_f(weights[i] - row_max);
    for (int k = 0; k < N_X; ++k)
        mean += exp_nonpos_f(weights[first_x + k] - row_max) / total * dots[k];
    for (int i = 0; i < n_weights; ++i) {
        const int k = i - first_x;
        const float own = k >= 0 && k < N_X ? dots[k] : 0.0f;
        dweights[i] = exp_nonpos_f(weights[i] - row_max) / total * (own - mean);
    }
}

#endif

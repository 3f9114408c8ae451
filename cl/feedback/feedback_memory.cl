// SPDX-License-Identifier: MIT
// The memory operations of a feedback transformer's step, and their gradients.  Host side:
// lib/op/feedback/feedback_memory.c
//
//   mix        y = sum + sum_f p_f x_f,   p = softmax(weights)
//   backward   dx_f = p_f dy,   dot_f = dy . x_f,
//              dweights_i = p_i ([i was mixed] dot_i - sum_f p_f dot_f)
//
//   Work      store, load: a work-group takes `per_group` rows of `width`, work-item i vectors i, i + LS ... of
//             each; mix, parts, gate: a work-group takes `per_group` elements; dots: a work-group takes one x;
//             weights: one work-item
//   Memory    store reads and writes a step's keys and values once; mix, parts and dots read each value once
//   Numerics  mix subtracts the largest weight and adds values in order; the order of a dot's sum depends on
//             LS alone
//
//   Macro       Meaning               Values
//   N_X         values mixed at once  1 .. 8; 0 in kernels that do not mix
//   CACHE_TYPE  type of the cache     0 | 1 | 2; 0 in kernels that do not store

#include "common/math.clh"
#include "common/rows.clh"
#include "common/stored.clh"

#if !defined N_X || !defined CACHE_TYPE
#error "N_X and CACHE_TYPE must be defined"
#endif

// The first of the `limit` cache rows that belong to a row of [B, n_slots, H].
static inline long cache_row(long row, long n_batch, int slot, int n_slots, int n_heads, int limit)
{
    const long h = row % n_heads, s = row / n_heads % n_slots, b = row / n_heads / n_slots;
    return (((slot + s) * n_batch + b) * n_heads + h) * limit;
}

// Stores x, [B, n_slots, H, width], at row position[0] of the n_slots slots from `slot` on of the cache,
// [.., B, H, limit, width].  A position outside 0 .. limit - 1 is not stored.
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
        __global const float *from = x + row * width;
        const long to = (cache_row(row, n_batch, slot, n_slots, n_heads, limit) + place) * width;
        for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS)
            store_stored_some(load_some(from + c, width - c, 0.0f), cache, to + c, width - c,
                              CACHE_TYPE);
    }
}

// Loads y, [B, n_slots, H, width], the gradient of a step's stored rows, from row position[0] of the cache's
// gradients.  It is 0 for a position outside 0 .. limit - 1, which was not stored, and for the last position,
// n_steps - 1, which no step read.
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
        __global const float *from =
            cache +
            (cache_row(row, n_batch, slot, n_slots, n_heads, limit) + (is_read ? place : 0)) *
                width;
        for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS)
            store_some(is_read ? load_some(from + c, width - c, 0.0f) : (FV)(0.0f),
                       y + row * width + c, width - c);
    }
}

// y = 0 at position 0, which has no memories to attend to, else 1.
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

struct softmax {
    float largest, total;
};

static inline struct softmax compute_softmax(__global const float *weights, int n)
{
    struct softmax s = {-INFINITY, 0.0f};

    for (int i = 0; i < n; ++i)
        s.largest = fmax(s.largest, weights[i]);
    for (int i = 0; i < n; ++i)
        s.total += exp_nonpos_f(weights[i] - s.largest);
    return s;
}

static inline float compute_share(const struct softmax *s, float weight)
{
    return exp_nonpos_f(weight - s->largest) / s->total;
}

// share[i] = softmax(weights)[first_x + i]
static inline void compute_shares(__global const float *weights, int n_weights, int first_x,
                                  float share[N_X])
{
    const struct softmax all_weights = compute_softmax(weights, n_weights);

    for (int i = 0; i < N_X; ++i)
        share[i] = compute_share(&all_weights, weights[first_x + i]);
}

#define X_PARAMS                                                                                   \
    __global const float *x0, __global const float *x1, __global const float *x2,                  \
        __global const float *x3, __global const float *x4, __global const float *x5,              \
        __global const float *x6, __global const float *x7

// y = sum + softmax(weights)[first_x] x0 + softmax(weights)[first_x + 1] x1 ..., all [count]; sum is 0 unless
// `continued`.
KERNEL void feedback_memory_mix_fwd(__global const float *restrict weights,
                                    __global const float *sum, X_PARAMS, __global float *restrict y,
                                    int n_weights, int first_x, int continued, long count,
                                    int per_group)
{
    __global const float *const x[8] = {x0, x1, x2, x3, x4, x5, x6, x7};
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);
    float share[N_X];

    compute_shares(weights, n_weights, first_x, share);

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        FV all = continued ? load_some(sum + i, n, 0.0f) : (FV)(0.0f);
        for (int k = 0; k < N_X; ++k)
            all += share[k] * load_some(x[k] + i, n, 0.0f);
        store_some(all, y + i, n);
    }
}

// dx: [N_X][count]
KERNEL void feedback_memory_bwd_parts(__global const float *restrict weights,
                                      __global const float *restrict dy,
                                      __global float *restrict dx, int n_weights, int first_x,
                                      long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);
    float share[N_X];

    compute_shares(weights, n_weights, first_x, share);

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        const FV g = load_some(dy + i, n, 0.0f);
        for (int k = 0; k < N_X; ++k)
            store_some(share[k] * g, dx + k * count + i, n);
    }
}

// dots: [N_X]
KERNEL void feedback_memory_bwd_dots(__global const float *dy, X_PARAMS,
                                     __global float *restrict dots, long count)
{
    GROUP_SPACE(tmp);
    const int k = (int)get_group_id(0);
    // Not an array of pointers, which GPUs would keep in memory.
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
    const struct softmax all_weights = compute_softmax(weights, n_weights);
    float mean = 0.0f;

    for (int k = 0; k < N_X; ++k)
        mean += compute_share(&all_weights, weights[first_x + k]) * dots[k];
    for (int i = 0; i < n_weights; ++i) {
        const int k = i - first_x;
        const float own = k >= 0 && k < N_X ? dots[k] : 0.0f;
        dweights[i] = compute_share(&all_weights, weights[i]) * (own - mean);
    }
}

#endif

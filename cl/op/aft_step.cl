// SPDX-License-Identifier: MIT
// One position of causal AFT-local or AFT-conv, for decoding.  Host side: lib/op/aft_step.c
//
//   y = sigmoid(q) sum_j p_j v_j,   p = softmax over j <= t of (w(t, j) + k_j)
//
//   Work      one work-item = one lane of channels of one head
//   Memory    state: the last `window` keys and values in a ring, slot j mod window; sums of all
//             older keys, whose bias is 0.  Reads the ring's keys twice, its values once
//   Numerics  every exponential by itself, relative to the maximum
//
//   Macro     Meaning                  Values
//   VW        channels of a lane       16, 8, 4 (CPU), 1 (GPU)
//   LS        work-items in a group    1 (CPU), a warp or wave (GPU)

#ifndef VW
#error "VW: channels of a lane"
#endif
#ifndef LS
#error "LS: work-items in a group"
#endif

#include "common/aft.clh"

// Adds one key without a bias.
static inline struct sums add_key(struct sums s, FV kappa, FV beta)
{
    struct sums one;
    one.top = max_v(kappa, (FV)(NOTHING));
    one.a = kappa > (FV)(NOTHING) ? (FV)(1.0f) : (FV)(0.0f);
    one.b = kappa > (FV)(NOTHING) ? beta : (FV)(0.0f);
    return sums_merge(s, one);
}

// The keys and values of positions first .. t, t in slot t mod window, biases row[first] .. row[t].
static inline struct sums add_ring(struct sums s, __global const float *keys,
                                   __global const float *values, long slot_stride, int window,
                                   int first, int t, __global const float *row, int width)
{
    const int slot0 = first % window;
    FV sum, error, top = s.top;
    for (int j = first, slot = slot0; j <= t; ++j) {
        two_sum_seen(lane_load(keys + slot * slot_stride, width), row[j], &sum, &error);
        top = max_v(sum, top);
        slot = slot + 1 == window ? 0 : slot + 1;
    }
    const FV old = exp_nonpos_v(s.top - top);
    struct sums all = {top, s.a * old, s.b * old};
    for (int j = first, slot = slot0; j <= t; ++j) {
        two_sum_seen(lane_load(keys + slot * slot_stride, width), row[j], &sum, &error);
        const FV e = exp_nonpos_v((sum - top) + error);
        all.a += e;
        all.b += e * lane_load(values + slot * slot_stride, width);
        slot = slot + 1 == window ? 0 : slot + 1;
    }
    return all;
}

// q, v: rows of `row` channels, of which the head has `channels`; k: the same, or a key a head
// y: like q, contiguous; pos_bias: bias of key j at bias_start + t bias_row + head bias_head + j,
// not read when window is 0
// position: [1], the place t of this call; calls come in order, t = 0 starts anew
// sums: [3, all]; keys, values: [window, all]; all = the channels of all rows
// A position outside 0 .. n - 1 gives NaN and leaves the state alone.  Without a table, n is any
// bound.
KERNEL void aft_step_fwd(__global const float *restrict q, long q_start, long q_stride,
                         __global const float *restrict k, long k_start, long k_stride,
                         __global const float *restrict v, long v_start, long v_stride,
                         __global float *restrict y, __global const float *restrict pos_bias,
                         long bias_start, long bias_row, long bias_head, int n,
                         __global const int *restrict position, __global float *restrict sums,
                         __global float *restrict keys, __global float *restrict values,
                         int channels, int row, long all, int lanes, int window)
{
    const int lane = get_global_id(0), head = get_global_id(1), t = *position;
    if (lane >= lanes)
        return;
    const int width = lane_width(lane, channels);
    const long first = (long)head * channels, at = lane_start(lane, channels, row) + first;
    if (t < 0 || t >= n) {
        lane_store((FV)(NAN), y + at, width);
        return;
    }

    k += k_start + key_start(lane, channels, k_stride) + (PER_HEAD ? head : first);
    v += v_start + lane_start(lane, channels, v_stride) + first;
    q += q_start + lane_start(lane, channels, q_stride) + first;
    const FV kappa = key_load(k, width), beta = lane_load(v, width);
    struct sums s = sums_of_none();
    sums += at;
    if (t > 0) {
        s.top = lane_load(sums, width);
        s.a = lane_load(sums + all, width);
        s.b = lane_load(sums + 2 * all, width);
    }

    // The key that leaves the window, or without a window this one.
    const long slot = window > 0 ? (t % window) * all + at : 0;
    if (window == 0)
        s = add_key(s, kappa, beta);
    else if (t >= window)
        s = add_key(s, lane_load(keys + slot, width), lane_load(values + slot, width));
    lane_store(s.top, sums, width);
    lane_store(s.a, sums + all, width);
    lane_store(s.b, sums + 2 * all, width);

    if (window > 0) {
        lane_store(kappa, keys + slot, width);
        lane_store(beta, values + slot, width);
        s = add_ring(s, keys + at, values + at, all, window, max(0, t - window + 1), t,
                     pos_bias + (bias_start + t * bias_row + head * bias_head), width);
    }
    lane_store(gated_mean(lane_load(q, width), s.a, s.b), y + at, width);
}

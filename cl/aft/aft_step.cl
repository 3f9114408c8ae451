// SPDX-License-Identifier: MIT
// One position of causal AFT-local or AFT-conv, for decoding.  Host side: lib/op/aft/aft_step.c
//
//   y = sigmoid(q) sum_j p_j v_j,   p = softmax over j <= t of (w(t, j) + k_j)
//
//   Work      one work-item = one lane of channels of one head
//   Memory    as in aft_step.clh
//   Numerics  every exponential separately, relative to the maximum
//
//   Macro  Meaning          Values
//   LS     work-group size  1 (CPU), 32 | 64 (GPU)

#include "common/aft_step.clh"

// q, v: rows of `row` channels, `channels` per head; k: like v, or one key per head
// y: like q, contiguous; pos_bias: bias of key j at bias_start + t bias_row + head bias_head + j,
// not read if window is 0
// position: [1], t; calls come in order, t = 0 starts a new sequence
// sums: [3, all]; keys, values: [window, all]; all = the channels of all rows
// A position outside 0 .. n - 1 gives NaN and leaves the state unchanged.
KERNEL void aft_step_fwd(__global const float *restrict q, long q_start, long q_stride,
                         __global const float *restrict k, long k_start, long k_stride,
                         __global const float *restrict v, long v_start, long v_stride,
                         __global float *restrict y, __global const float *restrict pos_bias,
                         long bias_start, long bias_row, long bias_head, int n,
                         __global const int *restrict position, __global float *restrict sums,
                         __global void *restrict keys, __global void *restrict values, int channels,
                         int row, long all, int lanes, int window)
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
    const FV mixed = aft_step_lane(
        lane_load(q, width), key_load(k, width), lane_load(v, width), sums + at, keys, values, at,
        all, window, t, pos_bias + (bias_start + t * bias_row + head * bias_head), width);
    lane_store(mixed, y + at, width);
}

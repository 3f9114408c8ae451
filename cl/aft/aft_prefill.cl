// SPDX-License-Identifier: MIT
// Decoding state of AFT-local and AFT-conv after a prompt.  Host side: lib/op/aft/aft_prefill.c
//
//   Work      one work-item = one lane of channels of one head
//   Memory    reads the keys before the last window twice and their values once, copies the rest
//   Numerics  every exponential separately, relative to the maximum
//
//   Macro  Meaning          Values
//   LS     work-group size  1 (CPU), 32 | 64 (GPU)

#include "common/aft.clh"
#include "common/stored.clh"

#ifndef CACHE_TYPE
#error "CACHE_TYPE: type of the rings"
#endif

// The maximum of the keys of n rows, `stride` apart, in four independent chains.
static inline FV max_of_keys(__global const float *k, long stride, int n, int width)
{
    FV m0 = (FV)(NOTHING), m1 = m0, m2 = m0, m3 = m0;
    int j = 0;
    for (; j + 4 <= n; j += 4, k += 4 * stride) {
        m0 = max_v(key_load(k, width), m0);
        m1 = max_v(key_load(k + stride, width), m1);
        m2 = max_v(key_load(k + 2 * stride, width), m2);
        m3 = max_v(key_load(k + 3 * stride, width), m3);
    }
    for (; j < n; ++j, k += stride)
        m0 = max_v(key_load(k, width), m0);
    return max_v(max_v(m0, m1), max_v(m2, m3));
}

static inline void add_one(struct sums *s, FV kappa, FV beta)
{
    const FV e = exp_nonpos_v(kappa - s->max_exponent);
    s->a += kappa > (FV)(NOTHING) ? e : (FV)(0.0f);
    s->b += kappa > (FV)(NOTHING) ? e * beta : (FV)(0.0f);
}

// Does not return the struct, since Oclgrind cannot run its noalias pointer.
static inline void sum_keys(struct sums *s, __global const float *k, long k_stride,
                            __global const float *v, long v_stride, int n, int width)
{
    struct sums odd;
    int j = 0;
    s->max_exponent = max_of_keys(k, k_stride, n, width);
    s->a = s->b = (FV)(0.0f);
    odd = *s;
    for (; j + 2 <= n; j += 2, k += 2 * k_stride, v += 2 * v_stride) {
        add_one(s, key_load(k, width), lane_load(v, width));
        add_one(&odd, key_load(k + k_stride, width), lane_load(v + v_stride, width));
    }
    if (j < n)
        add_one(s, key_load(k, width), lane_load(v, width));
    s->a += odd.a;
    s->b += odd.b;
}

// v: [n, batch] rows of `row` channels, `channels` per head; k: like v, or one key per head
// last: [1], the position of the prompt's last token; rows after it are not read
// sums: [3, all]; keys, values: [window, all]; all = the channels of all rows at a position
KERNEL void aft_prefill_fwd(__global const float *restrict k, long k_start, long k_stride,
                            __global const float *restrict v, long v_start, long v_stride,
                            __global const int *restrict last, __global float *restrict sums,
                            __global void *restrict keys, __global void *restrict values, int n,
                            int batch, int channels, int row, long all, int lanes, int window)
{
    const int lane = get_global_id(0), head = get_global_id(1);
    if (lane >= lanes)
        return;
    const int width = lane_width(lane, channels), t = clamp(last[0], 0, n - 1);
    const long first = (long)head * channels, at = lane_start(lane, channels, row) + first;
    const long k_step = batch * k_stride, v_step = batch * v_stride;

    k += k_start + key_start(lane, channels, k_stride) + (PER_HEAD ? head : first);
    v += v_start + lane_start(lane, channels, v_stride) + first;
    const int n_left = max(0, t + 1 - window); // keys that have left the window
    struct sums s;
    sum_keys(&s, k, k_step, v, v_step, n_left, width);
    lane_store(s.max_exponent, sums + at, width);
    lane_store(s.a, sums + all + at, width);
    lane_store(s.b, sums + 2 * all + at, width);
    if (window == 0)
        return;
    int slot = n_left % window;
    for (int j = n_left; j <= t; ++j) {
        store_stored_some(key_load(k + j * k_step, width), keys, slot * all + at, width,
                          CACHE_TYPE);
        store_stored_some(lane_load(v + j * v_step, width), values, slot * all + at, width,
                          CACHE_TYPE);
        slot = slot + 1 == window ? 0 : slot + 1;
    }
}

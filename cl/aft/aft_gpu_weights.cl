// SPDX-License-Identifier: MIT
// Attention-free mixing, GPU variant, before the band: e^(w - peak) of each pair of rows inside the
// window, once for all channels.  Host side: lib/op/aft/aft_gpu.c
//
//   Work      one work-group = ROWS target rows, one work-item = every LS-th source inside their
//             window
//   Memory    reads the biases twice, writes a float for each pair
//   Numerics  peak is the row's largest bias inside the window: no weight exceeds 1, one is 1, and
//             their spread costs nothing.  What is unseen weighs 0
//
//   Macro   Meaning                                          Values
//   ROWS    target rows of a work-group, a divisor of BLOCK  16, 8

#ifndef ROWS
#error "ROWS: target rows of a work-group"
#endif

#define MASKED 0
#include "aft/aft_bias.clh"

// NOTHING past the last row.
static inline float bias_or_nothing(const struct bias *w, int target, int source)
{
    return target < w->steps ? bias_one(w, target, source) : NOTHING;
}

// row0: the first work-group's first target.  scratch: for each work-group, at weights_at, (pitch +
// 1) * ROWS floats: its peaks, NOTHING where all biases are absent, then [source][target] from the
// first block inside the window on.
KERNEL void aft_gpu_weights(__global const float *restrict pos_bias, long bias_start, int bias_row,
                            int steps, int window, int causal, int row0, __global float *scratch,
                            long weights_at, int pitch)
{
    __local float maxima[ROWS * LS], peaks[ROWS];
    const int id = get_local_id(0), group = get_group_id(0), t0 = row0 + group * ROWS;
    const struct bias w = {pos_bias + bias_start, bias_row, window, causal, 0, 0, 0, steps};
    __global float *own = scratch + weights_at + (long)group * (pitch + 1) * ROWS;
    int from, to;

    bias_region(&w, t0, min(ROWS, steps - t0), BLOCK, &from, &to);
    const int first = from * BLOCK, end = min(to * BLOCK, steps);
    for (int r = 0; r < ROWS; ++r) {
        float max_exponent = NOTHING;
        for (int j = first + id; j < end; j += LS)
            max_exponent = fmax(max_exponent, bias_or_nothing(&w, t0 + r, j));
        maxima[r * LS + id] = max_exponent;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = id; r < ROWS; r += LS) {
        float max_exponent = NOTHING;
        for (int i = 0; i < LS; ++i)
            max_exponent = fmax(max_exponent, maxima[r * LS + i]);
        peaks[r] = max_exponent;
        own[r] = max_exponent;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = first + id; j < end; j += LS)
        for (int r = 0; r < ROWS; ++r) {
            const float x = bias_or_nothing(&w, t0 + r, j);
            own[(long)(1 + j - first) * ROWS + r] =
                x > NOTHING || x != x ? exp_nonpos_f(x - peaks[r]) : 0.0f;
        }
}

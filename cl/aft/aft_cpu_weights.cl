// SPDX-License-Identifier: MIT
// Attention-free mixing, CPU variant: weights of a block of target rows, packed once for all
// channels.  Host side: lib/op/aft/aft_cpu.c
//
//   Work      one work-item = one block of ROWS target rows
//   Memory    reads the biases of the region (and the mask) twice, writes one float per pair
//   Numerics  a weight is e^(w - peak), peak the row's largest visible bias in the region, so no weight
//             exceeds 1 and some weight of each row is 1.  Rows past the last are copies of it

#include "aft/aft_bias_lane.clh"
#include "aft/aft_cpu_targets.clh"

// weights: [to - from, and up to VW - 1 more][ROWS]; seen, with a mask: 1 for each block with a visible
// source, and maybe for its neighbour
static inline void pack_weights(const struct bias *w, int t0, int from, int to,
                                const float peak[ROWS], __global float *weights,
                                __global float *seen)
{
    for (int i = 0; MASKED && i * ROWS < to - from; ++i)
        seen[i] = 0.0f;
    for (int j = 0; j < to - from; j += VW) {
        __global float *at = weights + j * ROWS;
        float e[ROWS][VW];
        bool any_seen = false;
        for (int r = 0; r < ROWS; ++r) {
            const FV x = load_bias_lane(w, min(t0 + r, w->steps - 1), from + j);
            VSTORE(exp_nonpos_v(x - (FV)(peak[r])), e[r]);
            if (MASKED)
                any_seen |= any(x > (FV)(NOTHING));
        }
        for (int i = 0; i < VW; ++i)
            UNROLL
        for (int r = 0; r < ROWS; ++r)
            at[i * ROWS + r] = e[r][i];
        if (any_seen)
            for (int i = j / ROWS; i <= (min(j + VW, to - from) - 1) / ROWS; ++i)
                seen[i] = 1.0f;
    }
}

// packed: `pitch` floats per block from block0 on, for struct targets
KERNEL void aft_cpu_weights(BIAS_PARAMS, int steps, int window, int causal, int block0,
                            __global float *restrict scratch, long packed_at, long pitch)
{
    __global float *packed = scratch + packed_at + (long)get_group_id(0) * pitch;
    const struct bias w = BIAS_OF_ARGUMENTS;
    const struct targets x = find_targets(&w, block0 + (int)get_group_id(0), packed, pitch);
    float peak[ROWS], lowest = 80.0f, highest = -80.0f;

    find_peaks(&w, x.t0, x.from * ROWS, min(x.to * ROWS, steps), peak);
    for (int r = 0; r < ROWS; ++r) {
        lowest = fmin(lowest, peak[r]);
        highest = fmax(highest, peak[r]);
        packed[AT_PEAK + r] = peak[r];
        packed[AT_SCALE + r] = peak[r] == 0.0f ? 1.0f : exp_f(-peak[r]);
    }
    packed[AT_LOWEST] = lowest;
    packed[AT_SCALED] = lowest >= -5.0f && lowest <= 20.0f && highest <= 80.0f;
    pack_weights(&w, x.t0, x.from * ROWS, x.to * ROWS, peak, packed + AT_WEIGHTS,
                 packed + pitch - (x.to - x.from));
}

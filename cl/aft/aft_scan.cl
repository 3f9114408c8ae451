// SPDX-License-Identifier: MIT
// Attention-free mixing, both variants: turns block sums into sums over all earlier and over all later
// blocks.  Host side: lib/op/aft/aft_channel_block.c
//
//   Work      one work-item = one lane, over all blocks
//   Memory    reads and writes 3 floats per block and channel, twice if two_sided
//   Numerics  running maximum and sums relative to it, from either end, without subtraction

#include "common/aft.clh"

// Blocks loaded ahead of merging, to hide latency: GPUs have few lanes here, and merges are sequential.
#define LOOKAHEAD_BLOCKS (VW > 1 ? 1 : 8)

// Loads the sums of LOOKAHEAD_BLOCKS blocks, from `first` on in a direction, repeating the last one past
// the end.
static inline void load_lookahead(struct sums next[LOOKAHEAD_BLOCKS], __global const float *sums,
                                  int first, int direction, int blocks, int step)
{
    UNROLL
    for (int n = 0; n < LOOKAHEAD_BLOCKS; ++n)
        next[n] = sums_load(sums, clamp(first + n * direction, 0, blocks - 1), step);
}

// scratch: lane l at l * lane_stride; in it
//   before: [blocks][3][step], in: each block's sums, out: sums over all earlier blocks
//   after: the same shape, out: sums over all later blocks; only if two_sided
KERNEL void aft_scan(__global float *scratch, long lane_stride, long before_at, long after_at,
                     int step, int blocks, int lanes, int two_sided)
{
    const int lane = get_global_id(0);
    struct sums s = empty_sums();

    if (lane >= lanes)
        return;
    __global float *before = scratch + lane * lane_stride + before_at;
    __global float *after = scratch + lane * lane_stride + after_at;
    struct sums own[LOOKAHEAD_BLOCKS];
    if (two_sided) {
        for (int last = blocks - 1; last >= 0; last -= LOOKAHEAD_BLOCKS) {
            load_lookahead(own, before, last, -1, blocks, step);
            UNROLL
            for (int n = 0; n < LOOKAHEAD_BLOCKS; ++n)
                if (last - n >= 0) {
                    sums_store(s, after, last - n, step);
                    s = sums_merge(s, own[n]);
                }
        }
        s = empty_sums();
    }
    for (int first = 0; first < blocks; first += LOOKAHEAD_BLOCKS) {
        load_lookahead(own, before, first, 1, blocks, step);
        UNROLL
        for (int n = 0; n < LOOKAHEAD_BLOCKS; ++n)
            if (first + n < blocks) {
                sums_store(s, before, first + n, step);
                s = sums_merge(s, own[n]);
            }
    }
}

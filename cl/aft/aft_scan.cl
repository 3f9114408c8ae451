// SPDX-License-Identifier: MIT
// Attention-free mixing, both variants: sums of blocks become sums of all blocks before and after
// each.  Host side: lib/op/aft/aft_channel_block.c
//
//   Work      one work-item = one lane, over all blocks
//   Memory    reads and writes 3 floats per block and channel, twice when two_sided
//   Numerics  running maximum and sums relative to it, from either end: nothing is subtracted

#include "common/aft.clh"

// Blocks read before the first of them is merged: on GPUs lanes are few, and each merge waits for the last.
#define LOOKAHEAD_BLOCKS (VW > 1 ? 1 : 8)

// The sums of LOOKAHEAD_BLOCKS blocks, from `first` on in a direction; past the last or first, that
// once more.
static inline void load_lookahead(struct sums next[LOOKAHEAD_BLOCKS], __global const float *sums,
                                  int first, int direction, int blocks, int step)
{
    UNROLL
    for (int n = 0; n < LOOKAHEAD_BLOCKS; ++n)
        next[n] = sums_load(sums, clamp(first + n * direction, 0, blocks - 1), step);
}

// scratch: lane l at l * lane_stride; in it
//   before: [blocks][3][step], in: the sums of each block, out: of all blocks before it
//   after: the same shape, out: of all blocks after it; not touched when two_sided is 0
KERNEL void aft_scan(__global float *scratch, long lane_stride, long before_at, long after_at,
                     int step, int blocks, int lanes, int two_sided)
{
    const int lane = get_global_id(0);
    struct sums s = sums_of_none();

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
        s = sums_of_none();
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

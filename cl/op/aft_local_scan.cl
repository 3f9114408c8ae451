// SPDX-License-Identifier: MIT
// AFT-local, both forms: sums of blocks become sums of all blocks before and after each.  Host
// side: lib/op/aft_local.c
//
//   Work      one work-item = one lane, over all blocks
//   Memory    reads and writes 3 floats per block and channel, twice when two_sided
//   Numerics  running maximum and sums relative to it, from either end: nothing is subtracted
//
//   Macro     Meaning                  Values
//   VW        channels of a lane       16, 8, 4 (CPU), 1 (GPU)
//   LS        work-items in a group    1 (CPU), 64 .. 8 (GPU)

#ifndef VW
#error "VW: channels of a lane"
#endif
#ifndef LS
#error "LS: work-items in a group"
#endif

#include "common/aft.clh"

// scratch: lane l at l * lane_stride; in it
//   before: [blocks][3][step], in: the sums of each block, out: of all blocks before it
//   after: the same shape, out: of all blocks after it; not touched when two_sided is 0
KERNEL void aft_local_scan(__global float *scratch, long lane_stride, long before_at, long after_at,
                           int step, int blocks, int lanes, int two_sided)
{
    const int lane = get_global_id(0);
    struct sums s = sums_of_none();

    if (lane >= lanes)
        return;
    __global float *before = scratch + lane * lane_stride + before_at;
    __global float *after = scratch + lane * lane_stride + after_at;
    if (two_sided) {
        for (int i = blocks - 1; i >= 0; --i) {
            sums_store(s, after, i, step);
            s = sums_merge(s, sums_load(before, i, step));
        }
        s = sums_of_none();
    }
    for (int i = 0; i < blocks; ++i) {
        const struct sums own = sums_load(before, i, step);
        sums_store(s, before, i, step);
        s = sums_merge(s, own);
    }
}

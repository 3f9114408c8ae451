// SPDX-License-Identifier: MIT
// AFT-local, GPU form, first pass: sums of blocks of source rows.  Host side: lib/op/aft_local.c
//
//   Work      one work-item = one lane of channels, one block of BLOCK source rows
//   Memory    reads k twice and v once, writes 3 floats per block and channel
//   Numerics  sums are relative to the block's own maximum
//
//   Macro     Meaning                  Values
//   VW        channels of a lane       1
//   LS        work-items in a group    64 .. 8, what the device can run
//   BLOCK     source rows of a block   16

#ifndef VW
#error "VW: channels of a lane"
#endif
#ifndef LS
#error "LS: work-items in a group"
#endif
#ifndef BLOCK
#error "BLOCK: source rows of a block"
#endif

#include "common/aft.clh"

// k, v: [T, batch] rows of `channels`, or of one key; sums: [blocks][3][lanes]
KERNEL void aft_local_blocks_fwd(__global const float *restrict k, long k_start, long k_stride,
                                 __global const float *restrict v, long v_start, long v_stride,
                                 __global float *restrict sums, int steps, int batch, int channels,
                                 int lane0, int lanes)
{
    const int lane = get_global_id(0), block = get_group_id(1), t0 = block * BLOCK,
              n = min(BLOCK, steps - t0);
    const int width = lane_width(lane0 + lane, channels);
    struct sums s = sums_of_none();

    if (lane >= lanes)
        return;
    k += k_start + (long)t0 * batch * k_stride + key_start(lane0 + lane, channels, k_stride);
    v += v_start + (long)t0 * batch * v_stride + lane_start(lane0 + lane, channels, v_stride);
    for (int t = 0; t < n; ++t)
        s.top = max_v(key_load(k + (long)t * batch * k_stride, width), s.top);
    for (int t = 0; t < n; ++t) {
        const FV e = exp_nonpos_v(key_load(k + (long)t * batch * k_stride, width) - s.top);
        s.a += e;
        s.b += e * lane_load(v + (long)t * batch * v_stride, width);
    }
    sums_store(s, sums + (long)lane * VW, block, lanes * VW);
}

// SPDX-License-Identifier: MIT
// One position of an AFT layer without heads, from the layer norm to the output map, its result in
// parts, CPU form.  Host side: lib/op/aft_parts.c
//
//   x' = x + (before_bias + sum_s before[s]),  z = LN(x')             joined_rows.clh
//   q, k, v = z Wq_g^T + bq_g, z Wk_g^T + bk_g, z Wv_g^T + bv_g       a slice of the channels
//   parts[g] = AFT(q, k, v) Wo_g^T                                    aft_step.clh
//
//   Work      one group = one slice of `slice` channels, for all rows: channels do not mix before
//             the output map, so that all of it is one launch.  Each group joins and normalises all
//             rows for itself: less than a launch takes
//   Memory    reads each weight once; rows and a slice's q, k and v in local memory; state as in
//             aft_step.clh
//   Numerics  float; VW chains of multiply-adds for each product, summed by a tree
//
//   Macro      Meaning                                              Values
//   LS         work-items in a group                                1
//   VW         vector width, a divisor of all widths                4 | 8 | 16
//   OUT MOST_ROWS TAIL AHEAD   as in few_rows.clh, TAIL = 0
//   PER_HEAD   as in aft.clh                                        0

#include "common/aft_step.clh"
#include "common/slices.clh"

// pos_bias: [n, n], not read when window is 0; position: [1]; sums, keys, values: as in
// aft_step.cl, all = m * channels
// A position outside 0 .. n - 1 gives NaN and leaves the state alone.
KERNEL void aft_parts_fwd(MAPPED_PARAMS, __global const float *restrict pos_bias, int n, int window,
                          __global const int *restrict position, __global float *restrict sums,
                          __global float *restrict keys, __global float *restrict values)
{
    const int t = *position;
    const long all = (long)m * channels;

    MAP_SLICE;
    for (int i = 0; i < m; ++i)
        for (int c = 0; c < width; c += VW) {
            const long at = (long)i * channels + first + c;
            __local float *y = q + i * slice + c;
            FV mixed = (FV)(NAN);
            if (t >= 0 && t < n)
                mixed = aft_step_lane(VLOAD(y), VLOAD(k + i * slice + c), VLOAD(v + i * slice + c),
                                      sums + at, keys + at, values + at, all, window, t,
                                      pos_bias + (long)t * n, VW);
            VSTORE(mixed, y);
        }

    addend_of_slice(q, m, slice, width, wo + first, channels, d_out, ahead_2, group, out);
}

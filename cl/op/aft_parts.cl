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

#include "common/slices.clh"
#include "common/aft_step.clh"

// wq, wk, wv: [channels, d]; wo: [d_out, channels]; has_bias: bits 0, 1, 2 for bq, bk, bv
// pos_bias: [n, n], not read when window is 0; position: [1]; sums, keys, values: as in
// aft_step.cl, all = m * channels
// out: [groups, m, d_out]; rows: [m, d]; q, k, v: [m, slice] each
// A position outside 0 .. n - 1 gives NaN and leaves the state alone.
KERNEL void aft_parts_fwd(JOINED_PARAMS, __global float *restrict x_whole, int channels, int slice,
                          int d_out, int ahead_1, int ahead_2, int has_bias,
                          __global const float *restrict wq, __global const float *restrict bq,
                          __global const float *restrict wk, __global const float *restrict bk,
                          __global const float *restrict wv, __global const float *restrict bv,
                          __global const float *restrict wo, __global float *restrict out,
                          __local float *restrict rows, __local float *restrict q,
                          __local float *restrict k, __local float *restrict v,
                          __global const float *restrict pos_bias, int n, int window,
                          __global const int *restrict position, __global float *restrict sums,
                          __global float *restrict keys, __global float *restrict values)
{
    const int group = (int)get_group_id(0), first = group * slice;
    const int width = min(slice, channels - first), t = *position;
    const long all = (long)m * channels;

    joined_rows(m, d, n_parts, has_parts_bias, x, parts, parts_bias, norm_weight, norm_bias, eps,
                x_whole, rows);
    map_slice(rows, m, d, wq, bq, has_bias & 1, ahead_1, first, width, slice, q);
    map_slice(rows, m, d, wk, bk, has_bias & 2, ahead_1, first, width, slice, k);
    map_slice(rows, m, d, wv, bv, has_bias & 4, ahead_1, first, width, slice, v);

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

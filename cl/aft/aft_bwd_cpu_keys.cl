// SPDX-License-Identifier: MIT
// Gradient of attention-free mixing's biases, CPU variant: keys and values packed for
// aft_bwd_cpu_table.  Host side: lib/op/aft/aft_bwd_table.c
//
//   Work      one work-item = GROUP lanes of channels, with all rows (aft_bwd_cpu_keys_range) or VW rows
//             (aft_bwd_cpu_keys_pack)
//   Memory    reads keys twice and values once, writes two floats per element
//   Numerics  factors are relative to the channel's largest key
//
//   Macro     Meaning                               Values
//   VW        channels of a lane, rows of a vector  16, 8, 4

#define BACKWARD 0
#include "aft/aft_cpu.clh"
#include "aft/aft_source.clh"
#include "common/transpose.clh"

// ranges: [lanes][2][VW], the largest and smallest key of each channel
KERNEL void aft_bwd_cpu_keys_range(SOURCE_PARAMS, __global float *restrict scratch, long ranges_at,
                                   RANGE_PARAMS)
{
    const int first = (int)get_group_id(0) * GROUP, n = min(GROUP, lanes - first);
    __global float *range = scratch + ranges_at + first * 2 * VW;
    int entry[GROUP], column[GROUP]; // as in aft_cpu_sources.cl
    FV highest[GROUP], lowest[GROUP];

    UNROLL
    for (int i = 0; i < GROUP; ++i) {
        const int l = lane0 + first + min(i, n - 1);
        entry[i] = LANE_ENTRY(l);
        column[i] = LANE_COLUMN(l);
        highest[i] = (FV)(NOTHING);
        lowest[i] = (FV)(-NOTHING);
    }
    for (int t = 0; t < steps; ++t)
        UNROLL
    for (int i = 0; i < GROUP; ++i) {
        const struct source from = SOURCE_IN(entry[i], column[i]);
        const FV kappa = source_kappa(&from, t);
        highest[i] = max_v(kappa, highest[i]);
        lowest[i] = min_v(kappa, lowest[i]);
    }
    for (int i = 0; i < n; ++i, range += 2 * VW) {
        VSTORE(highest[i], range);
        VSTORE(lowest[i], range + VW);
    }
}

// keys: [rows / VW][2][lanes * VW][VW]: for a channel, e^(k - highest) v of VW rows, then
// e^(k - highest); zeros past the last row
KERNEL void aft_bwd_cpu_keys_pack(SOURCE_PARAMS, __global float *restrict scratch, long ranges_at,
                                  RANGE_PARAMS)
{
    const int t0 = (int)get_group_id(0) * VW, first = (int)get_group_id(1) * GROUP;
    const long half_floats = (long)lanes * VW * VW;
    __global float *keys = scratch + t0 / VW * 2 * half_floats;

    for (int lane = first; lane < min(first + GROUP, lanes); ++lane) {
        const int l = lane0 + lane;
        const struct source from = SOURCE_AT(l);
        const FV highest = VLOAD(scratch + ranges_at + lane * 2 * VW);
        __global float *to = keys + (long)lane * VW * VW;
        FV e[VW], value[VW];

        UNROLL
        for (int i = 0; i < VW; ++i) {
            e[i] = value[i] = (FV)(0.0f);
            if (t0 + i < steps) {
                e[i] = exp_nonpos_v(source_kappa(&from, t0 + i) - highest);
                value[i] = e[i] * source_beta(&from, t0 + i);
            }
        }
        transpose_square(value);
        transpose_square(e);
        UNROLL
        for (int i = 0; i < VW; ++i) {
            VSTORE(value[i], to + i * VW);
            VSTORE(e[i], to + half_floats + i * VW);
        }
    }
}

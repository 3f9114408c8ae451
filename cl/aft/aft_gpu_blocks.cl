// SPDX-License-Identifier: MIT
// Attention-free mixing, GPU variant, first pass: sums and ranges of blocks of source rows.  Host
// side: lib/op/aft/aft_gpu.c
//
//   Work      one work-item = one lane of channels, one block of BLOCK source rows
//   Memory    reads the sources, kappa twice, writes 5 floats per block and channel
//   Numerics  sums are relative to the block's own maximum

#include "aft/aft_source.clh"

// sums: [blocks][3][lanes]; after as many more, for those after each block, the ranges:
// [blocks][2][lanes], the largest kappa and the largest -kappa
KERNEL void aft_gpu_blocks(SOURCE_PARAMS, __global float *restrict sums, RANGE_PARAMS)
{
    const int lane = get_global_id(0), block = get_group_id(1), t0 = block * BLOCK,
              n = min(BLOCK, steps - t0);
    const int l = lane0 + lane;
    const struct source from = SOURCE_AT(l);
    struct sums s = sums_of_none();
    FV lowest = (FV)(-NOTHING);

    if (lane >= lanes)
        return;
    for (int t = t0; t < t0 + n; ++t) {
        const FV kappa = source_kappa(&from, t);
        s.max_exponent = max_v(kappa, s.max_exponent);
        lowest = min_v(kappa, lowest);
    }
    for (int t = t0; t < t0 + n; ++t) {
        const FV e = exp_nonpos_v(source_kappa(&from, t) - s.max_exponent);
        s.a += e * source_alpha(&from, t);
        s.b += e * source_beta(&from, t);
    }
    sums_store(s, sums + (long)lane * VW, block, lanes * VW);
    sums += ((long)get_num_groups(1) * 6 + block * 2) * lanes * VW + (long)lane * VW;
    VSTORE(s.max_exponent, sums);
    VSTORE(-lowest, sums + lanes * VW);
}

// SPDX-License-Identifier: MIT
// Attention-free mixing without biases and mask (AFT-simple): block sums of sources, and results from them.  In between,
// aft_scan turns them into sums over all earlier or later blocks.  Host side: lib/op/aft/aft_simple.c
//
//   Work      one work-item = a block of ROWS rows, for GROUP lanes of channels; sums: the last block has no rows, so the
//             scan leaves the sums over all blocks there
//   Memory    neighbouring lanes row by row, whole cache lines; sums: reads the sources' exponents twice, writes 3 floats
//             per block and channel; rows: reads targets once, causal the sources too, writes results once
//   Numerics  sums: relative to the block's largest exponent; causal rows: relative to a running maximum
//
//   Macro     Meaning                                                          Values
//   PER_HEAD  always 0, as heads have biases                                   0
//   CAUSAL    a target sees sources up to its own row, backward from it on     0, 1

#include "aft/aft_source.clh"

#ifndef CAUSAL
#error "CAUSAL: a target sees sources up to its own row"
#endif

#define ROWS  (VW > 1 ? 64 : BLOCK) // of a block; CPU: AFT_SIMPLE_ROWS of lib/op/aft/aft.h
#define GROUP (VW > 1 ? 4 : 1)      // lanes of a work-item; CPU: AFT_SIMPLE_GROUP

// This work-item's lanes, repeating the last one if there are fewer.  Indices, as Mesa's llvmpipe (22.3) crashes on arrays
// of pointers.
#define FIND_LANES                                                                                 \
    const int first = (int)get_global_id(0) * GROUP, last = min(first + GROUP, lanes) - 1;         \
    int entry[GROUP], column[GROUP];                                                               \
    if (first >= lanes)                                                                            \
        return;                                                                                    \
    UNROLL for (int i = 0; i < GROUP; ++i)                                                         \
    {                                                                                              \
        entry[i] = LANE_ENTRY(lane0 + min(first + i, last));                                       \
        column[i] = LANE_COLUMN(lane0 + min(first + i, last));                                     \
    }

// scratch: lane l, which is lane lane0 + l of the tensors, at l * lane_stride; in it block sums at sums_at,
// [blocks][3][step]
KERNEL void aft_simple_sums(SOURCE_PARAMS, __global float *restrict scratch, long lane_stride,
                            long sums_at, int step, RANGE_PARAMS)
{
    const int block = get_group_id(1), end = min(block * ROWS + ROWS, steps);
    struct sums s[GROUP];
    FIND_LANES

    UNROLL
    for (int i = 0; i < GROUP; ++i)
        s[i] = empty_sums();
    for (int t = block * ROWS; t < end; ++t)
        UNROLL
    for (int i = 0; i < GROUP; ++i) {
        const struct source from = SOURCE_IN(entry[i], column[i]);
        s[i].max_exponent = max_v(source_kappa(&from, t), s[i].max_exponent);
    }
    for (int t = block * ROWS; t < end; ++t)
        UNROLL
    for (int i = 0; i < GROUP; ++i) {
        const struct source from = SOURCE_IN(entry[i], column[i]);
        const FV e = exp_nonpos_v(source_kappa(&from, t) - s[i].max_exponent);
        s[i].a += e * source_alpha(&from, t);
        s[i].b += e * source_beta(&from, t);
    }
    UNROLL
    for (int i = 0; i < GROUP; ++i)
        if (first + i <= last) // Mesa's llvmpipe (25.0) has wrong sums in a lane that repeats
            sums_store(s[i], scratch + (first + i) * lane_stride + sums_at, block, step);
}

#if CAUSAL
// Adds one source.  The larger of its exponent and the one so far becomes the reference, with factor 1, or NaN if it is
// infinite.
static inline struct sums add_source(struct sums s, FV kappa, FV alpha, FV beta)
{
    const FV e = exp_nonpos_v(-fabs(kappa - s.max_exponent));
    const FV so_far = kappa > s.max_exponent ? e : (FV)(1.0f),
             own = kappa > s.max_exponent ? (FV)(1.0f) + (kappa - kappa) : e;
    s.max_exponent = max_v(kappa, s.max_exponent);
    s.a = s.a * so_far + own * alpha;
    s.b = s.b * so_far + own * beta;
    return s;
}
#endif

// scratch: from aft_scan; at sums_at of a lane, index `block` has the sums that a causal block's first row sees besides its
// block, index `blocks` the sums over all sources
KERNEL void aft_simple_rows(TARGET_PARAMS, SOURCE_PARAMS, __global const float *restrict scratch,
                            long lane_stride, long sums_at, int step, int blocks, RANGE_PARAMS)
{
    const int block = get_group_id(1), t0 = block * ROWS, rows = min(ROWS, steps - t0);
    struct sums s[GROUP];
    FIND_LANES

    UNROLL
    for (int i = 0; i < GROUP; ++i)
        s[i] = sums_load(scratch + min(first + i, last) * lane_stride + sums_at,
                         CAUSAL ? block : blocks, step);
    for (int n = 0; n < rows; ++n) {
        const int t = CAUSAL && BACKWARD ? t0 + rows - 1 - n : t0 + n;
        UNROLL
        for (int i = 0; i < GROUP; ++i) {
            const struct target to = TARGET_IN(entry[i], column[i]);
#if CAUSAL
            const struct source from = SOURCE_IN(entry[i], column[i]);
            s[i] = add_source(s[i], source_kappa(&from, t), source_alpha(&from, t),
                              source_beta(&from, t));
#endif
            target_store(&to, t, s[i].max_exponent, s[i].a, s[i].b);
        }
    }
}

// SPDX-License-Identifier: MIT
// Attention-free mixing, CPU variant, first pass: packs the sources.  Host side: lib/op/aft/aft_cpu.c
//
//   Work      one work-item = a panel of PANEL blocks of ROWS source rows, for GROUP lanes of
//             channels
//   Memory    reads the sources twice, writes 2 floats per element and 3 per block and channel
//   Numerics  packed rows are relative to their panel's maximum, block sums to the block's own: a later
//             large key in the panel must not flush an earlier block's sum to 0, as causal rows may see
//             only the earlier one

#include "aft/aft_cpu.clh"
#include "aft/aft_source.clh"

// Replaces n rows of (kappa, beta), from row t0 on, by (e^(kappa - max_exponent) alpha,
// e^(kappa - max_exponent) beta); stores the block's sums at index `block`.
static inline void weigh_block(__global float *rows, const struct source *from, int t0, int n,
                               FV max_exponent, FV block_max, __global float *sums, int block)
{
    const int near = all(max_exponent - block_max <= (FV)(REACH));
    struct sums s = empty_sums();
    s.max_exponent = block_max;
    for (int t = 0; t < n; ++t, rows += 2 * VW) {
        const FV kappa = VLOAD(rows), beta = VLOAD(rows + VW),
                 e = exp_nonpos_v(kappa - max_exponent);
        const FV own = near ? e : exp_nonpos_v(kappa - block_max);
        const FV alpha = source_alpha(from, t0 + t);
        s.a += own * alpha;
        s.b += own * beta;
        VSTORE(e * alpha, rows);
        VSTORE(e * beta, rows + VW);
    }
    if (near) {
        const FV scale = exp_v(max_exponent - block_max);
        s.a *= scale;
        s.b *= scale;
    }
    sums_store(s, sums, block, VW);
}

// Packs one lane of a panel, whose n rows in `rows` are (kappa, beta).  range: [2][VW], the panel's
// maximum and minimum.
static inline void weigh_panel(__global float *rows, const struct source *from, int n,
                               __global float *range, __global float *sums, int block)
{
    FV block_max[PANEL];
    FV max_exponent = (FV)(NOTHING), bottom = (FV)(-NOTHING);
    for (int i = 0; i < PANEL; ++i) {
        FV m = (FV)(NOTHING);
        for (int t = i * ROWS; t < min(i * ROWS + ROWS, n); ++t) {
            const FV kappa = VLOAD(rows + (size_t)t * 2 * VW);
            m = max_v(kappa, m);
            bottom = min_v(kappa, bottom);
        }
        block_max[i] = m;
        max_exponent = max_v(m, max_exponent);
    }
    VSTORE(max_exponent, range);
    VSTORE(bottom, range + VW);
    for (int i = 0; i * ROWS < n; ++i)
        weigh_block(rows + (size_t)i * ROWS * 2 * VW, from, (block + i) * ROWS,
                    min(ROWS, n - i * ROWS), max_exponent, block_max[i], sums, block + i);
}

// scratch: lane_floats for each of `lanes`, the first of which is lane `lane0` of the tensors:
//   packed rows at 0: [blocks * ROWS][2][VW]; ranges: [panels][2][VW]; sums of blocks at before_at:
//   [blocks][3][VW]
KERNEL void aft_cpu_sources(SOURCE_PARAMS, __global float *restrict scratch, long lane_floats,
                            long ranges_at, long before_at, RANGE_PARAMS)
{
    const int panel = get_group_id(0), first = get_group_id(1) * GROUP,
              end = min(first + GROUP, lanes);
    const int t0 = panel * PANEL * ROWS, n = min(PANEL * ROWS, steps - t0);
    __global float *rows0 = scratch + (size_t)t0 * 2 * VW;

    // Indices, as Mesa's llvmpipe (22.3) crashes on arrays of pointers.
    int entry[GROUP], column[GROUP];

    UNROLL
    for (int i = 0; i < GROUP; ++i) {
        const int l = lane0 + min(first + i, end - 1);
        entry[i] = LANE_ENTRY(l);
        column[i] = LANE_COLUMN(l);
    }
    // Neighbouring lanes row by row: whole cache lines of k and v.
    for (int t = 0; t < n; ++t)
        UNROLL
    for (int i = 0; i < GROUP; ++i) {
        const struct source from = SOURCE_IN(entry[i], column[i]);
        __global float *to = rows0 + min(first + i, end - 1) * lane_floats + (size_t)t * 2 * VW;
        VSTORE(source_kappa(&from, t0 + t), to);
        VSTORE(source_beta(&from, t0 + t), to + VW);
    }

    for (int lane = first; lane < end; ++lane) {
        const int l = lane0 + lane;
        const struct source from = SOURCE_AT(l);
        __global float *rows = rows0 + lane * lane_floats;
        weigh_panel(rows, &from, n,
                    scratch + lane * lane_floats + ranges_at + (size_t)panel * 2 * VW,
                    scratch + lane * lane_floats + before_at, panel * PANEL);
        // Pad the last block.
        for (int t = n; t % ROWS != 0; ++t) {
            VSTORE((FV)(0.0f), rows + (size_t)t * 2 * VW);
            VSTORE((FV)(0.0f), rows + (size_t)t * 2 * VW + VW);
        }
    }
}

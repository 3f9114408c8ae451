// SPDX-License-Identifier: MIT
// Attention-free mixing, GPU variant: the passes besides aft_gpu_band.  Host side: lib/op/aft/aft_gpu.c
//
//   blocks    sums and ranges of blocks of source rows
//   weights   e^(w - peak) of each pair of rows inside the window, once for all channels
//   rows      results with a mask, or where the product of aft_gpu_band does not hold: y = sigmoid(q) * B / A, or
//             backward dv = e^k A and dk = v dv - e^k B
//
//   Work      blocks: one work-item = one lane of channels, one block of BLOCK source rows; weights: one work-group = some
//             target rows, one work-item = every LS-th source inside their window; rows: one work-item = one lane, TARGETS
//             target rows, a work-group = LS lanes, which share the rows' biases
//   Memory    blocks: reads the sources, kappa twice, writes 5 floats per block and channel; weights: reads the biases
//             twice, writes a float for each pair; rows: reads sources of the blocks that the window (or the mask) reaches
//             once per TARGETS rows, targets once, writes results once; local memory: LS * (TARGETS + 1) floats
//   Numerics  sums are relative to the block's own maximum.  peak is the row's largest bias inside the window, so no
//             weight exceeds 1 and one is 1; unseen sources have weight 0.  rows: every exponential separately, relative
//             to the row's running maximum, correct for any finite input.  A row that sees nothing gives 0
//
//   Macro    Meaning                                         Values
//   LS       work-group size, a multiple of CHUNK            64 .. 8; what the device can run
//   TARGETS  target rows of a work-item, a divisor of BLOCK  4 | 8

#ifndef TARGETS
#error "TARGETS: target rows of a work-item"
#endif

#include "aft/aft_bias.clh"
#include "aft/aft_source.clh"

enum { MAX_ROWS = BLOCK }; // of a tile of aft_gpu_band

// sums: [blocks][3][lanes]; then as many floats for aft_scan's sums after each block; then ranges,
// [blocks][2][lanes], the largest kappa and the largest -kappa
KERNEL void aft_gpu_blocks(SOURCE_PARAMS, __global float *restrict sums, RANGE_PARAMS)
{
    const int lane = get_global_id(0), block = get_group_id(1), t0 = block * BLOCK,
              n = min(BLOCK, steps - t0);
    const int l = lane0 + lane;
    const struct source from = SOURCE_AT(l);
    struct sums s = empty_sums();
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

// NOTHING past the last row.
static inline float bias_or_nothing(const struct bias *w, int target, int source)
{
    return target < w->steps ? load_bias(w, target, source) : NOTHING;
}

// rows: targets of a work-group, MAX_ROWS or half as many; row0: the first work-group's first target.  scratch: at
// weights_at, per work-group (pitch + 1) * rows floats: its peaks, NOTHING where all biases are absent, then weights
// [source][target] from the first block inside the window on.
KERNEL void aft_gpu_weights(__global const float *restrict pos_bias, long bias_start, int bias_row,
                            int steps, int window, int causal, int row0, int rows,
                            __global float *scratch, long weights_at, int pitch)
{
    __local float maxima[MAX_ROWS * LS], peaks[MAX_ROWS];
    const int id = get_local_id(0), group = get_group_id(0), t0 = row0 + group * rows;
    const struct bias w = {pos_bias + bias_start, bias_row, window, causal, 0, 0, 0, steps};
    __global float *own = scratch + weights_at + (long)group * (pitch + 1) * rows;
    int from, to;

    find_region(&w, t0, min(rows, steps - t0), BLOCK, &from, &to);
    const int first = from * BLOCK, end = min(to * BLOCK, steps);
    for (int r = 0; r < rows; ++r) {
        float max_exponent = NOTHING;
        for (int j = first + id; j < end; j += LS)
            max_exponent = fmax(max_exponent, bias_or_nothing(&w, t0 + r, j));
        maxima[r * LS + id] = max_exponent;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = id; r < rows; r += LS) {
        float max_exponent = NOTHING;
        for (int i = 0; i < LS; ++i)
            max_exponent = fmax(max_exponent, maxima[r * LS + i]);
        peaks[r] = max_exponent;
        own[r] = max_exponent;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = first + id; j < end; j += LS)
        for (int r = 0; r < rows; ++r) {
            const float x = bias_or_nothing(&w, t0 + r, j);
            own[(long)(1 + j - first) * rows + r] =
                x > NOTHING || x != x ? exp_nonpos_f(x - peaks[r]) : 0.0f;
        }
}

#define CHUNK TARGETS // sources added between two updates of a maximum

// Adds CHUNK sources to one row.  bias: the row's biases, TARGETS apart.
LOCAL_INLINE void add_chunk(struct sums *s, const FV kappa[CHUNK], const FV alpha[CHUNK],
                            const FV beta[CHUNK], __local const float *bias)
{
    FV sum[CHUNK], error[CHUNK], max_exponent = s->max_exponent;
    for (int j = 0; j < CHUNK; ++j) {
        two_sum_seen(kappa[j], bias[j * TARGETS], &sum[j], &error[j]);
        max_exponent = max_v(sum[j], max_exponent);
    }
    const FV old = exp_nonpos_v(s->max_exponent - max_exponent);
    FV a = s->a * old, b = s->b * old;
    for (int j = 0; j < CHUNK; ++j) {
        const FV e = exp_nonpos_v((sum[j] - max_exponent) + error[j]);
        a += e * alpha[j];
        b += e * beta[j];
    }
    s->max_exponent = max_exponent;
    s->a = a;
    s->b = b;
}

// Whether any of the work-group's rows from t0 on is flagged.
static inline int any_flag(__global const float *flags, int t0, int lanes, int flag_rows,
                           int flag_lanes)
{
    const int first = get_group_id(0) * LS, last = min(first + LS, lanes) - 1;
    float any = 0.0f;
    flags += (long)(t0 / flag_rows) * ((lanes + flag_lanes - 1) / flag_lanes);
    for (int i = first / flag_lanes; i <= last / flag_lanes; ++i)
        any += flags[i];
    return any > 0.0f;
}

// Arguments as in aft_cpu_mix; sums: [2][blocks][3][lanes], over all blocks before and over all after
// each.  flag_rows: 0: all rows; else only rows flagged by aft_gpu_band, a flag covering flag_rows rows
// and flag_lanes lanes.
KERNEL void aft_gpu_rows(TARGET_PARAMS, SOURCE_PARAMS, __global const float *restrict sums,
                         long flags_at, int flag_rows, int flag_lanes, BIAS_PARAMS, RANGE_PARAMS,
                         int window, int causal)
{
    __local float bias[LS * TARGETS]; // [source][target]
    __local int seen[LS];
    const int lane = min((int)get_global_id(0), lanes - 1), id = get_local_id(0);
    const int l = lane0 + lane;
    const int t0 = get_group_id(1) * TARGETS, rows = min(TARGETS, steps - t0);
    const struct bias w = BIAS_OF_ARGUMENTS;

    const int wanted =
        MASKED || flag_rows == 0 || any_flag(sums + flags_at, t0, lanes, flag_rows, flag_lanes);
    const int live = wanted && get_global_id(0) < lanes;

    // Sources outside the region come from the block sums.
    const int blocks = (steps + BLOCK - 1) / BLOCK;
    int from, to;
    find_region(&w, t0, rows, BLOCK, &from, &to);
    from = wanted ? from : 0;
    struct sums outside = empty_sums(), s[TARGETS];
    if (!MASKED && causal >= 0 && from > 0)
        outside = sums_load(sums + (long)lane * VW, from, lanes * VW);
    if (!MASKED && causal <= 0 && to < blocks)
        outside =
            sums_merge(outside, sums_load(sums + (long)lane * VW, blocks + to - 1, lanes * VW));
    UNROLL
    for (int r = 0; r < TARGETS; ++r)
        s[r] = outside;

    const struct source source = SOURCE_AT(l);
    const int end = wanted ? min(to * BLOCK, steps) : 0;
    for (int j0 = from * BLOCK; j0 < end; j0 += LS) {
        // Each work-item loads the biases of one source.
        int any_row = 0;
        for (int r = 0; r < TARGETS; ++r) {
            const float x = j0 + id < end && r < rows ? load_bias(&w, t0 + r, j0 + id) : NOTHING;
            bias[id * TARGETS + r] = x;
            any_row |= !(x <= NOTHING); // NaN is seen
        }
        seen[id] = any_row;
        barrier(CLK_LOCAL_MEM_FENCE);

        for (int c = 0; c < LS; c += CHUNK) {
            FV kappa[CHUNK], alpha[CHUNK], beta[CHUNK];
            int any_source = 0;
            for (int j = 0; j < CHUNK; ++j)
                any_source |= seen[c + j];
            if (!any_source)
                continue;
            for (int j = 0; j < CHUNK; ++j) {
                const int t = min(j0 + c + j, steps - 1);
                kappa[j] = source_kappa(&source, t);
                alpha[j] = source_alpha(&source, t);
                beta[j] = source_beta(&source, t);
            }
            UNROLL
            for (int r = 0; r < TARGETS; ++r)
                add_chunk(&s[r], kappa, alpha, beta, bias + c * TARGETS + r);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const struct target results = TARGET_AT(l);
    UNROLL
    for (int r = 0; r < TARGETS; ++r)
        if (r < rows && live)
            target_store(&results, t0 + r, s[r].max_exponent, s[r].a, s[r].b);
}

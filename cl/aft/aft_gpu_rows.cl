// SPDX-License-Identifier: MIT
// Attention-free mixing, GPU variant, last pass, under a mask and where the product of aft_gpu_band
// will not do: y = sigmoid(q) * B / A, or backward dv = e^k A and dk = v dv - e^k B.  Host side:
// lib/op/aft/aft_gpu.c
//
//   Work      one work-item = one lane of channels, TARGETS target rows; a work-group = LS lanes,
//             which share the rows' biases
//   Memory    reads sources of the blocks that the window (or the mask) reaches once per TARGETS
//             rows, targets once, writes results once; local memory: LS * (TARGETS + 1) floats
//   Numerics  every exponential by itself, relative to the row's running maximum: right for any
//             finite input.  A row that sees nothing gives 0
//
//   Macro    Meaning                                         Values
//   LS       work-group size, a multiple of CHUNK            64 .. 8; what the device can run
//   TARGETS  target rows of a work-item, a divisor of BLOCK  4 | 8

#ifndef TARGETS
#error "TARGETS: target rows of a work-item"
#endif

#include "aft/aft_bias.clh"
#include "aft/aft_source.clh"

#define CHUNK TARGETS // sources added between two updates of a maximum

// Adds CHUNK sources to one row.  bias: those of the row, TARGETS apart.
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

// Whether the work-group is to do its rows from t0 on.
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

// Arguments as in aft_cpu_mix; sums: [2][blocks][3][lanes], of all blocks before and of all after
// each.  flag_rows: 0, or only what aft_gpu_band has flagged, each flag for so many rows and
// lanes.
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

    // What lies outside of the region comes as sums.
    const int blocks = (steps + BLOCK - 1) / BLOCK;
    int from, to;
    bias_region(&w, t0, rows, BLOCK, &from, &to);
    from = wanted ? from : 0;
    struct sums outside = sums_of_none(), s[TARGETS];
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
        // Each work-item finds the biases of one source.
        int any_row = 0;
        for (int r = 0; r < TARGETS; ++r) {
            const float x = j0 + id < end && r < rows ? bias_one(&w, t0 + r, j0 + id) : NOTHING;
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

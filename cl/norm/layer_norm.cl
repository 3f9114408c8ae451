// SPDX-License-Identifier: MIT
// Layer normalisation, and RMS normalisation, whose mean and bias are 0.  Host side: lib/op/norm/layer_norm.c
//
//   Work      LANES_PER_ROW work-items share a row, LS / LANES_PER_ROW rows a work-group; CPU variant: one work-item walks
//             `per_group` rows
//   Memory    reads x once and writes y once; reads rows that are not cached twice.  CPU variant: reads x
//             three times, the second and third time from cache
//   Numerics  a second pass sums distances from the mean for the variance and corrects the mean, so
//             nothing cancels, however large the mean.  In the GPU variant, rows that are not cached
//             take the mean of the first 16 LANES_PER_ROW of n columns instead, which costs the variance
//             log2(n / (16 LANES_PER_ROW)) bits at worst
//
//   Macro   Meaning                  Values
//   PIECES  a row is several pieces  0 | 1
//   RMS     RMS normalisation        0 | 1

#include "common/row_tiling.clh"

#include "common/norm.clh"

#if !defined PIECES || !defined RMS
#error "PIECES and RMS must be defined"
#endif

#if RMS
#define BIAS(v) 0.0f
#else
#define BIAS(v) (v)
#endif

#if LS == 1

// This work-item's part of the sum of one row.
static inline float sum_pieces(__global const float *x, long stride, int width, int parts)
{
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part)
        sum += item_sum(x + part * stride, width);
    return sum;
}

// y = (x - mean - rest) * scale * weight + bias over one piece; norm: mean, rest, scale.  Returns this
// work-item's part of the sum of `next`, the same piece of the next row, or 0 if next is 0; its loads
// overlap with this row's arithmetic.
static inline float write_piece(__global const float *x, __global const float *weight,
                                __global const float *bias, __global float *y,
                                __global const float *next, int width, float3 norm)
{
    int c = VW * (int)get_local_id(0);
    FV a0 = (FV)(0.0f), a1 = a0;

    for (; c + ROW_STEP + VW <= width; c += 2 * ROW_STEP) {
        const int e = c + ROW_STEP;
        const FV d0 = (VLOAD(x + c) - norm.x) - norm.y, d1 = (VLOAD(x + e) - norm.x) - norm.y;
        VSTORE(d0 * norm.z * VLOAD(weight + c) + BIAS(VLOAD(bias + c)), y + c);
        VSTORE(d1 * norm.z * VLOAD(weight + e) + BIAS(VLOAD(bias + e)), y + e);
        if (next) {
            a0 += VLOAD(next + c);
            a1 += VLOAD(next + e);
        }
    }
    for (; c + VW <= width; c += ROW_STEP) {
        const FV d = (VLOAD(x + c) - norm.x) - norm.y;
        VSTORE(d * norm.z * VLOAD(weight + c) + BIAS(VLOAD(bias + c)), y + c);
        if (next)
            a0 += VLOAD(next + c);
    }
    if (c < width) {
        const FV d = (load_tail(x, width, 0.0f) - norm.x) - norm.y;
        const FV w = load_tail(weight, width, 0.0f);
        store_tail(d * norm.z * w + BIAS(load_tail(bias, width, 0.0f)), y, width);
        if (next)
            a1 += load_tail(next, width, 0.0f);
    }
    return horizontal_sum(a0 + a1);
}

#else

// The offset of column c in a row.
static inline long column_offset(int c, int width, long stride)
{
    return PIECES ? c / width * stride + c % width : c;
}

struct norm_row {
    __global const float *x;
    int n, width; // columns of the row, of a piece
    long stride;
    FV v[BATCH]; // the current batch, or the cached row
};

static inline FV load_column(const struct norm_row *r, int c)
{
    return row_vec_load(r->x + column_offset(c, r->width, r->stride) - c, c, r->n, 0.0f);
}

static inline void load_batch(struct norm_row *r, int from)
{
#pragma unroll
    for (int k = 0; k < BATCH; ++k)
        r->v[k] = load_column(r, from + k * LANE_STRIDE);
}

// The mean, its rounding error, and 1 / sqrt(variance + eps).
LOCAL_INLINE float3 compute_norm(struct norm_row *r, float eps, __local float *tmp)
{
    int c = LANE_START;
    FV sum = (FV)(0.0f), d_sum = sum, s_sum = sum;

    load_batch(r, c);
#pragma unroll
    for (int k = 0; k < BATCH; ++k)
        sum += r->v[k];
    const float near = RMS ? 0.0f
                           : row_reduce_sum(horizontal_sum(sum), ROW_REDUCE_SLOT(tmp, 0)) /
                                 (float)min(r->n, BATCH * LANE_STRIDE);
    do { // in batches, so that a large square absorbs small ones of its own batch only
        FV d0 = (FV)(0.0f), s0 = d0;
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const FV d = c + k * LANE_STRIDE < r->n ? r->v[k] - near : (FV)(0.0f);
            d0 += d;
            s0 += d * d;
        }
        d_sum += d0;
        s_sum += s0;
        c += BATCH * LANE_STRIDE;
        if (!VECS_PER_LANE)
            load_batch(r, c);
    } while (!VECS_PER_LANE && c < r->n);

    const float2 d = row_reduce_sum2((float2)(horizontal_sum(d_sum), horizontal_sum(s_sum)),
                                     ROW_REDUCE_SLOT(tmp, 1));
    return norm_terms(near, d, (float)r->n, eps, RMS);
}

#endif

// A row is `parts` pieces of `width` floats, `stride` apart; views normalised over several axes have
// more than one.  weight, bias: [parts, width], bias not read if RMS; y: [rows, parts, width]
KERNEL void layer_norm_rows_fwd(__global const float *restrict x,
                                __global const float *restrict weight,
                                __global const float *restrict bias, __global float *restrict y,
                                long start, long stride, int width, int parts, long rows,
                                int per_group, float eps)
{
    ROW_REDUCE_LOCALS(tmp, 3);
#if LS == 1
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const float n = (float)width * (float)parts;
    const long row_stride = parts * stride;
    float sum = sum_pieces(x + start + first * row_stride, stride, width, parts);

    for (long row = first; row < end; ++row) {
        __global const float *xr = x + start + row * row_stride;
        __global float *yr = y + row * parts * width;

        // Pass 1, in the previous row's pass 3: the mean, rounded.
        const float mean = RMS ? 0.0f : sum / n;

        // Pass 2: distances from it and their squares.
        const float2 d = row_distances(xr, stride, width, parts, mean);
        const float3 norm = norm_terms(mean, d, n, eps, RMS);

        // Pass 3: normalise.
        sum = 0.0f;
        for (int part = 0; part < parts; ++part) {
            const long at = (long)part * width;
            __global const float *xp = xr + part * stride;
            __global const float *next = row + 1 < end ? xp + row_stride : 0;
            sum += write_piece(xp, weight + at, bias + at, yr + at, next, width, norm);
        }
    }
#else
    FOR_ROWS (row, rows, per_group) {
        const int n = row < rows ? width * parts : 0;
        struct norm_row r = {
            .x = x + start + row * parts * stride, .n = n, .width = width, .stride = stride};
        const float3 norm = compute_norm(&r, eps, tmp);
        __global float *yr = y + row * parts * width;

        FOR_ROW_VECS (k, c, n) {
            const FV v = ROW_CACHED(r.v, k, load_column(&r, c));
            const FV d = ((v - norm.x) - norm.y) * norm.z;
            row_vec_store(d * row_vec_load(weight, c, n, 0.0f) +
                              BIAS(row_vec_load(bias, c, n, 0.0f)),
                          yr, c, n);
        }
    }
#endif
}

// SPDX-License-Identifier: MIT
// GEMM of few rows with an epilogue, B in 8 or 4 bits, CPU variant.  Host side: lib/gemm/gemm_quantised.c
//
//   C = act(A B + bias) * gate + residual        A [m, k], B [n, k] (common/weights.clh), k a multiple of 32
//   With NORM, the rows of A are normalised first, as in gemm_cpu_skinny.cl
//
//   Work      one work-item = `panels_per_item` panels of 16 columns of C, all rows, MAX_ROWS at a time.  1-D grid
//   Memory    reads B once, in order, a panel of it again from a cache for each MAX_ROWS rows; A from the caches.  `sums`: local
//             memory, a float for each block of each row, rows up to a multiple of MAX_ROWS.  With NORM, normalised rows besides
//   Numerics  float, of weights as they are stored.  A block's sum is of weights plus an offset, which `sums` takes away again: its
//             rounding is some four times that of a plain sum.  Blocks are added in order
//
//   Macro     Meaning                Values
//   MAX_ROWS  rows of A at a time    1 | 4 | 8
//   NORM      the rows of A are normalised  0 | NORM_LAYER | NORM_RMS

#include "common/epilogue.clh"
#include "common/weights.clh"

#if !defined MAX_ROWS || !defined NORM
#error "MAX_ROWS: rows of A at a time; NORM: they are normalised"
#endif

#if NORM
#include "common/norm.clh"
#define A_SPACE __local
#define NORM_PARAMS                                                                                \
    , __global const float *restrict norm_weight, __global const float *restrict norm_bias,        \
        float eps, __local float *restrict normalised
#else
#define A_SPACE __global
#define NORM_PARAMS
#endif

// Sums of a row in a block: two for latency, while there are registers.
#define CHAINS (MAX_ROWS < 4 ? 2 : 1)

// What the offsets add to each block's sum of row r, negative.
LOCAL_INLINE void sum_blocks(A_SPACE const float *x, int blocks, int r, int rows,
                             __local float *sums)
{
    for (int b = 0; b < blocks; b++, x += 32) {
        FV sum = VLOAD(x);
#pragma unroll
        for (int c = VW; c < 32; c += VW)
            sum += VLOAD(x + c);
        sums[b * rows + r] = -QUANTISED_OFFSET * horizontal_sum(sum);
    }
}

// A block's 16 columns of MAX_ROWS rows are added to total.  With its loop over vectors unrolled, eight rows took a third longer
// with 8 bits, and one row a tenth.
LOCAL_INLINE void add_block(__global const uchar *pair, int h, A_SPACE const float *const *row,
                            int c0, __local const float *sums, float16 *total)
{
    const float16 d = quantised_scales(pair, h);
    float16 part[MAX_ROWS][CHAINS];

#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
        part[r][0] = part[r][CHAINS - 1] = (float16)(0.0f);
#pragma unroll 1
    for (int v = 0; v < BITS; v++) {
        const uint16 words = quantised_words(pair, h, v);
#pragma unroll
        for (int t = 0; t < WEIGHTS_OF_WORD; t++) {
            const float16 w = QUANTISED_FLOAT(words, t);
#pragma unroll
            for (int r = 0; r < MAX_ROWS; r++)
                part[r][t % CHAINS] += w * row[r][c0 + WEIGHT_COLUMN(v, t)];
        }
    }
#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
        total[r] += ((CHAINS == 2 ? part[r][0] + part[r][1] : part[r][0]) + sums[r]) * d;
}

LOCAL_INLINE void store_row(float16 sum, const struct epilogue *e, __global float *c, int i, int j0,
                            int n)
{
    float waiting[16];

    vstore16(sum, 0, waiting);
    for (int x = 0; x < 16 && j0 + x < n; x += VW) {
        const int left = n - j0 - x;
        store_some(epilogue_some(e, VLOAD(waiting + x), i, j0 + x, left), c + j0 + x, left);
    }
}

KERNEL void gemm_cpu_quantised(int m, int n, int k, int panels_per_item, MATRIX_PARAMS,
                               EPILOGUE_PARAMS, __local float *restrict sums NORM_PARAMS)
{
    const int blocks = k / 32, rows = (m + MAX_ROWS - 1) / MAX_ROWS * MAX_ROWS;
    const int first = (int)get_group_id(0) * panels_per_item;
    const int end = min(first + panels_per_item, (n + 15) / 16);
    const struct epilogue e = EPILOGUE_OF(0);
    __global float *c = C_OF(0);
#if NORM
    const long pitch = k;
    A_SPACE const float *a = normalised;

    for (int r = 0; r < m; r++)
        normalise_row(A_OF(0) + r * lda, k, norm_weight, norm_bias, eps, normalised + r * pitch);
#else
    const long pitch = lda;
    A_SPACE const float *a = A_OF(0);
#endif

    for (int r = 0; r < rows; r++)
        sum_blocks(a + min(r, m - 1) * pitch, blocks, r, rows, sums);
    for (int panel = first; panel < end; panel++)
        for (int i0 = 0; i0 < m; i0 += MAX_ROWS) {
            __global const uchar *pair = b_base + (long)panel * PAIRS(k) * PAIR_BYTES;
            __local const float *block_sums = sums + i0;
            A_SPACE const float *row[MAX_ROWS];
            float16 total[MAX_ROWS];

#pragma unroll
            for (int r = 0; r < MAX_ROWS; r++) {
                row[r] = a + min(i0 + r, m - 1) * pitch;
                total[r] = (float16)(0.0f);
            }
            int block = 0;
            for (; block + 2 <= blocks; block += 2, pair += PAIR_BYTES, block_sums += 2 * rows) {
                add_block(pair, 0, row, block * 32, block_sums, total);
                add_block(pair, 1, row, block * 32 + 32, block_sums + rows, total);
            }
            if (block < blocks)
                add_block(pair, 0, row, block * 32, block_sums, total);
#pragma unroll
            for (int r = 0; r < MAX_ROWS; r++)
                if (i0 + r < m)
                    store_row(total[r], &e, c + (i0 + r) * ldc, i0 + r, panel * 16, n);
        }
}

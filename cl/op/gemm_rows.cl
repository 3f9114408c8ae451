// SPDX-License-Identifier: MIT
// Matrix product of few rows with transposed weights and an epilogue, CPU form.  Host side:
// lib/launch/gemm_own.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] with m <= MOST_ROWS, B
//   [n, k]
//
//   Work      one work-item = VW columns of C, all rows.  ROWS x OUT products of a row of A with
//   one of B run side by
//             side, ROWS = VW / OUT; 1-D grid: columns fastest, then batch entries
//   Memory    reads each row of B once from memory, once per ROWS rows of A from the first-level
//   cache: nothing is
//             packed, which would take as long as the product
//   Numerics  float; VW chains of multiply-adds for each element, summed by a tree
//
//   Macro      Meaning                                              Values
//   LS         work-items in a group                                1
//   VW         vector width                                         4 | 8 | 16
//   OUT        columns whose products run side by side              1 .. VW, a power of two
//   MOST_ROWS  most rows of A                                       a multiple of VW / OUT
//   TAIL       k is no multiple of VW                               0 | 1
//   ACT        activation of the epilogue                           0 .. 5

#include "common/lane_sums.clh"

#ifndef OUT
#error "OUT: columns whose products run side by side"
#endif
#ifndef MOST_ROWS
#error "MOST_ROWS: most rows of A"
#endif
#ifndef TAIL
#error "TAIL: k is no multiple of VW"
#endif

#include "common/epilogue.clh"

#define ROWS (VW / OUT)

// Products of rows 0 .. ROWS - 1 of a with rows 0 .. OUT - 1 of b, lane r OUT + o for rows r and o;
// missing rows repeat the last one.
static inline FV products(__global const float *a, long lda, int rows, __global const float *b,
                          long ldb, int columns, int k)
{
    __global const float *from[ROWS], *weight[OUT];
    FV sum[VW];
    int c = 0;

#pragma unroll
    for (int r = 0; r < ROWS; r++)
        from[r] = a + min(r, rows - 1) * lda;
#pragma unroll
    for (int o = 0; o < OUT; o++)
        weight[o] = b + min(o, columns - 1) * ldb;
#pragma unroll
    for (int i = 0; i < VW; i++)
        sum[i] = (FV)(0.0f);

    for (; c + VW <= k; c += VW) {
        FV w[OUT];
#pragma unroll
        for (int o = 0; o < OUT; o++)
            w[o] = VLOAD(weight[o] + c);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const FV x = VLOAD(from[r] + c);
#pragma unroll
            for (int o = 0; o < OUT; o++)
                sum[r * OUT + o] += x * w[o];
        }
    }
#if TAIL
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const FV x = load_part(from[r] + c, k - c, 0.0f);
#pragma unroll
        for (int o = 0; o < OUT; o++)
            sum[r * OUT + o] += x * load_part(weight[o] + c, k - c, 0.0f);
    }
#endif
    return lane_sums(sum);
}

KERNEL void gemm_rows(int m, int n, int k, int groups_n, __global const float *restrict a_base,
                      long a_start, long lda, long a_batch, __global const float *restrict b_base,
                      long b_start, long ldb, long b_batch, __global float *restrict c_base,
                      long c_start, long ldc, long c_batch, EPILOGUE_PARAMS)
{
    const int entry = (int)get_group_id(0) / groups_n;
    const int j0 = (int)get_group_id(0) % groups_n * VW;
    const int columns = min(VW, n - j0);
    __global const float *a = a_base + a_start + entry * a_batch;
    __global const float *b = b_base + b_start + entry * b_batch + j0 * ldb;
    __global float *c = c_base + c_start + entry * c_batch + j0;
    const struct epilogue e = EPILOGUE_OF(entry);
    float tile[MOST_ROWS * VW];

    for (int j = 0; j < columns; j += OUT)
        for (int i = 0; i < m; i += ROWS) {
            float block[VW];
            VSTORE(products(a + i * lda, lda, m - i, b + j * ldb, ldb, columns - j, k), block);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int o = 0; o < OUT; o++)
                    tile[(i + r) * VW + j + o] = block[r * OUT + o];
        }
    for (int i = 0; i < m; i++)
        if (columns == VW)
            VSTORE(epilogue_v(&e, VLOAD(tile + i * VW), i, j0), c + i * ldc);
        else
            for (int x = 0; x < columns; x++)
                c[i * ldc + x] = epilogue_f(&e, tile[i * VW + x], i, j0 + x);
}

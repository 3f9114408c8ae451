// SPDX-License-Identifier: MIT
// Matrix product of few rows with transposed weights and an epilogue, CPU form.  Host side:
// lib/launch/gemm_own.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] with m <= MOST_ROWS, B
//   [n, k].  With NORM, the rows of A are normalised first:
//   (a - mean) / sqrt(variance + eps) * norm_weight + norm_bias
//
//   Work      one work-item = `span` columns of C, VW at a time, all rows.  ROWS x OUT products of
//             a row of A with one of B run side by side, ROWS = VW / OUT; 1-D grid: columns
//             fastest, then batch entries.  With NORM, each work-item normalises all rows for
//             itself: less than a launch takes, and some 1/20 of its products
//   Memory    reads each row of B once from memory, once per ROWS rows of A from the first-level
//             cache: nothing is packed, which would take as long as the product.  Asks for the rows
//             of B `ahead` of the present ones.  With NORM, normalised rows wait in local memory,
//             zeros behind them up to a whole vector
//   Numerics  float; VW chains of multiply-adds for each element, summed by a tree; normalised as
//             by layer_norm.cl
//
//   Macro      Meaning                                              Values
//   LS         work-items in a group                                1
//   VW         vector width                                         4 | 8 | 16
//   OUT        columns whose products run side by side              1 .. VW, a power of two
//   MOST_ROWS  most rows of A                                       a multiple of VW / OUT
//   TAIL       k is no multiple of VW                               0 | 1
//   NORM       the rows of A are normalised                         0 | 1
//   AHEAD      as in ahead.clh                                      0 | 1
//   ACT        activation of the epilogue                           0 .. 5

#ifndef NORM
#error "NORM: the rows of A are normalised"
#endif

#include "common/epilogue.clh"

#if NORM
#define A_SPACE              __local
#define LOAD_PART_OF_A(p, n) VLOAD(p)
#else
#define A_SPACE              __global
#define LOAD_PART_OF_A(p, n) load_part(p, n, 0.0f)
#endif
#include "common/few_rows.clh"

#if NORM
#include "common/norm.clh"

// One row, behind it zeros up to a multiple of VW.
LOCAL_INLINE void normalise(__global const float *x, int k, __global const float *weight,
                            __global const float *bias, float eps, __local float *y)
{
    const float n = (float)k;
    const float mean = item_sum(x, k) / n;
    const float2 d = row_distances(x, 0, k, 1, mean);
    const float rest = d.x / n, scale = norm_scale(d, n, eps);
    int c = 0;

    for (; c + VW <= k; c += VW)
        VSTORE(((VLOAD(x + c) - mean) - rest) * scale * VLOAD(weight + c) + VLOAD(bias + c), y + c);
#if TAIL
    VSTORE(((load_part(x + c, k - c, 0.0f) - mean) - rest) * scale *
                   load_part(weight + c, k - c, 0.0f) +
               load_part(bias + c, k - c, 0.0f),
           y + c);
#endif
}
#endif

// The columns j0 .. j0 + columns - 1 of C, VW at most.
LOCAL_INLINE void vector_of_columns(A_SPACE const float *a, long lda, int m,
                                    __global const float *b, long ldb, long ahead, int k, int j0,
                                    int columns, const struct epilogue *e, __global float *c,
                                    long ldc)
{
    float tile[MOST_ROWS * VW];

    tile_of_products(a, lda, m, b, ldb, ahead, k, columns, tile);
    for (int i = 0; i < m; i++)
        if (columns == VW)
            VSTORE(epilogue_v(e, VLOAD(tile + i * VW), i, j0), c + i * ldc);
        else
            for (int x = 0; x < columns; x++)
                c[i * ldc + x] = epilogue_f(e, tile[i * VW + x], i, j0 + x);
}

#if NORM
#define NORM_PARAMS                                                                                \
    , __global const float *restrict norm_weight, __global const float *restrict norm_bias,        \
        float eps, __local float *restrict rows
#else
#define NORM_PARAMS
#endif

KERNEL void gemm_rows(int m, int n, int k, int groups_n, int span, int ahead,
                      __global const float *restrict a_base, long a_start, long lda, long a_batch,
                      __global const float *restrict b_base, long b_start, long ldb, long b_batch,
                      __global float *restrict c_base, long c_start, long ldc, long c_batch,
                      EPILOGUE_PARAMS NORM_PARAMS)
{
    const int entry = (int)get_group_id(0) / groups_n;
    const int first = (int)get_group_id(0) % groups_n * span;
    const int end = min(first + span, n);
    __global const float *from = a_base + a_start + entry * a_batch;
    __global const float *b = b_base + b_start + entry * b_batch;
    __global float *c = c_base + c_start + entry * c_batch;
    const struct epilogue e = EPILOGUE_OF(entry);

#if NORM
    const int pitch = (k + VW - 1) / VW * VW;
    for (int i = 0; i < m; i++)
        normalise(from + i * lda, k, norm_weight, norm_bias, eps, rows + i * pitch);
    A_SPACE const float *a = rows;
#else
    const long pitch = lda;
    A_SPACE const float *a = from;
#endif
    for (int j0 = first; j0 < end; j0 += VW)
        vector_of_columns(a, pitch, m, b + j0 * ldb, ldb, ahead * ldb, k, j0, min(VW, end - j0), &e,
                          c + j0, ldc);
}

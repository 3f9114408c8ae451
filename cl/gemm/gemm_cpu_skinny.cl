// SPDX-License-Identifier: MIT
// Skinny GEMM (small M) with transposed weights and an epilogue, CPU variant.  Host side: lib/gemm/gemm_skinny.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] with m <= MAX_ROWS, B [n, k]
//   With NORM, the rows of A are normalised first: (a - mean) / sqrt(variance + eps) * norm_weight + norm_bias, or by RMS
//   normalisation, without mean and bias.  If n_partials > 0, partials_bias and the partial sums, [n_partials, m, k],
//   are added to A before that, and k is a multiple of VW
//
//   Work      one work-item = `cols_per_item` columns of C, VW at a time, all rows.  A pass computes ROWS_PER_PASS x
//             COLS_PER_PASS dot products of a row of A and a row of B, ROWS_PER_PASS = VW / COLS_PER_PASS.  1-D grid:
//             columns fastest, then batch entries.  With NORM, each work-item normalises all rows: this takes less time
//             than a launch, and about 1/20 of the FMAs of 16 vectors of columns; work-items for many cores have fewer
//   Memory    reads each row of B once from memory, and once per ROWS_PER_PASS rows of A from the first-level cache.
//             Nothing is packed: packing would take as long as the GEMM.  Prefetches the rows of B `prefetch_rows` after
//             the current ones.  With NORM, normalised rows are in local memory, padded to whole vectors
//   Numerics  float, of weights as they are stored; VW chains of FMAs for each element, summed by a tree; layer norm as in layer_norm.cl
//
//   Macro  Meaning                       Values
//   NORM   the rows of A are normalised  0 | NORM_LAYER | NORM_RMS

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
#include "common/skinny_gemm.clh"

#if NORM
#include "common/norm.clh"
#endif

// The columns j0 .. j0 + columns - 1 of C, VW at most.
LOCAL_INLINE void store_columns(A_SPACE const float *a, long lda, int m, __global const WEIGHT *b,
                                long ldb, long prefetch_distance, int k, int j0, int columns,
                                const struct epilogue *e, __global float *c, long ldc)
{
    float tile[MAX_ROWS * VW];

    dot_product_tile(a, lda, m, b, ldb, prefetch_distance, k, columns, tile);
    for (int i = 0; i < m; i++)
        store_some(epilogue_some(e, VLOAD(tile + i * VW), i, j0, columns), c + i * ldc, columns);
}

#if NORM
#define NORM_PARAMS                                                                                \
    , __global const float *restrict norm_weight, __global const float *restrict norm_bias,        \
        float eps, int n_partials, int has_partials_bias, __global const float *restrict partials, \
        __global const float *restrict partials_bias, __local float *restrict rows
#else
#define NORM_PARAMS
#endif

KERNEL void gemm_cpu_skinny(int m, int n, int k, int groups_n, int cols_per_item, int prefetch_rows,
                            MATRIX_PARAMS, EPILOGUE_PARAMS NORM_PARAMS)
{
    m = ROW_COUNT(m);
    const int entry = (int)get_group_id(0) / groups_n;
    const int first = (int)get_group_id(0) % groups_n * cols_per_item;
    const int end = min(first + cols_per_item, n);
    __global const float *from = A_OF(entry);
    __global const WEIGHT *b = B_OF(entry);
    __global float *c = C_OF(entry);
    const struct epilogue e = EPILOGUE_OF(entry);

#if NORM
    const int pitch = (k + VW - 1) / VW * VW;
    for (int i = 0; i < m; i++) {
        for (int c = 0; c < k; c += VW) {
            FV v = load_some(from + i * lda + c, k - c, 0.0f);
            if (n_partials > 0)
                v += sum_partials(partials, n_partials, (long)m * k, partials_bias,
                                  has_partials_bias, (long)i * k + c, c);
            VSTORE(v, rows + i * pitch + c);
        }
        normalise_in_place(rows + i * pitch, k, norm_weight, norm_bias, eps);
    }
    A_SPACE const float *a = rows;
#else
    const long pitch = lda;
    A_SPACE const float *a = from;
#endif
    for (int j0 = first; j0 < end; j0 += VW)
        store_columns(a, pitch, m, b + j0 * ldb, ldb, prefetch_rows * ldb, k, j0, min(VW, end - j0),
                      &e, c + j0, ldc);
}

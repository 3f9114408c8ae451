// SPDX-License-Identifier: MIT
// Skinny GEMM (small M) with weights that are not transposed and an epilogue, CPU variant.  Host side:
// lib/gemm/gemm_skinny.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] with m <= MAX_ROWS, B [k, n]
//
//   Work      one work-item = `cols_per_item` columns of C, at most MAX_PANELS panels of NV VW, all rows.  CHUNK rows
//             of B at a time: each panel and ROWS rows of A take NV ROWS FMAs for a row of B.  1-D grid: columns
//             fastest, then batch entries
//   Memory    reads B once from memory, and once per ROWS rows of A from the first-level cache.  Nothing is packed:
//             packing would take as long as the GEMM.  Prefetches the next chunk of B, whose rows are too far apart
//             for the hardware prefetcher
//   Numerics  float, of weights as they are stored; one chain of FMAs over k for each element
//
//   Macro     Meaning                        Values
//   NV        vectors of columns of a panel  1 | 2
//   MAX_ROWS  maximum rows of A              8 | 16

#include "common/epilogue.clh"
#include "common/prefetch.clh"
#include "common/weights.clh"

#if !defined NV || !defined MAX_ROWS
#error "NV and MAX_ROWS must be defined"
#endif

#define ROWS       8 // rows of A whose sums are in registers: SKINNY_NN_ROWS of the host side
#define MAX_PANELS (16 / NV) // of a work-item: SKINNY_NN_MAX_VECTORS
#define CHUNK      64        // rows of B, whose part of A is in the first-level cache

// Rows of B times elements of ROWS rows of A, of which m are there, added to the sums: n of them, `left` columns.
static inline void add_products(__global const float *a, long lda, int m, __global const WEIGHT *b,
                                long ldb, int n, int left, FV *sums)
{
    long row[ROWS]; // no pointers: Mesa's llvmpipe (22.3) loses those in private arrays
    FV sum[ROWS][NV];

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        row[r] = min(r, m - 1) * lda;
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[r][v] = sums[r * NV + v];
    }
    for (int i = 0; i < n; i++, b += ldb)
#pragma unroll
        for (int v = 0; v < NV; v++) {
            const int width = left - v * VW;
            prefetch_l2((__global const float *)(b + CHUNK * ldb + v * VW));
            const FV w = width >= VW ? load_weights(b + v * VW)
                         : width > 0 ? load_weights_part(b + v * VW, width)
                                     : (FV)(0.0f);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sum[r][v] += (FV)(a[row[r] + i]) * w;
        }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sums[r * NV + v] = sum[r][v];
}

KERNEL void gemm_cpu_skinny_nn(int m, int n, int k, int groups_n, int cols_per_item, MATRIX_PARAMS,
                               EPILOGUE_PARAMS)
{
    const int entry = (int)get_group_id(0) / groups_n;
    const int first = (int)get_group_id(0) % groups_n * cols_per_item;
    const int columns = min(cols_per_item, n - first);
    const int n_panels = (columns + NV * VW - 1) / (NV * VW);
    __global const float *a = A_OF(entry);
    __global const WEIGHT *b = B_OF(entry) + first;
    __global float *c = C_OF(entry) + first;
    const struct epilogue e = EPILOGUE_OF(entry);
    FV sums[MAX_PANELS * MAX_ROWS * NV];

    for (int i = 0; i < n_panels * MAX_ROWS * NV; i++)
        sums[i] = (FV)(0.0f);
    for (int k0 = 0; k0 < k; k0 += CHUNK, b += CHUNK * ldb) {
        const int n_rows = min(CHUNK, k - k0);
        for (int p = 0; p < n_panels; p++) {
            const int j = p * NV * VW, left = columns - j;
            for (int r = 0; r < MAX_ROWS; r += ROWS) {
                FV *to = sums + (p * MAX_ROWS + r) * NV;
                if (left >= NV * VW) // known to be whole vectors
                    add_products(a + r * lda + k0, lda, m - r, b + j, ldb, n_rows, NV * VW, to);
                else
                    add_products(a + r * lda + k0, lda, m - r, b + j, ldb, n_rows, left, to);
            }
        }
    }
    for (int j = 0; j < columns; j += VW) {
        const int width = min(VW, columns - j), p = j / (NV * VW), v = j / VW % NV;
        for (int r = 0; r < m; r++) {
            const FV sum = sums[(p * MAX_ROWS + r) * NV + v];
            store_some(epilogue_some(&e, sum, r, first + j, width), c + r * ldc + j, width);
        }
    }
}

// SPDX-License-Identifier: MIT
// GEMM of at most four rows with an epilogue, B not transposed: B, the weights, is read once.  Host side: lib/gemm/gemv.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k], B [k, n]
//
//   Work      one work-item = NV VW columns.  1-D grid: columns fastest, then batch entries
//   Memory    reads B once, A once per work-item; writes C once
//   Numerics  float; one chain of FMAs over k
//
//   Macro     Meaning                            Values
//   NV        vectors of columns of a work-item  1 .. 4
//   MAX_ROWS  maximum rows of A                  1 | 4

#include "common/epilogue.clh"
#include "common/weights.clh"

#if !defined NV || !defined MAX_ROWS
#error "NV and MAX_ROWS must be defined"
#endif

KERNEL void gemv_axpy(int m, int n, int k, int groups_n, MATRIX_PARAMS, EPILOGUE_PARAMS)
{
    const int entry = (int)get_group_id(0) / groups_n;
    const int j0 = ((int)get_group_id(0) % groups_n * LS + (int)get_local_id(0)) * (NV * VW);
    __global const float *a = A_OF(entry);
    __global const WEIGHT *b = B_OF(entry) + j0;
    __global float *c = C_OF(entry);
    const struct epilogue e = EPILOGUE_OF(entry);
    const int columns = min(NV * VW, n - j0);
    FV sum[MAX_ROWS][NV];

#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[r][v] = (FV)(0.0f);

    if (columns == NV * VW) {
        for (int i = 0; i < k; i++, b += ldb)
#pragma unroll
            for (int v = 0; v < NV; v++) {
                const FV w = load_weights(b + v * VW);
#pragma unroll
                for (int r = 0; r < MAX_ROWS; r++)
                    sum[r][v] += (FV)(a[min(r, m - 1) * lda + i]) * w;
            }
#pragma unroll
        for (int r = 0; r < MAX_ROWS; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                if (r < m) {
                    const int j = j0 + v * VW;
                    VSTORE(epilogue_v(&e, sum[r][v], r, j), c + r * ldc + j);
                }
        return;
    }

    // The last columns, vector by vector and row by row.
    for (int x = 0; x < columns; x += VW) {
        const int width = min(VW, columns - x);
        for (int r = 0; r < m; r++) {
            float one[VW];
            FV part = (FV)(0.0f);
            for (int i = 0; i < k; i++) {
                __global const WEIGHT *from = b + i * ldb + x;
                part += (FV)(a[r * lda + i]) *
                        (width == VW ? load_weights(from) : load_weights_part(from, width));
            }
            VSTORE(part, one);
            for (int s = 0; s < width; s++)
                c[r * ldc + j0 + x + s] = epilogue_f(&e, one[s], r, j0 + x + s);
        }
    }
}

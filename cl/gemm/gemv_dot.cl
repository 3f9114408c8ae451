// SPDX-License-Identifier: MIT
// GEMM of at most four rows with an epilogue, B transposed, on GPUs: B, the weights, is read once.  Host side: lib/gemm/gemv.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k], B [n, k]; NORM and MERGE: gemv.clh, PRODUCTS: products.clh
//
//   Work      one work-group = COLS_PER_GROUP elements of each row of C; its work-items divide the sums over k.  1-D grid:
//             columns fastest, then batch entries or products
//   Memory    reads B once, A or the parts of it once per work-group; writes C once; LS floats of local memory, PART_FLOATS
//             for each part besides
//   Numerics  float; LS VW chains of FMAs, summed by a tree; layer norm as in layer_norm.cl
//
//   Macro     Meaning            Values
//   VW        vector width       1 | 4
//   MAX_ROWS  maximum rows of A  1 | 4

#define COLS_PER_GROUP 4
#include "gemm/gemv.clh"

KERNEL void gemv_dot(GEMV_PARAMS)
{
    GROUP_SPACE(tmp);
    const int group = (int)get_group_id(0), j0 = COLUMN_OF(group, COLS_PER_GROUP);
    const struct operands x = OPERANDS_OF(ENTRY_OF(group, COLS_PER_GROUP));
    FV sum[MAX_ROWS][COLS_PER_GROUP];

    sum_products(x.a, lda, m, x.b, x.b_row, j0, x.n, k, sum TMP_ARG NORM_ARGS MERGE_ARGS);
#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
#pragma unroll
        for (int o = 0; o < COLS_PER_GROUP; o++) {
            const float dot = GROUP_SUM(horizontal_sum(sum[r][o]), tmp);
            if (get_local_id(0) == 0 && r < m && j0 + o < x.n)
                x.c[r * x.c_row + j0 + o] = epilogue_f(&x.e, dot, r, j0 + o);
        }
}

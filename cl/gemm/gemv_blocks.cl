// SPDX-License-Identifier: MIT
// GEMM of 5 to 32 rows with an epilogue, B transposed, on GPUs, in blocks of rows, each of which reads B again.
// Host side: lib/gemm/gemv.c
//
//   C = act(A B + bias) * gate + residual        A [m, k], B [n, k]; NORM and MERGE: gemv.clh, PRODUCTS: products.clh
//
//   Work      one work-group = COLS_PER_GROUP elements of each of MAX_ROWS rows of C; its work-items divide the sums over k.
//             1-D grid: blocks of rows fastest, then columns, then products
//   Memory    reads B once for each block of rows, A or the parts of it once per work-group; writes C once; SUMS_AT_ONCE (LS + 1)
//             floats of local memory, with NORM LS and with MERGE PART_FLOATS for each part besides
//   Numerics  float; LS chains of FMAs, added in order by 32 and then those sums; layer norm as in layer_norm.cl
//
//   Macro  Meaning                                                       Values
//   VW     vector width: the sums of more would take too many registers  1

#if VW != 1
#error "VW: 1, as vectors of sums would take too many registers"
#endif

#define MAX_ROWS       8
#define COLS_PER_GROUP 8
#include "gemm/gemv.clh"

#define ROWS_AT_ONCE 4
#define SUMS_AT_ONCE (ROWS_AT_ONCE * COLS_PER_GROUP)
#define PIECE        (LS > SUMS_AT_ONCE ? SUMS_AT_ONCE : 1)

// partial: [SUMS_AT_ONCE][LS + 1], what each work-item has of each sum.  Element PIECE i of a row becomes the sum of
// PIECE elements.
LOCAL_INLINE void sum_pieces(__local float *partial)
{
    const int id = (int)get_local_id(0);

    if (PIECE > 1) {
        __local float *mine = partial + id % SUMS_AT_ONCE * (LS + 1) + id / SUMS_AT_ONCE * PIECE;
        float total = 0.0f;
        for (int i = 0; i < PIECE; i++)
            total += mine[i];
        mine[0] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

KERNEL void gemv_blocks(GEMV_PARAMS)
{
#if NORM
    GROUP_SPACE(tmp);
#endif
    __local float partial[SUMS_AT_ONCE * (LS + 1)];
    const int n_blocks = (m + MAX_ROWS - 1) / MAX_ROWS, group = (int)get_group_id(0) / n_blocks;
    const int i0 = (int)get_group_id(0) % n_blocks * MAX_ROWS, rows = m - i0;
    const int j0 = COLUMN_OF(group, COLS_PER_GROUP);
    const struct operands x = OPERANDS_OF(ENTRY_OF(group, COLS_PER_GROUP));
    float sum[MAX_ROWS][COLS_PER_GROUP];

    sum_products(x.a + i0 * A_ROW, lda, rows, x.b, x.b_row, j0, x.n, k,
                 sum TMP_ARG NORM_ARGS MERGE_ARGS);
#pragma unroll
    for (int first = 0; first < MAX_ROWS; first += ROWS_AT_ONCE) {
#pragma unroll
        for (int s = 0; s < SUMS_AT_ONCE; s++)
            partial[s * (LS + 1) + (int)get_local_id(0)] =
                sum[first + s / COLS_PER_GROUP][s % COLS_PER_GROUP];
        barrier(CLK_LOCAL_MEM_FENCE);
        sum_pieces(partial);
        for (int s = (int)get_local_id(0); s < SUMS_AT_ONCE; s += LS) {
            const int r = first + s / COLS_PER_GROUP, j = j0 + s % COLS_PER_GROUP;
            float dot = 0.0f;
            for (int i = 0; i < LS; i += PIECE)
                dot += partial[s * (LS + 1) + i];
            if (r < rows && j < x.n)
                x.c[(i0 + r) * x.c_row + j] = epilogue_f(&x.e, dot, i0 + r, j);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// SPDX-License-Identifier: MIT
// Rows of a table chosen by tokens, or given rows, and addition of rows of a position table: one kernel, since a CPU's compiler
// needs as long for each.  Host side: lib/op/embedding/embedding.c, positions.c
//
//   Work      LANES_PER_ROW work-items share a row; CPU variant: one walks `per_group` rows
//   Memory    reads the chosen rows and the position table's, and writes y once
//   Numerics  one rounding for each of product and sum, or one for both; a token outside the table reads its
//             nearest row, never beyond (the host refuses such tokens where it sees them)

#include "common/row_tiling.clh"
#include "common/weights.clh"

#if VW == 1
#define to_vector(v) (v)[0]
#else
#define to_vector(v) CAT(vload, VW)(0, v)
#endif

// Loads the vector at column c of a row, `at` elements from `weight` on; 0 from column n on.
static inline FV load_row(__global const WEIGHT *weight, long at, int row, int width, int c, int n)
{
#if WTYPE >= STORED_Q8
    float v[VW];

#pragma unroll
    for (int i = 0; i < VW; ++i)
        v[i] = c + i < n ? quantised_one(weight, width, row, c + i) : 0.0f;
    return to_vector(v);
#else
    __global const WEIGHT *w = weight + at;
    return c + VW <= n ? load_weights(w + c) : load_weights_part(w + c, n - c);
#endif
}

// With has_tokens, row r of y is the scaled row of `weight`, [n_tokens, width], that the token of r chooses; there are `rows`
// tokens from `start` on, in lines of `line` consecutive ones, `stride` apart.  Else it is row r of `weight`, from `start` on,
// rows `stride` apart.  To it is added, with has_table, the row of `table`, [length, width], of position r / inner % length,
// or if has_position, of position[r position_stride] clamped to [0, length).
KERNEL void embedding_rows_fwd(__global const int *restrict tokens,
                               __global const WEIGHT *restrict weight,
                               __global const float *restrict table,
                               __global const int *restrict position, __global float *restrict y,
                               int has_tokens, long start, long line, long stride, int n_tokens,
                               float scale, int has_table, int has_position, int position_stride,
                               long inner, long length, int width, long rows, int per_group)
{
    FOR_ROWS (row, rows, per_group) {
        const long last = min(row, rows - 1);
        const long line_at = line >= rows ? last : last / line * stride + last % line;
        const int token = has_tokens ? clamp(tokens[start + line_at], 0, n_tokens - 1) : 0;
        const long from = has_tokens ? (long)token * width : start + last * stride;
        long p = 0;
        if (has_table)
            p = has_position ? clamp((long)position[last * position_stride], 0l, length - 1)
                             : row / inner % length;
        __global const float *added = table + p * width;

        MAP_ROW_VECS(c, n, row < rows ? width : 0, {
            FV v = load_row(weight, from, token, width, c, n) * scale;
            if (has_table)
                v += row_vec_load(added, c, n, 0.0f);
            row_vec_store(v, y + row * width, c, n);
        });
    }
}

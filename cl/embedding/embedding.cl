// SPDX-License-Identifier: MIT
// Rows of a table chosen by tokens, and addition of rows of a position table.  Host side:
// lib/op/embedding/embedding.c, positions.c
//
//   Work      LANES_PER_ROW work-items share a row; CPU variant: one walks `per_group` rows
//   Memory    reads the chosen rows, and x to add them to, and writes y once
//   Numerics  one rounding; a token outside the table reads its nearest row, never beyond (the host
//             refuses such tokens where it sees them)

#include "common/row_tiling.clh"
#include "common/weights.clh"

#if VW == 1
#define to_vector(v) (v)[0]
#else
#define to_vector(v) CAT(vload, VW)(0, v)
#endif

// Loads the vector at column c of a row, 0 from column n on.
static inline FV load_row(__global const WEIGHT *weight, int row, int width, int c, int n)
{
#if WTYPE >= STORED_Q8
    float v[VW];

#pragma unroll
    for (int i = 0; i < VW; ++i)
        v[i] = c + i < n ? quantised_one(weight, width, row, c + i) : 0.0f;
    return to_vector(v);
#else
    __global const WEIGHT *w = weight + (long)row * width;
    return c + VW <= n ? load_weights(w + c) : load_weights_part(w + c, n - c);
#endif
}

// tokens: `rows` of them from `start` on, in lines of `line` consecutive ones, `stride` apart;
// weight: [n_tokens, width]; y: [rows, width]
KERNEL void embedding_rows_fwd(__global const int *restrict tokens, long start, long line,
                               long stride, __global const WEIGHT *restrict weight,
                               __global float *restrict y, int n_tokens, int width, long rows,
                               int per_group, float scale)
{
    FOR_ROWS (row, rows, per_group) {
        const long at = start + (line >= rows ? row : row / line * stride + row % line);
        const int token = row < rows ? clamp(tokens[at], 0, n_tokens - 1) : 0;

        MAP_ROW_VECS(
            c, n, row < rows ? width : 0,
            row_vec_store(load_row(weight, token, width, c, n) * scale, y + row * width, c, n));
    }
}

static inline void add_row(__global const float *restrict x, __global const float *restrict p,
                           __global float *restrict y, int width)
{
    MAP_ROW_VECS(c, n, width,
                 row_vec_store(row_vec_load(x, c, n, 0.0f) + row_vec_load(p, c, n, 0.0f), y, c, n));
}

// Row r of x has position r / inner % length, or if has_position, position[r position_stride] clamped to
// [0, length); rows of x are `stride` apart.
KERNEL void embedding_positions_fwd(__global const float *restrict x,
                                    __global const float *restrict table,
                                    __global const int *restrict position,
                                    __global float *restrict y, long start, long stride, int width,
                                    long rows, int per_group, int has_position, int position_stride,
                                    long inner, long length)
{
    FOR_ROWS (row, rows, per_group) {
        const long p = min(row, rows - 1) * position_stride;
        const long at =
            has_position ? clamp((long)position[p], 0l, length - 1) : row / inner % length;
        add_row(x + start + row * stride, table + at * width, y + row * width,
                row < rows ? width : 0);
    }
}

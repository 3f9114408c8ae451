// SPDX-License-Identifier: MIT
// Rows of a table, chosen by tokens.  Host side: lib/op/embedding/embedding.c
//
//   Work      LANES_PER_ROW work-items share a token's row; CPU variant: one walks `per_group` rows
//   Memory    reads the chosen rows, writes as much
//   Numerics  one rounding; a token outside the table reads its nearest row, never beyond (the host
//             refuses such tokens where it sees them)

#include "common/row_tiling.clh"
#include "common/weights.clh"

// The part of a vector that lies below n columns.
static inline FV load_row(__global const WEIGHT *w, int c, int n)
{
    return c + VW <= n ? load_weights(w + c) : load_weights_part(w + c, n - c);
}

// tokens: `rows` of them, from `start` on, `line` beside each other and `stride` to the next ones;
// weight: [n_tokens, width]; y: [rows, width]
KERNEL void embedding_rows_fwd(__global const int *restrict tokens, long start, long line,
                               long stride, __global const WEIGHT *restrict weight,
                               __global float *restrict y, int n_tokens, int width, long rows,
                               int per_group, float scale)
{
    FOR_ROWS (row, rows, per_group) {
        const long at = start + (line >= rows ? row : row / line * stride + row % line);
        const int token = row < rows ? clamp(tokens[at], 0, n_tokens - 1) : 0;
        __global const WEIGHT *w = weight + (long)token * width;

        MAP_ROW_VECS(c, n, row < rows ? width : 0,
                     row_vec_store(load_row(w, c, n) * scale, y + row * width, c, n));
    }
}

// SPDX-License-Identifier: MIT
// The gradient of cross entropy.  Host side: lib/op/train/cross_entropy_bwd.c
//
//   Work      rows: LANES_PER_ROW work-items share a row, LS / LANES_PER_ROW rows a work-group; CPU variant: one work-item
//             walks `per_group` rows; count: one work-group
//   Memory    reads the logits once and writes as much; rows that are not held are read twice.  CPU
//             variant: three times, all but the first from cache
//   Numerics  exp(x - max) / sum

#include "common/online_softmax.clh"

// count[0]: how many of the rows are not padding.  Exact below 2^24 rows in a work-item.
KERNEL void cross_entropy_bwd_count(__global const int *restrict targets,
                                    __global float *restrict count, long rows, int pad, int has_pad)
{
    GROUP_SPACE(tmp);
    float n = 0.0f;
    for (long row = (long)get_local_id(0); row < rows; row += LS)
        n += has_pad && targets[row] == pad ? 0.0f : 1.0f;
    const float all = GROUP_SUM(n, tmp);
    if (get_local_id(0) == 0)
        count[0] = all;
}

// logits, dx: [rows, width]; dy: [rows] when `each`, else [1]; count: read when `mean`.  A target
// outside the row counts as its nearest column, as in the forward pass; so do keep and share.
KERNEL void
cross_entropy_bwd_rows(__global const float *restrict logits, __global const int *restrict targets,
                       __global const float *restrict dy, __global const float *restrict count,
                       __global float *restrict dx, int width, long rows, int per_group, int pad,
                       int has_pad, int each, int mean, float keep, float share)
{
    ROW_REDUCE_LOCALS(tmp, 2);

    FOR_ROWS (row, rows, per_group) {
        const int n = row < rows ? width : 0;
        const int chosen = n ? targets[row] : 0;
        const int is_pad = has_pad && chosen == pad, target = clamp(chosen, 0, width - 1);
        const float up = is_pad || n == 0 ? 0.0f : dy[each ? row : 0];
        const float scale = mean && !is_pad ? up / count[0] : up;
        struct softmax_row r = {.x = logits + row * width, .n = n};

        softmax_row_reduce(&r, -INFINITY, 0, tmp);
        const float factor = 1.0f / r.sum;
        FOR_ROW_VECS (k, c, n) {
            const FV p = softmax_row_at(&r, k, c) * factor;
            const FV d = (LANES == (IV)(target - c) ? p - keep : p) - share;
            row_vec_store(is_pad ? (FV)(0.0f) : d * scale, dx + row * width, c, n);
        }
    }
}

// SPDX-License-Identifier: MIT
// Cross entropy of logits with target classes, and its gradient.  Host side: lib/op/train/cross_entropy.c,
// cross_entropy_bwd.c
//
//   Work      rows: LANES_PER_ROW work-items share a row, LS / LANES_PER_ROW rows a work-group; CPU variant: one work-item
//             walks `per_group` rows; block: a work-group sums the losses of `block` rows; total: one work-group
//             sums the blocks; count: one work-group
//   Memory    reads the logits once; CPU variant: twice, the second time from cache; once more with label
//             smoothing.  Gradient: also writes dx; reads rows that are not cached twice, in the CPU variant
//             three times
//   Numerics  log sum exp(x - max) + (max - x[target]), the difference first; label smoothing adds the mean
//             of max - x, all terms of one sign; sums are trees over row numbers, without atomics, so every
//             run gives the same bits.  Gradient: exp(x - max) / sum

#include "common/online_softmax.clh"

// logits: rows of `width`, `stride` apart; targets, loss: [rows].  If has_pad, a target equal to `pad` gives 0;
// targets are clamped to the row.  Label smoothing gives the target the weight `keep`, 1 without, and every
// class the weight `share`, 0 without.
KERNEL void cross_entropy_rows_fwd(__global const float *restrict logits,
                                   __global const int *restrict targets,
                                   __global float *restrict loss, long start, long stride,
                                   int width, long rows, int per_group, int pad, int has_pad,
                                   float keep, float share)
{
    ROW_REDUCE_LOCALS(tmp, 3);

    FOR_ROWS (row, rows, per_group) {
        const int target = row < rows ? targets[row] : 0;
        const int is_pad = has_pad && target == pad;
        // Padding and rows beyond have no columns: they only take part in the barriers.
        struct softmax_row r = {.x = logits + start + row * stride,
                                .n = row < rows && !is_pad ? width : 0};

        softmax_row_reduce(&r, -INFINITY, 0, tmp);
        float below = 0.0f; // share times the sum of max - x
        if (share != 0.0f) {
            FV below_v = (FV)(0.0f);
            FOR_ROW_VECS (k, c, r.n)
                below_v += r.row_max - row_vec_load(r.x, c, r.n, r.row_max);
            below = row_reduce_sum(horizontal_sum(below_v), ROW_REDUCE_SLOT(tmp, 2)) * share;
        }
        if (row < rows && LANE_START == 0)
            loss[row] = is_pad ? 0.0f
                               : log_f(r.sum) +
                                     (r.row_max - r.x[clamp(target, 0, width - 1)]) * keep + below;
    }
}

// scratch: loss [rows] at its start; from `sums` on each block's sum of losses, from `counts` on its number of rows
// that are not padding.
KERNEL void cross_entropy_block_fwd(__global const int *restrict targets, __global float *scratch,
                                    long rows, int block, long sums, long counts, int pad,
                                    int has_pad)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * block;
    const int n = (int)min((long)block, rows - first);
    const int every = has_pad ? 0 : -1;
    __global const float *loss = scratch + first;
    int c = VW * (int)get_local_id(0);

    targets += first;
    FV sum_v = (FV)(0.0f), count_v = (FV)(0.0f);
    float count_rest = 0.0f;
    for (; c + VW <= n; c += VW * LS) {
        sum_v += VLOAD(loss + c);
        count_v += ((IVLOAD(targets + c) != pad) | every) ? (FV)(1.0f) : (FV)(0.0f);
    }
    if (c < n) {
        sum_v += load_part(loss + c, n - c, 0.0f);
        for (; c < n; ++c)
            count_rest += ((targets[c] != pad) | every) ? 1.0f : 0.0f;
    }
    const float sum = GROUP_SUM(horizontal_sum(sum_v), tmp);
    const float count = GROUP_SUM(horizontal_sum(count_v) + count_rest, tmp);
    if (get_local_id(0) == 0) {
        scratch[sums + get_group_id(0)] = sum;
        scratch[counts + get_group_id(0)] = count;
    }
}

// result[0]: the sum of all blocks, divided by the count if `mean`; 0 if the count is 0.
KERNEL void cross_entropy_total_fwd(__global const float *restrict scratch,
                                    __global float *restrict result, int n_blocks, long sums,
                                    long counts, int mean)
{
    GROUP_SPACE(tmp);
    int c = VW * (int)get_local_id(0);

    FV sum_v = (FV)(0.0f), count_v = (FV)(0.0f);
    for (; c + VW <= n_blocks; c += VW * LS) {
        sum_v += VLOAD(scratch + sums + c);
        count_v += VLOAD(scratch + counts + c);
    }
    if (c < n_blocks) {
        sum_v += load_part(scratch + sums + c, n_blocks - c, 0.0f);
        count_v += load_part(scratch + counts + c, n_blocks - c, 0.0f);
    }
    const float sum = GROUP_SUM(horizontal_sum(sum_v), tmp);
    const float count = GROUP_SUM(horizontal_sum(count_v), tmp);
    if (get_local_id(0) == 0)
        result[0] = count == 0.0f ? 0.0f : mean ? sum / count : sum;
}

// count[0]: the number of rows that are not padding; exact below 2^24 rows per work-item.
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

// logits, dx: [rows, width]; dy: [rows] if `each`, else [1]; count: read if `mean`.  Targets, keep and share as
// in the forward pass.
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

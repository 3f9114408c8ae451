// SPDX-License-Identifier: MIT
// The gradient of cross entropy.  Host side: lib/op/cross_entropy_bwd.c
//
//   Work      rows: a group takes `per_group` rows, work-item i vectors i, i + LS ... of each;
//             count: one group
//   Memory    reads the logits three times, all but the first from cache, and writes as much once
//   Numerics  exp(x - max) / sum
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/math.clh"
#include "common/rows.clh"

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
// outside the row counts as its nearest column, as in the forward pass.
KERNEL void cross_entropy_bwd_rows(__global const float *restrict logits,
                                   __global const int *restrict targets,
                                   __global const float *restrict dy,
                                   __global const float *restrict count, __global float *restrict dx,
                                   int width, long rows, int per_group, int pad, int has_pad,
                                   int each, int mean)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int from = VW * (int)get_local_id(0);

    for (long row = first; row < end; ++row) {
        __global const float *xr = logits + row * width;
        __global float *dxr = dx + row * width;
        const int is_pad = has_pad && targets[row] == pad;
        const int target = clamp(targets[row], 0, width - 1);
        const float up = is_pad ? 0.0f : dy[each ? row : 0];
        const float scale = mean && !is_pad ? up / count[0] : up;
        int c;

        const float top = ROW_MAX(xr, width, tmp);
        FV sum_v = (FV)(0.0f);
        for (c = from; c + VW <= width; c += ROW_STEP)
            sum_v += exp_nonpos_v(VLOAD(xr + c) - top);
        if (c < width)
            sum_v += exp_nonpos_v(load_tail(xr, width, -INFINITY) - top);
        const float factor = 1.0f / GROUP_SUM(sum_lanes(sum_v), tmp);

        for (c = from; c < width; c += ROW_STEP) {
            const FV p = exp_nonpos_v(load_some(xr + c, width - c, -INFINITY) - top) * factor;
            const FV d = LANES == (IV)(target - c) ? p - 1.0f : p;
            store_some(is_pad ? (FV)(0.0f) : d * scale, dxr + c, width - c);
        }
    }
}

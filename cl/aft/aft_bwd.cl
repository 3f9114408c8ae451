// SPDX-License-Identifier: MIT
// Gradients of attention-free mixing: the small passes.  Host side: lib/op/aft/aft_bwd_passes.c
//
//   dq = g y (1 - sigmoid(q))
//
//   Work      gate: a work-group = `per_group` elements; others: a work-item = reverse_table: one key,
//             all queries in its window; reverse_filter: one head; sums: VW columns
//   Memory    each element once
//   Numerics  sums in the order of the rows

#include "common/math.clh"

KERNEL void aft_bwd_gate(__global const float *restrict q, __global const float *restrict y,
                         __global const float *restrict g, __global float *restrict dq, long count,
                         int per_group)
{
    const long first = (long)get_group_id(0) * per_group, end = min(first + per_group, count);

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        const FV gy = load_some(g + i, n, 0.0f) * load_some(y + i, n, 0.0f);
        store_some(gy * sigmoid_v(-load_some(q + i, n, 0.0f)), dq + i, n);
    }
}

// reversed[j][window - 1 + i - j] = table[i][j], rows of 2 window - 1, where |i - j| < window.
KERNEL void aft_bwd_reverse_table(__global const float *restrict table, int row,
                                  __global float *restrict reversed, long start, int steps,
                                  int window)
{
    const int j = get_global_id(0);

    if (j >= steps)
        return;
    reversed += start + (long)j * (2 * window - 1) + window - 1 - j;
    for (int i = max(0, j - window + 1); i < min(steps, j + window); ++i)
        reversed[i] = table[(long)i * row + j];
}

// Reverses each head's biases by distance.
KERNEL void aft_bwd_reverse_filter(__global const float *restrict w,
                                   __global float *restrict reversed, long start, int heads,
                                   int size)
{
    const long head = get_global_id(0);

    if (head >= heads)
        return;
    for (int d = 0; d < size; ++d)
        reversed[start + head * size + d] = w[head * size + size - 1 - d];
}

// y[r] = the sum over the `n` columns of row r of x, rows x_row apart; or, with `down`, y[c] = the
// sum of column c over n rows.
KERNEL void aft_bwd_sums(__global const float *restrict x, long start, long x_row, int n, int count,
                         int down, __global float *restrict y, long y_start)
{
    const long at = get_global_id(0), first = at * VW;
    const int width = (int)min(count - first, (long)VW);

    if (first >= count)
        return;
    if (down) {
        FV sum = (FV)(0.0f);
        for (int r = 0; r < n; ++r)
            sum += load_some(x + start + r * x_row + first, width, 0.0f);
        store_some(sum, y + y_start + first, width);
        return;
    }
    for (int r = 0; r < width; ++r) {
        __global const float *row = x + start + (first + r) * x_row;
        FV sum = (FV)(0.0f);
        for (int c = 0; c < n; c += VW)
            sum += load_some(row + c, n - c, 0.0f);
        y[y_start + first + r] = horizontal_sum(sum);
    }
}

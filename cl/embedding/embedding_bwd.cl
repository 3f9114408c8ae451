// SPDX-License-Identifier: MIT
// The gradient of an embedding's table.  Host side: lib/op/embedding/embedding_bwd.c
//
//   Work      link: one work-item for all tokens (LS = 1), or one per token; rows: a work-group takes `per_group`
//             rows of the table, work-item i vectors i, i + LS ... of each
//   Memory    rows: reads each row of dy once, writes the table once; a row's sums are updated in cache
//   Numerics  occurrences of a token are added in order, so every run gives the same bits.  A token outside the
//             table counts as its nearest row, as in the forward pass

#include "common/vector.clh"

// lists: [n_tokens], 1 + the first occurrence of each token, initially 0; then [n], 1 + the next occurrence of the
// same token; 0 ends a list.  The end must be 0: idle lanes of Mesa's llvmpipe (22.3) run the loop too, with loads
// that return 0, and would otherwise go on until its iteration limit stops the work-item.
KERNEL void embedding_bwd_link(__global const int *restrict tokens, __global int *restrict lists,
                               int n, int n_tokens)
{
    __global int *next = lists + n_tokens;
#if LS == 1
    for (int r = n - 1; r >= 0; --r) {
        const int v = clamp(tokens[r], 0, n_tokens - 1);
        next[r] = lists[v];
        lists[v] = 1 + r;
    }
#else
    const int r = (int)get_group_id(0) * LS + (int)get_local_id(0);
    if (r >= n)
        return;
    const int v = clamp(tokens[r], 0, n_tokens - 1);
    int later = r + 1, earlier = r - 1;
    while (later < n && clamp(tokens[later], 0, n_tokens - 1) != v)
        ++later;
    while (earlier >= 0 && clamp(tokens[earlier], 0, n_tokens - 1) != v)
        --earlier;
    next[r] = later < n ? 1 + later : 0;
    if (earlier < 0)
        lists[v] = 1 + r;
#endif
}

// dy: [n, width]; dw: [n_tokens, width]; untrained: 1 + the row that stays 0, or 0
KERNEL void embedding_bwd_rows(__global const int *restrict lists,
                               __global const float *restrict dy, __global float *restrict dw,
                               int n_tokens, int width, int per_group, float scale, int untrained)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, (long)n_tokens);
    __global const int *next = lists + n_tokens;

    for (long v = first; v < end; ++v) {
        __global float *sums = dw + v * width;
        const int from = VW * (int)get_local_id(0);
        for (int c = from; c < width; c += VW * LS)
            store_some((FV)(0.0f), sums + c, width - c);
        for (int r = v + 1 == untrained ? 0 : lists[v]; r > 0; r = next[r - 1]) {
            __global const float *row = dy + (r - 1L) * width;
            for (int c = from; c < width; c += VW * LS) {
                const int n = width - c;
                store_some(load_some(sums + c, n, 0.0f) + load_some(row + c, n, 0.0f) * scale,
                           sums + c, n);
            }
        }
    }
}

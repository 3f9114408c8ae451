// SPDX-License-Identifier: MIT
// Rows behind those of a cache, and all of them as floats.  Host side: lib/op/attention/attention_append.c
//
//   Work      a work-group takes `per_group` consecutive heads of rows: of the new ones, or of all of another type than
//             float
//   Memory    writes the new rows, and y, whose rows behind them stay; reads what they are behind
//   Numerics  rounded to the cache's type, or rows in 8 bits (q8_row.clh); y as the cache has it
//
//   Macro       Meaning                                      Values
//   CACHE_TYPE  as in stored.clh; 3: rows in 8 bits          0 | 1 | 2 | 3

#include "common/q8_row.clh"
#include "common/stored.clh"

#ifndef CACHE_TYPE
#error "CACHE_TYPE must be defined"
#endif

// x: rows [n_new, batch] of heads * width, `stride` apart; state: [limit][batch][heads * width], or [..][Q8_ROW_BYTES];
// y: [limit][batch][heads][width]
KERNEL void attention_append_fwd(__global const float *restrict x, long start, long stride,
                                 __global const int *restrict position, __global void *state,
                                 __global float *restrict y, int n_new, int batch, int heads,
                                 int width, int limit, int per_group)
{
    const int p = max(position[0], 0);
    const long behind = (long)p * batch * heads;
    const long first =
        (CACHE_TYPE == STORED_FLOAT ? behind : 0) + (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, min((long)limit, (long)p + n_new) * batch * heads);

    for (long i = first; i < end; ++i) {
        const long at = i / heads, h = i % heads;
        __global const float *from =
            x + start + max(at - (long)p * batch, 0l) * stride + h * width; // of new ones
#if CACHE_TYPE == STORED_Q8
        const int scale_at = Q8_SCALES(heads * width) + 4 * h;
        __global char *row = (__global char *)state + at * Q8_ROW_BYTES(heads * width, heads);
        if (i >= behind)
            store_q8(from, 1, width, row + h * width, scale_at - h * width);
        barrier(CLK_GLOBAL_MEM_FENCE);
#endif
        for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS) {
            const int n = width - c;
#if CACHE_TYPE == STORED_Q8
            store_some(Q8_SCALE_AT(row, scale_at) *
                           load_stored_some(row, h * width + c, n, STORED_Q8),
                       y + i * width + c, n);
#else
            if (i >= behind)
                store_stored_some(load_some(from + c, n, 0.0f), state, i * width + c, n,
                                  CACHE_TYPE);
#endif
#if CACHE_TYPE == STORED_HALF || CACHE_TYPE == STORED_BFLOAT16
            mem_fence(CLK_GLOBAL_MEM_FENCE); // it is read as another type
            store_some(load_stored_some(state, i * width + c, n, CACHE_TYPE), y + i * width + c, n);
#endif
        }
    }
}

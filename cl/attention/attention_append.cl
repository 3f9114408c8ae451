// SPDX-License-Identifier: MIT
// Stores rows of keys and values behind those in their caches, returns all rows as floats, and prepares queries.  Host side:
// lib/op/attention/attention_append.c
//
//   Work      a work-group takes `per_group` consecutive heads of rows of keys, values or queries (get_group_id(1)): of
//             the new ones, or of all in caches of another type than float; of rings, of the new ones or those in front
//   Memory    reads and writes each new row once; reads what is in front of them, unless that is float and no ring
//   Numerics  head_row.clh; rounded to the cache's type; all rows as the cache has them
//
//   Macro       Meaning                                                                            Values
//   BEHIND      a position is where new rows go, else 0                                            0 | 1
//   CACHE_TYPE  as in stored.clh; 3: rows in 8 bits                                                0 | 1 | 2 | 3
//   RING        caches are rings, with position t in row t mod limit.  2: a first launch, which    0 | 1 | 2
//               returns the rows in front of the new ones; 1: which stores the last of the new ones

#include "attention/head_row.clh"

#if !defined BEHIND || !defined RING
#error "BEHIND and RING must be defined"
#endif

#if RING == 2 || (RING == 0 && CACHE_TYPE != STORED_FLOAT)
#define READS_CACHE 1
#else
#define READS_CACHE 0
#endif
#if RING
#define RING_ARGS  , __global const int *restrict last, __global int *restrict n_front
#define IS_KEPT(i) ((i) <= *last && (i) > *last - limit)

// Rounds a head's elements as the cache would store them.  `largest`: their largest magnitude, used for 8 bits.
static inline FV round_as_stored(FV v, float largest)
{
    float x[VW];
    VSTORE(v, x);
#pragma unroll
    for (int k = 0; k < VW; ++k) {
#if CACHE_TYPE == STORED_Q8
        x[k] = q8_scale(largest) * (float)quantise_q8(x[k], largest);
#elif CACHE_TYPE == STORED_HALF
        ushort bits;
        vstore_half_rte(x[k], 0, (half *)&bits);
        x[k] = vload_half(0, (const half *)&bits);
#elif CACHE_TYPE == STORED_BFLOAT16
        x[k] = as_float((uint)to_bfloat16(x[k]) << 16);
#endif
    }
    return VLOAD(x);
}
#else
#define RING_ARGS
#define IS_KEPT(i) true
#endif

#define ROWS(x) __global const float *restrict x, long x##_start, long x##_stride

// q, k, v: rows [n_new, batch] of heads * width, `_stride` apart; keys, values: [limit][batch][heads * width], or [..]
// [Q8_ROW_BYTES]; all_keys, all_values, rotated: [][batch][heads][width]; y: a head, of whole vectors; last: the last new row
// to store; n_front: rows in front of new ones in all_keys
KERNEL void attention_append_fwd(ROWS(k), ROWS(v), __global const int *restrict position,
                                 __global void *keys, __global void *values, ROWS(q),
                                 __global float *restrict all_keys,
                                 __global float *restrict all_values,
                                 __global float *restrict rotated, int n_new, int batch, int heads,
                                 int q_heads, int width, int limit, int per_group, HEAD_FORMS,
                                 __local float *restrict y RING_ARGS)
{
    __local float tmp[LS];
    const int side = (int)get_group_id(1), n = side == 2 ? q_heads : heads;
    const int p = BEHIND ? clamp(position[0], 0, RING ? 1 << 30 : limit) : 0;
    const int t0 = side == 2 ? 0 : RING ? min(p, limit) : p; // rows in front
    __global const float *x = side == 0 ? k + k_start : side == 1 ? v + v_start : q + q_start;
    const long stride = side == 0 ? k_stride : side == 1 ? v_stride : q_stride;
    __global void *cache = side == 0 ? keys : values;
    __global float *all = side == 0 ? all_keys : side == 1 ? all_values : rotated;
    const long behind = (long)t0 * batch * n;
    const long first = (READS_CACHE ? 0 : behind) + (long)get_group_id(0) * per_group;
    const long rows = RING == 2   ? t0
                      : side == 2 ? n_new
                      : RING      ? (long)t0 + n_new
                                  : min((long)limit, (long)p + n_new);
    const long end = min(first + per_group, rows * batch * n);

#if RING == 2
    if (get_group_id(0) == 0 && side == 0 && get_local_id(0) == 0)
        *n_front = t0;
#endif
    for (long i = first; i < end; ++i) {
        const long at = i / n, h = i % n;
        const int t = (int)(at / batch) + p - t0; // position
        const long entry = RING ? (long)(t % limit) * batch + at % batch : at;
#if CACHE_TYPE == STORED_Q8
        const long scale_at = Q8_SCALES(n * width) + 4 * h;
        const long to = entry * Q8_ROW_BYTES(n * width, n) + h * width;
#else
        const long scale_at = 0;
        const long to = RING ? (entry * n + h) * width : i * width;
#endif
        if (i >= behind) {
            load_head(x + (at - (long)t0 * batch) * stride + h * width, width, y);
            if (side != 1)
                prepare_head(y, width, HEAD_NORM & (side ? 1 : 2), side ? query_norm : key_norm,
                             eps, table, n_positions, t, pairs, tmp);
            if (side != 2 && IS_KEPT(t - p))
                store_head(y, width, cache, to, scale_at - h * width);
        }
#if RING == 1 && CACHE_TYPE == STORED_Q8
        const float largest = find_q8_largest(y, width);
        barrier(CLK_LOCAL_MEM_FENCE);
#elif RING == 1
        const float largest = 0.0f;
#elif !READS_CACHE
        if (side != 2)
            continue;
#elif CACHE_TYPE == STORED_Q8
        barrier(CLK_GLOBAL_MEM_FENCE);
        const float scale = side == 2 ? 1.0f : Q8_SCALE_AT(cache, to - h * width + scale_at);
#else
        const float scale = 1.0f;
        mem_fence(CLK_GLOBAL_MEM_FENCE); // it is read as another type
#endif
        for (int c = VW * (int)get_local_id(0); c < width; c += ROW_STEP) {
            const int rest = width - c;
            FV row = VLOAD(y + c);
#if RING == 1
            if (side != 2)
                row = round_as_stored(row, largest);
#elif READS_CACHE
            if (side != 2)
                row = scale * load_stored_some(cache, to + c, rest, CACHE_TYPE);
#endif
            store_some(row, all + i * width + c, rest);
        }
    }
}

// SPDX-License-Identifier: MIT
// Draws a token from each row of scores, and stores the tokens for the next decoding step.  Host side:
// lib/op/norm/sample.c
//
//   Work      sample: a work-group takes `per_group` rows; work-item i elements i, i + LS ... of each, or
//             consecutive ones if their order matters.  sample_store: one work-group
//   Memory    reads x 3 times for k = 1 or all, else up to 36 times
//   Numerics  one float subtraction and product, then integers: equal scores, seed and position give equal
//             tokens on every device and in every variant.  A weight's error is 2^-31 of itself plus
//             2^-38 of the largest weight; below that it is 0

#include "common/philox.clh"
#include "common/reduce.clh"

// -- sums over a work-group, and over the work-items before this one

#if LS == 1

#define GROUP_LOCALS(tmp)        const int tmp = 0
#define GROUP_TOTAL(x, tmp)      (x)
#define GROUP_LARGEST(x, tmp)    (x)
#define GROUP_SUM_BEFORE(x, tmp) ((void)(tmp), 0ul)
typedef int group_tmp;

#else

#define GROUP_LOCALS(tmp)        __local ulong tmp[LS]
#define GROUP_TOTAL(x, tmp)      group_total(x, tmp)
#define GROUP_LARGEST(x, tmp)    group_largest(x, tmp)
#define GROUP_SUM_BEFORE(x, tmp) group_sum_before(x, tmp)
typedef __local ulong *group_tmp;

DEFINE_GROUP_TREE(group_total, ulong, GROUP_ADD)
DEFINE_GROUP_TREE(group_largest, ulong, max)

LOCAL_INLINE ulong group_sum_before(ulong x, __local ulong *tmp)
{
    const int i = (int)get_local_id(0);

    tmp[i] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 1; n < LS; n <<= 1) {
        const ulong other = i >= n ? tmp[i - n] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        tmp[i] += other;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const ulong before = tmp[i] - x;
    barrier(CLK_LOCAL_MEM_FENCE);
    return before;
}

#endif

// -- scores as integers of the same order

#define NOT_FINITE 0xff800000u // the order of infinities; NaN is above

// Increases with x; equal for both zeros.
static inline uint to_order(float x)
{
    const uint bits = as_uint(x);
    const uint order = bits > 0x80000000u ? ~bits : bits | 0x80000000u;

    return (bits & 0x7f800000u) == 0x7f800000u ? 0xffffffffu : order;
}

static inline float to_score(uint order)
{
    return as_float(order >> 31 ? order & 0x7fffffffu : ~order);
}

// -- weights

// 2^(38 - z), rounded down, for z >= 0; 0 for NaN.  A 32-bit polynomial gives 2^-f of the fraction f, error 4e-9.
static inline ulong compute_weight(float z)
{
    const float bounded = z < 39.0f ? z : 39.0f;
    const uint fixed = (uint)(bounded * 67108864.0f); // 2^26
    const uint f = fixed << 6;
    uint h = 0x00071c91u;
    h = 0x00537232u - mul_hi(f, h);
    h = 0x0273ad97u - mul_hi(f, h);
    h = 0x0e349769u - mul_hi(f, h);
    h = 0x3d7f5541u - mul_hi(f, h);
    h = 0xb17215ceu - mul_hi(f, h);
    return (ulong)(0x80000000u - (mul_hi(f, h) >> 1)) << 7 >> (fixed >> 26);
}

// The weight of column c if its order is above `least`, or equal and c <= last; else 0.
static inline ulong load_weight(__global const float *xr, int c, uint least, int last,
                                float largest, float factor)
{
    const uint order = to_order(xr[c]);
    const ulong weight = compute_weight((largest - xr[c]) * factor);

    return order > least || (order == least && c <= last) ? weight : 0;
}

// Finds the k-th largest order, k > 1, bit by bit; *n_above_ret: how many are above it.  Stops early at an order with
// exactly k above it; *n_above_ret is then k.
OUT_OF_LINE uint find_kth_order(__global const float *xr, int width, int k, int *n_above_ret,
                                group_tmp tmp)
{
    uint found = 0;
    int n_above = 0;

    int n = 0;
    for (int bit = 31; bit >= 0 && n != k; --bit) {
        const uint order = found | 1u << bit;
        n = 0;
        for (int c = (int)get_local_id(0); c < width; c += LS)
            n += to_order(xr[c]) >= order;
        n = (int)GROUP_TOTAL((ulong)n, tmp);
        found = n >= k ? order : found;
        n_above = n >= k ? n_above : n; // the last count < k is of orders above the k-th
    }
    *n_above_ret = n == k ? k : n_above;
    return n == k ? found - 1 : found;
}

// The column of the n-th element with this order, n >= 1.
OUT_OF_LINE int find_nth_place(__global const float *xr, int first, int end, uint order, int n,
                               group_tmp tmp)
{
    int own_count = 0, place = end;

    for (int c = first; c < end; ++c)
        own_count += to_order(xr[c]) == order;
    int left = n - (int)GROUP_SUM_BEFORE((ulong)own_count, tmp);
    const int is_here = left >= 1 && left <= own_count; // in one work-item only
    for (int c = first; c < end; ++c) {
        left -= to_order(xr[c]) == order;
        place = left <= 0 ? min(place, c) : place;
    }
    return (int)GROUP_TOTAL((ulong)(is_here ? place : 0), tmp);
}

// floor(a b / 2^64), b < 2^63
static inline ulong multiply_high(ulong a, ulong b)
{
    const ulong a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const ulong p = a1 * b0, q = a0 * b1;
    const ulong middle = (a0 * b0 >> 32) + (p & 0xffffffffu) + (q & 0xffffffffu);
    return a1 * b1 + (p >> 32) + (q >> 32) + (middle >> 32);
}

// The token drawn; any token if all weights are 0.
OUT_OF_LINE int draw(__global const float *xr, int first, int end, uint least, int last,
                     float largest, float factor, uint4 words, group_tmp tmp)
{
    ulong sum = 0;

    for (int c = first; c < end; ++c)
        sum += load_weight(xr, c, least, last, largest, factor);
    const ulong total = GROUP_TOTAL(sum, tmp), before = GROUP_SUM_BEFORE(sum, tmp);
    const ulong point = multiply_high((ulong)words.s0 << 32 | words.s1, total);
    const int is_here = point >= before && point - before < sum; // in one work-item only
    ulong left = point - before;
    int c = first;
    for (; is_here && c < end - 1; ++c) {
        const ulong weight = load_weight(xr, c, least, last, largest, factor);
        if (left < weight)
            break;
        left -= weight;
    }
    // A sum: PoCL's vectorised loop over work-items loses a store by one work-item alone.
    return (int)GROUP_TOTAL((ulong)(is_here ? c : 0), tmp);
}

// x: rows of `width`, `stride` apart; y: [rows]
KERNEL void sample_rows_fwd(__global const float *restrict x, __global const int *restrict sampling,
                            __global const int *restrict position, __global int *restrict y,
                            long start, long stride, int width, long rows, int per_group)
{
    GROUP_LOCALS(tmp);
    const long begin = (long)get_group_id(0) * per_group;
    const long end = min(begin + per_group, rows);
    const int k = sampling[0] >= 1 ? min(sampling[0], width) : width;
    const uint2 key = (uint2)(as_uint(sampling[2]), as_uint(sampling[3]));
    const int share = (width + LS - 1) / LS;
    const int first = min((int)get_local_id(0) * share, width), stop = min(first + share, width);

    for (long row = begin; row < end; ++row) {
        __global const float *xr = x + start + row * stride;
        uint largest = 0, least = 0;
        int n_above = 0, last = width;
        // Branches with barriers below do not depend on scores.
        for (int c = (int)get_local_id(0); c < width; c += LS)
            largest = max(largest, to_order(xr[c]));
        largest = GROUP_LARGEST(largest, tmp);
        if (k < width) {
            least = largest;
            if (k > 1)
                least = find_kth_order(xr, width, k, &n_above, tmp);
            last = find_nth_place(xr, first, stop, least, k - n_above, tmp);
            last = n_above == k ? -1 : last;
        }
        int token = width > 1 ? last : 0;
        if (k > 1) {
            const uint4 words = philox((uint4)(as_uint(position[0]), (uint)row, 0, 0), key);
            token = draw(xr, first, stop, least, last, to_score(largest), as_float(sampling[1]),
                         words, tmp);
        }
        if (get_local_id(0) == 0)
            y[row] = largest >= NOT_FINITE ? -1 : token;
    }
}

// step: the position, then [n] tokens; drawn: [n_rows, n]; window: [n_window, n], n_window may be 0
KERNEL void sample_store_fwd(__global const int *restrict tokens, __global int *restrict step,
                             __global int *restrict drawn, __global int *window, int n, int n_rows,
                             int n_window)
{
    const int position = step[0];
    const long kept = n_window > 0 ? (long)(n_window - 1) * n : 0;
    __global int *row = drawn + (long)(position % n_rows) * n;

    PLAIN_LOOP
    for (long i0 = 0; i0 < kept; i0 += LS) {
        const long i = i0 + get_local_id(0);
        const int next = i < kept ? window[i + n] : 0;
        barrier(CLK_GLOBAL_MEM_FENCE); // all have read the elements that others replace
        if (i < kept)
            window[i] = next;
    }
    PLAIN_LOOP
    for (int b = (int)get_local_id(0); b < n; b += LS) {
        const int token = tokens[b];
        row[b] = token;
        step[1 + b] = max(token, 0);
        if (n_window > 0)
            window[kept + b] = max(token, 0);
    }
    barrier(CLK_GLOBAL_MEM_FENCE); // all have read the position
    if (get_local_id(0) == 0)
        step[0] = position + 1;
}

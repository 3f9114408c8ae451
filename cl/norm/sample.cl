// SPDX-License-Identifier: MIT
// A token from each row of scores, and what a step of decoding keeps of it.  Host side:
// lib/op/norm/sample.c
//
//   Work      sample: a work-group takes `per_group` rows; work-item i elements i, i + LS ... of each, or a
//             share of consecutive ones where their order counts.  sample_store: one work-group
//   Memory    reads x 3 times for the best or for all, up to 36 times for the k best
//   Numerics  after one subtraction and one product of floats, integers alone: equal scores, seed and
//             position give equal tokens on every device and in every variant.  A weight has 2^-31 of
//             itself and 2^-38 of the largest; below that it is 0

#include "common/philox.clh"
#include "common/reduce.clh"

// -- sums over a work-group, and over the work-items before each

#if LS == 1

#define GROUP_LOCALS(tmp)     const int tmp = 0
#define GROUP_TOTAL(x, tmp)   (x)
#define GROUP_LARGEST(x, tmp) (x)
#define GROUP_BEFORE(x, tmp)  ((void)(tmp), 0ul)
typedef int group_tmp;

#else

#define GROUP_LOCALS(tmp)     __local ulong tmp[LS]
#define GROUP_TOTAL(x, tmp)   group_total(x, tmp)
#define GROUP_LARGEST(x, tmp) group_largest(x, tmp)
#define GROUP_BEFORE(x, tmp)  group_before(x, tmp)
typedef __local ulong *group_tmp;

DEFINE_GROUP_TREE(group_total, ulong, GROUP_ADD)
DEFINE_GROUP_TREE(group_largest, ulong, max)

LOCAL_INLINE ulong group_before(ulong x, __local ulong *tmp)
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

// -- scores as numbers of their order

#define NOT_FINITE 0xff800000u // and above

// Grows with x; equal for both zeros.
static inline uint order_of(float x)
{
    const uint bits = as_uint(x);
    const uint order = bits > 0x80000000u ? ~bits : bits | 0x80000000u;

    return (bits & 0x7f800000u) == 0x7f800000u ? 0xffffffffu : order;
}

static inline float score_of(uint order)
{
    return as_float(order >> 31 ? order & 0x7fffffffu : ~order);
}

// -- weights

// 2^(38 - z), rounded down; z >= 0; 0 for NaN.  2^-f of the fraction f is a polynomial in 32 bits, of error 4e-9.
static inline ulong weight_of(float z)
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

// The weight of column c: 0 but for orders above `least`, and where it is equal up to place `last`.
static inline ulong weight_at(__global const float *xr, int c, uint least, int last, float largest,
                              float factor)
{
    const uint order = order_of(xr[c]);
    const ulong weight = weight_of((largest - xr[c]) * factor);

    return order > least || (order == least && c <= last) ? weight : 0;
}

// The k-th largest order, k > 1, bit by bit; *n_above_ret: how many are above it.  Or one that exactly k are
// above, as soon as there is one; *n_above_ret is then k.
LOCAL_INLINE uint order_of_kth(__global const float *xr, int width, int k, int *n_above_ret,
                               group_tmp tmp)
{
    uint found = 0;
    int n_above = 0;

    int n = 0;
    for (int bit = 31; bit >= 0 && n != k; --bit) {
        const uint order = found | 1u << bit;
        n = 0;
        for (int c = (int)get_local_id(0); c < width; c += LS)
            n += order_of(xr[c]) >= order;
        n = (int)GROUP_TOTAL((ulong)n, tmp);
        found = n >= k ? order : found;
        n_above = n >= k ? n_above : n; // the last one is of the order above the k-th
    }
    *n_above_ret = n == k ? k : n_above;
    return n == k ? found - 1 : found;
}

// The place of the n-th that has this order, n >= 1.
LOCAL_INLINE int place_of_nth(__global const float *xr, int first, int end, uint order, int n,
                              group_tmp tmp)
{
    int mine = 0, place = end;

    for (int c = first; c < end; ++c)
        mine += order_of(xr[c]) == order;
    int left = n - (int)GROUP_BEFORE((ulong)mine, tmp);
    const int has_it = left >= 1 && left <= mine; // one work-item's
    for (int c = first; c < end; ++c) {
        left -= order_of(xr[c]) == order;
        place = left <= 0 ? min(place, c) : place;
    }
    return (int)GROUP_TOTAL((ulong)(has_it ? place : 0), tmp);
}

// floor(a b / 2^64), b < 2^63
static inline ulong high_of_product(ulong a, ulong b)
{
    const ulong a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const ulong p = a1 * b0, q = a0 * b1;
    const ulong middle = (a0 * b0 >> 32) + (p & 0xffffffffu) + (q & 0xffffffffu);
    return a1 * b1 + (p >> 32) + (q >> 32) + (middle >> 32);
}

// The token drawn; whichever where all weights are 0.
LOCAL_INLINE int draw(__global const float *xr, int first, int end, uint least, int last,
                      float largest, float factor, uint4 words, group_tmp tmp)
{
    ulong sum = 0;

    for (int c = first; c < end; ++c)
        sum += weight_at(xr, c, least, last, largest, factor);
    const ulong total = GROUP_TOTAL(sum, tmp), before = GROUP_BEFORE(sum, tmp);
    const ulong point = high_of_product((ulong)words.s0 << 32 | words.s1, total);
    const int has_it = point >= before && point - before < sum; // one work-item's
    ulong left = point - before;
    int c = first;
    for (; has_it && c < end - 1; ++c) {
        const ulong weight = weight_at(xr, c, least, last, largest, factor);
        if (left < weight)
            break;
        left -= weight;
    }
    // A sum, since a store by that one alone gets lost in PoCL's vectorised loop over work-items.
    return (int)GROUP_TOTAL((ulong)(has_it ? c : 0), tmp);
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
        // Nothing below depends on scores that has a barrier in it.
        for (int c = (int)get_local_id(0); c < width; c += LS)
            largest = max(largest, order_of(xr[c]));
        largest = GROUP_LARGEST(largest, tmp);
        if (k < width) {
            least = largest;
            if (k > 1)
                least = order_of_kth(xr, width, k, &n_above, tmp);
            last = place_of_nth(xr, first, stop, least, k - n_above, tmp);
            last = n_above == k ? -1 : last;
        }
        int token = width > 1 ? last : 0;
        if (k > 1) {
            const uint4 words = philox((uint4)(as_uint(position[0]), (uint)row, 0, 0), key);
            token = draw(xr, first, stop, least, last, score_of(largest), as_float(sampling[1]),
                         words, tmp);
        }
        if (get_local_id(0) == 0)
            y[row] = largest >= NOT_FINITE ? -1 : token;
    }
}

// step: the position and [n] tokens; drawn: [n_rows, n]; window: [n_window, n], of n_window = 0 nothing
KERNEL void sample_store_fwd(__global const int *restrict tokens, __global int *restrict step,
                             __global int *restrict drawn, __global int *window, int n, int n_rows,
                             int n_window)
{
    const int position = step[0];
    const long kept = n_window > 0 ? (long)(n_window - 1) * n : 0;
    __global int *row = drawn + (long)(position % n_rows) * n;

    for (long i0 = 0; i0 < kept; i0 += LS) {
        const long i = i0 + get_local_id(0);
        const int next = i < kept ? window[i + n] : 0;
        barrier(CLK_GLOBAL_MEM_FENCE); // all have read what others replace
        if (i < kept)
            window[i] = next;
    }
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

// SPDX-License-Identifier: MIT
// Clipping by norm and by value, sums and averages in place.  Host side: lib/op/train/clip.c, accumulate.c
//
//   Work      squares, accumulate, scale, clamp: a work-group takes `per_group` consecutive elements (squares,
//             accumulate: of a part), work-item i vectors i, i + LS ...; total: one work-group; factor: one work-item
//   Memory    reads each array once; all but squares write one
//   Numerics  sums the squares of x, x 2^-64 and x 2^64, in blocks of BLOCK vectors; the norm takes the first
//             unless it overflowed or is near 0.  The order is fixed, so every run gives the same bits.
//             accumulate: two roundings; one if keep and gain are 1

#define ALIGNED_VECTORS
#include "common/parts.clh"
#include "common/reduce.clh"
#include "common/vector.clh"

enum { BLOCK = 64 };

#define DOWN  5.42101086e-20f // 2^-64
#define UP    1.84467441e19f  // 2^64
#define SMALL 1e-18f          // below, squares may have lost digits to subnormal numbers

struct squares {
    FV plain, down, up;
};

static inline void add_squares(struct squares *s, FV x)
{
    s->plain += x * x;
    s->down += (x * DOWN) * (x * DOWN);
    s->up += (x * UP) * (x * UP);
}

#define SQUARES_PARAMS(i) , __global const float *x_##i PART_PARAMS(i)
#define TAKE(i)           IF_IN_PART(i) x = x_##i;

// sums: [3][blocks], the parts' blocks one after another
KERNEL void update_squares_fwd(__global float *restrict sums PARTS(SQUARES_PARAMS), int blocks)
{
    GROUP_SPACE(tmp);
    __global const float *x;
    struct squares all = {(FV)(0.0f), (FV)(0.0f), (FV)(0.0f)};
    struct part part;

    PARTS(TAKE)
    const int n = part_count(&part);

    x += part_first(&part);
    for (int c = VW * (int)get_local_id(0); c < n;) {
        struct squares s = {(FV)(0.0f), (FV)(0.0f), (FV)(0.0f)};
        for (int i = 0; i < BLOCK && c < n; ++i, c += VW * LS)
            add_squares(&s, load_some(x + c, n - c, 0.0f));
        all.plain += s.plain;
        all.down += s.down;
        all.up += s.up;
    }
    const float plain = GROUP_SUM(horizontal_sum(all.plain), tmp);
    const float down = GROUP_SUM(horizontal_sum(all.down), tmp);
    const float up = GROUP_SUM(horizontal_sum(all.up), tmp);
    if (get_local_id(0) == 0) {
        sums[get_group_id(0)] = plain;
        sums[blocks + get_group_id(0)] = down;
        sums[2 * (long)blocks + get_group_id(0)] = up;
    }
}

#define TOTAL_PARAM(i) , int blocks_##i
#define BLOCKS(i)      blocks_##i,

// previous: [3], sums of other arrays, if has_previous; result: [3].  A part's sums may begin at any float.
KERNEL void update_total_fwd(__global const float *restrict sums,
                             __global const float *restrict previous,
                             __global float *restrict result, int has_previous PARTS(TOTAL_PARAM))
{
    GROUP_SPACE(tmp);
    const int blocks[] = {PARTS(BLOCKS)}, from = VW * (int)get_local_id(0);

    for (int i = 0; i < 3; ++i) {
        float all = has_previous && from == 0 ? previous[i] : 0.0f;
        for (int part = 0; part < (int)(sizeof blocks / sizeof *blocks); sums += blocks[part++]) {
            FV s = (FV)(0.0f);
            for (int c = from; c < blocks[part]; c += VW * LS) {
                const int n = blocks[part] - c;
                s += n < VW ? load_part(sums + c, n, 0.0f) : CAT(vload, VW)(0, sums + c);
            }
            all += horizontal_sum(s);
        }
        all = GROUP_SUM(all, tmp);
        if (from == 0)
            result[i] = all;
    }
}

// sums: [3]; total, factor: [1]; d2l: the factor is max_norm / total if that is less than 1, without an epsilon
KERNEL void update_factor_fwd(__global const float *restrict sums, __global float *restrict total,
                              __global float *restrict factor, float max_norm, int d2l)
{
    const float plain = sums[0];
    float norm = sqrt(plain);
    if (!(plain < INFINITY))
        norm = sqrt(sums[1]) * UP;
    else if (plain < SMALL)
        norm = sqrt(sums[2]) * DOWN;
    const float scale = max_norm / (norm + 1e-6f);
    if (get_local_id(0) > 0)
        return;
    *total = norm;
    if (d2l)
        *factor = norm > max_norm ? max_norm / norm : 1.0f;
    else
        *factor = scale > 1.0f ? 1.0f : scale; // keeps NaN
}

KERNEL void update_scale_fwd(__global const float *restrict x,
                             __global const float *restrict factor, __global float *restrict y,
                             long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);
    const float f = *factor;

    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS)
        store_some(load_some(x + first + c, n - c, 0.0f) * f, y + first + c, n - c);
}

// Keeps NaN.
KERNEL void update_clamp_fwd(__global const float *restrict x, __global float *restrict y,
                             float limit, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);

    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        FV v = load_some(x + first + c, n - c, 0.0f);
        v = v > limit ? (FV)(limit) : v;
        v = v < -limit ? (FV)(-limit) : v;
        store_some(v, y + first + c, n - c);
    }
}

#define UPDATE_PARAMS(i) , __global float *into_##i, __global const float *x_##i PART_PARAMS(i)
#define TAKE_BOTH(i)     IF_IN_PART(i) into = into_##i, x = x_##i;

// into = keep into + gain x; keep 0: `into` is not read.  guard: [1]; if NaN, `into` stays unchanged.
KERNEL void update_accumulate_fwd(__global const float *restrict guard, int has_x, int has_guard,
                                  float keep, float gain PARTS(UPDATE_PARAMS))
{
    __global float *into;
    __global const float *x;
    struct part part;

    PARTS(TAKE_BOTH)
    const long first = part_first(&part);
    const int n = part_count(&part);

    if (has_guard && isnan(*guard))
        return;

    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const long at = first + c;
        const int remaining = n - c;
        FV y = (FV)(0.0f);
        if (has_x)
            y = load_some(x + at, remaining, 0.0f) * gain;
        if (keep != 0.0f)
            y += load_some(into + at, remaining, 0.0f) * keep;
        store_some(y, into + at, remaining);
    }
}

// SPDX-License-Identifier: MIT
// Attention-free mixing, GPU variant: sources inside the window as a product of factors.
// y = sigmoid(q) * B / A, or backward dv = e^k A and dk = v dv - e^k B.  Host side:
// lib/op/aft/aft_gpu.c
//
//   e^(w + kappa) = e^(w - peak) e^(kappa - max_exponent) e^(peak + max_exponent)
//
//   Work      one work-item = ITEM_LANES neighbouring lanes of channels, ROWS target rows; a work-group =
//             GROUP_LANES = TX * ITEM_LANES lanes, TY blocks of rows.  A source takes 2 ROWS ITEM_LANES FMAs
//             per work-item; its exponential is computed once per work-group, in an order in which
//             neighbouring work-items read neighbouring lanes
//   Memory    reads the sources inside the work-group's window once, their ranges, the rows'
//             weights and the targets once; writes results once.  Local memory:
//             KEYS * (2 * GROUP_LANES + TY * ROWS) + GROUP_LANES + LS floats
//   Numerics  max_exponent is the largest kappa inside the work-group's window.  A block of rows and
//             GROUP_LANES lanes is computed here if its exponents stay within REACH: kappa >=
//             max_exponent - REACH inside its window, so that the source of a row's peak keeps the
//             row's sum above e^-REACH; sums from outside at most e^REACH.  Else it is flagged for
//             aft_gpu_rows
//
//   Macro       Meaning                                         Values
//   LS          work-group size                                 TX TY
//   ROWS        target rows of a work-item, a divisor of BLOCK  16, 8
//   ITEM_LANES  lanes of a work-item, a divisor of TY           1, 2
//   TX          work-items across lanes                         64, 32, 8; lib/op/aft/aft_gpu.c
//   TY          work-items across rows                          4, 2
//   KEYS        sources in local memory, a divisor of BLOCK     16, 8

#if !defined ROWS || !defined ITEM_LANES || !defined TX || !defined TY || !defined KEYS
#error "ROWS, ITEM_LANES, TX, TY and KEYS must be defined"
#endif
#if !defined LS || LS != TX * TY || TY % ITEM_LANES != 0 || KEYS * ITEM_LANES % TY != 0
#error "LS: work-group size, TX * TY; ITEM_LANES divides TY, TY divides KEYS ITEM_LANES"
#endif

#define MASKED 0
#include "aft/aft_bias.clh"
#include "aft/aft_source.clh"

#define GROUP_LANES (TX * ITEM_LANES)

// A vector with a float per lane of a work-item.
#if ITEM_LANES == 2
typedef float2 item_lanes;
#define LOAD_LANES(from)   vload2(0, from)
#define LANES_OF(x)        ((float2)((x)[0], (x)[1]))
#define STORE_LANES(x, to) vstore2(x, 0, to)
#else
typedef float item_lanes;
#define LOAD_LANES(from)   (*(from))
#define LANES_OF(x)        ((x)[0])
#define STORE_LANES(x, to) (*(to) = (x))
#endif

// The target rows of a work-item, and the sources [from, to) inside their window.
struct tile {
    int t0, rows, from, to;
};

static inline void find_tile(struct tile *x, const struct bias *w, int t0)
{
    x->t0 = t0;
    x->rows = clamp(w->steps - t0, 0, ROWS);
    x->from = x->to = 0;
    if (x->rows > 0) {
        find_region(w, t0, x->rows, BLOCK, &x->from, &x->to);
        x->from *= BLOCK;
        x->to = min(x->to * BLOCK, w->steps);
    }
}

// sums: [2][blocks][3][lanes] from the lane on, over all blocks before and over all after each
static inline void load_outside(struct sums *s, const struct tile *x, const struct bias *w,
                                __global const float *sums, int lanes)
{
    const int blocks = (w->steps + BLOCK - 1) / BLOCK;
    *s = empty_sums();
    if (x->rows > 0 && w->causal >= 0 && x->from > 0)
        *s = sums_load(sums, x->from / BLOCK, lanes);
    if (x->rows > 0 && w->causal <= 0 && x->to < w->steps)
        *s = sums_merge(*s, sums_load(sums, blocks + x->to / BLOCK - 1, lanes));
}

// The largest of one lane's values, `step` apart, for the blocks of sources [from, to).
static inline float find_largest(__global const float *figures, int from, int to, int step)
{
    float max_exponent = NOTHING;
    for (int i = from / BLOCK; i * BLOCK < to; ++i)
        max_exponent = max_v(figures[(long)i * step], max_exponent);
    return max_exponent;
}

// Row r stands for e^(max_exponent + peak[r]) times its sums.
struct part {
    item_lanes a[ROWS], b[ROWS];
};

// Starts the sums with the sources outside the window.  bottom: each lane's smallest kappa inside it.
// Returns whether the exponents allow the product.
LOCAL_INLINE int start_part(struct part *s, const struct sums outside[ITEM_LANES],
                            const float peak[ROWS], __local const float *max_exponent,
                            const float bottom[ITEM_LANES], int rows)
{
    float lowest = -NOTHING;
    int hold = 1;

    UNROLL
    for (int r = 0; r < ROWS; ++r) {
        float a[ITEM_LANES], b[ITEM_LANES];
        lowest = r < rows ? min_v(peak[r], lowest) : lowest;
        UNROLL
        for (int n = 0; n < ITEM_LANES; ++n) {
            const float f = exp_f(outside[n].max_exponent - max_exponent[n] - peak[r]);
            a[n] = f * outside[n].a;
            b[n] = f * outside[n].b;
        }
        s->a[r] = LANES_OF(a);
        s->b[r] = LANES_OF(b);
    }
    UNROLL
    for (int n = 0; n < ITEM_LANES; ++n)
        hold &= max_exponent[n] - bottom[n] <= REACH &&
                outside[n].max_exponent <= max_exponent[n] + (REACH + lowest);
    return hold;
}

// A work-item's part of loading KEYS sources: every (LS / GROUP_LANES)-th source of one lane, and every
// TX-th weight of its rows.
enum { FETCHED = KEYS * GROUP_LANES / LS, FETCHED_WEIGHTS = (KEYS * ROWS + TX - 1) / TX };
struct fetched {
    float kappa[FETCHED], alpha[FETCHED], beta[FETCHED], weight[FETCHED_WEIGHTS];
};

// Loads sources j0 .. j0 + KEYS - 1; those from `end` on have weight 0.  table: weights of sources from x->from on.
static inline void fetch_sources(struct fetched *b, const struct source *from, const struct tile *x,
                                 __global const float *table, int j0, int end, int id)
{
    UNROLL
    for (int i = 0; i < FETCHED; ++i) {
        const int t = min(j0 + id / GROUP_LANES + i * (LS / GROUP_LANES), end - 1);
        b->kappa[i] = source_kappa(from, t);
        b->alpha[i] = source_alpha(from, t);
        b->beta[i] = source_beta(from, t);
    }
    UNROLL
    for (int i = 0; i < FETCHED_WEIGHTS; ++i) {
        const int at = (j0 - x->from) * ROWS + id % TX + i * TX;
        const bool there = at >= 0 && at < (x->to - x->from) * ROWS;
        b->weight[i] = there ? table[at] : 0.0f;
    }
}

// packed: [source][2][GROUP_LANES]; weights: [source][ROWS] of the work-item's rows
LOCAL_INLINE void store_fetched(__local float *packed, __local float *weights,
                                const struct fetched *b, float max_exponent, int id)
{
    UNROLL
    for (int i = 0; i < FETCHED; ++i) {
        const int j = id / GROUP_LANES + i * (LS / GROUP_LANES);
        const float e = exp_nonpos_f(b->kappa[i] - max_exponent);
        __local float *to = packed + j * 2 * GROUP_LANES + id % GROUP_LANES;
        to[0] = e * b->alpha[i];
        to[GROUP_LANES] = e * b->beta[i];
    }
    UNROLL
    for (int i = 0; i < FETCHED_WEIGHTS; ++i)
        if (id % TX + i * TX < KEYS * ROWS)
            weights[id % TX + i * TX] = b->weight[i];
}

// Adds KEYS sources, in a loop that is unrolled whole: else Intel's compiler keeps the sums in memory.  packed: from the
// work-item's lanes on; weights: [source][ROWS]
LOCAL_INLINE void add_sources(struct part *s, __local const float *packed,
                              __local const float *weights)
{
    UNROLL
    for (int j = 0; j < KEYS; ++j) {
        const item_lanes alpha = LOAD_LANES(packed + j * 2 * GROUP_LANES);
        const item_lanes beta = LOAD_LANES(packed + j * 2 * GROUP_LANES + GROUP_LANES);
        UNROLL
        for (int q = 0; q < ROWS / 4; ++q) {
            const float4 four = vload4(q, weights + j * ROWS);
            const float weight[4] = {four.s0, four.s1, four.s2, four.s3};
            UNROLL
            for (int r = 0; r < 4; ++r) {
                s->a[4 * q + r] += weight[r] * alpha;
                s->b[4 * q + r] += weight[r] * beta;
            }
        }
    }
}

// Arguments as in aft_gpu_rows, and aft_gpu_weights for the weights.  scratch: sums, then
// [blocks][2][lanes], the largest kappa and the largest -kappa; at flags_at, per block of rows and
// work-group along lanes, 1 if aft_gpu_rows must compute it
KERNEL void aft_gpu_band(TARGET_PARAMS, SOURCE_PARAMS, __global float *scratch, long flags_at,
                         int row0, long weights_at, int pitch, RANGE_PARAMS, int window, int causal)
{
    __local float packed[KEYS * 2 * GROUP_LANES] __attribute__((aligned(16)));
    __local float weights[TY * KEYS * ROWS] __attribute__((aligned(16)));
    __local float maxima[GROUP_LANES];
    __local int all_hold[LS];
    const int id = get_local_id(0), tx = id % TX, ty = id / TX, groups = get_num_groups(0);
    const int column = get_group_id(0), line = get_group_id(1), first = column * GROUP_LANES;
    const struct bias w = {0, 0, window, causal, 0, 0, 0, steps};
    const int t0 = row0 + line * TY * ROWS, last = (steps - 1) / ROWS * ROWS;
    struct tile head, tail, mine;
    find_tile(&head, &w, t0);
    find_tile(&tail, &w, min(t0 + (TY - 1) * ROWS, last));
    find_tile(&mine, &w, t0 + ty * ROWS);
    __global const float *table =
        scratch + weights_at + ((long)line * TY + ty) * (pitch + 1) * ROWS;
    __global const float *ranges = scratch + (long)((steps + BLOCK - 1) / BLOCK) * 6 * lanes;
    struct part s;
    struct sums outside[ITEM_LANES];
    float peak[ROWS], bottom[ITEM_LANES]; // not live in the loop

    // A work-item packs sources of one lane, maybe not one of those it sums.
    const int packer = min(first + id % GROUP_LANES, lanes - 1);
    const struct source source = SOURCE_AT(lane0 + packer);
    const float max_exponent = find_largest(ranges + packer, head.from, tail.to, 2 * lanes);
    if (id < GROUP_LANES)
        maxima[id] = max_exponent;
    for (int r = 0; r < ROWS; ++r)
        peak[r] = r < mine.rows ? table[r] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL
    for (int n = 0; n < ITEM_LANES; ++n) {
        const int lane = min(first + tx * ITEM_LANES + n, lanes - 1);
        bottom[n] = -find_largest(ranges + lanes + lane, mine.from, mine.to, 2 * lanes);
        load_outside(&outside[n], &mine, &w, scratch + lane, lanes);
    }
    int hold = start_part(&s, outside, peak, maxima + tx * ITEM_LANES, bottom, mine.rows);
    all_hold[id] = hold;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TX; ++i)
        hold &= all_hold[ty * TX + i];
    mine.to = hold ? mine.to : mine.from;

    struct fetched next;
    fetch_sources(&next, &source, &mine, table + ROWS, head.from, tail.to, id);
    for (int j0 = head.from; j0 < tail.to; j0 += KEYS) {
        store_fetched(packed, weights + ty * KEYS * ROWS, &next, max_exponent, id);
        barrier(CLK_LOCAL_MEM_FENCE);
        fetch_sources(&next, &source, &mine, table + ROWS, j0 + KEYS, tail.to, id);
        if (j0 >= mine.from && j0 < mine.to) // in whole blocks
            add_sources(&s, packed + tx * ITEM_LANES, weights + ty * KEYS * ROWS);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (tx == 0 && mine.rows > 0)
        scratch[flags_at + (long)(mine.t0 / ROWS) * groups + column] = !hold;
    UNROLL
    for (int r = 0; r < ROWS; ++r) {
        float a[ITEM_LANES], b[ITEM_LANES];
        STORE_LANES(s.a[r], a);
        STORE_LANES(s.b[r], b);
        UNROLL
        for (int n = 0; n < ITEM_LANES; ++n) {
            const int lane = first + tx * ITEM_LANES + n, l = lane0 + lane;
            const struct target results = TARGET_AT(l);
            if (hold && r < mine.rows && lane < lanes)
                target_store(&results, mine.t0 + r, maxima[tx * ITEM_LANES + n] + table[r], a[n],
                             b[n]);
        }
    }
}

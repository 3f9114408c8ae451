// SPDX-License-Identifier: MIT
// Attention-free mixing, GPU variant, the rows inside the window as a product of two factors:
// y = sigmoid(q) * B / A, or backward dv = e^k A and dk = v dv - e^k B.  Host side:
// lib/op/aft/aft_gpu.c
//
//   e^(w + kappa) = e^(w - peak) e^(kappa - max_exponent) e^(peak + max_exponent)
//
//   Work      one work-item = ITEM_LANES lanes of channels, ROWS target rows; a work-group = TX *
//             ITEM_LANES lanes, TY blocks of rows.  A source is 2 ROWS ITEM_LANES FMAs to
//             a work-item; its exponential is computed once for the work-group
//   Memory    reads the sources inside the work-group's window once, their ranges, the rows'
//             weights and the targets once; writes results once.  Local memory: KEYS * (2 * TX *
//             ITEM_LANES + TY * ROWS) + LS floats
//   Numerics  max_exponent is the largest kappa inside the work-group's window.  A block of rows and
//             TX * ITEM_LANES lanes is done here where its exponents stay within REACH: kappa >=
//             max_exponent - REACH inside its window, so that the source of a row's peak keeps the
//             row's sum above e^-REACH, and at most e^REACH from outside.  Else it is flagged, for
//             aft_gpu_rows
//
//   Macro       Meaning                                         Values
//   LS          work-group size                                 TX TY
//   ROWS        target rows of a work-item, a divisor of BLOCK  16, 8
//   ITEM_LANES  lanes of a work-item, TX apart                  1, 2
//   TX          work-items across lanes                         64, 32, 8; lib/op/aft/aft_gpu.c
//   TY          work-items across rows                          4, 2
//   KEYS        sources in local memory                         32, 16, 8

#if !defined ROWS || !defined ITEM_LANES || !defined TX || !defined TY || !defined KEYS
#error "ROWS, ITEM_LANES, TX, TY and KEYS must be defined"
#endif
#if !defined LS || LS != TX * TY
#error "LS: work-group size, TX * TY"
#endif

#define MASKED 0
#include "aft/aft_bias.clh"
#include "aft/aft_source.clh"

#define QUADS       (ROWS / 4)
#define SOURCE_STEP (ITEM_LANES * 2 * TX) // floats of a source in local memory

// The target rows of a work-item: those there are, and the sources [from, to) inside their window.
struct tile {
    int t0, rows, from, to;
};

static inline void tile_find(struct tile *x, const struct bias *w, int t0)
{
    x->t0 = t0;
    x->rows = clamp(w->steps - t0, 0, ROWS);
    x->from = x->to = 0;
    if (x->rows > 0) {
        bias_region(w, t0, x->rows, BLOCK, &x->from, &x->to);
        x->from *= BLOCK;
        x->to = min(x->to * BLOCK, w->steps);
    }
}

// sums: [2][blocks][3][lanes] from the lane on, of all blocks before and of all after each
static inline void tile_outside(struct sums *s, const struct tile *x, const struct bias *w,
                                __global const float *sums, int lanes)
{
    const int blocks = (w->steps + BLOCK - 1) / BLOCK;
    *s = sums_of_none();
    if (x->rows > 0 && w->causal >= 0 && x->from > 0)
        *s = sums_load(sums, x->from / BLOCK, lanes);
    if (x->rows > 0 && w->causal <= 0 && x->to < w->steps)
        *s = sums_merge(*s, sums_load(sums, blocks + x->to / BLOCK - 1, lanes));
}

// The largest of one lane's figures for the blocks of sources from .. to - 1, `step` apart.
static inline float largest(__global const float *figures, int from, int to, int step)
{
    float max_exponent = NOTHING;
    for (int i = from / BLOCK; i * BLOCK < to; ++i)
        max_exponent = max_v(figures[(long)i * step], max_exponent);
    return max_exponent;
}

// Sums of one lane; row r stands for e^(max_exponent + peak[r]) times them.
struct part {
    float max_exponent;
    float4 a[QUADS], b[QUADS];
};

// exp(x - peak) of four rows.
static inline float4 over_peaks(float x, const float *peak)
{
    return (float4)(exp_f(x - peak[0]), exp_f(x - peak[1]), exp_f(x - peak[2]), exp_f(x - peak[3]));
}

// What lies outside the window, before any source inside it.  True: a product will do.
static inline int part_start(struct part *s, const struct tile *x, const struct sums *outside,
                             const float peak[ROWS], float max_exponent, float bottom)
{
    float lowest = -NOTHING;
    UNROLL
    for (int r = 0; r < ROWS; ++r)
        lowest = r < x->rows ? min_v(peak[r], lowest) : lowest;
    s->max_exponent = max_exponent;
    UNROLL
    for (int q = 0; q < QUADS; ++q) {
        const float4 f = over_peaks(outside->max_exponent - max_exponent, peak + 4 * q);
        s->a[q] = f * outside->a;
        s->b[q] = f * outside->b;
    }
    return max_exponent - bottom <= REACH &&
           outside->max_exponent <= max_exponent + (REACH + lowest);
}

// Every TY-th of the sources [j0, j0 + KEYS), which end at `end`, for one lane.
// packed: [source][lane][2][TX] from the work-item's lane on
LOCAL_INLINE void pack_sources(__local float *packed, const struct source *from, float max_exponent,
                               int j0, int end, int first)
{
    for (int j = first; j < KEYS; j += TY) {
        const int t = min(j0 + j, end - 1);
        const float e = exp_nonpos_f(source_kappa(from, t) - max_exponent);
        packed[j * SOURCE_STEP] = e * source_alpha(from, t);
        packed[j * SOURCE_STEP + TX] = e * source_beta(from, t);
    }
}

// Adds the sources [from, to).  weights: [source][ROWS]
LOCAL_INLINE void add_sources(struct part *s, __local const float *packed,
                              __local const float *weights, int from, int to)
{
    for (int j = from; j < to; ++j) {
        float4 weight[QUADS];
        UNROLL
        for (int q = 0; q < QUADS; ++q)
            weight[q] = vload4(q, weights + j * ROWS);
        UNROLL
        for (int n = 0; n < ITEM_LANES; ++n) {
            const float alpha = packed[j * SOURCE_STEP + n * 2 * TX];
            const float beta = packed[j * SOURCE_STEP + n * 2 * TX + TX];
            UNROLL
            for (int q = 0; q < QUADS; ++q) {
                s[n].a[q] += weight[q] * alpha;
                s[n].b[q] += weight[q] * beta;
            }
        }
    }
}

static inline void part_store(const struct part *s, const struct tile *x, const float peak[ROWS],
                              const struct target *to)
{
    float a[ROWS], b[ROWS];
    UNROLL
    for (int q = 0; q < QUADS; ++q) {
        vstore4(s->a[q], q, a);
        vstore4(s->b[q], q, b);
    }
    UNROLL
    for (int r = 0; r < ROWS; ++r)
        if (r < x->rows)
            target_store(to, x->t0 + r, s->max_exponent + peak[r], a[r], b[r]);
}

// Arguments as in aft_gpu_rows, and those of aft_gpu_weights that say where weights are.
// scratch: sums as there, then [blocks][2][lanes], the largest kappa and the largest -kappa; at
// flags_at, for each block of rows and each work-group along lanes, 1 where aft_gpu_rows is to do
// it
KERNEL void aft_gpu_band(TARGET_PARAMS, SOURCE_PARAMS, __global float *scratch, long flags_at,
                         int row0, long weights_at, int pitch, int steps, int batch, int channels,
                         int lane0, int lanes, int window, int causal)
{
    __local float packed[KEYS * SOURCE_STEP], weights[TY * KEYS * ROWS];
    __local int all_hold[LS];
    const int id = get_local_id(0), tx = id % TX, ty = id / TX, groups = get_num_groups(0);
    const int column = get_group_id(0), line = get_group_id(1),
              first = column * TX * ITEM_LANES + tx;
    const struct bias w = {0, 0, window, causal, 0, 0, 0, steps};
    const int t0 = row0 + line * TY * ROWS, last = (steps - 1) / ROWS * ROWS;
    struct tile head, tail, mine;
    tile_find(&head, &w, t0);
    tile_find(&tail, &w, min(t0 + (TY - 1) * ROWS, last));
    tile_find(&mine, &w, t0 + ty * ROWS);
    __global const float *table =
        scratch + weights_at + ((long)line * TY + ty) * (pitch + 1) * ROWS;
    __global const float *ranges = scratch + (long)((steps + BLOCK - 1) / BLOCK) * 6 * lanes;
    struct source source[ITEM_LANES];
    struct part s[ITEM_LANES];
    float peak[ROWS];
    int hold = 1;

    for (int r = 0; r < ROWS; ++r)
        peak[r] = r < mine.rows ? table[r] : 0.0f;
    UNROLL
    for (int n = 0; n < ITEM_LANES; ++n) {
        const int lane = min(first + n * TX, lanes - 1), l = lane0 + lane;
        const struct source own = SOURCE_AT(l);
        source[n] = own;
        struct sums outside;
        tile_outside(&outside, &mine, &w, scratch + lane, lanes);
        hold &= part_start(&s[n], &mine, &outside, peak,
                           largest(ranges + lane, head.from, tail.to, 2 * lanes),
                           -largest(ranges + lanes + lane, mine.from, mine.to, 2 * lanes));
    }
    all_hold[id] = hold;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TX; ++i)
        hold &= all_hold[ty * TX + i];
    mine.to = hold ? mine.to : mine.from;

    for (int j0 = head.from; j0 < tail.to; j0 += KEYS) {
        UNROLL
        for (int n = 0; n < ITEM_LANES; ++n)
            pack_sources(packed + n * 2 * TX + tx, &source[n], s[n].max_exponent, j0, tail.to, ty);
        for (int i = tx; i < KEYS * ROWS; i += TX) {
            const int at = (j0 - mine.from) * ROWS + i;
            const int there = at >= 0 && at < (mine.to - mine.from) * ROWS;
            weights[ty * KEYS * ROWS + i] = there ? table[ROWS + at] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        add_sources(s, packed + tx, weights + ty * KEYS * ROWS, clamp(mine.from - j0, 0, KEYS),
                    clamp(mine.to - j0, 0, KEYS));
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (tx == 0 && mine.rows > 0)
        scratch[flags_at + (long)(mine.t0 / ROWS) * groups + column] = !hold;
    UNROLL
    for (int n = 0; n < ITEM_LANES; ++n) {
        const int lane = first + n * TX, l = lane0 + lane;
        const struct target results = TARGET_AT(l);
        if (hold && lane < lanes)
            part_store(&s[n], &mine, peak, &results);
    }
}

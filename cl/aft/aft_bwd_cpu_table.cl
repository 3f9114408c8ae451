// SPDX-License-Identifier: MIT
// Gradient of attention-free mixing's biases, CPU variant.  Host side: lib/op/aft/aft_bwd.c
//
//   dw_ij += sum over channels of p_ij (a_i v_j - g_i y_i),   a = g sigmoid(q),
//   p_ij = e^(w_ij + k_j - L_i), as a product of factors
//     e^(w_ij - peak_i) [ (e^(max_exponent - L_i + peak_i) a_i) (e^(k_j - max_exponent) v_j)
//                         - (e^(max_exponent - L_i + peak_i) g_i y_i) e^(k_j - max_exponent) ]
//
//   Work      one work-item = a block of ROWS queries i and the keys j near them, over all lanes of
//             the channel block, CHUNK lanes at a time; tiles of TI x TJ pairs
//   Memory    packed keys of the panels inside the window once per block, what queries have once;
//             local memory: five numbers for each query and channel of the lanes
//   Numerics  lanes whose exponents do not fit a product (as aft/aft_cpu_product.clh says) are taken
//             exponential by exponential; pairs in a fixed order
//
//   Macro     Meaning                                                        Values
//   VW        channels of a lane                                             16, 8, 4
//   LS        work-group size                                                1
//   ROWS      rows of a block                                                12
//   PANEL     blocks of a panel                                              8
//   CHUNK     lanes at a time                                                1 .. 32
//   BACKWARD  sources are queries: no                                        0
//   MASKED    a mask tensor says what is seen, at any distance               0, 1

#ifndef CHUNK
#error "CHUNK: lanes at a time"
#endif

#include "aft/aft_bias.clh"
#include "aft/aft_cpu.clh"
#include "common/transpose_reduce.clh"

// Queries and keys of a tile, whose VW sums are reduced together; TI a divisor of ROWS, TJ of a
// panel's rows.
#define TI 4
#define TJ (VW / TI)

// What e^(max_exponent - bottom) may be, and e^(max_exponent - L + peak).
#define MAX_SPAN   85.0f
#define MAX_FACTOR REACH

// The tensors of one lane, at row 0, and their distance of rows.
struct lane {
    __global const float *k, *v, *log, *q, *y, *g;
    long k_row, row;
    int width;
};

#define LANE_AT(l)                                                                                 \
    {                                                                                              \
        k + k_start + key_start(l, channels, k_stride),                                            \
            v + v_start + lane_start(l, channels, v_stride),                                       \
            log + log_start + lane_start(l, channels, log_stride),                                 \
            q + q_start + lane_start(l, channels, q_stride),                                       \
            y + y_start + lane_start(l, channels, y_stride),                                       \
            g + g_start + lane_start(l, channels, g_stride), batch *k_stride, batch *v_stride,     \
            lane_width(l, channels)                                                                \
    }

// A block of queries, the keys [from, to) near them, their largest seen biases.
struct queries {
    int t0, rows, from, to;
    float peak[ROWS];
};

static inline void queries_find(struct queries *x, const struct bias *w, int block)
{
    x->t0 = block * ROWS;
    x->rows = min(ROWS, w->steps - x->t0);
    x->from = max(0, x->t0 - w->window + 1);
    x->to = min(w->steps, x->t0 + x->rows - 1 + w->window);
    if (w->causal)
        x->to = min(x->to, x->t0 + x->rows);
    for (int r = 0; r < ROWS; ++r) {
        const int i = min(x->t0 + r, w->steps - 1);
        float peak = NOTHING;
        for (int j = max(0, i - w->window + 1); j < min(w->steps, i + w->window); ++j)
            peak = fmax(peak, bias_one(w, i, j));
        x->peak[r] = peak > NOTHING ? peak : 0.0f;
    }
}

// parts [ROWS][3][VW] of a lane: a_i, g_i y_i and L_i.
LOCAL_INLINE void queries_load(const struct queries *x, const struct lane *l, int steps,
                               __local float *parts)
{
    for (int r = 0; r < ROWS; ++r, parts += 3 * VW) {
        const long at = min(x->t0 + r, steps - 1) * l->row;
        const FV g = lane_load(l->g + at, l->width);
        VSTORE(g * sigmoid_v(lane_load(l->q + at, l->width)), parts);
        VSTORE(g * lane_load(l->y + at, l->width), parts + VW);
        VSTORE(lane_load(l->log + at, l->width), parts + 2 * VW);
    }
}

// factors [ROWS][2][VW] of a lane; zeros and false where the product does not hold.
LOCAL_INLINE bool queries_pack(const struct queries *x, __local const float *parts, FV max_exponent,
                               FV bottom, __local float *factors)
{
    IV good = max_exponent - bottom <= (FV)(MAX_SPAN);

    for (int r = 0; r < ROWS; ++r, parts += 3 * VW) {
        const FV z = (max_exponent - VLOAD(parts + 2 * VW)) + (FV)(x->peak[r]);
        const FV e = exp_v(z);
        good &= z <= (FV)(MAX_FACTOR);
        VSTORE(e * VLOAD(parts), factors + r * 2 * VW);
        VSTORE(-e * VLOAD(parts + VW), factors + r * 2 * VW + VW);
    }
    const bool product = all(good);
    for (int i = 0; i < 2 * ROWS && !product; ++i)
        VSTORE((FV)(0.0f), factors + i * VW);
    return product;
}

// Element TJ r + z: the product of query r and key z, added over `lanes` lanes.
LOCAL_INLINE FV multiply_tile(__global const float *packed, long lane_floats,
                              __local const float *factors, int lanes)
{
    FV s[TI * TJ];

    UNROLL
    for (int i = 0; i < TI * TJ; ++i)
        s[i] = (FV)(0.0f);
    for (int u = 0; u < lanes; ++u, packed += lane_floats, factors += ROWS * 2 * VW)
        UNROLL
    for (int half_way = 0; half_way < 2; ++half_way) {
        FV f[TI];
        UNROLL
        for (int r = 0; r < TI; ++r)
            f[r] = VLOAD(factors + (2 * r + half_way) * VW);
        UNROLL
        for (int z = 0; z < TJ; ++z) {
            const FV e = VLOAD(packed + (2 * z + 1 - half_way) * VW);
            UNROLL
            for (int r = 0; r < TI; ++r)
                s[r * TJ + z] += f[r] * e;
        }
    }
    return transpose_reduce(s);
}

// A tile of the table: queries i, i + 1 ... of a block, keys j, j + 1 ... of [from, to).
struct tile {
    int i, j, from, to;
};

// Which of the tile's pairs have a bias, and that less the query's peak.
LOCAL_INLINE void tile_biases(const struct tile *tile, const struct queries *x,
                              const struct bias *w, bool has[VW], float biases[VW])
{
    const int t0 = x->t0 + tile->i;
    const bool whole = !MASKED && tile->i + TI <= x->rows && tile->j >= tile->from &&
                       tile->j + TJ <= tile->to && t0 + TI - 1 - tile->j < w->window &&
                       tile->j + TJ - 1 - t0 < w->window && (!w->causal || tile->j + TJ - 1 <= t0);

    for (int r = 0; r < TI; ++r)
        for (int z = 0; z < TJ; ++z) {
            const int t = t0 + r, key = tile->j + z;
            const bool is =
                whole || (tile->i + r < x->rows && key >= tile->from && key < tile->to &&
                          abs(t - key) < w->window && bias_seen(w, t, key));
            const float bias = is ? w->table[(long)t * w->row + key] : NOTHING;
            has[r * TJ + z] = bias > NOTHING;
            biases[r * TJ + z] = bias - x->peak[tile->i + r];
        }
}

LOCAL_INLINE void tile_add(const struct tile *tile, const struct queries *x, const struct bias *w,
                           FV sums, __global float *table, int table_row)
{
    bool has[VW];
    float biases[VW], all_of[VW];

    tile_biases(tile, x, w, has, biases);
    VSTORE(exp_nonpos_v(VLOAD(biases)) * sums, all_of);
    for (int i = 0; i < VW; ++i)
        if (has[i])
            table[(long)(x->t0 + tile->i + i / TJ) * table_row + tile->j + i % TJ] += all_of[i];
}

// table: of (i, j) at table_start + i * table_row + j, added to.  scratch: from aft_cpu_sources.
// factors: CHUNK * ROWS * 5 * VW floats.
KERNEL void aft_bwd_cpu_table(PAIR_PARAMS, __global const float *restrict scratch, long lane_floats,
                              long ranges_at, BIAS_PARAMS, int steps, int batch, int channels,
                              int lane0, int lanes, int window, int causal,
                              __global float *restrict table, long table_start, int table_row,
                              __local float *factors)
{
    const int panel_rows = PANEL * ROWS, stride = ROWS * 2 * VW, parts_stride = ROWS * 3 * VW;
    __local float *parts = factors + CHUNK * stride;
    const struct bias w = BIAS_OF_ARGUMENTS;
    struct queries x;

    table += table_start;
    queries_find(&x, &w, (int)get_num_groups(0) - 1 - (int)get_group_id(0));
    for (int lane = 0; lane < lanes; lane += CHUNK) {
        for (int u = 0; u < min(CHUNK, lanes - lane); ++u) {
            const struct lane l = LANE_AT(lane0 + lane + u);
            queries_load(&x, &l, steps, parts + u * parts_stride);
        }
        for (int panel = x.from / panel_rows; panel * panel_rows < x.to; ++panel) {
            const int n = min(CHUNK, lanes - lane), first = panel * panel_rows;
            const int from = max(x.from, first), to = min(x.to, first + panel_rows);
            __global const float *packed = scratch + lane * lane_floats;
            uint product = 0; // bit u: of lane u
            for (int u = 0; u < n; ++u) {
                __global const float *range = packed + u * lane_floats + ranges_at + panel * 2 * VW;
                if (queries_pack(&x, parts + u * parts_stride, VLOAD(range), VLOAD(range + VW),
                                 factors + u * stride))
                    product |= 1u << u;
            }
            for (int j = first + (from - first) / TJ * TJ; j < to && product; j += TJ)
                for (int i = 0; i < x.rows; i += TI) {
                    const struct tile tile = {i, j, from, to};
                    if (x.t0 + i + TI - 1 <= j - window || x.t0 + i >= j + TJ - 1 + window ||
                        (causal && j > x.t0 + i + TI - 1))
                        continue;
                    tile_add(&tile, &x, &w,
                             multiply_tile(packed + (long)j * 2 * VW, lane_floats,
                                           factors + i * 2 * VW, n),
                             table, table_row);
                }
            if (product == (n < 32 ? (1u << n) - 1 : ~0u))
                continue;
            for (int r = 0; r < x.rows; ++r)
                for (int z = from; z < to; ++z) {
                    const int t = x.t0 + r;
                    const float bias = bias_one(&w, t, z);
                    FV sum = (FV)(0.0f);
                    if (abs(t - z) >= window || !(bias > NOTHING))
                        continue;
                    for (int u = 0; u < n; ++u) {
                        if (product >> u & 1)
                            continue;
                        const struct lane l = LANE_AT(lane0 + lane + u);
                        __local const float *f = parts + u * parts_stride + r * 3 * VW;
                        const FV exponent = (key_load(l.k + z * l.k_row, l.width) -
                                             lane_load(l.log + t * l.row, l.width)) +
                                            (FV)(bias);
                        const FV p = exp_nonpos_v(min_v(exponent, (FV)(0.0f)));
                        sum += p * (VLOAD(f) * lane_load(l.v + z * l.row, l.width) - VLOAD(f + VW));
                    }
                    table[(long)t * table_row + z] += horizontal_sum(sum);
                }
        }
    }
}

// SPDX-License-Identifier: MIT
// Gradient of attention-free mixing's biases, CPU variant.  Host side: lib/op/aft/aft_bwd_table.c
//
//   dw_ij += sum over channels of p_ij (a_i v_j - g_i y_i),   a = g sigmoid(q),
//   p_ij = e^(w_ij + k_j - L_i), as a product of factors
//     e^(w_ij - peak_i) [ (e^(highest - L_i + peak_i) a_i) (e^(k_j - highest) v_j)
//                         - (e^(highest - L_i + peak_i) g_i y_i) e^(k_j - highest) ]
//
//   Work      one work-item = `blocks` blocks of ROWS queries i and the keys j inside their windows, over
//             all lanes of the channel block, `chunk` lanes at a time; tiles of ROWS queries and two
//             vectors of keys
//   Memory    reads packed keys inside the window once per work-item, queries' tensors once; local
//             memory: two floats per query and channel of a chunk
//   Numerics  lanes whose exponents do not fit a product take every exponential separately; pairs in a
//             fixed order
//
//   Macro   Meaning                               Values
//   VW      channels of a lane, keys of a vector  16, 8, 4

#define BLOCKS 8 // maximum per work-item: MAX_BLOCKS of the host side

#include "aft/aft_bias_lane.clh"
#include "common/transpose.clh"

// Queries of a tile whose sums fit the registers: 32 with VW = 16, else 16.
#if VW == 16
#define TILE_ROWS ROWS
#else
#define TILE_ROWS (ROWS / 2)
#endif

// Vectors of a block's queries; floats of one half of its factors, including the last store's excess.
#define ROW_VECTORS        ((ROWS + VW - 1) / VW)
#define HALF_FLOATS(chunk) ((chunk)*VW * ROWS + VW)

// A product needs highest - lowest <= REACH, so that factors times values keep their digits, and
// highest - L + peak <= REACH.  If some e^(bias - peak) underflows to 0, the second limit is
// FADED_REACH: each pair is a separate result, so no larger term hides the lost p, below e^-67.
#define FADED_REACH 20.0f

// The tensors of one lane at row 0, and their row strides.
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

// A block of queries.
struct queries {
    int t0, rows, from, to; // keys [from, to) are inside their windows
    uint product;           // bit u: lane u of the chunk is computed as a product
    float peak[ROWS];       // largest biases
    float reach;            // limit of highest - L + peak in a product
};

static inline void find_queries(struct queries *x, const struct bias *w, int block)
{
    x->t0 = block * ROWS;
    x->rows = min(ROWS, w->steps - x->t0);
    x->from = max(0, x->t0 - w->window + 1);
    x->to = min(w->steps, x->t0 + x->rows - 1 + w->window);
    if (w->causal)
        x->to = min(x->to, x->t0 + x->rows);
    const float spread = find_peaks(w, x->t0, x->from, x->to, x->peak);
    x->reach = -spread < EXP_LOWEST ? FADED_REACH : REACH;
}

// Writes a lane's factors of values, [VW][ROWS], and, at offset `other`, of the second term; or zeros
// and returns false if a product does not hold.  A store's last floats overlap the next channel.
OUT_OF_LINE bool pack_queries(const struct queries *x, const struct lane *l, int steps, FV highest,
                              FV lowest, __local float *factors, int other)
{
    FV a[ROW_VECTORS][VW], b[ROW_VECTORS][VW];
    IV good = highest - lowest <= (FV)(REACH);

    UNROLL
    for (int r = 0; r < ROW_VECTORS * VW; ++r) {
        a[r / VW][r % VW] = b[r / VW][r % VW] = (FV)(0.0f);
        if (r < ROWS) {
            const long at = min(x->t0 + r, steps - 1) * l->row;
            const FV z = (highest - lane_load(l->log + at, l->width)) + (FV)(x->peak[r]);
            const FV e = exp_v(z) * lane_load(l->g + at, l->width);
            good &= z <= (FV)(x->reach);
            a[r / VW][r % VW] = e * sigmoid_v(lane_load(l->q + at, l->width));
            b[r / VW][r % VW] = -e * lane_load(l->y + at, l->width);
        }
    }
    const bool product = all(good);
    UNROLL
    for (int i = 0; i < ROW_VECTORS; ++i) {
        transpose_square(a[i]);
        transpose_square(b[i]);
    }
    UNROLL
    for (int c = 0; c < VW; ++c)
        UNROLL
    for (int i = 0; i < ROW_VECTORS; ++i) {
        VSTORE(product ? a[i][c] : (FV)(0.0f), factors + c * ROWS + i * VW);
        VSTORE(product ? b[i][c] : (FV)(0.0f), factors + other + c * ROWS + i * VW);
    }
    return product;
}

// multiply_1, multiply_2: sums [TILE_ROWS][N] of queries times N vectors of keys, over `count` channels
// of both halves; `other`: offset of the second half in the factors.  keys: at the first channel;
// half_floats, group_floats: strides to the other half, to the next VW keys.  The sums are copied so
// that they stay in registers.
#define DEFINE_MULTIPLY(N)                                                                         \
    LOCAL_INLINE void multiply_##N(__global const float *keys, long half_floats,                   \
                                   long group_floats, __local const float *factors, int other,     \
                                   int count, FV(*sums)[2])                                        \
    {                                                                                              \
        FV s[TILE_ROWS][N];                                                                        \
        UNROLL for (int i = 0; i < TILE_ROWS * N; ++i) s[i / N][i % N] = (FV)(0.0f);               \
        for (int half_way = 0; half_way < 2; ++half_way) {                                         \
            for (int c = 0; c < count; ++c) {                                                      \
                FV e[N];                                                                           \
                UNROLL for (int v = 0; v < N; ++v) e[v] = VLOAD(keys + v * group_floats + c * VW); \
                UNROLL for (int i = 0; i < TILE_ROWS * N; ++i) s[i / N][i % N] +=                  \
                    (FV)(factors[c * ROWS + i / N]) * e[i % N];                                    \
            }                                                                                      \
            keys += half_floats;                                                                   \
            factors += other;                                                                      \
        }                                                                                          \
        UNROLL for (int i = 0; i < TILE_ROWS * N; ++i) sums[i / N][i % N] = s[i / N][i % N];       \
    }
DEFINE_MULTIPLY(1)
DEFINE_MULTIPLY(2)

// Adds e^(bias - peak) times the sums of query t and keys j, j + 1 ... to the table.
static inline void add_keys(const struct bias *w, int t, int j, float peak, FV sums,
                            __global float *row)
{
    const IV distance = LANES + (j - t);
    const FV bias = load_bias_lane(w, t, j);
    const IV is =
        (bias > (FV)(NOTHING)) & (distance < (IV)(w->window)) & (-distance < (IV)(w->window));

    sums *= exp_nonpos_v(bias - (FV)(peak));
    if (all(is))
        VSTORE(VLOAD(row + j) + sums, row + j);
    else if (any(is)) {
        float x[VW];
        int there[VW];
        VSTORE(sums, x);
        IVSTORE(is, there);
        for (int i = 0; i < VW; ++i)
            if (there[i])
                row[j + i] += x[i];
    }
}

// Adds a tile over the lanes of a chunk, with keys from VW * group on.
OUT_OF_LINE void add_tile(const struct queries *x, const struct bias *w, __global const float *keys,
                          long half_floats, int group, __local const float *factors, int other,
                          int count, int n_vectors, __global float *table, int table_row)
{
    __global const float *tile_keys = keys + group * 2 * half_floats;

    for (int r0 = 0; r0 < x->rows; r0 += TILE_ROWS) {
        FV sums[TILE_ROWS][2];
        if (n_vectors == 1)
            multiply_1(tile_keys, half_floats, 2 * half_floats, factors + r0, other, count, sums);
        else
            multiply_2(tile_keys, half_floats, 2 * half_floats, factors + r0, other, count, sums);
        for (int r = 0; r < min(TILE_ROWS, x->rows - r0); ++r) {
            const int t = x->t0 + r0 + r;
            for (int v = 0; v < n_vectors; ++v)
                add_keys(w, t, (group + v) * VW, x->peak[r0 + r], sums[r][v],
                         table + (long)t * table_row);
        }
    }
}

// One pair of query and key, with an exponential per channel.
LOCAL_INLINE FV exact_pair(const struct lane *l, int t, int z, float bias)
{
    const FV exponent =
        (key_load(l->k + z * l->k_row, l->width) - lane_load(l->log + t * l->row, l->width)) +
        (FV)(bias);
    const FV p = exp_nonpos_v(min_v(exponent, (FV)(0.0f)));
    const FV q = lane_load(l->q + t * l->row, l->width), v = lane_load(l->v + z * l->row, l->width),
             y = lane_load(l->y + t * l->row, l->width), g = lane_load(l->g + t * l->row, l->width);

    return p * (g * sigmoid_v(q) * v - g * y);
}

// table: adds to (i, j) at table_start + i * table_row + j.  scratch: keys and, at ranges_at, ranges
// from aft_bwd_cpu_keys.  factors: 2 * HALF_FLOATS(chunk) floats per block.
KERNEL void aft_bwd_cpu_table(PAIR_PARAMS, __global const float *restrict scratch, long ranges_at,
                              BIAS_PARAMS, RANGE_PARAMS, int window, int causal,
                              __global float *restrict table, long table_start, int table_row,
                              int chunk, int blocks, __local float *factors)
{
    const long half_floats = (long)lanes * VW * VW;
    const int place = (int)get_num_groups(0) - 1 - (int)get_group_id(0);
    const struct bias w = BIAS_OF_ARGUMENTS;
    const int all_blocks = (steps + ROWS - 1) / ROWS, n = min(blocks, all_blocks - place * blocks);
    const int other = HALF_FLOATS(chunk);
    struct queries x[BLOCKS];
    int from = steps, to = 0;

    table += table_start;
    for (int b = 0; b < n; ++b) {
        find_queries(x + b, &w, place * blocks + b);
        from = min(from, x[b].from);
        to = max(to, x[b].to);
    }
    for (int lane = 0; lane < lanes; lane += chunk) {
        const int count = min(chunk, lanes - lane);
        for (int b = 0; b < n; ++b) {
            x[b].product = 0;
            for (int u = 0; u < count; ++u) {
                const struct lane l = LANE_AT(lane0 + lane + u);
                __global const float *range = scratch + ranges_at + (lane + u) * 2 * VW;
                if (pack_queries(x + b, &l, steps, VLOAD(range), VLOAD(range + VW),
                                 factors + b * 2 * other + u * VW * ROWS, other))
                    x[b].product |= 1u << u;
            }
        }
        __global const float *keys = scratch + (long)lane * VW * VW;
        for (int group = from / VW; group * VW < to; group += 2)
            for (int b = 0; b < n; ++b) {
                __local const float *own = factors + b * 2 * other;
                const bool first = group * VW < x[b].to && (group + 1) * VW > x[b].from,
                           second = (group + 1) * VW < x[b].to && (group + 2) * VW > x[b].from;
                if (x[b].product && (first || second))
                    add_tile(x + b, &w, keys, half_floats, group + !first, own, other, count * VW,
                             first + second, table, table_row);
            }
        for (int b = 0; b < n; ++b) {
            if (x[b].product == (count < 32 ? (1u << count) - 1 : ~0u))
                continue;
            for (int t = x[b].t0; t < x[b].t0 + x[b].rows; ++t)
                for (int z = x[b].from; z < x[b].to; ++z) {
                    const float bias = load_bias(&w, t, z);
                    FV sum = (FV)(0.0f);
                    if (abs(t - z) >= window || bias <= NOTHING)
                        continue;
                    for (int u = 0; u < count; ++u) {
                        const struct lane l = LANE_AT(lane0 + lane + u);
                        if (!(x[b].product >> u & 1))
                            sum += exact_pair(&l, t, z, bias);
                    }
                    table[(long)t * table_row + z] += horizontal_sum(sum);
                }
        }
    }
}

// SPDX-License-Identifier: MIT
//
//   p_ij = softmax over visible j of s_ij,   s_ij = scale * (q_i . k_j) or softcap tanh of that / softcap, + bias_ij + slope (j - i - S + T),   y_i = sum_j m_ij p_ij v_j
//
// m: the mask of dropout, or 1.  H query heads share G key and value heads, H / G neighbours each.

#include <math.h>
#include <stdlib.h>

#include "attncl/attention.h"
#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static bool visible(const struct ref_attention *a, int64_t b, int64_t i, int64_t j, int64_t offset)
{
    const struct host *m = a->mask;
    const int64_t at = i + offset;

    if (a->causal && j > at)
        return false;
    if (a->window > 0 && llabs(at - j) >= a->window)
        return false;
    if (!m)
        return true;
    const int64_t row = m->dim[0] == 1 ? 0 : i, entry = m->dim[2] == 1 ? 0 : b;
    return m->data[(row * m->dim[1] + j) * m->dim[2] + entry] != 0;
}

static int64_t length(const struct ref_attention *a, int64_t b, int64_t i)
{
    const struct host *lens = a->valid_lens;

    if (!lens)
        return INT64_MAX;
    return (int64_t)lens->data[lens->rank == 1 ? b : b * lens->dim[1] + i];
}

// The score of an unseen key, whose weight is 0.
static const double HIDDEN = -2e300;

// Turns scores into weights.  NaN or +inf among the visible ones makes all of these NaN, with `reaching` the others too;
// where all are -inf the weights are 0.
static void softmax_row(double *p, int64_t n, bool reaching)
{
    double row_max = -INFINITY, sum = 0;

    for (int64_t j = 0; j < n; ++j)
        row_max = p[j] == HIDDEN ? row_max : fmax(row_max, p[j]);
    for (int64_t j = 0; j < n; ++j)
        sum += p[j] == HIDDEN || p[j] == -INFINITY ? 0 : exp(p[j] - row_max);
    for (int64_t j = 0; j < n; ++j)
        p[j] = p[j] == HIDDEN ? (reaching ? 0 * sum : 0) : sum != 0 ? exp(p[j] - row_max) / sum : 0;
}

double ref_attention_score(const struct ref_attention *a, double dot)
{
    const double score = a->scale * dot;
    return a->softcap > 0 ? a->softcap * tanh(score / a->softcap) : score;
}

double ref_attention_bias(const struct ref_attention *a, int64_t b, int64_t h, int64_t i, int64_t j,
                          int64_t offset)
{
    const struct host *table = a->bias;
    const int64_t at[] = {b, h, i, j};
    int64_t place = 0;

    for (int k = 0; k < 4 && table; ++k)
        place = place * table->dim[k] + (table->dim[k] == 1 ? 0 : at[k]);
    return (table ? table->data[place] : 0) +
           (a->slopes ? a->slopes->data[h] * (double)(j - i - offset) : 0);
}

void ref_attention_weights(const struct ref_attention *a, const struct host *q,
                           const struct host *k, struct host *weights)
{
    const int64_t n_heads = q->dim[1], n_queries = q->dim[2], width = q->dim[3];
    const int64_t n_keys = k->dim[2], n_kv = k->dim[1];
    const int64_t offset = a->position ? (int64_t)a->position->data[0] : n_keys - n_queries;

    for (int64_t head = 0; head < q->dim[0] * n_heads; ++head)
        for (int64_t i = 0; i < n_queries; ++i) {
            const double *qi = q->data + (head * n_queries + i) * width;
            double *p = weights->data + (head * n_queries + i) * n_keys;
            const int64_t b = head / n_heads;
            for (int64_t j = 0; j < n_keys; ++j) {
                const double *kj = k->data + (head * n_kv / n_heads * n_keys + j) * width;
                double dot = 0;
                for (int64_t d = 0; d < width; ++d)
                    dot += qi[d] * kj[d];
                const bool beyond = j >= length(a, b, i), hidden = beyond && a->hard_lens;
                p[j] = hidden || !visible(a, b, i, j, offset) ? HIDDEN
                       : beyond                               ? -1e6
                                                              : ref_attention_score(a, dot) +
                                      ref_attention_bias(a, b, head % n_heads, i, j, offset);
            }
            softmax_row(p, n_keys, a->reaching);
        }
}

void ref_attention_drop(const struct ref_attention *a, struct host *weights)
{
    if (a->dropout.p > 0)
        ref_dropout_fwd(&a->dropout, weights, 0, NULL, weights);
}

static void mix(const struct host *weights, const struct host *v, bool time_first, bool reaching,
                struct host *y)
{
    const int64_t n_batch = v->dim[0], n_kv = v->dim[1], n_keys = v->dim[2], width = v->dim[3];
    const int64_t n_heads = weights->dim[1], n_queries = weights->dim[2];

    for (int64_t b = 0; b < n_batch; ++b)
        for (int64_t h = 0; h < n_heads; ++h)
            for (int64_t i = 0; i < n_queries; ++i)
                for (int64_t e = 0; e < width; ++e) {
                    const int64_t head = b * n_heads + h;
                    const int64_t row = time_first ? i * n_batch + b : b * n_queries + i;
                    double sum = 0;
                    for (int64_t j = 0; j < n_keys; ++j) {
                        const double p = weights->data[(head * n_queries + i) * n_keys + j];
                        if (p != 0 || reaching)
                            sum += p * v->data[(head * n_kv / n_heads * n_keys + j) * width + e];
                    }
                    y->data[(row * n_heads + h) * width + e] = sum;
                }
}

void ref_attention_mix(const struct host *weights, const struct host *v, bool time_first,
                       struct host *y)
{
    mix(weights, v, time_first, false, y);
}

void ref_attention_reach(const struct host *weights, const struct host *v, bool time_first,
                         struct host *y)
{
    mix(weights, v, time_first, true, y);
}

// -- the op

enum { Q, K, V, MASK, LENS, BIAS, SLOPES, POSITION, STEP };

static struct ref_attention definition(const void *params, struct host *const *in)
{
    const struct attention_fwd_params *p = params;
    return (struct ref_attention){
        .scale = (double)p->scale,
        .softcap = (double)p->softcap,
        .causal = p->causal,
        .window = p->window,
        .mask = in[MASK],
        .valid_lens = in[LENS],
        .bias = in[BIAS],
        .slopes = in[SLOPES],
        .position = in[POSITION],
        .hard_lens = p->hard_lens,
        .dropout = {p->dropout.p, p->dropout.seed, (uint32_t)p->dropout.site,
                    in[STEP] ? (uint32_t)in[STEP]->data[0] : 0},
    };
}

static bool time_first(const void *params)
{
    return ((const struct attention_fwd_params *)params)->layout == ATTNCL_LAYOUT_TIME_FIRST;
}

// The weights that are asked for are those before dropout.
static struct host *weigh(const struct ref_attention *a, struct host *const *in,
                          struct host *const *out)
{
    const int64_t *dim = in[Q]->dim;
    struct host *p = host_new(ATTNCL_F32, DIMS(dim[0], dim[1], dim[2], in[K]->dim[2]));

    ref_attention_weights(a, in[Q], in[K], p);
    if (out[1])
        host_set(out[1], p->data);
    ref_attention_drop(a, p);
    return p;
}

static void attention(const void *params, struct host *const *in, struct host *const *out)
{
    const struct ref_attention a = definition(params, in);
    ref_attention_mix(weigh(&a, in, out), in[V], time_first(params), out[0]);
}

static void reach(const void *params, struct host *const *in, struct host *const *out)
{
    struct ref_attention a = definition(params, in);

    a.reaching = true;
    ref_attention_reach(weigh(&a, in, out), in[V], time_first(params), out[0]);
}

static void backward(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx, bool sizes, bool reaching)
{
    const struct ref_attention_data x = {in[Q], in[K], in[V], dy[0], dy[1]};
    struct ref_attention a = definition(params, in);

    a.reaching = reaching;
    ref_attention_bwd(&a, &x, time_first(params), sizes, dx[Q], dx[K], dx[V], dx[BIAS]);
}

static void attention_bwd(const void *params, struct host *const *in, struct host *const *dy,
                          struct host *const *dx)
{
    backward(params, in, dy, dx, false, false);
}

static void attention_sizes(const void *params, struct host *const *in, struct host *const *dy,
                            struct host *const *dx)
{
    backward(params, in, dy, dx, true, false);
}

static void attention_bwd_reach(const void *params, struct host *const *in, struct host *const *dy,
                                struct host *const *dx)
{
    backward(params, in, dy, dx, false, true);
}

// Scores of one channel and scale 1 are products of two floats, exact where the factors are.
static bool is_exact(const struct attention_fwd_params *params)
{
    return params->scale == 1;
}

// Of keys or values; of those with some that are not there yet: of N(0, 1).
static double largest_of(const struct spec_point *p, int i)
{
    return spec_in(p, POSITION) ? 5 : host_largest(spec_in(p, i));
}

// A weight: e^(2 score errors), an exponential of 1 ulp (8 roundings with its argument's) and a sum of S terms.  A score:
// D products and as many sums, and the scale, of at most |q| |k| each.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct attention_fwd_params *params = spec_params(p);
    const double unit = 0x1p-24, width = spec_extent(p, 'D'), dropped = params->dropout.p;
    const double score = (width + 2) * unit * (double)params->scale * width *
                             host_largest(spec_in(p, Q)) * largest_of(p, K) +
                         4 * unit * (double)params->softcap;
    const double relative = (is_exact(params) ? 0 : 2 * score) + (spec_extent(p, 'S') + 16) * unit;
    const double largest = largest_of(p, V) / (dropped < 1 ? 1 - dropped : 1);

    for (int64_t i = 0; i < allowed->count; ++i)
        allowed->data[i] = k == 0 ? relative * largest : relative * fabs(want->data[i]) + 1e-37;
}

// Head h has scores q[h] (k[h] + step[h] (j % 5)).
static void set_scores(struct host *const *in, const double *q, const double *k, const double *step)
{
    const int64_t n_heads = in[Q]->dim[1], n_queries = in[Q]->dim[2], n_keys = in[K]->dim[2];

    for (int64_t i = 0; i < in[Q]->count; ++i)
        in[Q]->data[i] = q[i / n_queries % n_heads];
    for (int64_t i = 0; i < in[K]->count; ++i)
        in[K]->data[i] =
            k[i / n_keys % n_heads] + step[i / n_keys % n_heads] * (double)(i % n_keys % 5);
}

static void set_extremes(struct host *const *in)
{
    static const double q[] = {1e4, -1e4, 1e15}, k[] = {-1e4, 1e4, 1e15}, step[] = {1, -3, 0};

    set_scores(in, q, k, step);
    host_scale(in[V], 1e4);
}

// Scores near -1e6, which keys beyond a length have.
static void set_competing(struct host *const *in)
{
    static const double q[] = {1, 1, 1, 1, 1, 1}, step[] = {.25, .25, .25, .25, .25, .25};
    static const double lowest[] = {-1e6 - 3, -1e6 + 1, -1e6 + 60, -1e6 + 86, -1e6 + 110, -2e6};

    set_scores(in, q, lowest, step);
}

// Scores that fall or rise along the keys: a row keeps its first maximum, or replaces it in later tiles, where scores rise by
// less or more than an exponential's range.  23 / 32 is 92 for a tile of 128 keys, close above that range.
static void set_rising(struct host *const *in)
{
    static const double q[] = {1, 1, 1, 1}, none[4] = {0};
    static const double rise[] = {-2, 2, 1.0 / 128, 23.0 / 32};
    const int64_t n_keys = in[K]->dim[2];

    set_scores(in, q, none, none);
    for (int64_t i = 0; i < in[K]->count; ++i)
        in[K]->data[i] = rise[i / n_keys % 4] * (double)(i % n_keys);
}

// Keys behind the last query's are not there.
static void hide_later(struct host *const *in)
{
    const int64_t n_keys = in[K]->dim[2], end = (int64_t)in[POSITION]->data[0] + in[Q]->dim[2];

    for (int side = K; side <= V; ++side)
        for (int64_t i = 0; i < in[side]->count; ++i)
            if (i / in[side]->dim[3] % n_keys >= end)
                in[side]->data[i] = NAN;
}

#define AS(...)    SPEC_PARAMS(attention_fwd, .scale = 0.25f, __VA_ARGS__)
#define EXACT(...) SPEC_PARAMS(attention_fwd, .scale = 1, __VA_ARGS__)
#define BATCH      .layout = ATTNCL_LAYOUT_BATCH_FIRST
#define TIME       .layout = ATTNCL_LAYOUT_TIME_FIRST
#define DROPOUT    .dropout = {.p = 0.3, .seed = 0x123456789u, .site = 5}
#define TIME_FIRST "y f32 T B H E;"
#define SHARED     "q f32 B G+G+G T D; k f32 B G S D; v f32 B G S E;"
#define ADDED      "y f32 T B G+G+G E; bias f32 1 1 T S; slopes f32:-1:1 G+G+G;"
static const char
    ranges[] = "B=1 H=2 T=4 S=5 D=3 E=2; B=1 H=2 T=5 S=5 D=9 E=10; B=1 H=2 T=70 S=5,139 D=9 E=10",
    window[] = "B=1 H=2 T=58,64 S=64 D=9 E=10; B=1 H=2 T=70 S=5,139 D=9 E=10",
    long_ranges[] =
        "B=1 H=2 T=1 S=1 D=9 E=10; B=1 H=2 T=150 S=150 D=9 E=10; B=1 H=2 T=60 S=20 D=9 E=10; "
        "B=1 H=2 T=50 S=150 D=9 E=10; B=1 H=1 T=3 S=530 D=8 E=20",
    behind[] = "B=2 H=2 T=4 S=40 D=3 E=2; B=1 H=2 T=70 S=300 D=9 E=10; B=1 H=1 T=3 S=530 D=8 E=20",
    hidden[] = "B=2 H=1 T=4 S=5 D=3 E=2; B=2 H=2 T=37 S=135 D=9 E=5",
    few[] = "B=2 H=3 T=5 S=7 D=4 E=6; B=1 H=2 T=33 S=17 D=40 E=16",
    shared[] = "B=2 G=2 T=5 S=7 D=4 E=6",
    biased[] = "B=2 H=2 T=5 S=7 D=4 E=6; B=2 H=1 T=37 S=135 D=9 E=5; B=1 H=2 T=70 S=40 D=9 E=10";

// Smoke: one of all; less than a tile, a ragged tile of queries and one of keys; keys that work-groups share in the GPU
// variant.  What each element may be off by in gradients: of the sum of the sizes of all terms.  Scores of random data are
// sums of some sqrt(D) terms' size and known to 2e-6 of 1 at D = 256, p to twice that; sums over keys and queries, a random
// walk of a few hundred roundings of 6e-8, make the rest.
// Several tiles of queries and of keys.
static const char tiles[] = "B=1 H=1 T=70 S=70 D=40 E=8";
static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const struct attention_fwd_params *p = params;
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_attention_inputs inputs = ATTNCL_ATTENTION_INPUTS_INIT;
    const attncl_dropout_desc dropout = spec_dropout(&p->dropout, in[STEP]);

    if (in[POSITION].id)
        return; // decoders alone have one
    desc.scale = p->scale;
    desc.causal = p->causal;
    desc.window = p->window;
    desc.softcap = p->softcap;
    desc.layout = (attncl_layout)p->layout;
    desc.dropout = &dropout;
    inputs.query = in[Q];
    inputs.key = in[K];
    inputs.value = in[V];
    inputs.mask = in[MASK];
    inputs.valid_lens = in[LENS];
    inputs.bias = in[BIAS];
    desc.slopes = in[SLOPES];
    desc.hard_lens = p->hard_lens;
    // As it lies in memory.
    out[0] =
        attncl_permute(g, attncl_attention(g, &desc, &inputs, p->want_weights ? &out[1] : NULL),
                       time_first(params) ? (const int[]){2, 0, 1, 3} : (const int[]){0, 2, 1, 3});
}

static const char caps[] = "B=1 H=16 T=2048 S=2048 D=64 E=64; B=1 H=16 T=2048 S=2048 D=256 E=256";
static const char widths[] =
    "B=1 H=16 T=1,2048 S=2048,8192 D=32 E=32; B=1 H=16 T=1,2048 S=2048,8192 D=63 E=63; "
    "B=1 H=16 T=1,2048,8192 S=2048,8192 D=64 E=64; B=1 H=16 T=1,2048 S=2048,8192 D=96 E=96; "
    "B=1 H=16 T=1,2048 S=2048,8192 D=127 E=127; B=1 H=16 T=1,2048 S=2048,8192 D=128 E=128; "
    "B=1 H=16 T=1,2048 S=2048,8192 D=192 E=192; B=1 H=16 T=1,2048 S=2048,8192 D=256 E=256; "
    "B=1 H=16 T=1,2048 S=2048,8192 D=320 E=320";
OP_SPEC(
    attention_fwd,
    .in = "q f32 B H T D; k f32 B H S D; v f32 B H S E; mask? u8 T S B; valid_lens? i32:-2:S+10 B; "
          "bias? f32 B H T S; slopes? f32 H; position? i32:0:S 1; step? i32",
    .out = "y f32 B T H E; weights? f32 B H T S; rows? f32 B H T 2", .ref = attention,
    .build = build, .grad = "q k v bias", .ref_bwd = attention_bwd, .grad_sizes = attention_sizes,
    .grad_tolerance = 1e-5, .reach = reach, .reach_bwd = attention_bwd_reach, .allow = allow,
    .nonzero = "DE", .unequal = "H", .leeway = MEETS,
    // S=512: two splits of keys, and gradients below the loop iterations at which llvmpipe stops.  The last: blocks of
    // several panels of 12 rows, on CPUs of wide vectors.
    .smoke = "B=2 H=3 T=5 S=7 D=4 E=6; B=1 H=1 T=1 S=1 D=1 E=1; B=1 H=2 T=33 S=17 D=40 E=16; "
             "B=1 H=1 T=3 S=129 D=5 E=31; B=2 H=1 T=65 S=1 D=3 E=112; B=1 H=1 T=3 S=512 D=3 E=260; "
             "B=2 H=8 T=30 S=5 D=20 E=3",
    .gpu = "B=1 H=16 T=2048 S=2048 D=64 E=64; B=1 H=16 T=2048 S=2048 D=128 E=128",
    .full =
        "B=1 H=1 T=70 S=40 D=64 E=64; B=1 H=1 T=50 S=130 D=17 E=80; B=1 H=1 T=7 S=33 D=100 E=33; "
        "B=1 H=1 T=13 S=9 D=256 E=256; B=1 H=2 T=1 S=65 D=31 E=7; B=1 H=1 T=10 S=7 D=9 E=170",
    .special = "B=2 H=2 T=5 S=9 D=8 E=8", .data = MASK_SPARSE | MASK_LAST | MASK_NONE | INT_ENDS,
    .cases =
        {{"plain", AS(BATCH), .gpu = widths},
         {"time first, weights", AS(TIME, .want_weights = 1), TIME_FIRST "weights f32 B H T S",
          .smoke = few},
         {"causal", AS(BATCH, .causal = 1), NULL, .smoke = ranges, .full = long_ranges,
          .special = tiles},
         {"window", AS(TIME, .window = 34), TIME_FIRST, .smoke = window, .full = long_ranges,
          .special = tiles},
         {"causal window", AS(BATCH, .causal = 1, .window = 7), NULL, .smoke = ranges,
          .full = long_ranges},
         {"mask", AS(BATCH), "mask u8:0.5 T S B", .smoke = hidden, .special = tiles},
         {"mask for all", AS(TIME), TIME_FIRST "mask u8:0.5 1 S 1", .smoke = hidden},
         {"mask for each entry", AS(TIME), TIME_FIRST "mask u8:0.5 1 S B", .smoke = hidden},
         {"mask of rows", AS(BATCH, .want_weights = 1), "mask u8:0.5 T S 1; weights f32 B H T S",
          .smoke = hidden},
         {"lengths", AS(BATCH), "valid_lens i32:-2:S+10 B", .smoke = hidden},
         {"lengths of rows", AS(TIME), TIME_FIRST "valid_lens i32:-2:S+10 B T", .smoke = hidden},
         {"dropout", AS(BATCH, DROPOUT, .want_weights = 1), "weights f32 B H T S; step i32:0:99",
          .smoke = few},
         {"causal window, dropout", AS(TIME, DROPOUT, .causal = 1, .window = 7),
          TIME_FIRST "step i32:0:99", .smoke = ranges, .full = "B=1 H=1 T=140 S=140 D=9 E=10"},
         {"shared keys", AS(TIME, .want_weights = 1),
          SHARED "y f32 T B G+G+G E; weights f32 B G+G+G T S",
          .smoke = "B=2 G=2 T=5 S=7 D=4 E=6; B=1 G=2 T=37 S=135 D=9 E=5",
          .special = "B=2 G=2 T=5 S=9 D=8 E=8", .gpu = "B=1 G=5 T=2048 S=2048 D=64 E=64"},
         {"shared keys, causal window", AS(BATCH, .causal = 1, .window = 7),
          SHARED "y f32 B T G+G+G E", .smoke = "B=1 G=2 T=5 S=13 D=9 E=10", .special = "",
          .gpu = ""},
         {"shared keys, mask", AS(BATCH), SHARED "y f32 B T G+G+G E; mask u8:0.5 T S B",
          .smoke = shared, .special = "", .gpu = ""},
         {"shared keys, lengths, dropout", AS(TIME, DROPOUT),
          SHARED "y f32 T B G+G+G E; valid_lens i32:-2:S+10 B T; step i32:0:99", .smoke = shared,
          .special = "", .gpu = ""},
         {"soft cap", AS(BATCH, .softcap = 0.7f, .want_weights = 1), "weights f32 B H T S",
          .smoke = few, .full = long_ranges, .special = ""},
         {"soft cap, causal, dropout", AS(TIME, DROPOUT, .softcap = 0.7f, .causal = 1),
          TIME_FIRST "step i32:0:99", .smoke = few, .special = "", .gpu = ""},
         {"soft cap, lengths", AS(BATCH, .softcap = 0.7f), "valid_lens i32:-2:S+10 B",
          .smoke = hidden, .special = "", .gpu = caps},
         {"all together", AS(BATCH, .causal = 1, .window = 30, .hard_lens = 1),
          "mask u8:0.5 T S B; valid_lens i32:-2:S+10 B T", .smoke = hidden, .special = tiles},
         {"mask, lengths, window", AS(TIME, .window = 30),
          TIME_FIRST "mask u8:0.5 1 S B; valid_lens i32:-2:S+10 B", .smoke = hidden, .special = ""},
         {"lengths, causal", AS(BATCH, .causal = 1), "valid_lens i32:-2:S+10 B T", .smoke = hidden,
          .special = "", .gpu = ""},
         {"hard lengths", AS(TIME, .hard_lens = 1), TIME_FIRST "valid_lens i32:-2:S+10 B",
          .smoke = hidden},
         {"bias", AS(BATCH, .want_weights = 1), "bias f32 B H T S; weights f32 B H T S",
          .smoke = biased, .gpu = "B=1 H=16 T=2048 S=2048 D=63,64 E=64"},
         {"bias of heads, causal", AS(TIME, .causal = 1, .window = 40),
          TIME_FIRST "bias f32 1 H T S", .smoke = biased, .special = "", .gpu = ""},
         {"bias of keys, dropout, mask, lengths", AS(BATCH, DROPOUT, .softcap = 0.7f),
          "bias f32 B 1 1 S; step i32:0:99; mask u8:0.5 T S 1; valid_lens i32:-2:S+10 B",
          .smoke = biased, .special = "", .gpu = "B=1 H=16 T=2048 S=2048 D=256 E=256"},
         {"bias of rows, shared keys, slopes", AS(TIME, .want_weights = 1),
          SHARED ADDED "weights f32 B G+G+G T S", .grad = "q k v bias", .smoke = shared,
          .special = "", .gpu = "B=1 G=5 T=2048 S=2048 D=64 E=64"},
         {"slopes", AS(BATCH, .causal = 1, .softcap = 0.7f), "slopes f32:-1:1 H", .grad = "q k v",
          .smoke = biased},
         {"at a position", AS(TIME, .causal = 1), TIME_FIRST "position i32:0:S 1", .grad = "",
          .smoke = behind, .full = long_ranges, .special = "", .prepare = hide_later,
          .gpu = "B=1 H=16 T=1,256 S=2048 D=63,64 E=64; B=1 H=16 T=256 S=8192 D=64 E=64"},
         {"at a position, shared keys, window, slopes, soft cap",
          AS(TIME, .causal = 1, .window = 40, .softcap = 0.7f),
          SHARED "y f32 T B G+G+G E; slopes f32:-1:1 G+G+G; position i32:0:S 1", .grad = "",
          .smoke = "B=2 G=2 T=5 S=7 D=4 E=6; B=1 G=1 T=37 S=235 D=9 E=5", .special = "",
          .prepare = hide_later, .gpu = "B=1 G=5 T=256 S=2048 D=64 E=64"},
         {"all dropped", AS(TIME, .dropout = {.p = 1}), TIME_FIRST "step i32:0:99", .smoke = few},
         {"extremes", EXACT(BATCH, .want_weights = 1), "weights f32 B H T S",
          .smoke = "B=1 H=3 T=70 S=70 D=1 E=3", .special = "", .prepare = set_extremes},
         {"causal extremes", EXACT(TIME, .causal = 1), TIME_FIRST,
          .smoke = "B=1 H=3 T=70 S=70 D=1 E=3", .special = "", .prepare = set_extremes},
         {"masked scores compete", EXACT(BATCH), "valid_lens i32:2:S B T",
          .smoke = "B=1 H=6 T=40 S=300 D=1 E=3", .special = "", .prepare = set_competing},
         {"rising scores", EXACT(BATCH, .want_weights = 1), "weights f32 B H T S",
          .smoke = "B=1 H=2,4 T=7 S=600 D=1 E=3", .special = "", .prepare = set_rising}},
    .refusals = {
        {ATTNCL_ERR_ARGUMENT, "softcap is -1, must be finite and at least 0", AS(.softcap = -1)},
        {ATTNCL_ERR_SHAPE, "q has H = 6, k has G = 4: G must divide H", NULL,
         "k f32 B G S D; v f32 B G S E", "B=1 H=6 G=4 T=1 S=1 D=1 E=1"},
        {ATTNCL_ERR_ARGUMENT, "window is -1", AS(.window = -1)},
        {ATTNCL_ERR_ARGUMENT, "position is given, causal is 0", NULL, "position i32 1"},
        {ATTNCL_ERR_ARGUMENT, "hard_lens is 1, valid_lens are missing", AS(.hard_lens = 1)},
        {ATTNCL_ERR_SHAPE, "bias is [2, 3, 5, 6], must be [B or 1, H or 1, T or 1, S]", NULL,
         "bias f32 B H T 6"},
        {ATTNCL_ERR_SHAPE, "slopes is [2], must be [H] with H = 3", NULL, "slopes f32 2"}});

// SPDX-License-Identifier: MIT

#include <math.h>
#include <string.h>

#include "op/attention/attention_split.h"
#include "op/attention/q8_row.h"
#include "ref/ref.h"
#include "support/op_spec.h"

// Row b of cache[position] = that of row, of heads that wide, rounded to the cache's type
static void store(struct host *cache, int64_t position, int64_t b, const struct host *row,
                  int64_t head)
{
    const int64_t width = row->dim[1];
    if (cache->dtype == ATTNCL_U8) {
        const int64_t n = cache->dim[2], heads = width / head;
        ref_q8_encode(row->data + b * width, heads, head,
                      cache->data + (position * cache->dim[1] + b) * n);
        return;
    }
    const struct host *rounded =
        attncl__is_16_bit(cache->dtype) ? host_stored(host_copy(row), cache->dtype) : row;
    memcpy(cache->data + position * row->count + b * width, rounded->data + b * width,
           (size_t)width * sizeof rounded->data[0]);
}

// What the cache holds, like `row`.
static const double *stored(const struct host *cache, const struct host *row, int64_t head)
{
    const int64_t n = cache->dim[0] * cache->dim[1], width = row->dim[1];
    struct host *x;

    if (cache->dtype != ATTNCL_U8)
        return cache->data;
    x = host_new(ATTNCL_F32, DIMS(n, width));
    for (int64_t i = 0; i < n; ++i)
        ref_q8_decode(cache->data + i * cache->dim[2], width / head, head, x->data + i * width);
    return x->data;
}

// Batch entry b: keys[t] = k, values[t] = v (of a ring, row t mod L), then softmax attention of each head over the last positions up to t.  Heads of q
// share those of k.  A position of -1: zeros.
static void entry_step(const struct host *q, const struct host *k, const struct host *v,
                       const struct host *slopes, int64_t b, int64_t position,
                       const struct attention_step_fwd_params *params, struct host *keys,
                       struct host *values, struct host *y)
{
    const int64_t n = q->dim[1], n_stored = k->count, width = n / params->n_heads;
    const int64_t rows =
        params->ring ? keys->dim[0] : position + 1; // position t is in row t mod rows
    const int64_t window = params->ring ? rows : params->window;
    const int64_t first = window > 0 && window <= position ? position + 1 - window : 0;
    const double scale = (double)params->scale, cap = (double)params->softcap;
    double *p = host_new(ATTNCL_F32, DIMS(position + 1))->data;

    if (position >= 0) {
        store(keys, position % rows, b, k, width);
        store(values, position % rows, b, v, width);
    }
    const double *key = stored(keys, k, width), *value = stored(values, v, width);
    for (int64_t at = b * n; at < (b + 1) * n; at += width) {          // a head
        const int64_t from = at / width * n_stored / q->count * width; // at / width: of all heads
        double row_max = -INFINITY, sum = 0;
        for (int64_t j = first; j <= position; ++j) {
            p[j] = 0;
            for (int64_t d = 0; d < width; ++d)
                p[j] += scale * q->data[at + d] * key[j % rows * n_stored + from + d];
            p[j] = cap > 0 ? cap * tanh(p[j] / cap) : p[j];
            if (slopes)
                p[j] += slopes->data[at / width % params->n_heads] * (double)(j - position);
            row_max = fmax(row_max, p[j]);
        }
        for (int64_t j = first; j <= position; ++j)
            sum += p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - row_max);
        for (int64_t e = 0; e < width; ++e) {
            y->data[at + e] = 0;
            for (int64_t j = first; j <= position; ++j)
                y->data[at + e] +=
                    sum == 0 ? 0 : p[j] / sum * value[j % rows * n_stored + from + e];
        }
    }
}

void ref_attention_step_fwd(const struct host *q, const struct host *k, const struct host *v,
                            const struct host *slopes, int64_t position,
                            const struct attention_step_fwd_params *params, struct host *keys,
                            struct host *values, struct host *y)
{
    for (int64_t b = 0; b < q->dim[0]; ++b)
        entry_step(q, k, v, slopes, b, position, params, keys, values, y);
}

// -- the op

enum { Q, K, V, POSITION, KEYS, VALUES, SLOPES, QUERY_NORM, KEY_NORM, TABLE };

// Where each batch entry has a position, a negative one is idle.
static int64_t ring_position_of(struct host *const *in, int64_t b)
{
    const bool slots = in[POSITION]->count > 1;
    return (int64_t)fmax(in[POSITION]->data[slots ? b : 0], slots ? -1 : 0);
}

// A position outside counts as the nearest.
static int64_t position_of(struct host *const *in, int64_t b)
{
    const int64_t position = ring_position_of(in, b), last = in[KEYS]->dim[0] - 1;
    return position < last ? position : last;
}

static struct host *prepare(const struct attention_step_fwd_params *params, const struct host *x,
                            const struct host *norm, struct host *const *in)
{
    struct host *position = host_new(ATTNCL_I32, DIMS(1, x->dim[0])), *y = host_like(x);

    for (int64_t b = 0; b < x->dim[0]; ++b)
        position->data[b] = (double)(params->ring ? ring_position_of(in, b) : position_of(in, b));
    ref_prepare_heads(host_with(ATTNCL_F32, x->data, DIMS(1, x->dim[0], x->dim[1])),
                      in[Q]->dim[1] / params->n_heads, norm, (double)params->eps, in[TABLE],
                      params->half, position, y);
    return y;
}

static void step(const void *params, struct host *const *in, struct host *const *out)
{
    const struct attention_step_fwd_params *p = params;
    const struct host *q = prepare(params, in[Q], in[QUERY_NORM], in);
    const struct host *k = prepare(params, in[K], in[KEY_NORM], in);

    for (int64_t b = 0; b < in[Q]->dim[0]; ++b)
        entry_step(q, k, in[V], in[SLOPES], b,
                   p->ring ? ring_position_of(in, b) : position_of(in, b), params, in[KEYS],
                   in[VALUES], out[0]);
}

// Caches are exact but for the roundings of keys of a few units that change.  A score of D products rounds D + 2 times, a capped one 4 times more; weights feel it twice, and a sum of t terms besides.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct attention_step_fwd_params *params = spec_params(p);
    const double width = spec_extent(p, 'C') / params->n_heads;
    const bool turns = spec_in(p, TABLE) || spec_in(p, QUERY_NORM) || spec_in(p, KEY_NORM);
    const double largest = turns ? 100 : 25, key = turns && want->dtype == ATTNCL_F32 ? 100 : 0;
    const double score =
        2 * ((double)params->scale * (width + 2) * width * largest + 4 * (double)params->softcap);

    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = (k == 0          ? (score + spec_extent(p, 'P') + 16) * 5
                            : k == 1 + KEYS ? key
                                            : 0) *
                           0x1p-24;
}

// Positions of entry b that are not looked at: all but the last n up to its own.
static void hide_all_but(struct host *const *in, int64_t n)
{
    for (int64_t i = 0; i < in[KEYS]->count; ++i) {
        const int64_t t = i / in[K]->count,
                      last = position_of(in, i % in[K]->count / in[K]->dim[1]);
        if (t > last || t <= last - n)
            in[KEYS]->data[i] = in[VALUES]->data[i] = NAN;
    }
}

static void hide_future(struct host *const *in)
{
    hide_all_but(in, in[KEYS]->dim[0]);
}

enum { WINDOW = 40 };

static void hide_all_but_window(struct host *const *in)
{
    hide_all_but(in, WINDOW);
}

// Rows in 8 bits of six heads of q; those to come are NaN.
static void fill_q8(struct host *const *in)
{
    const int64_t width = in[Q]->dim[1] / 6, n = in[K]->dim[1], row = in[KEYS]->dim[2];
    double *x = host_new(ATTNCL_F32, DIMS(n))->data;

    if (width == 0 || row != attncl__q8_row_bytes(n, n / width))
        return; // to be refused
    for (int64_t i = 0; i < in[KEYS]->dim[0] * in[K]->dim[0]; ++i) {
        const bool hidden = i / in[K]->dim[0] > position_of(in, i % in[K]->dim[0]);
        for (int side = KEYS; side <= VALUES; ++side) {
            for (int64_t c = 0; c < n; ++c)
                x[c] = in[V]->data[(i * 5 + c * 3 + side) % in[V]->count] * (double)(1 + i % 3);
            ref_q8_encode(x, n / width, width, in[side]->data + i * row);
            for (int64_t c = row - 4 * (n / width); hidden && c < row; ++c)
                in[side]->data[i * row + c] = 0xff;
        }
    }
}

static void quarter_turns(struct host *const *in)
{
    ref_quarter_turns(in[TABLE]);
    if (in[KEYS]->dtype == ATTNCL_U8)
        fill_q8(in);
}

#define Q8            "k f32 B K; v f32 B K; keys u8:0.5 P B R; values u8:0.5 P B R"
#define HEADS(n, ...) SPEC_PARAMS(attention_step_fwd, .n_heads = n, .scale = (float)__VA_ARGS__)
#define STORED(type)  "keys " type " P B C; values " type " P B C"
#define SHARED(type)  "k f32 B K; v f32 B K; keys " type " P B K; values " type " P B K"
#define SLOTS(more)   more "position i32:-2:P+2 B"
#define TURNED(more)  more "; table f32:-1:1 A 2 F;"
#define NORMS         "; query_norm f32:0.5:2 D; key_norm f32:0.5:2 D"
static const char wide[] = "P=140 B=2 C=66; P=66 B=1 C=128",
                  parts[] = "P=1024 B=1 C=24; P=1024 B=2 C=258";
// Parts of the keys that are full, cut short, and not there yet; more of them than work-groups are wanted for.
OP_SPEC(
    attention_step_fwd,
    .in =
        "q f32 B C; k f32 B C; v f32 B C; position i32:-2:P+2 1; keys f32 P B C; values f32 P B C; "
        "slopes? f32 H; query_norm? f32 D; key_norm? f32 D; table? f32 A 2 F",
    .out = "y f32 B C", .ref = step, .allow = allow, .nonzero = "PCKRAD", .data = INT_ENDS,
    .smoke = "P=1 B=1 C=3; P=9 B=2 C=21", .gpu = "P=1024 B=1 C=90,192", .special = "P=9 B=2 C=21",
    .cases = {{"three heads", HEADS(3, 0.35)},
              {"what is to come", HEADS(3, 0.35), .special = "", .prepare = hide_future},
              {"wide heads", HEADS(2, 0.125), .smoke = wide, .special = ""},
              {"parts", HEADS(2, 0.2), .smoke = parts, .special = "", .prepare = hide_future},
              {"few parts", HEADS(2, 0.2), "position i32:298:299 1", .smoke = "P=300 B=8,32 C=24",
               .special = ""},
              {"F16", HEADS(3, 0.35), STORED("f16"), .special = ""},
              {"BF16", HEADS(3, 0.35), STORED("bf16"), .special = ""},
              {"F16 parts", HEADS(2, 0.2), STORED("f16"), .smoke = parts, .special = ""},
              {"Q8", HEADS(6, 0.35), Q8, .special = "", .prepare = fill_q8,
               .smoke = "P=70 B=2 C=42 K=14 R=24; P=300 B=1 C=96 K=16 R=20",
               .gpu = "P=1024 B=1 C=384 K=128 R=136"},
              {"Q8 slots", HEADS(6, 0.35, .softcap = 1.5f), SLOTS(Q8 "; slopes f32:0:1 6;"),
               .special = "", .prepare = fill_q8,
               .smoke = "P=140 B=5 C=42 K=42 R=68; P=1024 B=3 C=96 K=48 R=60",
               .gpu = "P=1024 B=8 C=384 K=128 R=136"},
              {"shared keys", HEADS(6, 0.35), SHARED("f32"), .special = "", .prepare = hide_future,
               .smoke = "P=70 B=2 C=42 K=14; P=300 B=1 C=96 K=16", .gpu = ""},
              {"shared keys, F16", HEADS(6, 0.35), SHARED("f16"), .special = "",
               .smoke = "P=70 B=2 C=42 K=21", .gpu = ""},
              {"window", HEADS(2, 0.2, .window = WINDOW), .special = "", .gpu = "",
               .smoke = "P=20 B=1 C=6; P=140 B=2 C=66; P=1024 B=1 C=24",
               .prepare = hide_all_but_window},
              {"soft cap", HEADS(6, 0.35, .softcap = 1.5f, .window = WINDOW), SHARED("f32"),
               .special = "P=9 B=2 C=42 K=14", .smoke = "P=70 B=2 C=42 K=14",
               .gpu = "P=1024 B=1 C=96 K=16"},
              {"slots", HEADS(3, 0.35), SLOTS(""), .special = "P=9 B=3 C=21",
               .smoke = "P=9 B=3 C=21; P=70 B=8 C=42", .gpu = "P=1024 B=8 C=96"},
              {"slots, hidden", HEADS(6, 0.35, .window = WINDOW), SLOTS(SHARED("f16") ";"),
               .special = "", .smoke = "P=140 B=5 C=42 K=21; P=1024 B=3 C=96 K=16",
               .gpu = "P=1024 B=8 C=96 K=16", .prepare = hide_all_but_window},
              {"slopes", HEADS(6, 0.35, .softcap = 1.5f), SHARED("f16") "; slopes f32:0:1 6",
               .special = "P=9 B=2 C=42 K=14", .smoke = "P=70 B=2 C=42 K=14; P=1024 B=1 C=96 K=16",
               .gpu = "P=1024 B=1 C=96 K=16", .prepare = hide_future},
              {"slots, slopes", HEADS(6, 0.35), SLOTS(SHARED("f16") "; slopes f32:0:1 6;"),
               .special = "", .smoke = "P=140 B=5 C=42 K=21", .gpu = "P=1024 B=8 C=96 K=16"},
              {"halves", HEADS(3, 0.35, .half = true), TURNED(""), .special = "",
               .smoke = "P=9 B=2 C=21 A=9 F=3; P=140 B=1 C=114 A=3 F=19",
               .gpu = "P=1024 B=1 C=192 A=1024 F=32"},
              {"neighbours", HEADS(6, 0.35), SLOTS(TURNED(SHARED("f32"))), .special = "",
               .smoke = "P=70 B=3 C=42 K=14 A=70 F=2; P=300 B=2 C=198 K=66 A=300 F=16",
               .gpu = "P=1024 B=8 C=384 K=128 A=1024 F=16"},
              {"norms, halves", HEADS(6, 0.35, .half = true, .eps = 1e-6f),
               TURNED(SHARED("f32") NORMS), .special = "",
               .smoke = "P=70 B=2 C=42 K=14 A=70 F=2 D=7; P=300 B=1 C=384 K=64 A=300 F=32 D=64",
               .gpu = "P=1024 B=1 C=384 K=128 A=1024 F=32 D=64"},
              {"a norm of keys", HEADS(2, 0.2, .eps = 1e-6f), "key_norm f32:0.5:2 D", .special = "",
               .smoke = "P=9 B=2 C=42 D=21", .gpu = "P=1024 B=1 C=192 D=96"},
              {"a norm of queries", HEADS(2, 0.2, .eps = 1e-6f), "query_norm f32:0.5:2 D",
               .special = "", .smoke = "P=9 B=2 C=42 D=21", .gpu = "P=1024 B=1 C=192 D=96"},
              {"F16, quarter turns", HEADS(2, 0.2, .half = true), TURNED(STORED("f16")),
               .special = "", .smoke = "P=140 B=2 C=66 A=140 F=16",
               .gpu = "P=1024 B=1 C=192 A=1024 F=32", .prepare = quarter_turns},
              {"Q8, quarter turns", HEADS(6, 0.35), SLOTS(TURNED(Q8)), .special = "",
               .smoke = "P=70 B=2 C=42 K=14 R=24 A=70 F=3; P=300 B=3 C=96 K=16 R=20 A=300 F=8",
               .gpu = "P=1024 B=8 C=384 K=128 R=136 A=1024 F=32", .prepare = quarter_turns},
              {"a ring", HEADS(3, 0.35, .ring = 1), "position i32:-2:P+200 1", .data = NORMAL,
               .special = "", .smoke = "P=1 B=1 C=3; P=9 B=2 C=21; P=140 B=1 C=66",
               .prepare = hide_future},
              {"a ring, parts", HEADS(2, 0.2, .ring = 1), "position i32:P:P+900 1", .data = NORMAL,
               .special = "", .smoke = parts, .gpu = "P=512 B=1 C=192"},
              {"a ring, F16, slots",
               HEADS(6, 0.35, .ring = 1, .softcap = 1.5f, .half = true, .eps = 1e-6f),
               SHARED("f16") "; position i32:-2:P+60 B; table f32:-1:1 A 2 F" NORMS, .data = NORMAL,
               .special = "", .smoke = "P=40 B=5 C=42 K=14 A=100 F=2 D=7",
               .gpu = "P=512 B=8 C=384 K=128 A=1024 F=32 D=64", .prepare = hide_future},
              {"a ring, Q8, slots", HEADS(6, 0.35, .ring = 1), Q8 "; position i32:-2:P+60 B",
               .data = NORMAL, .special = "", .prepare = fill_q8,
               .smoke = "P=40 B=5 C=42 K=42 R=68; P=1024 B=3 C=96 K=48 R=60",
               .gpu = "P=512 B=8 C=384 K=128 R=136"}},
    .refusals = {
        {ATTNCL_ERR_SHAPE, "position has N = 2, must be 1 or B = 3", HEADS(1, 1), "position i32 2",
         "P=1 B=3 C=12"},
        {ATTNCL_ERR_DTYPE, "values is F16, must be F32 as keys", NULL, "values f16 P B C"},
        {ATTNCL_ERR_SHAPE, "q has C = 3, which cannot be cut into H = 4 heads", HEADS(4, 1)},
        {ATTNCL_ERR_ARGUMENT, "window is -1, at least 0", HEADS(1, 1, .window = -1)},
        {ATTNCL_ERR_ARGUMENT, "window is 5, must be 0 with a ring",
         HEADS(1, 1, .window = 5, .ring = 1)},
        {ATTNCL_ERR_ARGUMENT, "slopes are given, a ring of L = 1 rows has none",
         HEADS(1, 1, .ring = 1), "slopes f32 1"},
        {ATTNCL_ERR_ARGUMENT, "softcap is -2, must be finite and at least 0",
         HEADS(1, 1, .softcap = -2)},
        {ATTNCL_ERR_SHAPE, "slopes is [2], must be [H] with H = 1", HEADS(1, 1), "slopes f32 2"},
        {ATTNCL_ERR_SHAPE, "table is [4, 2, 2], of 2 pairs, heads are of 3 channels", HEADS(1, 1),
         "table f32 4 2 2"},
        {ATTNCL_ERR_SHAPE, "key_norm has D = 2, heads are of 3 channels", HEADS(1, 1),
         "key_norm f32 2"},
        {ATTNCL_ERR_SHAPE, "k has K = 8, which H = 3 heads of width 4 cannot share", HEADS(3, 1),
         SHARED("f32"), "P=1 B=1 C=12 K=8"}});

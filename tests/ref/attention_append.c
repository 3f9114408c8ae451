// SPDX-License-Identifier: MIT

#include <math.h>
#include <string.h>

#include "op/attention/q8_row.h"
#include "ref/ref.h"
#include "support/op_spec.h"

enum { K, V, POSITION, KEYS, VALUES, Q, QUERY_NORM, KEY_NORM, TABLE, LAST };

static int64_t first_of(struct host *const *in)
{
    return in[POSITION] ? (int64_t)in[POSITION]->data[0] : 0;
}

// Rows x [T, B, ...] from `first` on, as many as there is place for; `all` is all rows up to them as the state has them.
static void append(const struct host *x, int64_t first, int64_t width, struct host *state,
                   struct host *all)
{
    const int64_t k = x->dim[2], batch = x->dim[1], row = state->dim[2], heads = k / width;
    const bool is_q8 = state->dtype == ATTNCL_U8;

    if (!is_q8)
        x = host_stored(host_copy(x), state->dtype);
    for (int64_t i = 0; i < state->dim[0] * batch && i < (first + x->dim[0]) * batch; ++i) {
        const int64_t from = i - first * batch;
        double *to = state->data + i * row;
        if (from >= 0 && is_q8)
            ref_q8_encode(x->data + from * k, heads, width, to);
        else if (from >= 0)
            memcpy(to, x->data + from * k, (size_t)k * sizeof *to);
        if (is_q8)
            ref_q8_decode(to, heads, width, all->data + i * k);
        else if (all)
            memcpy(all->data + i * k, to, (size_t)k * sizeof *to);
    }
}

// Row t of x [T, B, ...], rounded, as a cache keeps it, and as floats.
static void round_row(const struct host *x, int64_t t, int64_t width, const struct host *state,
                      double *kept, double *ret)
{
    const int64_t k = x->dim[2], heads = k / width;

    for (int64_t b = 0; b < x->dim[1]; ++b, kept += state->dim[2], ret += k) {
        struct host *row = host_new(ATTNCL_F32, DIMS(k));
        memcpy(row->data, x->data + (t * x->dim[1] + b) * k, (size_t)k * sizeof *row->data);
        if (state->dtype == ATTNCL_U8) {
            ref_q8_encode(row->data, heads, width, kept);
            ref_q8_decode(kept, heads, width, ret);
        } else {
            host_stored(row, state->dtype);
            memcpy(kept, row->data, (size_t)k * sizeof *kept);
            memcpy(ret, row->data, (size_t)k * sizeof *ret);
        }
    }
}

// Row t of a state as floats.
static void read_row(const struct host *state, int64_t t, int64_t width, int64_t k, double *ret)
{
    for (int64_t b = 0; b < state->dim[1]; ++b, ret += k) {
        const double *row = state->data + (t * state->dim[1] + b) * state->dim[2];
        if (state->dtype == ATTNCL_U8)
            ref_q8_decode(row, k / width, width, ret);
        else
            memcpy(ret, row, (size_t)k * sizeof *ret);
    }
}

// Position t is in row t mod S; new rows up to `last` count.  Returns how many rows are in front of them in `all`.
static int64_t append_to_ring(const struct host *x, int64_t first, int64_t last, int64_t width,
                              struct host *state, struct host *all)
{
    const int64_t rows = state->dim[0], row = state->dim[1] * state->dim[2];
    const int64_t k = x->dim[2], n = first < rows ? first : rows;
    double *kept = host_new(ATTNCL_F32, DIMS(row))->data, *to = all->data;

    for (int64_t t = first - n; t < first; ++t, to += x->dim[1] * k)
        read_row(state, t % rows, width, k, to);
    for (int64_t t = 0; t < x->dim[0]; ++t, to += x->dim[1] * k) {
        round_row(x, t, width, state, kept, to);
        if (t <= last)
            memcpy(state->data + (first + t) % rows * row, kept, (size_t)row * sizeof *kept);
    }
    return n;
}

// Heads of x [T, B, ...], normalised and rotated, in the shape of x.  position: [T or 1, B or 1]
void ref_prepare_heads(const struct host *x, int64_t width, const struct host *norm, double eps,
                       const struct host *table, bool half, const struct host *position,
                       struct host *y)
{
    struct host *heads = host_new(ATTNCL_F32, DIMS(x->dim[0], x->dim[1], x->dim[2] / width, width));
    struct host *rotated = host_like(heads);

    memcpy(heads->data, x->data, (size_t)x->count * sizeof *x->data);
    if (norm)
        ref_layer_norm_fwd(heads, norm, NULL, eps, heads);
    if (table)
        ref_rotate(half, 1, heads, table, position, rotated);
    host_set(y, (table ? rotated : heads)->data);
}

static void rows(const void *params, struct host *const *in, struct host *const *out)
{
    const struct attention_append_fwd_params *p = params;
    const int64_t first = first_of(in);
    struct host *position = host_new(ATTNCL_I32, DIMS(in[K]->dim[0], 1)), *keys = host_like(in[K]);

    for (int64_t t = 0; t < position->count; ++t)
        position->data[t] = (double)(first + t);
    ref_prepare_heads(in[K], p->width, in[KEY_NORM], (double)p->eps, in[TABLE], p->half, position,
                      keys);
    if (in[LAST]) {
        const int64_t last = (int64_t)in[LAST]->data[0];
        const int64_t n = append_to_ring(keys, first, last, p->width, in[KEYS], out[0]);
        append_to_ring(in[V], first, last, p->width, in[VALUES], out[1]);
        if (out[3])
            out[3]->data[0] = (double)n;
    } else {
        append(keys, first, p->width, in[KEYS], out[0]);
        append(in[V], first, p->width, in[VALUES], out[1]);
    }
    if (in[Q])
        ref_prepare_heads(in[Q], p->width, in[QUERY_NORM], (double)p->eps, in[TABLE], p->half,
                          position, out[2]);
}

// Rows by multiples of a quarter: rotated elements are others, or minus them, exactly.
void ref_quarter_turns(struct host *table)
{
    const int64_t pairs = table->dim[2];

    for (int64_t i = 0; i < table->count; ++i) {
        const int64_t turn = (i / (2 * pairs) + i % pairs) % 4;
        table->data[i] = i / pairs % 2 == 0 ? (turn == 0) - (turn == 2) : (turn == 1) - (turn == 3);
    }
}

static void turn_by_quarters(struct host *const *in)
{
    ref_quarter_turns(in[TABLE]);
}

// Three roundings of a rotated pair, and of a norm the sum of a head's squares and three more.  In 8 bits the scale, and a
// product.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const bool prepares = spec_in(p, TABLE) || spec_in(p, KEY_NORM);
    const double largest = prepares ? 12 * host_largest(want) : 0;

    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = want->dtype != ATTNCL_F32
                               ? 0
                               : (largest + 2 * fmax(fabs(want->data[i]), 0)) * 0x1p-24 + 2e-38;
}

#define WIDTH(n, ...)   SPEC_PARAMS(attention_append_fwd, .width = n, __VA_ARGS__)
#define CACHES(t, more) "keys " t " S B R; values " t " S B R;" more
// All rows of a result are defined.
#define TO_THE_END  "position i32:S-3:S 1; all_keys f32 S B K; all_values f32 S B K;"
#define FROM_0      "all_keys f32 T B K; all_values f32 T B K;"
#define TURNED      "q f32 T B C; table f32:-1:1 A 2 F; rotated f32 T B C;"
#define RING        "last i32:0:T 1; "
#define RING_FROM_0 RING FROM_0
#define RING_BEHIND                                                                                \
    RING "position i32:S:S+30 1; all_keys f32 S+T B K; all_values f32 S+T B K; n_front i32 1;"
#define NORMS "query_norm f32:0.5:2 D; key_norm f32:0.5:2 D;"
OP_SPEC(
    attention_append_fwd,
    .in = "k f32 T B K; v f32 T B K; position? i32:0:S 1; keys f32 S B K; values f32 S B K; "
          "q? f32 T B C; query_norm? f32 D; key_norm? f32 D; table? f32 A 2 F; last? i32:0:T 1",
    .out = "all_keys? f32 S B K; all_values? f32 S B K; rotated? f32 T B C; n_front? i32 1",
    .ref = rows, .nonzero = "TBSKRAD", .allow = allow, .data = SCALED,
    .smoke = "T=3 S=9 B=2 K=21; T=1,9 S=9 B=1 K=63; T=5 S=70 B=3 K=7",
    .gpu = "T=256 S=1024 B=1 K=511",
    .cases = {{"from 0", WIDTH(7)},
              {"floats", WIDTH(7), "position i32:0:S 1"},
              {"ends", WIDTH(7), "position i32:0:S 1", .data = INT_ENDS},
              {"F16", WIDTH(7), CACHES("f16", TO_THE_END), .smoke = "T=3 S=9 B=2 K=21 R=21",
               .gpu = "T=256 S=1024 B=1 K=511 R=511"},
              {"BF16 from 0", WIDTH(21), CACHES("bf16", FROM_0), .smoke = "T=4 S=9 B=2 K=63 R=63",
               .gpu = "T=256 S=1024 B=1 K=504 R=504"},
              {"Q8", WIDTH(7), CACHES("u8:0.5", TO_THE_END), .smoke = "T=3 S=9 B=2 K=21 R=36",
               .gpu = "T=256 S=1024 B=1 K=56 R=88"},
              {"Q8 from 0", WIDTH(64), CACHES("u8:0.5", FROM_0), .data = SCALED | NAN_ROWS,
               .smoke = "T=1,5 S=5 B=2 K=64 R=68; T=7 S=12 B=1 K=128 R=136",
               .gpu = "T=256 S=1024 B=1 K=512 R=544"},
              {"halves", WIDTH(7, .half = true), "position i32:0:S 1;" TURNED,
               .smoke = "T=3 S=9 B=2 K=14 C=28 A=9 F=3; T=12 S=9 B=1 K=7 C=7 A=4 F=2",
               .gpu = "T=256 S=1024 B=1 K=511 C=1022 A=1024 F=3"},
              {"norms, neighbours, F16", WIDTH(38, .eps = 1e-6f),
               CACHES("f16", TO_THE_END TURNED "query_norm f32:0.5:2 D;"),
               .prepare = turn_by_quarters, .smoke = "T=3 S=9 B=2 K=38 C=76 R=38 A=9 F=19 D=38",
               .gpu = "T=256 S=1024 B=1 K=76 C=152 R=76 A=1024 F=19 D=38"},
              {"norms, halves", WIDTH(38, .half = true, .eps = 1e-6f), TURNED NORMS,
               .smoke = "T=3 S=9 B=2 K=38 C=76 A=9 F=17 D=38",
               .gpu = "T=256 S=1024 B=1 K=76 C=152 A=1024 F=17 D=38"},
              {"a norm of keys", WIDTH(38, .eps = 1e-6f), "key_norm f32:0.5:2 D",
               .smoke = "T=3 S=9 B=2 K=38 D=38", .gpu = "T=256 S=1024 B=1 K=76 D=38"},
              {"Q8, quarter turns", WIDTH(24, .half = true), CACHES("u8:0.5", TO_THE_END TURNED),
               .prepare = turn_by_quarters, .smoke = "T=3 S=9 B=2 K=48 C=96 R=56 A=9 F=12",
               .gpu = "T=256 S=1024 B=1 K=48 C=96 R=56 A=1024 F=12"},
              {"a ring", WIDTH(7), RING_BEHIND,
               .smoke = "T=3 S=9 B=2 K=21; T=9 S=9 B=1 K=63; T=20 S=6 B=3 K=7; T=3 "
                        "S=1 B=1 K=7",
               .gpu = "T=256 S=512 B=1 K=511"},
              {"a ring from 0", WIDTH(7), RING_FROM_0,
               .smoke = "T=3 S=9 B=2 K=21; T=20 S=6 B=3 K=7", .gpu = "T=256 S=512 B=1 K=511"},
              {"a ring of F16", WIDTH(38, .half = true, .eps = 1e-6f),
               CACHES("f16", RING_BEHIND TURNED "query_norm f32:0.5:2 D;"),
               .prepare = turn_by_quarters, .smoke = "T=13 S=9 B=2 K=38 C=76 R=38 A=29 F=19 D=38",
               .gpu = "T=256 S=512 B=1 K=76 C=152 R=76 A=1024 F=19 D=38"},
              {"a ring of BF16", WIDTH(21), CACHES("bf16", RING_BEHIND),
               .smoke = "T=13 S=9 B=2 K=63 R=63", .gpu = "T=256 S=512 B=1 K=504 R=504"},
              {"a ring of BF16, from 0", WIDTH(21), CACHES("bf16", RING_FROM_0),
               .smoke = "T=13 S=9 B=2 K=63 R=63", .gpu = "T=256 S=512 B=1 K=504 R=504"},
              {"a ring of Q8", WIDTH(24), CACHES("u8:0.5", RING_BEHIND TURNED),
               .prepare = turn_by_quarters, .smoke = "T=13 S=9 B=2 K=48 C=96 R=56 A=29 F=12",
               .gpu = "T=256 S=512 B=1 K=48 C=96 R=56 A=1024 F=12"},
              {"a ring of Q8, from 0", WIDTH(64), CACHES("u8:0.5", RING_FROM_0),
               .data = SCALED | NAN_ROWS, .smoke = "T=13 S=5 B=2 K=64 R=68",
               .gpu = "T=256 S=512 B=1 K=512 R=544"}},
    .refusals = {
        {ATTNCL_ERR_SHAPE, "keys has R = 20, must be 21", WIDTH(7), CACHES("f32", ""),
         "T=1 S=5 B=2 K=21 R=20"},
        {ATTNCL_ERR_SHAPE, "keys has R = 32, must be 36", WIDTH(7), CACHES("u8:0.5", FROM_0),
         "T=1 S=5 B=2 K=21 R=32"},
        {ATTNCL_ERR_SHAPE, "k has K = 21, which cannot be cut into heads of width 6", WIDTH(6),
         .sizes = "T=1 S=5 B=2 K=21"},
        {ATTNCL_ERR_SHAPE, "k has T = 6, keys has S = 5", WIDTH(7), .sizes = "T=6 S=5 B=2 K=21"},
        {ATTNCL_ERR_ARGUMENT, "eps is -1, must be 0 or more", WIDTH(7, .eps = -1)}});

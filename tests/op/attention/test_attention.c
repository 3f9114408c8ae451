// SPDX-License-Identifier: MIT
// Attention, with and without its weights, and its gradients against their references (tests/ref/attention.c,
// attention_bwd.c).

#include <math.h>

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/op_spec.h"

enum { Q, K, V, MASK, LENS, STEP };

static struct ref_attention definition(const void *params, struct host *const *in)
{
    const struct attention_fwd_params *p = params;
    return (struct ref_attention){
        .scale = (double)p->scale,
        .causal = p->causal,
        .window = p->window,
        .mask = in[MASK],
        .valid_lens = in[LENS],
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
    ref_attention_bwd(&a, &x, time_first(params), sizes, dx[Q], dx[K], dx[V]);
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

// A weight: e^(2 score errors), an exponential of 1 ulp (8 roundings with its argument's) and a sum of S terms.  A score:
// D products and as many sums, and the scale, of at most |q| |k| each.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct attention_fwd_params *params = spec_params(p);
    const double unit = 0x1p-24, width = spec_extent(p, 'D'), dropped = params->dropout.p;
    const double score = (width + 2) * unit * (double)params->scale * width *
                         host_largest(spec_in(p, Q)) * host_largest(spec_in(p, K));
    const double relative = (is_exact(params) ? 0 : 2 * score) + (spec_extent(p, 'S') + 16) * unit;
    const double largest = host_largest(spec_in(p, V)) / (dropped < 1 ? 1 - dropped : 1);

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

// Scores that rise along the keys: slowly, so that a row keeps its first maximum, and so fast that it is replaced in later
// tiles, by less and by more than an exponential's range.
static void set_rising(struct host *const *in)
{
    static const double q[] = {1, 1, 1, 1}, none[4] = {0};
    static const double rise[] = {1.0 / 128, 1.0 / 16, 0.5, 2};
    const int64_t n_keys = in[K]->dim[2];

    set_scores(in, q, none, none);
    for (int64_t i = 0; i < in[K]->count; ++i)
        in[K]->data[i] = rise[i / n_keys % 4] * (double)(i % n_keys);
}

#define AS(...)    SPEC_PARAMS(attention_fwd, .scale = 0.25f, __VA_ARGS__)
#define EXACT(...) SPEC_PARAMS(attention_fwd, .scale = 1, __VA_ARGS__)
#define BATCH      .layout = ATTNCL_LAYOUT_BATCH_FIRST
#define TIME       .layout = ATTNCL_LAYOUT_TIME_FIRST
#define DROPOUT    .dropout = {.p = 0.3, .seed = 0x123456789u, .site = 5}
#define TIME_FIRST "y f32 T B H E;"
static const char
    ranges[] = "B=1 H=2 T=4 S=5 D=3 E=2; B=1 H=2 T=5,70 S=5,70 D=9 E=10",
    long_ranges[] =
        "B=1 H=2 T=1 S=1 D=9 E=10; B=1 H=2 T=150 S=150 D=9 E=10; B=1 H=2 T=60 S=20 D=9 E=10; "
        "B=1 H=2 T=50 S=150 D=9 E=10; B=1 H=1 T=3 S=530 D=8 E=20",
    hidden[] = "B=2 H=1 T=4 S=5 D=3 E=2; B=2 H=2 T=37 S=135 D=6 E=5";

// Smoke: one of all; less than a tile, a ragged tile of queries and one of keys; keys that work-groups share in the GPU
// variant.  What each element may be off by in gradients: of the sum of the sizes of all terms.  Scores of random data are
// sums of some sqrt(D) terms' size and known to 2e-6 of 1 at D = 256, p to twice that; sums over keys and queries, a random
// walk of a few hundred roundings of 6e-8, make the rest.
// Several tiles of queries and of keys.
static const char tiles[] = "B=1 H=1 T=70 S=70 D=8 E=8";
OP_SPEC(
    attention_fwd,
    .in = "q f32 B H T D; k f32 B H S D; v f32 B H S E; mask? u8 T S B; valid_lens? i32:-2:S+10 B; "
          "step? i32",
    .out = "y f32 B T H E; weights? f32 B H T S; rows? f32 B H T 2", .ref = attention,
    .grad = "q k v", .ref_bwd = attention_bwd, .grad_sizes = attention_sizes,
    .grad_tolerance = 1e-5, .reach = reach, .reach_bwd = attention_bwd_reach, .allow = allow,
    .nonzero = "DE", .leeway = MEETS,
    .smoke = "B=2 H=3 T=5 S=7 D=4 E=6; B=1 H=1 T=1 S=1 D=1 E=1; B=1 H=2 T=33 S=17 D=16 E=16; "
             "B=1 H=1 T=3 S=129 D=5 E=31; B=2 H=1 T=65 S=1 D=3 E=112; B=1 H=1 T=3 S=530 D=8 E=20",
    .full =
        "B=1 H=1 T=70 S=40 D=64 E=64; B=1 H=1 T=50 S=130 D=17 E=80; B=1 H=1 T=7 S=33 D=100 E=33; "
        "B=1 H=1 T=13 S=9 D=256 E=256; B=1 H=2 T=1 S=65 D=31 E=7; B=1 H=1 T=10 S=7 D=9 E=170",
    .special = "B=2 H=2 T=5 S=9 D=8 E=8", .data = MASK_SPARSE | MASK_LAST | MASK_NONE | INT_ENDS,
    .cases =
        {{"plain", AS(BATCH)},
         {"time first, weights", AS(TIME, .want_weights = 1), TIME_FIRST "weights f32 B H T S"},
         {"causal", AS(BATCH, .causal = 1), NULL, .smoke = ranges, .full = long_ranges,
          .special = tiles},
         {"window", AS(TIME, .window = 3), TIME_FIRST, .smoke = ranges, .full = long_ranges,
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
         {"dropout", AS(BATCH, DROPOUT, .want_weights = 1), "weights f32 B H T S; step i32:0:99"},
         {"causal dropout", AS(TIME, DROPOUT, .causal = 1), TIME_FIRST "step i32:0:99",
          .smoke = ranges, .full = "B=1 H=1 T=140 S=140 D=9 E=10"},
         {"all dropped", AS(TIME, .dropout = {.p = 1}), TIME_FIRST "step i32:0:99"},
         {"extremes", EXACT(BATCH, .want_weights = 1), "weights f32 B H T S",
          .smoke = "B=1 H=3 T=70 S=70 D=1 E=3", .special = "", .prepare = set_extremes},
         {"causal extremes", EXACT(TIME, .causal = 1), TIME_FIRST,
          .smoke = "B=1 H=3 T=70 S=70 D=1 E=3", .special = "", .prepare = set_extremes},
         {"masked scores compete", EXACT(BATCH), "valid_lens i32:2:S B T",
          .smoke = "B=1 H=6 T=40 S=300 D=1 E=3", .special = "", .prepare = set_competing},
         {"rising scores", EXACT(BATCH, .want_weights = 1), "weights f32 B H T S",
          .smoke = "B=1 H=4 T=7 S=600 D=1 E=3", .special = "", .prepare = set_rising}},
    .refusals = {{ATTNCL_ERR_ARGUMENT, "window is -1", AS(.window = -1)},
                 {ATTNCL_ERR_ARGUMENT, "at most one of them, 2 are given", AS(.causal = 1),
                  "valid_lens i32:0:S B"}});

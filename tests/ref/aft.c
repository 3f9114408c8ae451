// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/aft.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static bool seen(const struct ref_aft_data *x, int64_t i, int64_t j, int64_t b)
{
    const struct host *m = x->mask;

    if (m) {
        const int64_t row = m->dim[0] == 1 ? 0 : i, entry = m->dim[2] == 1 ? 0 : b;
        return m->data[(row * m->dim[1] + j) * m->dim[2] + entry] != 0;
    }
    return !x->causal || j <= i;
}

int64_t ref_aft_key(const struct ref_aft_data *x, int64_t j, int64_t b, int64_t c)
{
    const int64_t per_key = x->per_head ? x->q->dim[2] / x->k->dim[2] : 1;

    return (j * x->k->dim[1] + b) * x->k->dim[2] + c / per_key;
}

int64_t ref_aft_bias(const struct ref_aft_data *x, int64_t i, int64_t j, int64_t c)
{
    const struct host *w = x->pos_bias;

    if (!x->per_head)
        return w && (i > j ? i - j : j - i) < x->window ? i * w->dim[1] + j : -1;
    const int64_t size = w->dim[1], place = j - i + (size - 1) / 2;
    const int64_t head = c / (x->q->dim[2] / x->k->dim[2]);
    return place >= 0 && place < size ? head * size + place : -1;
}

double ref_aft_weights(const struct ref_aft_data *x, int64_t i, int64_t b, int64_t c, double *p)
{
    const int64_t steps = x->q->dim[0];
    double max_exponent = -INFINITY, sum = 0;
    bool lost = false; // what is not finite may reach all weights

    for (int64_t j = 0; j < steps; ++j) {
        const int64_t at = ref_aft_bias(x, i, j, c);
        const double w = at >= 0 ? x->pos_bias->data[at] : 0;
        const double exponent = w + x->k->data[ref_aft_key(x, j, b, c)];
        p[j] = seen(x, i, j, b) ? exponent : -INFINITY;
        lost |= x->reaching && !isfinite(exponent);
        max_exponent = fmax(max_exponent, p[j]);
    }
    for (int64_t j = 0; j < steps; ++j) {
        p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - max_exponent);
        sum += p[j];
    }
    for (int64_t j = 0; j < steps && (sum != 0 || lost); ++j)
        p[j] = lost ? NAN : p[j] != 0 || x->reaching ? p[j] / sum : 0;
    return sum != 0 ? max_exponent + log(sum) : 0;
}

void ref_aft_fwd(const struct ref_aft_data *x, struct host *y, struct host *scale)
{
    const int64_t steps = x->q->dim[0], channels = x->q->dim[2], row = x->q->dim[1] * channels;
    struct host *p = host_new(ATTNCL_F32, DIMS(steps));

    for (int64_t n = 0; n < steps * row; ++n) {
        const double gate = 1 / (1 + exp(-x->q->data[n]));
        double sum = 0, size = 0;
        bool sees = false;
        ref_aft_weights(x, n / row, n % row / channels, n % channels, p->data);
        for (int64_t j = 0; j < steps; ++j) {
            if (p->data[j] == 0 && !x->reaching)
                continue;
            sees = true;
            sum += p->data[j] * x->v->data[j * row + n % row];
            size += p->data[j] * fabs(x->v->data[j * row + n % row]);
        }
        y->data[n] = sees ? gate * sum : 0;
        scale->data[n] = sees ? gate * size : 0;
    }
}

static struct ref_aft_data inputs(const struct host *q, const struct host *k, const struct host *v,
                                  const struct host *pos_bias, const struct host *mask, int causal)
{
    return (struct ref_aft_data){
        .q = (struct host *)q,
        .k = (struct host *)k,
        .v = (struct host *)v,
        .pos_bias = (struct host *)pos_bias,
        .mask = (struct host *)mask,
        .causal = causal,
    };
}

void ref_aft_local_fwd(const struct host *q, const struct host *k, const struct host *v,
                       const struct host *pos_bias, const struct host *mask, int window, int causal,
                       struct host *y, struct host *scale)
{
    struct ref_aft_data x = inputs(q, k, v, pos_bias, mask, causal);

    x.window = window;
    ref_aft_fwd(&x, y, scale);
}

void ref_aft_conv_fwd(const struct host *q, const struct host *k, const struct host *v,
                      const struct host *w, const struct host *mask, int causal, struct host *y,
                      struct host *scale)
{
    struct ref_aft_data x = inputs(q, k, v, w, mask, causal);

    x.per_head = true;
    ref_aft_fwd(&x, y, scale);
}

// -- the op

enum { Q, K, V, BIAS, MASK };

static struct ref_aft_data definition(const void *params, struct host *const *in)
{
    const struct aft_fwd_params *p = params;

    return (struct ref_aft_data){in[Q], in[K],     in[V],     in[BIAS],         in[MASK],
                                 NULL,  p->window, p->causal, p->per_head != 0, false};
}

static void mix(const void *params, struct host *const *in, struct host *const *out)
{
    const struct ref_aft_data x = definition(params, in);
    ref_aft_fwd(&x, out[0], host_like(out[0]));
}

static void reach(const void *params, struct host *const *in, struct host *const *out)
{
    struct ref_aft_data x = definition(params, in);

    x.reaching = true;
    ref_aft_fwd(&x, out[0], host_like(out[0]));
}

static void backward(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx, bool reaching)
{
    struct ref_aft_data x = definition(params, in);

    x.g = dy[0];
    x.reaching = reaching;
    ref_aft_bwd(&x, false, host_like(dy[0]), dx[Q], dx[K], dx[V], dx[BIAS]);
}

static void mix_bwd(const void *params, struct host *const *in, struct host *const *dy,
                    struct host *const *dx)
{
    backward(params, in, dy, dx, false);
}

static void reach_bwd(const void *params, struct host *const *in, struct host *const *dy,
                      struct host *const *dx)
{
    backward(params, in, dy, dx, true);
}

static struct ref_aft_data data_of(const struct spec_point *p)
{
    struct host *in[MASK + 1];

    for (int i = 0; i <= MASK; ++i)
        in[i] = (struct host *)spec_in(p, i);
    return definition(spec_params(p), in);
}

// Relative to sigmoid(q) sum p |v|.  Each p has a few roundings of exp (8 u) and the rounding of its exponent, which is known
// to u times the largest difference of exponents within a factor's reach, 60 u; numerator and denominator add a random walk
// over at most 500 rows, 22 u each.  Together 120 u = 7e-6.  Float's exponents cannot tell a value of 1e-25 from 0.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct ref_aft_data x = data_of(p);

    (void)k;
    ref_aft_fwd(&x, host_like(want), allowed);
    for (int64_t i = 0; i < allowed->count; ++i)
        allowed->data[i] = 1e-5 * (allowed->data[i] + 1e-25);
}

// The same relative to the sum of the sizes of all terms, and what the rounding of a logarithm, a key, a bias, their sums and
// a maximum does to an exponent: of the largest of a batch entry.
static void allow_grad(const struct spec_point *p, int i, const struct host *want,
                       struct host *allowed)
{
    struct ref_aft_data x = data_of(p);
    struct host *log = host_like(x.q), *dx[BIAS + 1], *none = host_like(x.q);
    const int64_t n_batch = x.q->dim[1], channels = x.q->dim[2], row = x.k->dim[2];

    for (int k = Q; k <= BIAS; ++k)
        dx[k] = k == i ? allowed : spec_in(p, k) ? host_like(spec_in(p, k)) : NULL;
    x.g = none;
    ref_aft_bwd(&x, false, log, dx[Q], dx[K], dx[V], dx[BIAS]);
    x.g = host_copy(spec_dy(p, 0));
    for (int64_t b = 0; b < n_batch; ++b) {
        double largest = 0;
        for (int64_t n = 0; n < log->count; ++n)
            largest = n / channels % n_batch == b ? fmax(largest, fabs(log->data[n])) : largest;
        for (int64_t n = 0; n < x.k->count; ++n)
            if (n / row % n_batch == b && x.k->data[n] > -INFINITY)
                largest = fmax(largest, fabs(x.k->data[n]));
        for (int64_t n = 0; n < x.g->count; ++n)
            x.g->data[n] *= n / channels % n_batch == b ? 1e-5 + 5 * 0x1p-24 * largest : 1;
    }
    ref_aft_bwd(&x, true, log, dx[Q], dx[K], dx[V], dx[BIAS]);
    for (int64_t n = 0; n < want->count; ++n)
        allowed->data[n] += 1e-26; // as float's exponents
}

static int64_t hash(int64_t t)
{
    return (int64_t)((uint64_t)t * 0x9e3779b97f4a7c15u >> 40);
}

static bool ends_block(int64_t t)
{
    enum { BLOCK = 12 }; // of the CPU variant
    return t % BLOCK == 0 || t % BLOCK == BLOCK - 1;
}

// Each batch entry has keys of its own kind, far apart by element or row, rising, falling, absent: what makes sums of
// exponentials overflow, vanish or lose their largest term.  Low keys in every block of the CPU variant keep factors from
// being multiplied: rows keep running maxima.
enum { N_KINDS = 15 };

static double key_of_kind(int64_t kind, double key, int64_t t, int64_t steps)
{
    switch (kind) {
    case 1:
        return 200; // all alike, and far from the entry before it, whose range would not fit
    case 2:
        return key + copysign(80, key);
    case 3:
        return key + (t == steps * 4 / 5 ? 400 : 0);
    case 4:
        return key + (t == steps / 10 ? 400 : 0);
    case 5:
        return key + 600 * (double)t / (double)steps - 300;
    case 6:
        return key - 600 * (double)t / (double)steps + 300;
    case 7:
        return key + (hash(t) % 2 ? 80 : -80);
    case 8:
        return fabs(key) > 1 ? -INFINITY : key;
    case 9:
        return hash(t) % 2 ? -INFINITY : key;
    case 10:
        return 60 * key;
    case 11:
        return key + (t == steps / 2 ? 3000 : 0);
    case 12:
        return key + (ends_block(t) ? -70 : 0);
    case 13:
        return key + 400;
    default:
        return key;
    }
}

static void set_keys(struct host *const *in)
{
    const int64_t steps = in[K]->dim[0], n_batch = in[K]->dim[1], row = in[K]->dim[2];

    for (int64_t i = 0; i < in[K]->count; ++i)
        in[K]->data[i] = (float)key_of_kind(i / row % n_batch % N_KINDS, in[K]->data[i],
                                            i / row / n_batch, steps);
    for (int64_t i = 0; i < in[V]->count; ++i)
        if (i / in[V]->dim[2] % n_batch == 14)
            in[V]->data[i] = (float)(1e6 * in[V]->data[i]);
}

static void scale_biases(struct host *const *in, double factor, double more)
{
    set_keys(in);
    for (int64_t i = 0; i < in[BIAS]->count; ++i)
        in[BIAS]->data[i] = (float)(factor * in[BIAS]->data[i] + more);
}

static void set_far_biases(struct host *const *in)
{
    scale_biases(in, 1, 0);
    for (int64_t i = 0; i < in[BIAS]->count; ++i)
        in[BIAS]->data[i] = (float)(in[BIAS]->data[i] + copysign(80, in[BIAS]->data[i]));
}

// Rows of far apart sums, in blocks of their own and side by side, cannot be multiplied as factors in gradients.
static void set_far_bias_rows(struct host *const *in)
{
    const int64_t width = in[BIAS]->dim[1];

    scale_biases(in, 1, 0);
    for (int64_t i = 0; i < in[BIAS]->count; ++i)
        in[BIAS]->data[i] = (float)(in[BIAS]->data[i] + (i / width / 12 % 2   ? 100
                                                         : i / width % 8 == 0 ? -80
                                                                              : 0));
}

static void set_wide_biases(struct host *const *in)
{
    scale_biases(in, 30, 0);
}

static void set_low_biases(struct host *const *in)
{
    scale_biases(in, 1, -85);
}

static void set_huge_biases(struct host *const *in)
{
    scale_biases(in, 1e30, 0);
}

static void lower_block_ends(struct host *keys, double less)
{
    const int64_t row = keys->dim[1] * keys->dim[2];

    for (int64_t i = 0; i < keys->count; ++i)
        keys->data[i] = (float)(keys->data[i] - (ends_block(i / row) ? less : 0));
}

// A row's largest exponent is far below the channel's largest key, and some e^(bias - largest) underflow: a product of
// factors would lose bias gradients that are far above float's smallest number.
static void set_steep_biases(struct host *const *in)
{
    lower_block_ends(in[K], 50);
    host_scale(in[BIAS], 30);
}

// e^(key - largest) v has few digits left; biases make up for the low keys.
static void set_faint_values(struct host *const *in)
{
    lower_block_ends(in[K], 70);
    host_scale(in[V], 1e-13);
    for (int64_t i = 0; i < in[BIAS]->count; ++i)
        in[BIAS]->data[i] =
            (float)(in[BIAS]->data[i] + (ends_block(i % in[BIAS]->dim[1]) ? 50 : 0));
}

// Low biases in all that a block has weights for make running maxima take every element by itself.
static void set_low_block_biases(struct host *const *in)
{
    const int64_t width = in[BIAS]->dim[1];

    scale_biases(in, 1, 0);
    for (int64_t i = 0; i < in[BIAS]->count; ++i)
        in[BIAS]->data[i] = (float)(in[BIAS]->data[i] - (ends_block(i % width) ? 200 : 0));
}

#define TABLE(window_, causal_) SPEC_PARAMS(aft_fwd, .window = window_, .causal = causal_)
#define HEADS(causal_)          SPEC_PARAMS(aft_fwd, .per_head = 1, .causal = causal_)
#define FILTER                  "k f32 T B H; pos_bias f32 H S;"
#define KIND(name_, params_, with_, sizes_, full_, prepare_)                                       \
    {                                                                                              \
        name_, params_, with_, .smoke = sizes_, .special = "", .full = full_, .prepare = prepare_  \
    }
static const char
    table[] = "pos_bias f32 N N",
    no_table[] = "T=1 B=1 C=5; T=25 B=2 C=7", masked_sizes[] = "T=4 B=2 C=3 N=5; T=43 B=3 C=9 N=44",
    kinds[] = "T=39 B=5 C=5 N=41", all_kinds[] = "T=39 B=15 C=5 N=41",
    heads[] =
        "T=4 B=2 C=6 H=3 S=3; T=1 B=1 C=1 H=1 S=1; T=37 B=2 C=21 H=3 S=11; T=23 B=1 C=18 H=2 S=91",
    many_heads[] = "T=13 B=3 C=5 H=1 S=7; T=97 B=2 C=64 H=2 S=25; T=211 B=1 C=40 H=2 S=63",
    masked_heads[] = "T=4 B=2 C=6 H=3 S=3; T=43 B=3 C=18 H=2 S=9",
    head_kinds[] = "T=39 B=5 C=10 H=2 S=9", all_head_kinds[] = "T=39 B=15 C=10 H=2 S=9";

static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const struct aft_fwd_params *p = params;
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;

    desc.kind = p->per_head ? ATTNCL_AFT_CONV : in[BIAS].id ? ATTNCL_AFT_LOCAL : ATTNCL_AFT_SIMPLE;
    desc.window = p->window;
    desc.causal = p->causal;
    out[0] = attncl_aft_mix(g, &desc, in[Q], in[K], in[V], in[BIAS], in[MASK]);
}

// Smoke: one; a block of the CPU variant less one, a block, one more; several panels; a ragged tail of channels.  Heads: a
// filter that is longer than the sequence.  Kinds: five of them, all only with full sizes.
OP_SPEC(
    aft_fwd, .in = "q f32 T B C; k f32 T B C; v f32 T B C; pos_bias? f32 N N; mask? u8 T T B",
    .out = "y f32 T B C; log? f32 T B C", .ref = mix, .build = build, .grad = "q k v pos_bias",
    .ref_bwd = mix_bwd, .reach = reach, .reach_bwd = reach_bwd, .allow = allow,
    .allow_grad = allow_grad, .leeway = MEETS, .nonzero = "HSN",
    .smoke = "T=4 B=2 C=3 N=6; T=1 B=1 C=5 N=1; T=11 B=2 C=9 N=11; T=13 B=1 C=16 N=15; T=97 B=1 "
             "C=33 N=97",
    .gpu = "T=4096 B=8 C=512 N=4096 H=8 S=63",
    .full = "T=12 B=1 C=5 N=12; T=96 B=2 C=9 N=96; T=131 B=3 C=16 N=132; T=499 B=1 C=5 N=500; "
            "T=101 B=2 C=700 N=101; T=251 B=1 C=137 N=251",
    .special = "T=5 B=2 C=19 N=5; T=30 B=1 C=5 N=30", .data = MASK_SPARSE | MASK_LAST | MASK_NONE,
    .cases = {{"table", TABLE(5, 0), table},
              {"causal table", TABLE(5, 1), table},
              {"wide window", TABLE(50, 0), table},
              {"window of 1", TABLE(1, 1), table},
              {"many lanes", TABLE(20, 0), table, .smoke = "T=40 B=6 C=48 N=40", .special = ""},
              {"no table", TABLE(3, 0), NULL, .smoke = no_table, .special = "T=30 B=1 C=5"},
              {"causal without a table", TABLE(0, 1), NULL, .smoke = no_table,
               .special = "T=30 B=1 C=5"},
              {"mask", TABLE(5, 0), "pos_bias f32 N N; mask u8:0.5 T T B", .smoke = masked_sizes},
              {"mask for all", TABLE(64, 0), "pos_bias f32 N N; mask u8:0.5 1 T 1",
               .smoke = masked_sizes},
              {"mask of rows", TABLE(5, 0), "pos_bias f32 N N; mask u8:0.5 T T 1",
               .smoke = masked_sizes},
              {"heads", HEADS(0), FILTER, .smoke = heads, .full = many_heads,
               .special = "T=5 B=2 C=6 H=2 S=3; T=30 B=1 C=6 H=3 S=5"},
              {"causal heads", HEADS(1), FILTER, .smoke = heads, .full = many_heads,
               .special = "T=5 B=2 C=6 H=2 S=3; T=30 B=1 C=6 H=3 S=5"},
              {"mask, heads", HEADS(0), FILTER "mask u8:0.5 T T B", .smoke = masked_heads,
               .special = "T=5 B=2 C=6 H=2 S=3"},
              {"mask for all, heads", HEADS(0), FILTER "mask u8:0.5 1 T 1", .smoke = masked_heads,
               .special = ""},
              KIND("keys", TABLE(20, 0), table, kinds, all_kinds, set_keys),
              KIND("keys", TABLE(5, 1), table, kinds, all_kinds, set_keys),
              KIND("far biases", TABLE(20, 0), table, kinds, all_kinds, set_far_biases),
              KIND("far bias rows", TABLE(20, 1), table, kinds, all_kinds, set_far_bias_rows),
              KIND("wide biases", TABLE(5, 0), table, kinds, all_kinds, set_wide_biases),
              KIND("steep biases", TABLE(5, 0), table, "T=39 B=2 C=8 N=41", NULL, set_steep_biases),
              KIND("faint values", TABLE(5, 0), table, "T=39 B=2 C=8 N=41", NULL, set_faint_values),
              KIND("low biases", TABLE(64, 0), table, kinds, all_kinds, set_low_biases),
              {"huge biases", TABLE(20, 0), table, .grad = "", .smoke = kinds, .special = "",
               .full = all_kinds, .prepare = set_huge_biases},
              KIND("low block biases", TABLE(20, 0), table, kinds, all_kinds, set_low_block_biases),
              {"masked kinds", TABLE(20, 0), "pos_bias f32 N N; mask u8:0.5 T T B", .smoke = kinds,
               .special = "", .full = all_kinds, .data = NORMAL, .prepare = set_far_biases},
              KIND("heads, keys", HEADS(0), FILTER, head_kinds, all_head_kinds, set_keys),
              KIND("heads, wide biases", HEADS(1), FILTER, head_kinds, all_head_kinds,
                   set_wide_biases),
              {"heads, low block biases", HEADS(0), FILTER "mask u8:0.5 T T B", .smoke = head_kinds,
               .special = "", .full = all_head_kinds, .data = NORMAL,
               .prepare = set_low_block_biases}},
    .refusals = {
        {ATTNCL_ERR_ARGUMENT, "window is -1", TABLE(-1, 0)},
        {ATTNCL_ERR_SHAPE, "pos_bias is [6, 5], must be [N, N]", NULL, "pos_bias f32 6 5"},
        {ATTNCL_ERR_SHAPE, "q has T = 4, pos_bias has N = 3", NULL, "pos_bias f32 3 3"},
        {ATTNCL_ERR_ARGUMENT, "causal = 1 and a mask", TABLE(5, 1), "mask u8:0.5 T T B"},
        {ATTNCL_ERR_SHAPE, "must have an odd number", HEADS(0), "k f32 T B 3; pos_bias f32 3 4"},
        {ATTNCL_ERR_SHAPE, "H = 2, which does not divide C = 3", HEADS(0),
         "k f32 T B 2; pos_bias f32 2 3"},
        {ATTNCL_ERR_ARGUMENT, "pos_bias is missing", HEADS(0), "k f32 T B 3; pos_bias? f32 N N"}});

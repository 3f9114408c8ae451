// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/attention.h"
#include "ref/ref.h"
#include "support/op_spec.h"

//   p_ij = softmax over j of w . tanh(q_i + k_j), -1e6 from the length on;   y_i = sum_j p_ij v_j
void ref_additive_attention(const struct host *q, const struct host *k, const struct host *v,
                            const struct host *w, const struct host *lens, struct host *y,
                            struct host *weights)
{
    const int64_t n_queries = q->dim[1], n_keys = k->dim[1], n = q->dim[2], width = v->dim[2];
    struct host *scores = host_like(weights);

    for (int64_t i = 0; i < scores->count; ++i) {
        const int64_t row = i / n_keys, j = row / n_queries * n_keys + i % n_keys;
        for (int64_t d = 0; d < n; ++d)
            scores->data[i] += w->data[d] * tanh(q->data[row * n + d] + k->data[j * n + d]);
    }
    ref_masked_softmax_fwd(scores, lens, weights);
    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t row = i / width, first = row / n_queries * n_keys;
        y->data[i] = 0;
        for (int64_t j = 0; j < n_keys; ++j)
            y->data[i] +=
                weights->data[row * n_keys + j] * v->data[(first + j) * width + i % width];
    }
}

// -- the op

enum { Q, K, V, W, LENS, STEP, POSITION, N_IN };

// What the weights are multiplied by before they meet the values, [B, T, S]; the position is that of row 0.
static struct host *dropout_of(const void *params, struct host *const *in)
{
    const struct additive_attention_fwd_params *p = params;
    const struct ref_dropout d = {p->dropout.p, p->dropout.seed, (uint32_t)p->dropout.site,
                                  in[STEP] ? (uint32_t)in[STEP]->data[0] : 0};
    struct host *m = host_new(ATTNCL_F32, DIMS(in[Q]->dim[0], in[Q]->dim[1], in[K]->dim[1]));

    for (int64_t i = 0; i < m->count; ++i)
        m->data[i] = 1;
    if (d.p > 0)
        ref_dropout_fwd(&d, m, in[POSITION] ? (int64_t)in[POSITION]->data[0] : 0, NULL, m);
    return m;
}

static void attention(const void *params, struct host *const *in, struct host *const *out)
{
    const struct host *m = dropout_of(params, in);
    const int64_t n_keys = m->dim[2], n_queries = m->dim[1], width = in[V]->dim[2];
    struct host *p = host_like(m);

    ref_additive_attention(in[Q], in[K], in[V], in[W], in[LENS], out[0], p);
    if (out[1])
        host_set(out[1], p->data);
    if (!in[STEP])
        return;
    for (int64_t i = 0; i < out[0]->count; ++i) {
        const int64_t row = i / width, first = row / n_queries * n_keys;
        out[0]->data[i] = 0;
        for (int64_t j = 0; j < n_keys; ++j)
            out[0]->data[i] += m->data[row * n_keys + j] * p->data[row * n_keys + j] *
                               in[V]->data[(first + j) * width + i % width];
    }
}

static void backward(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx, bool sizes)
{
    struct host *all[N_IN + 2];

    memcpy(all, in, N_IN * sizeof all[0]);
    all[N_IN] = dy[0], all[N_IN + 1] = dy[1];
    ref_additive_attention_bwd(all, dropout_of(params, in), sizes, dx);
}

static void attention_bwd(const void *params, struct host *const *in, struct host *const *dy,
                          struct host *const *dx)
{
    backward(params, in, dy, dx, false);
}

static void attention_sizes(const void *params, struct host *const *in, struct host *const *dy,
                            struct host *const *dx)
{
    backward(params, in, dy, dx, true);
}

// A score has N terms w tanh: the argument rounds once at the size of q + k (its slope is at most 1), tanh 3 times, and
// the sum N times; a weight feels it twice, beside an exponential and a sum of S terms.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct additive_attention_fwd_params *params = spec_params(p);
    const double unit = 0x1p-24, n = spec_extent(p, 'N'), dropped = params->dropout.p;
    const double argument = fmin(host_largest(spec_in(p, Q)) + host_largest(spec_in(p, K)), 10);
    const double score = n * host_largest(spec_in(p, W)) * (argument + n + 4) * unit;
    const bool exact = n == 1 && argument == 10;
    const double relative = (exact ? 0 : 2 * score) + (spec_extent(p, 'S') + 16) * unit;
    const double largest = host_largest(spec_in(p, V)) / (dropped < 1 ? 1 - dropped : 1);

    for (int64_t i = 0; i < allowed->count; ++i)
        allowed->data[i] = k == 0 ? relative * largest : relative * fabs(want->data[i]) + 1e-37;
}

// tanh is +-1 in float far out: the scores are +-w, exactly, one w for each run of the data.
static void set_far(struct host *const *in, double w)
{
    for (int64_t i = 0; i < in[Q]->count; ++i)
        in[Q]->data[i] = 0;
    for (int64_t i = 0; i < in[K]->count; ++i)
        in[K]->data[i] = i % 3 == 0 ? -1e4 : 1e4;
    if (in[W]->count > 0)
        in[W]->data[0] = w;
}

static void set_spread(struct host *const *in)
{
    set_far(in, 30);
}

static void set_competing(struct host *const *in)
{
    set_far(in, -1.00001e6);
}

static void set_lower(struct host *const *in)
{
    set_far(in, -3e6);
}

#define PARAMS(...) SPEC_PARAMS(additive_attention_fwd, __VA_ARGS__)
#define DROPOUT(p_) .dropout = {.p = p_, .seed = 0x123456789u, .site = 5}
static const char lengths[] = "B=4 T=3 S=70 N=7 E=20 A=-", far[] = "B=1 T=3 S=70 N=1 E=4 A=1";

// The weights of a public call are not dropped.
static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const struct additive_attention_fwd_params *p = params;

    if (p->dropout.p == 0)
        out[0] = attncl_additive_attention(g, in[Q], in[K], in[V], in[W], in[LENS],
                                           p->want_weights ? &out[1] : NULL);
}

// Gradients are off by as much of the sum of the sizes of all terms: p to twice what a score of some hundred terms is off,
// 4e-6, and sums.
OP_SPEC(additive_attention_fwd,
        .in = "q f32 B T N; k f32 B S N; v f32 B S E; w f32 A* N; valid_lens? i32:-2:S+10 B; step? "
              "i32; position? i32 1",
        .out = "y f32 B T E; weights? f32 B T S", .ref = attention, .build = build,
        .grad = "q k v w", .ref_bwd = attention_bwd, .grad_sizes = attention_sizes, .allow = allow,
        .leeway = MEETS | SPREADS, .nonzero = "A",
        .smoke = "B=2 T=3 S=5 N=4 E=6 A=-; B=1 T=1 S=1 N=1 E=1 A=1; B=3 T=2 S=70 N=33 E=17 A=1",
        .gpu = "B=8 T=64 S=64 N=256 E=256 A=-", .full = "B=1 T=2 S=130 N=64 E=100 A=-",
        .special = "B=2 T=5 S=6 N=7 E=9 A=-", .data = INT_ENDS,
        .cases = {{"plain", PARAMS(0)},
                  {"weights", PARAMS(.want_weights = 1), "weights f32 B T S"},
                  {"lengths", PARAMS(0), "valid_lens i32:-2:S+10 B", .smoke = lengths},
                  {"lengths of rows", PARAMS(.want_weights = 1),
                   "valid_lens i32:-2:S+10 B T; weights f32 B T S", .smoke = lengths},
                  {"dropout", PARAMS(.want_weights = 1, DROPOUT(.3)),
                   "weights f32 B T S; step i32:0:99", .leeway = UNSEEN},
                  {"dropout of a step", PARAMS(DROPOUT(.5)),
                   "valid_lens i32:-2:S+10 B; step i32:0:99; position i32:0:9 1",
                   .smoke = "B=4 T=1 S=131 N=6 E=20 A=-; B=4 T=3 S=4 N=6 E=20 A=-",
                   .leeway = UNSEEN},
                  {"all dropped", PARAMS(DROPOUT(1)), "step i32:0:99", .leeway = UNSEEN},
                  {"far", PARAMS(0), "valid_lens i32:2:S B T", .smoke = far, .special = "",
                   .prepare = set_spread},
                  {"competes with lengths", PARAMS(0), "valid_lens i32:2:S B T", .smoke = far,
                   .special = "", .prepare = set_competing},
                  {"below lengths", PARAMS(0), "valid_lens i32:2:S B T", .smoke = far,
                   .special = "", .prepare = set_lower}},
        .refusals = {{ATTNCL_ERR_SHAPE, "w is [2, 2]", NULL, "w f32 2 2"}});

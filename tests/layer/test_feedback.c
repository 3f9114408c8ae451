// SPDX-License-Identifier: MIT
// Feedback layers, and a transformer that keeps keys and values, against their references.

#include <math.h>
#include <string.h>

#include "attncl/feedback.h"
#include "attncl/gradient.h"
#include "ref/layers.h"
#include "support/layer_test.h"

enum { T = 6, B = 2, C = 6, H = 3, D = C / H, P = 5, F = 7, L = 2 };

// Norms hold values near 1 through the steps: some 15 sums of up to 14 terms a layer, two layers,
// six steps of which each reads the one before.
static const double relative = 2e-5, absolute = 2e-5;

// Sums of C terms near 1 in size.
static struct host *matrix(unsigned seed, int64_t n_out, int64_t n_in)
{
    struct host *h = host_random(seed, DIMS(n_out, n_in));
    host_scale(h, 0.4);
    return h;
}

static struct ref_feedback_layer random_layer(bool split)
{
    return (struct ref_feedback_layer){
        .norm_attn_weight = host_random(1, DIMS(C)),
        .norm_attn_bias = host_random(2, DIMS(C)),
        .query_weight = matrix(3, C, C),
        .key_weight = matrix(4, C, C),
        .value_weight = matrix(5, C, C),
        .value_bias = host_random(6, DIMS(C)),
        .output_weight = matrix(7, C, C),
        .output_bias = host_random(8, DIMS(C)),
        .places = host_random(9, DIMS(P, H, D)),
        .u = host_random(10, DIMS(H, D)),
        .place_bias = split ? host_random(11, DIMS(P, H)) : NULL,
        .norm_ffn_weight = host_random(12, DIMS(C)),
        .norm_ffn_bias = host_random(13, DIMS(C)),
        .layer1_weight = matrix(14, F, C),
        .layer1_bias = host_random(15, DIMS(F)),
        .layer2_weight = matrix(16, C, F),
        .layer2_bias = host_random(17, DIMS(C)),
    };
}

// The parameters of L layers, all alike.
struct fed {
    attncl_feedback_params attn;
    attncl_ffn_params ffn;
    attncl_feedback_layer_params layers[L];
};

// own: with the layer's own projections of keys and values.
static void feed(struct rig *b, const struct ref_feedback_layer *p, bool own, struct fed *ret)
{
    ret->attn = (attncl_feedback_params){.struct_size = sizeof ret->attn,
                                         .query_weight = rig_in(b, p->query_weight),
                                         .key_weight = rig_in(b, own ? p->key_weight : NULL),
                                         .value_weight = rig_in(b, own ? p->value_weight : NULL),
                                         .value_bias = rig_in(b, own ? p->value_bias : NULL),
                                         .output_weight = rig_in(b, p->output_weight),
                                         .output_bias = rig_in(b, p->output_bias),
                                         .key_pos_embeddings = rig_in(b, p->places),
                                         .query_pos_bias = rig_in(b, p->u),
                                         .key_pos_bias = rig_in(b, p->place_bias)};
    ret->ffn = (attncl_ffn_params){.struct_size = sizeof ret->ffn,
                                   .layer1_weight = rig_in(b, p->layer1_weight),
                                   .layer1_bias = rig_in(b, p->layer1_bias),
                                   .layer2_weight = rig_in(b, p->layer2_weight),
                                   .layer2_bias = rig_in(b, p->layer2_bias)};
    ret->layers[0] = ret->layers[1] = (attncl_feedback_layer_params){
        .struct_size = sizeof(attncl_feedback_layer_params),
        .norm_attn_weight = rig_in(b, p->norm_attn_weight),
        .norm_attn_bias = rig_in(b, p->norm_attn_bias),
        .attn = &ret->attn,
        .norm_ffn_weight = rig_in(b, p->norm_ffn_weight),
        .norm_ffn_bias = rig_in(b, p->norm_ffn_bias),
        .ffn = &ret->ffn,
        .activation = ATTNCL_GELU,
    };
}

LOOP_TEST(a_layer_matches_the_reference, 0, 8)
{
    static const int64_t counts[] = {-1, 0, 1, P}; // -1: not given
    const struct ref_feedback_layer p = random_layer(_i % 2);
    const int64_t n = counts[_i / 2];
    struct host *x = host_random(20, DIMS(B, C)), *y = host_like(x), *want = host_like(x);
    struct host *memory = n < 0 ? NULL : host_random(21, DIMS(n, B, C));
    struct rig b;
    rig_open(&b);
    struct fed fed;
    feed(&b, &p, true, &fed);
    const attncl_value in = rig_in(&b, x), seen = rig_in(&b, memory);
    rig_out(&b, attncl_feedback_layer(b.g, &fed.layers[0], H, in, seen), y);
    rig_run_once(&b);
    ref_feedback_layer(&p, ATTNCL_GELU, x, n > 0 ? memory : NULL, want);
    ck_near(y, want, relative, absolute);
}

// A whole model: both layers have the same parameters, so that a shared projection of keys and
// values is the layers' own.
struct model {
    struct ref_feedback_layer layer;
    struct host *weights, *norm_weight, *norm_bias, *x; // x: [T, B, C]
};

static struct model random_model(bool split)
{
    return (struct model){
        .layer = random_layer(split),
        .weights = host_random(30, DIMS(L + 1)),
        .norm_weight = host_random(31, DIMS(C)),
        .norm_bias = host_random(32, DIMS(C)),
        .x = host_random(33, DIMS(T, B, C)),
    };
}

enum projections { OWN, STACKED, SHARED, N_PROJECTIONS };

// [2 N C, C]: the layer's key and value weights n times; and the biases to them, [2 N C].
static void stack(const struct ref_feedback_layer *p, int n, struct host **weight,
                  struct host **bias)
{
    *weight = host_new(ATTNCL_F32, DIMS(2 * n * C, C));
    *bias = host_new(ATTNCL_F32, DIMS(2 * n * C));
    for (int i = 0; i < n; ++i) {
        double *w = (*weight)->data + 2 * i * C * C, *b = (*bias)->data + 2 * i * C;
        memcpy(w, p->key_weight->data, C * C * sizeof *w);
        memcpy(w + C * C, p->value_weight->data, C * C * sizeof *w);
        memcpy(b + C, p->value_bias->data, C * sizeof *b);
    }
}

static attncl_feedback_transformer_params feed_model(struct rig *b, const struct model *m,
                                                     enum projections projections, struct fed *fed)
{
    attncl_feedback_transformer_params p = {.struct_size =
                                                sizeof(attncl_feedback_transformer_params),
                                            .layers = fed->layers,
                                            .n_layers = L,
                                            .n_heads = H};
    feed(b, &m->layer, projections == OWN, fed);
    if (projections != OWN) {
        struct host *weight, *bias;
        stack(&m->layer, projections == STACKED ? L : 1, &weight, &bias);
        p.key_value_weight = rig_in(b, weight);
        p.key_value_bias = rig_in(b, bias);
    }
    p.weights = rig_in(b, m->weights);
    p.norm_weight = rig_in(b, m->norm_weight);
    p.norm_bias = rig_in(b, m->norm_bias);
    return p;
}

static void run_reference(const struct model *m, struct host *y, struct host *memory)
{
    const struct ref_feedback_layer layers[L] = {m->layer, m->layer};
    const struct ref_feedback_transformer p = {layers, L, m->weights, m->norm_weight, m->norm_bias};
    ref_feedback_transformer(&p, ATTNCL_GELU, m->x, y, memory);
}

// At once, and step by step.
LOOP_TEST(kept_keys_and_values_change_nothing, 0, 2 * N_PROJECTIONS)
{
    const enum projections projections = (enum projections)(_i % N_PROJECTIONS);
    const struct model m = random_model(_i / N_PROJECTIONS);
    struct host *y = host_like(m.x), *memory = host_like(m.x);
    struct host *want = host_like(m.x), *want_memory = host_like(m.x);
    struct host *row = host_new(ATTNCL_F32, DIMS(B, C)), *y_row = host_like(row);
    struct host *memory_row = host_like(row), *position = host_new(ATTNCL_I32, DIMS(1));
    struct fed fed;
    attncl_value memory_value;
    struct rig b;

    run_reference(&m, want, want_memory);
    rig_open(&b);
    attncl_feedback_transformer_params p = feed_model(&b, &m, projections, &fed);
    const attncl_value x = rig_in(&b, m.x);
    rig_out(&b, attncl_feedback_transformer(b.g, &p, x, &memory_value), y);
    rig_out(&b, memory_value, memory);
    ck_ok(rig_compile(&b));
    for (int run = 0; run < 2; ++run) { // the second starts anew
        rig_run(&b);
        ck_near(y, want, relative, absolute);
        ck_near(memory, want_memory, relative, absolute);
    }
    rig_close(&b);

    rig_open(&b);
    p = feed_model(&b, &m, projections, &fed);
    const attncl_value in = rig_in(&b, row), at = rig_in(&b, position);
    rig_out(&b, attncl_feedback_transformer_step(b.g, &p, T, in, at, &memory_value), y_row);
    rig_out(&b, memory_value, memory_row);
    ck_ok(rig_compile(&b));
    for (int t = 0; t < 2 * T; ++t) { // position 0 starts anew
        host_set(row, host_row(m.x, t % T)->data);
        position->data[0] = t % T;
        rig_run(&b);
        ck_near(y_row, host_row(want, t % T), relative, absolute);
        ck_near(memory_row, host_row(want_memory, t % T), relative, absolute);
    }
    rig_close(&b);
}

// sum(y dy) + sum(memory dm) of the definition.
static double weighed(const struct model *m, const struct host *dy, const struct host *dm)
{
    struct host *y = host_like(m->x), *memory = host_like(m->x);
    double sum = 0;

    run_reference(m, y, memory);
    for (int64_t i = 0; i < y->count; ++i)
        sum += y->data[i] * dy->data[i] + memory->data[i] * dm->data[i];
    return sum;
}

// Against differences, of which the largest is the unit.
static void ck_gradient(const struct model *m, const struct host *dy, const struct host *dm,
                        struct host *x, const struct host *got)
{
    const double h = 1e-5;
    struct host *want = host_like(x);

    for (int64_t i = 0; i < x->count; ++i) {
        const double kept = x->data[i];
        x->data[i] = kept + h;
        const double above = weighed(m, dy, dm);
        x->data[i] = kept - h;
        want->data[i] = (above - weighed(m, dy, dm)) / (2 * h);
        x->data[i] = kept;
    }
    ck_near(got, want, 0, 1e-3 * host_largest(want));
}

// Back through the loop: what x gets, and what the parameters get, which both layers share.  The
// weights' gradients are differences of sums a hundred times their size.
LOOP_TEST(gradients_meet_finite_differences, 0, 2 * N_PROJECTIONS)
{
    const enum projections projections = (enum projections)(_i % N_PROJECTIONS);
    const struct model m = random_model(_i / N_PROJECTIONS);
    struct host *dy = host_random(40, DIMS(T, B, C)), *dm = host_random(41, DIMS(T, B, C));
    const struct ref_feedback_layer *p = &m.layer;
    struct host *const of[] = {m.x,
                               m.weights,
                               p->places,
                               p->u,
                               p->query_weight,
                               p->layer1_weight,
                               p->norm_attn_weight,
                               projections == OWN ? p->key_weight : NULL,
                               p->place_bias};
    enum { N = COUNT_OF(of) };
    struct fed fed;
    attncl_value y[2], cotangents[2], x[N], dx[N];
    struct host *got[N];
    struct rig b;
    int n = 0;

    rig_open(&b);
    const attncl_feedback_transformer_params params = feed_model(&b, &m, projections, &fed);
    const attncl_value in = rig_in(&b, m.x);
    y[0] = attncl_feedback_transformer(b.g, &params, in, &y[1]);
    cotangents[0] = rig_in(&b, dy);
    cotangents[1] = rig_in(&b, dm);
    const attncl_feedback_params *attn = &fed.attn;
    const attncl_value values[N] = {in,
                                    params.weights,
                                    attn->key_pos_embeddings,
                                    attn->query_pos_bias,
                                    attn->query_weight,
                                    fed.ffn.layer1_weight,
                                    fed.layers[0].norm_attn_weight,
                                    projections == OWN ? attn->key_weight : (attncl_value){0},
                                    attn->key_pos_bias};
    for (int i = 0; i < N; ++i)
        if (of[i])
            x[n++] = values[i];
    attncl_graph_gradient(b.g, 2, y, cotangents, (size_t)n, x, dx);
    n = 0;
    for (int i = 0; i < N; ++i)
        if (of[i])
            rig_out(&b, dx[n++], got[i] = host_like(of[i]));
    ck_ok(rig_compile(&b));
    for (int run = 0; run < 2; ++run) { // the second starts anew
        rig_run(&b);
        for (int i = 0; i < N; ++i)
            if (of[i])
                ck_gradient(&m, dy, dm, of[i], got[i]);
    }
    rig_close(&b);
}

// What is wrong, and the words that say so.
enum mistake { LONG_SEQUENCE, LONG_MEMORY, HEADS, OTHER_BATCH, STACK, N_MISTAKES };
static const char *const words[N_MISTAKES] = {
    "7 steps have 6 memories, key_pos_embeddings has positions for 5",
    "key has S = 6, key_pos_embeddings has P = 5",
    "C = 6 cannot be cut into H = 4 heads",
    "with B = 2 as query [2, 6]",
    "key_value_weight has shape [6, 6], expected [2 N C, C] with C = 6, N = 1 or 2",
};

LOOP_TEST(refusals, 0, N_MISTAKES)
{
    const enum mistake mistake = (enum mistake)_i;
    struct model m = random_model(false);
    struct fed fed;
    struct rig b;

    rig_open(&b);
    attncl_feedback_transformer_params p = feed_model(&b, &m, OWN, &fed);
    const int64_t n = mistake == LONG_MEMORY ? 6 : 2, batch = mistake == OTHER_BATCH ? 3 : B;
    const attncl_value x = rig_in(&b, host_new(ATTNCL_F32, DIMS(B, C)));
    const attncl_value memory = rig_in(&b, host_new(ATTNCL_F32, DIMS(n, batch, C)));
    if (mistake == STACK)
        p.key_value_weight = fed.attn.query_weight;
    if (mistake == LONG_SEQUENCE || mistake == STACK)
        attncl_feedback_transformer(b.g, &p, rig_in(&b, host_new(ATTNCL_F32, DIMS(7, B, C))), NULL);
    else
        attncl_feedback_layer(b.g, &fed.layers[0], mistake == HEADS ? 4 : H, x, memory);
    ck_fails(attncl_graph_status(b.g), ATTNCL_ERR_SHAPE, words[mistake]);
    rig_close(&b);
}

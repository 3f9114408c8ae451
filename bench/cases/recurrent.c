// SPDX-License-Identifier: MIT
//
// Recurrent networks: d2l's encoder (a GRU of several layers) and its decoder with Bahdanau's
// attention.  Batch entries do not see each other: the last one is checked.

#include <stdio.h>

#include "cases/define.h"

enum { MAX_LAYERS = 4 };

static const char *name_of(int64_t layer, const char *part, char text[64])
{
    snprintf(text, 64, "rnn.%s_l%d", part, (int)layer);
    return text;
}

// Fields of layer `k`, as those of define.h.
#define GRU_FIELDS(n_in, n, MAP, ARRAY)                                                            \
    .weight_ih = MAP(name_of(k, "weight_ih", text), 3 * n, k ? n : n_in),                          \
    .bias_ih = ARRAY(name_of(k, "bias_ih", text), 0.5, 3 * n),                                     \
    .weight_hh = MAP(name_of(k, "weight_hh", text), 3 * n, n),                                     \
    .bias_hh = ARRAY(name_of(k, "bias_hh", text), 0.5, 3 * n)

static void make_layers(struct case_data *t, int64_t n_in, attncl_gru_params *layers)
{
    const int64_t n = t->c->sizes.C;
    char text[64];

    for (int64_t k = 0; k < t->c->sizes.layers; ++k)
        layers[k] =
            (attncl_gru_params){.struct_size = sizeof layers[k], GRU_FIELDS(n_in, n, MAP, ARRAY)};
}

static void define_layers(const struct case_data *t, struct ref_gru *layers)
{
    char text[64];

    for (int64_t k = 0; k < t->c->sizes.layers; ++k)
        layers[k] = (struct ref_gru){GRU_FIELDS(, , WHOLE, WHOLE)};
}

static attncl_value build_gru(struct case_data *t, const struct sizes *s)
{
    attncl_gru_params layers[MAX_LAYERS];
    attncl_value states[MAX_LAYERS] = {{0}};
    const attncl_value x = case_input(t, "x", 1, DIMS(s->T, s->B, s->E));

    make_layers(t, s->E, layers);
    return attncl_gru_layers(t->graph, layers, (size_t)s->layers, x, ATTNCL_LAYOUT_TIME_FIRST,
                             states);
}

static void check_gru(const struct case_data *t, const struct sizes *s, struct check *c)
{
    struct ref_gru layers[MAX_LAYERS];
    struct host *states[MAX_LAYERS];
    struct host *y = host_new(ATTNCL_F32, DIMS(s->T, 1, s->C));

    define_layers(t, layers);
    for (int64_t k = 0; k < s->layers; ++k)
        states[k] = host_new(ATTNCL_F32, DIMS(1, s->C));
    ref_gru_layers(layers, (int)s->layers, PART(t, "x", ALL, LAST, ALL), true, states, y);
    // A step adds its own rounding to what the state already has.
    check_compare(c, (double)(s->layers * (s->E + 2 * s->C) + s->T), PART(t, "y", ALL, LAST, ALL),
                  y);
}

PLAIN_FAMILY(gru, SUITE_LAYER)

// Tokens to scores, teacher forcing.
static attncl_value build_bahdanau(struct case_data *t, const struct sizes *s)
{
    attncl_graph *g = t->graph;
    attncl_gru_params layers[MAX_LAYERS];
    attncl_value states[MAX_LAYERS];
    char text[64];
    const attncl_value tokens = case_indices(t, "tokens", 0, s->V, DIMS(s->B, s->T));
    const attncl_value outputs = case_input(t, "enc_outputs", 1, DIMS(s->B, s->S, s->C));
    const attncl_value lens = case_indices(t, "valid_lens", 1, s->S + 1, DIMS(s->B));
    const attncl_bahdanau_params params = {.struct_size = sizeof params,
                                           .query_weight = MAP("W_q", s->C, s->C),
                                           .key_weight = MAP("W_k", s->C, s->C),
                                           .score_weight = MAP("w_v", 1, s->C),
                                           .layers = layers,
                                           .n_layers = (size_t)s->layers};

    make_layers(t, s->C + s->E, layers);
    for (int64_t k = 0; k < s->layers; ++k)
        states[k] = case_input(t, name_of(k, "state", text), 1, DIMS(s->B, s->C));
    attncl_bahdanau_source source = ATTNCL_BAHDANAU_SOURCE_INIT;
    attncl_bahdanau_attend(g, &params, outputs, lens, &source);
    const attncl_value x = attncl_embedding(g, tokens, ARRAY("embedding", 1, s->V, s->E), 1);
    const attncl_value y = attncl_bahdanau_decoder(g, &params, &source, x, states, NULL);
    return attncl_linear(g, y, MAP("dense.weight", s->V, s->C), ARRAY("dense.bias", 1, s->V));
}

static void check_bahdanau(const struct case_data *t, const struct sizes *s, struct check *c)
{
    struct ref_gru layers[MAX_LAYERS];
    struct host *states[MAX_LAYERS];
    const struct ref_bahdanau params = {WHOLE("W_q"), WHOLE("W_k"), WHOLE("w_v"), layers,
                                        (int)s->layers};
    struct host *x = host_new(ATTNCL_F32, DIMS(1, s->T, s->E));
    struct host *y = host_new(ATTNCL_F32, DIMS(1, s->T, s->C));
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, s->T, s->S));
    char text[64];

    define_layers(t, layers);
    for (int64_t k = 0; k < s->layers; ++k)
        states[k] = PART(t, name_of(k, "state", text), LAST, ALL);
    ref_embedding_fwd(PART(t, "tokens", LAST, ALL), WHOLE("embedding"), 1, x);
    ref_bahdanau_decoder(&params, PART(t, "enc_outputs", LAST, ALL, ALL),
                         PART(t, "valid_lens", LAST), x, states, y, weights);
    check_compare(c, (double)(s->layers * (s->E + 3 * s->C) + 3 * s->C + s->S + s->T),
                  PART(t, "y", LAST, ALL, ALL),
                  define_linear(y, WHOLE("dense.weight"), WHOLE("dense.bias")));
}

PLAIN_FAMILY(bahdanau, SUITE_LAYER)

// SPDX-License-Identifier: MIT
//
// One batch entry, step by step; keys and values of a memory are projected once, which tests/ref's
// layer does not do.

#include <math.h>
#include <string.h>

#include "cases/define.h"
#include "cases/feedback.h"

// A layer's keys or values of all memories so far, [T, 1, H, D].
struct cache {
    struct host *keys, *values;
};

static void append(struct host *rows, int64_t t, const struct host *row)
{
    memcpy(rows->data + t * row->count, row->data, (size_t)row->count * sizeof row->data[0]);
}

static struct host *attend(const struct ref_feedback_layer *p, const struct cache *cache,
                           int64_t count, const struct host *x)
{
    const struct host *z = define_layer_norm(x, p->norm_attn_weight, p->norm_attn_bias);
    struct host *mixed = host_like(x);
    const struct ref_feedback operands = {
        .q = define_linear(z, p->query_weight, NULL),
        .k = cache->keys,
        .v = cache->values,
        .places = p->places,
        .u = p->u,
        .place_bias = p->place_bias,
    };

    ref_feedback_attention_fwd(&operands, count, mixed, NULL, host_like(x));
    return define_add(x, define_linear(mixed, p->output_weight, p->output_bias));
}

static struct host *feed_forward(const struct ref_feedback_layer *p, const struct host *x)
{
    struct host *h = define_layer_norm(x, p->norm_ffn_weight, p->norm_ffn_bias);

    h = define_activation(define_linear(h, p->layer1_weight, p->layer1_bias), ATTNCL_RELU);
    return define_add(x, define_linear(h, p->layer2_weight, p->layer2_bias));
}

// Adds softmax(weights)[i] x to the memory.
static void add_share(const struct host *weights, int64_t i, const struct host *x,
                      struct host *memory)
{
    double sum = 0;

    for (int64_t k = 0; k < weights->count; ++k)
        sum += exp(weights->data[k] - weights->data[i]);
    for (int64_t c = 0; c < x->count; ++c)
        memory->data[c] += x->data[c] / sum;
}

struct host *define_feedback(const struct define_feedback *p, const struct host *x)
{
    const int64_t steps = x->dim[0], width = x->dim[2];
    struct cache caches[16];
    struct host *y = host_like(x);

    for (int64_t l = 0; l < p->n_layers; ++l)
        caches[l] = (struct cache){host_like(x), host_like(x)};
    for (int64_t t = 0; t < steps; ++t) {
        const struct host *at = define_pick(x, part_one(t));
        struct host *memory = host_new(ATTNCL_F32, DIMS(1, 1, width));
        add_share(p->weights, 0, at, memory);
        for (int64_t l = 0; l < p->n_layers; ++l) {
            if (t > 0)
                at = attend(&p->layers[l], &caches[l], t, at);
            at = feed_forward(&p->layers[l], at);
            add_share(p->weights, l + 1, at, memory);
        }
        append(y, t, at);
        for (int64_t l = 0; l < p->n_layers; ++l) {
            const struct ref_feedback_layer *layer = &p->layers[l];
            append(caches[l].keys, t, define_linear(memory, layer->key_weight, NULL));
            append(caches[l].values, t,
                   define_linear(memory, layer->value_weight, layer->value_bias));
        }
    }
    return define_layer_norm(y, p->norm_weight, p->norm_bias);
}

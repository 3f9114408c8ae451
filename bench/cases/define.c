// SPDX-License-Identifier: MIT

#include "cases/define.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/ops.h"

// The same axes with another last one.
static struct host *like_rows(const struct host *x, int64_t width)
{
    int64_t dim[ATTNCL_MAX_RANK];

    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = width;
    return host_new(ATTNCL_F32, x->rank, dim);
}

struct host *define_linear(const struct host *x, const struct host *weight, const struct host *bias)
{
    struct host *y = like_rows(x, weight->dim[0]);

    ref_dense(x, weight, bias, y);
    return y;
}

struct host *define_bmm(const struct host *a, const struct host *b)
{
    const int64_t rows = a->dim[1], inner = a->dim[2], columns = b->dim[2];
    struct host *y = like_rows(a, columns);

    for (int64_t r = 0; r < a->dim[0] * rows; ++r)
        for (int64_t k = 0; k < inner; ++k) {
            const double *from = b->data + (r / rows * inner + k) * columns;
            for (int64_t c = 0; c < columns; ++c)
                y->data[r * columns + c] += a->data[r * inner + k] * from[c];
        }
    return y;
}

struct host *define_layer_norm(const struct host *x, const struct host *weight,
                               const struct host *bias)
{
    struct host *y = host_like(x);

    ref_layer_norm_fwd(x, weight, bias, LAYER_NORM_EPS, y);
    return y;
}

struct host *define_add(const struct host *a, const struct host *b)
{
    struct host *y = host_like(a);

    ref_add_fwd(a, b, y);
    return y;
}

static struct host *whole(const struct case_data *t, const char *prefix, const char *name)
{
    char text[128];

    snprintf(text, sizeof text, "%s%s", prefix, name);
    return case_whole(t, text);
}

struct ref_feedback_layer define_feedback_layer(const struct case_data *t, const char *prefix)
{
    return (struct ref_feedback_layer){
        .norm_attn_weight = whole(t, prefix, "norm_self_attn.weight"),
        .norm_attn_bias = whole(t, prefix, "norm_self_attn.bias"),
        .query_weight = whole(t, prefix, "attn.query.linear.weight"),
        .output_weight = whole(t, prefix, "attn.output.weight"),
        .output_bias = whole(t, prefix, "attn.output.bias"),
        .places = whole(t, prefix, "attn.key_pos_embeddings"),
        .u = whole(t, prefix, "attn.query_pos_bias"),
        .norm_ffn_weight = whole(t, prefix, "norm_ff.weight"),
        .norm_ffn_bias = whole(t, prefix, "norm_ff.bias"),
        .layer1_weight = whole(t, prefix, "feed_forward.layer1.weight"),
        .layer1_bias = whole(t, prefix, "feed_forward.layer1.bias"),
        .layer2_weight = whole(t, prefix, "feed_forward.layer2.weight"),
        .layer2_bias = whole(t, prefix, "feed_forward.layer2.bias"),
    };
}

// A layer's keys or values of all memories so far, [T, 1, H, D]: ref_feedback_layer() would project
// every memory again in each step.
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
    const int64_t width = x->dim[2];
    struct cache caches[16];
    struct host *y = host_like(x);

    for (int64_t l = 0; l < p->n_layers; ++l)
        caches[l] = (struct cache){host_like(x), host_like(x)};
    for (int64_t t = 0; t < x->dim[0]; ++t) {
        struct host *at = host_new(ATTNCL_F32, DIMS(1, 1, width)), *memory = host_like(at);
        memcpy(at->data, x->data + t * width, (size_t)width * sizeof x->data[0]);
        add_share(p->weights, 0, at, memory);
        for (int64_t l = 0; l < p->n_layers; ++l) {
            struct host *after = t > 0 ? attend(&p->layers[l], &caches[l], t, at) : at;
            at = host_like(after);
            ref_feedback_layer(&p->layers[l], ATTNCL_RELU, after, NULL, at); // what follows
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

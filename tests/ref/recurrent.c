// SPDX-License-Identifier: MIT

#include <math.h>
#include <string.h>

#include "attncl/kinds.h"
#include "op/op.h"
#include "ref/layers.h"

// Row t of each batch entry, [B, C].
static void get_step(const struct host *x, bool time_first, int64_t t, struct host *row)
{
    const int64_t n_steps = x->dim[!time_first], batch = row->dim[0], width = row->dim[1];

    for (int64_t b = 0; b < batch; ++b)
        for (int64_t c = 0; c < width; ++c)
            row->data[b * width + c] =
                x->data[(time_first ? t * batch + b : b * n_steps + t) * width + c];
}

void ref_gru_layers(const struct ref_gru *layers, int n_layers, const struct host *x,
                    bool time_first, struct host *const *states, struct host *y)
{
    const struct gru_fwd_params params = {.layout = time_first ? ATTNCL_LAYOUT_TIME_FIRST
                                                               : ATTNCL_LAYOUT_BATCH_FIRST};

    for (int k = 0; k < n_layers; ++k) {
        struct host *xi = host_new(ATTNCL_F32, DIMS(x->dim[0], x->dim[1], 3 * y->dim[2]));
        struct host *h = host_like(y);
        ref_dense(x, layers[k].weight_ih, layers[k].bias_ih, xi);
        ref_gru_fwd(xi, layers[k].weight_hh, layers[k].bias_hh, states[k], NULL, &params, h, NULL);
        get_step(h, time_first, h->dim[!time_first] - 1, states[k]);
        x = h;
    }
    memcpy(y->data, x->data, (size_t)y->count * sizeof y->data[0]);
}

// cat(context, embedding) as the first layer's input, layer by layer.
static void step(const struct ref_bahdanau *p, const struct host *context, const struct host *e,
                 struct host *const *states)
{
    const int64_t batch = e->dim[0], n_context = context->dim[2], n_embed = e->dim[1];
    struct host *x = host_new(ATTNCL_F32, DIMS(1, batch, n_context + n_embed));
    struct host *y = host_new(ATTNCL_F32, DIMS(1, batch, n_context));

    for (int64_t b = 0; b < batch; ++b) {
        double *row = x->data + b * (n_context + n_embed);
        memcpy(row, context->data + b * n_context, (size_t)n_context * sizeof *row);
        memcpy(row + n_context, e->data + b * n_embed, (size_t)n_embed * sizeof *row);
    }
    ref_gru_layers(p->layers, p->n_layers, x, true, states, y);
}

void ref_bahdanau_decoder(const struct ref_bahdanau *p, const struct host *source,
                          const struct host *lens, const struct host *embedded,
                          struct host *const *states, struct host *y, struct host *weights)
{
    const int64_t batch = y->dim[0], n_steps = y->dim[1], width = y->dim[2],
                  n_source = source->dim[1];
    struct host *keys = host_new(ATTNCL_F32, DIMS(batch, n_source, p->key_weight->dim[0]));
    struct host *q = host_new(ATTNCL_F32, DIMS(batch, 1, p->query_weight->dim[0]));
    struct host *context = host_new(ATTNCL_F32, DIMS(batch, 1, width));
    struct host *row = host_new(ATTNCL_F32, DIMS(batch, 1, n_source));
    struct host *e = host_new(ATTNCL_F32, DIMS(batch, embedded->dim[2]));

    ref_dense(source, p->key_weight, NULL, keys);
    for (int64_t t = 0; t < n_steps; ++t) {
        const struct host *top = states[p->n_layers - 1];
        ref_dense(top, p->query_weight, NULL, q);
        ref_additive_attention(q, keys, source, p->score_weight, lens, context, row);
        get_step(embedded, false, t, e);
        step(p, context, e, states);
        for (int64_t b = 0; b < batch; ++b) {
            memcpy(y->data + (b * n_steps + t) * width, top->data + b * width,
                   (size_t)width * sizeof y->data[0]);
            memcpy(weights->data + (b * n_steps + t) * n_source, row->data + b * n_source,
                   (size_t)n_source * sizeof y->data[0]);
        }
    }
}

// SPDX-License-Identifier: MIT

#include <math.h>
#include <string.h>

#include "attncl/ops.h"
#include "ref/layers.h"

void ref_dense(const struct host *x, const struct host *weight, const struct host *bias,
               struct host *y)
{
    const int64_t n_in = weight->dim[1], n_out = weight->dim[0];
    for (int64_t r = 0; r < y->count / n_out; ++r) {
        for (int64_t o = 0; o < n_out; ++o) {
            double sum = bias ? bias->data[o] : 0;
            for (int64_t i = 0; i < n_in; ++i)
                sum += x->data[r * n_in + i] * weight->data[o * n_in + i];
            y->data[r * n_out + o] = sum;
        }
    }
}

// Like x, but the last axis has `width` elements.
static struct host *with_width(const struct host *x, int64_t width)
{
    int64_t dim[ATTNCL_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = width;
    return host_new(ATTNCL_F32, x->rank, dim);
}

void ref_aft_layer(const struct ref_aft *p, int window, int causal, const struct host *x,
                   const struct host *mask, struct host *y)
{
    struct host *q = host_like(x), *k = host_like(x), *v = host_like(x);
    struct host *mixed = host_like(x), *scale = host_like(x);
    ref_dense(x, p->query_weight, p->query_bias, q);
    ref_dense(x, p->key_weight, p->key_bias, k);
    ref_dense(x, p->value_weight, p->value_bias, v);
    ref_aft_local_fwd(q, k, v, p->pos_bias, mask, window, causal, mixed, scale);
    ref_dense(mixed, p->output_weight, p->output_bias, y);
}

// x W^T + b as [B, H, T, C / H], turned by the table unless it is NULL.
static struct host *heads_of(const struct host *x, const struct host *weight,
                             const struct host *bias, int64_t n_heads, bool time_first,
                             const struct host *rotary)
{
    const int64_t n_batch = x->dim[time_first], n_seq = x->dim[!time_first];
    const int64_t width = weight->dim[0] / n_heads;
    struct host *flat = host_new(ATTNCL_F32, DIMS(x->dim[0], x->dim[1], n_heads, width));
    struct host *heads = host_new(ATTNCL_F32, DIMS(n_batch, n_heads, n_seq, width));

    ref_dense(x, weight, bias, flat);
    if (rotary) {
        const struct host *straight = host_copy(flat);
        ref_rotate(true, 1, straight, rotary, NULL, flat);
    }
    for (int64_t i = 0; i < heads->count; ++i) {
        const int64_t d = i % width, t = i / width % n_seq, h = i / width / n_seq % n_heads;
        const int64_t b = i / width / n_seq / n_heads;
        const int64_t row = time_first ? t * n_batch + b : b * n_seq + t;
        heads->data[i] = flat->data[(row * n_heads + h) * width + d];
    }
    return heads;
}

void ref_multi_head_attention(const struct ref_mha *p, struct ref_attention a, int64_t n_heads,
                              bool time_first, const struct host *query, const struct host *key,
                              const struct host *value, struct host *y, struct host *weights)
{
    const int64_t n_kv = n_heads * p->key_weight->dim[0] / p->query_weight->dim[0];
    const struct host *table = p->rotary;
    const struct host *q =
        heads_of(query, p->query_weight, p->query_bias, n_heads, time_first, table);
    const struct host *k = heads_of(key, p->key_weight, p->key_bias, n_kv, time_first, table);
    const struct host *v = heads_of(value, p->value_weight, p->value_bias, n_kv, time_first, NULL);
    struct host *mixed = with_width(query, p->output_weight->dim[1]);

    a.scale = 1 / sqrt((double)q->dim[3]);
    ref_attention_weights(&a, q, k, weights);
    ref_attention_mix(weights, v, time_first, mixed);
    ref_dense(mixed, p->output_weight, p->output_bias, y);
}

void ref_spatial_gating_unit(const struct ref_sgu *p, int causal, const struct host *z,
                             const struct host *mask, struct host *y)
{
    const int64_t n_seq = z->dim[0], n_batch = z->dim[1], half = z->dim[2] / 2;
    const int64_t n = p->weight->dim[1];
    struct host *z2 = with_width(z, half), *u = with_width(z, half);
    for (int64_t r = 0; r < n_seq * n_batch; ++r)
        for (int64_t c = 0; c < half; ++c)
            z2->data[r * half + c] = z->data[r * 2 * half + half + c];
    ref_layer_norm_fwd(z2, p->norm_weight, p->norm_bias, 1e-5, u);

    for (int64_t i = 0; i < n_seq; ++i) {
        for (int64_t r = 0; r < n_batch * half; ++r) {
            double sum = p->bias->data[i];
            for (int64_t j = 0; j < (causal ? i + 1 : n_seq); ++j) {
                const int64_t row = mask && mask->dim[0] == 1 ? 0 : i;
                const double factor = mask ? mask->data[row * n_seq + j] : 1;
                sum += p->weight->data[i * n + j] * factor * u->data[j * n_batch * half + r];
            }
            const double z1 = z->data[(i * n_batch + r / half) * 2 * half + r % half];
            y->data[i * n_batch * half + r] = z1 * sum;
        }
    }
}

void ref_gmlp_block(const struct ref_gmlp *p, int causal, const struct host *x,
                    const struct host *mask, struct host *y)
{
    const int64_t hidden = p->proj1_weight->dim[0];
    struct host *h = host_like(x), *z = with_width(x, hidden), *s = with_width(x, hidden / 2);
    ref_layer_norm_fwd(x, p->norm_weight, p->norm_bias, 1e-5, h);
    ref_dense(h, p->proj1_weight, p->proj1_bias, z);
    for (int64_t i = 0; i < z->count; ++i)
        z->data[i] = ref_activate(z->data[i], ATTNCL_GELU);
    ref_spatial_gating_unit(&p->sgu, causal, z, mask, s);
    ref_dense(s, p->proj2_weight, p->proj2_bias, y);
    ref_add_fwd(x, y, y);
}

void ref_feed_forward(const struct ref_ffn *p, int activation, const struct host *x, struct host *y)
{
    const int64_t hidden = p->layer1_weight->dim[0];
    struct host *h = with_width(x, hidden), *gate = with_width(x, hidden);
    ref_dense(x, p->layer1_weight, p->layer1_bias, h);
    if (p->gate_weight)
        ref_dense(x, p->gate_weight, p->gate_bias, gate);
    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = ref_activate(h->data[i], activation) * (p->gate_weight ? gate->data[i] : 1);
    ref_dense(h, p->layer2_weight, p->layer2_bias, y);
}

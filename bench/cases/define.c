// SPDX-License-Identifier: MIT

#include "cases/define.h"

#include <stdio.h>
#include <string.h>

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

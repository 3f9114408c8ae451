// SPDX-License-Identifier: MIT

#include "cases/define.h"

#include <stdio.h>
#include <string.h>

struct host *define_linear(const struct host *x, const struct host *weight, const struct host *bias)
{
    int64_t dim[ATTNCL_MAX_RANK];

    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = weight->dim[0];
    struct host *y = host_new(ATTNCL_F32, x->rank, dim);
    ref_dense(x, weight, bias, y);
    return y;
}

struct host *define_bmm(const struct host *a, const struct host *b)
{
    const int64_t rows = a->dim[1], inner = a->dim[2], columns = b->dim[2];
    struct host *y = host_new(ATTNCL_F32, DIMS(a->dim[0], rows, columns));

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

struct host *define_param(const struct case_data *t, const char *prefix, const char *name)
{
    char text[128];

    snprintf(text, sizeof text, "%s%s", prefix, name);
    return case_whole(t, text);
}

struct ref_feedback_layer define_feedback_layer(const struct case_data *t, const char *prefix)
{
#define LAYER(name, ...) define_param(t, prefix, name)
    return (struct ref_feedback_layer){
        NORM_FIELDS("", norm_attn, "norm_self_attn", , LAYER),
        .query_weight = LAYER("attn.query.linear.weight"),
        DENSE_FIELDS("", output, "attn.output", , , LAYER, LAYER),
        .places = LAYER("attn.key_pos_embeddings"),
        .u = LAYER("attn.query_pos_bias"),
        NORM_FIELDS("", norm_ffn, "norm_ff", , LAYER),
        FFN_FIELDS("feed_forward.", LAYER, LAYER),
    };
#undef LAYER
}

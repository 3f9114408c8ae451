// SPDX-License-Identifier: MIT
//
// transpose_qkv, transpose_output: [B, T, D] as [B H, T, D / H] and back.

#include <inttypes.h>

#include "attncl/attention.h"
#include "model/arch.h"

struct settings {
    int64_t heads;
};

static const struct key keys[] = {
    {"num_heads", KEY_INT, AT(settings, heads), .min = 1},
    {0},
};

static attncl_value split_build(struct build *b, const void *settings)
{
    const struct settings *s = settings;
    const attncl_value x = attncl__input(b, "X");
    const attncl_shape shape = attncl_graph_shape(b->graph, x);
    const int64_t *d = shape.dim;
    if (d[2] % s->heads != 0)
        return GRAPH_FAIL(b->graph, ATTNCL_ERR_SHAPE,
                          "input X has %" PRId64 " channels, num_heads = %" PRId64
                          " does not divide them",
                          d[2], s->heads);
    if (d[0] > 0 && s->heads > INT64_MAX / d[0])
        return GRAPH_FAIL(b->graph, ATTNCL_ERR_SHAPE,
                          "input X has a batch of %" PRId64 ", too many for num_heads = %" PRId64,
                          d[0], s->heads);

    const int64_t dim[3] = {d[0] * s->heads, d[1], d[2] / s->heads};
    const attncl_value y = attncl_split_heads(b->graph, x, s->heads, ATTNCL_LAYOUT_BATCH_FIRST);
    return attncl_reshape(b->graph, y, 3, dim);
}

static attncl_value merge_build(struct build *b, const void *settings)
{
    const struct settings *s = settings;
    const attncl_value x = attncl__input(b, "X");
    const attncl_shape shape = attncl_graph_shape(b->graph, x);
    const int64_t *d = shape.dim;
    if (d[0] % s->heads != 0)
        return GRAPH_FAIL(b->graph, ATTNCL_ERR_SHAPE,
                          "input X has a batch of %" PRId64 ", num_heads = %" PRId64
                          " does not divide it",
                          d[0], s->heads);

    const int64_t dim[4] = {d[0] / s->heads, s->heads, d[1], d[2]};
    const attncl_value y = attncl_reshape(b->graph, x, 4, dim);
    return attncl_merge_heads(b->graph, y, ATTNCL_LAYOUT_BATCH_FIRST);
}

const struct arch_class attncl__arch_transpose_qkv = {
    .name = "transpose_qkv",
    .example = "{\"num_heads\": 4}",
    .settings_bytes = sizeof(struct settings),
    .keys = keys,
    .inputs = PORTS(PORT("X", F32, "B T num_heads*D")),
    .outputs = PORTS(PORT("output", F32, "num_heads*B T D")),
    .build = split_build,
    .no_gradients = true,
};

const struct arch_class attncl__arch_transpose_output = {
    .name = "transpose_output",
    .example = "{\"num_heads\": 4}",
    .settings_bytes = sizeof(struct settings),
    .keys = keys,
    .inputs = PORTS(PORT("X", F32, "num_heads*B T D")),
    .outputs = PORTS(PORT("output", F32, "B T num_heads*D")),
    .build = merge_build,
    .no_gradients = true,
};

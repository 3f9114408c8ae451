// SPDX-License-Identifier: MIT
//
// softmax, masked_softmax, layer_norm, rms_norm, activation, linear, bmm, transpose_qkv,
// transpose_output.

#include <inttypes.h>

#include "attncl/attention.h"
#include "model/arch.h"
#include "model/block_layers.h"

// -- softmax

struct softmax_settings {
    int64_t dim;
};

static attncl_value softmax_build(struct build *b, const void *settings)
{
    const struct softmax_settings *s = settings;
    const attncl_value x = attncl__input(b, "x");
    const int rank = attncl_graph_shape(b->graph, x).rank;
    if (s->dim < -rank || s->dim >= rank)
        return GRAPH_FAIL(b->graph, ATTNCL_ERR_SHAPE, "dim is %" PRId64 ", input x has %d axes",
                          s->dim, rank);
    return attncl_softmax(b->graph, x, (int)s->dim);
}

const struct arch_class attncl__arch_softmax = {
    .example = "{}",
    .settings_bytes = sizeof(struct softmax_settings),
    .keys = KEYS({"dim", KEY_INT, AT(softmax_settings, dim), .min = -ATTNCL_MAX_RANK, OR(-1)}),
    .inputs = PORTS(PORT("x", F32, "...")),
    .outputs = PORTS(PORT("output", F32, "...")),
    .build = softmax_build,
};

// -- masked_softmax

static attncl_value masked_softmax_build(struct build *b, const void *settings)
{
    const attncl_value x = attncl__input(b, "X"), lens = attncl__input(b, "valid_lens");
    (void)settings;
    return attncl_masked_softmax(b->graph, x, lens);
}

const struct arch_class attncl__arch_masked_softmax = {
    .example = "{}",
    .inputs = PORTS(PORT("X", F32, "B Q K"), PORT("valid_lens", INT, "B Q; B", .optional = true)),
    .outputs = PORTS(PORT("output", F32, "B Q K")),
    .build = masked_softmax_build,
};

// -- layer_norm

struct layer_norm_settings {
    struct int_list shape;
    double eps;
};

static const struct key layer_norm_keys[] = {
    {"normalized_shape", KEY_INTS, AT(layer_norm_settings, shape), .min = 1},
    {"eps", KEY_NUMBER, AT(layer_norm_settings, eps), OR(1e-5)},
    {0},
};

static attncl_value layer_norm_build(struct build *b, const void *settings)
{
    const struct layer_norm_settings *s = settings;
    const int rank = (int)s->shape.n;
    const attncl_value x = attncl__input(b, "x");
    const attncl_value weight =
        attncl__param(&b->params, "weight", INIT_CONSTANT(1), rank, s->shape.list);
    const attncl_value bias =
        attncl__param(&b->params, "bias", INIT_CONSTANT(0), rank, s->shape.list);
    return attncl_layer_norm(b->graph, x, weight, bias, (float)s->eps);
}

const struct arch_class attncl__arch_layer_norm = {
    .example = "{\"normalized_shape\": [64]}",
    .settings_bytes = sizeof(struct layer_norm_settings),
    .keys = layer_norm_keys,
    .inputs = PORTS(PORT("x", F32, "... normalized_shape")),
    .outputs = PORTS(PORT("output", F32, "... normalized_shape")),
    .build = layer_norm_build,
};

// -- rms_norm

static attncl_value rms_norm_build(struct build *b, const void *settings)
{
    const struct layer_norm_settings *s = settings;
    const attncl_value x = attncl__input(b, "x");
    const attncl_value weight =
        attncl__param(&b->params, "weight", INIT_CONSTANT(1), (int)s->shape.n, s->shape.list);
    return attncl_rms_norm(b->graph, x, weight, (float)s->eps);
}

const struct arch_class attncl__arch_rms_norm = {
    .example = "{\"normalized_shape\": [64]}",
    .settings_bytes = sizeof(struct layer_norm_settings),
    .keys = layer_norm_keys,
    .inputs = PORTS(PORT("x", F32, "... normalized_shape")),
    .outputs = PORTS(PORT("output", F32, "... normalized_shape")),
    .build = rms_norm_build,
};

// -- activation

static attncl_value activation_build(struct build *b, const void *settings)
{
    const attncl_activation *kind = settings;
    const attncl_value x = attncl__input(b, "x");
    return attncl_activate(b->graph, x, *kind);
}

const struct arch_class attncl__arch_activation = {
    .example = "{\"kind\": \"gelu\"}",
    .settings_bytes = sizeof(attncl_activation),
    .keys = KEYS({"kind", KEY_WORD, 0, .choices = attncl__activation_choices, .any_case = true}),
    .inputs = PORTS(PORT("x", F32, "...")),
    .outputs = PORTS(PORT("output", F32, "...")),
    .build = activation_build,
};

// -- linear

struct linear_settings {
    int64_t in, out;
    bool bias;
};

static attncl_value linear_build(struct build *b, const void *settings)
{
    const struct linear_settings *s = settings;
    const struct param_init init = attncl__init_fan_in(s->in);
    const attncl_value x = attncl__input(b, "x");
    const attncl_value weight = attncl__param_matrix(&b->params, "weight", init, s->out, s->in);
    const attncl_value bias = PARAM_IF(s->bias, &b->params, "bias", init, s->out);
    return attncl_linear(b->graph, x, weight, bias);
}

const struct arch_class attncl__arch_linear = {
    .example = "{\"in_features\": 64, \"out_features\": 48}",
    .settings_bytes = sizeof(struct linear_settings),
    .keys = KEYS({"in_features", KEY_INT, AT(linear_settings, in), .min = 1},
                 {"out_features", KEY_INT, AT(linear_settings, out), .min = 1},
                 {"bias", KEY_BOOL, AT(linear_settings, bias), OR(true)}),
    .inputs = PORTS(PORT("x", F32, "... in_features")),
    .outputs = PORTS(PORT("output", F32, "... out_features")),
    .build = linear_build,
};

// -- bmm

static attncl_value bmm_build(struct build *b, const void *settings)
{
    const attncl_value left = attncl__input(b, "a"), right = attncl__input(b, "b");
    (void)settings;
    return attncl_bmm(b->graph, left, right);
}

const struct arch_class attncl__arch_bmm = {
    .example = "{}",
    .inputs = PORTS(PORT("a", F32, "B N M"), PORT("b", F32, "B M K")),
    .outputs = PORTS(PORT("output", F32, "B N K")),
    .build = bmm_build,
};

// -- transpose_qkv, transpose_output: [B, T, D] as [B H, T, D / H] and back

struct heads_settings {
    int64_t heads;
};

static const struct key heads_keys[] = {
    {"num_heads", KEY_INT, AT(heads_settings, heads), .min = 1},
    {0},
};

static attncl_value split_build(struct build *b, const void *settings)
{
    const struct heads_settings *s = settings;
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
    const struct heads_settings *s = settings;
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
    .example = "{\"num_heads\": 4}",
    .settings_bytes = sizeof(struct heads_settings),
    .keys = heads_keys,
    .inputs = PORTS(PORT("X", F32, "B T num_heads*D")),
    .outputs = PORTS(PORT("output", F32, "num_heads*B T D")),
    .build = split_build,
    .no_gradients = true,
};

const struct arch_class attncl__arch_transpose_output = {
    .example = "{\"num_heads\": 4}",
    .settings_bytes = sizeof(struct heads_settings),
    .keys = heads_keys,
    .inputs = PORTS(PORT("X", F32, "num_heads*B T D")),
    .outputs = PORTS(PORT("output", F32, "B T num_heads*D")),
    .build = merge_build,
    .no_gradients = true,
};

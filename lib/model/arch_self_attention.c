// SPDX-License-Identifier: MIT
//
// basic_self_attention, raschka_self_attention, raschka_multi_head: a sequence attends to itself.

#include "attncl/attention.h"
#include "model/arch.h"

// -- basic_self_attention: softmax(x x^T) x, unscaled

static attncl_value basic_build(struct build *b, const void *settings)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_graph *g = b->graph;
    const attncl_value x = attncl__input(b, "x");
    attncl_value weights;
    (void)settings;
    const attncl_shape shape = attncl_graph_shape(g, x);
    const bool has_batch = shape.rank == 3;
    const int64_t n_batch = has_batch ? shape.dim[0] : 1, n_seq = attncl__input_axis(b, 'T');
    const int64_t one_head[4] = {n_batch, 1, n_seq, attncl__input_axis(b, 'C')};
    desc.scale = 1;
    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    const attncl_value head = attncl_reshape(g, x, 4, one_head);
    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = head, .key = head, .value = head};
    const attncl_value y = attncl_attention(g, &desc, &in, &weights);
    const int64_t pairs[3] = {n_batch, n_seq, n_seq};
    attncl_graph_output(g, "output", attncl_reshape(g, y, shape.rank, shape.dim));
    attncl_graph_output(g, "attention_weights",
                        attncl_reshape(g, weights, shape.rank, has_batch ? pairs : pairs + 1));
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_basic_self_attention = {
    .example = "{}",
    .inputs = PORTS(PORT("x", F32, "B T C; T C")),
    .outputs =
        PORTS(PORT("output", F32, "B T C; T C"), PORT("attention_weights", F32, "B T T; T T")),
    .build = basic_build,
};

// -- raschka_self_attention and raschka_multi_head: H heads, each as wide as the input
//
//   q_n = U_query_n x, k_n and v_n likewise;   z_n = softmax(q_n k_n^T / sqrt(C)) v_n

struct wide_settings {
    int64_t width, heads;
};

// x [T, C] -> z [1, H, T, C], weights [1, H, T, T].  Each projection is one GEMM for all heads, with a
// parameter [H, C, C], or [C, C] if rank is 2.
static attncl_value add_attention(struct build *b, const struct wide_settings *s,
                                  const char *const names[3], int rank, attncl_value *weights_ret)
{
    attncl_graph *g = b->graph;
    const attncl_value x = attncl__input(b, "x");
    const int64_t n_seq = attncl__input_axis(b, 'T'), c = s->width, h = s->heads;
    const int64_t map_dim[3] = {h, c, c}, one_map[2] = {h * c, c}, dim[3] = {n_seq, 1, h * c};
    attncl_value heads[3];
    for (int i = 0; i < 3; ++i) {
        const attncl_value map =
            attncl__param(&b->params, names[i], INIT_UNIFORM(0, 1), rank, map_dim + (3 - rank));
        const attncl_value y =
            attncl_linear(g, x, attncl_reshape(g, map, 2, one_map), ATTNCL_NONE_VALUE);
        heads[i] = attncl_split_heads(g, attncl_reshape(g, y, 3, dim), h, ATTNCL_LAYOUT_TIME_FIRST);
    }
    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = heads[0], .key = heads[1], .value = heads[2]};
    return attncl_attention(g, NULL, &in, weights_ret);
}

static attncl_value self_attention_build(struct build *b, const void *settings)
{
    static const char *const names[] = {"U_query", "U_key", "U_value"};
    const struct wide_settings *s = settings;
    attncl_value weights;
    const attncl_value z = add_attention(b, s, names, 2, &weights);
    const int64_t n_seq = attncl__input_axis(b, 'T');
    const int64_t dim[2] = {n_seq, s->width}, pairs[2] = {n_seq, n_seq};
    attncl_graph_output(b->graph, "output", attncl_reshape(b->graph, z, 2, dim));
    attncl_graph_output(b->graph, "attention_weights", attncl_reshape(b->graph, weights, 2, pairs));
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_raschka_self_attention = {
    .example = "{\"d\": 16}",
    .settings_bytes = sizeof(struct wide_settings),
    .keys = KEYS({"d", KEY_INT, AT(wide_settings, width), .min = 1},
                 SETTING(KEY_INT, AT(wide_settings, heads), .otherwise = 1)),
    .inputs = PORTS(PORT("x", F32, "T d")),
    .outputs = PORTS(PORT("output", F32, "T d"), PORT("attention_weights", F32, "T T")),
    .build = self_attention_build,
};

static attncl_value multi_head_build(struct build *b, const void *settings)
{
    static const char *const names[] = {"multihead_U_query", "multihead_U_key",
                                        "multihead_U_value"};
    const struct wide_settings *s = settings;
    const struct param_init linear = attncl__init_fan_in(s->heads * s->width);
    attncl_graph *g = b->graph;
    attncl_value weights;
    const attncl_value z = add_attention(b, s, names, 3, &weights);
    const attncl_value weight =
        PARAM(&b->params, "linear.weight", linear, s->width, s->heads * s->width);
    const attncl_value bias = PARAM(&b->params, "linear.bias", linear, s->width);
    const attncl_value merged = attncl_merge_heads(g, z, ATTNCL_LAYOUT_TIME_FIRST); // [T, 1, H C]
    const attncl_value y = attncl_linear(g, merged, weight, bias);

    const int64_t n_seq = attncl__input_axis(b, 'T');
    const int64_t dim[2] = {n_seq, s->width}, pairs[3] = {s->heads, n_seq, n_seq};
    const int64_t per_head[3] = {s->heads, n_seq, s->width};
    attncl_graph_output(g, "output", attncl_reshape(g, y, 2, dim));
    attncl_graph_output(g, "z", attncl_reshape(g, z, 3, per_head));
    attncl_graph_output(g, "attention_weights", attncl_reshape(g, weights, 3, pairs));
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_raschka_multi_head = {
    .example = "{\"d\": 16, \"heads\": 4}",
    .settings_bytes = sizeof(struct wide_settings),
    .keys = KEYS({"d", KEY_INT, AT(wide_settings, width), .min = 1},
                 {"heads", KEY_INT, AT(wide_settings, heads), .min = 1}),
    .inputs = PORTS(PORT("x", F32, "T d")),
    .outputs = PORTS(PORT("output", F32, "T d"), PORT("z", F32, "heads T d"),
                     PORT("attention_weights", F32, "heads T T")),
    .build = multi_head_build,
};

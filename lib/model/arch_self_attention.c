// SPDX-License-Identifier: MIT
//
// basic_self_attention, raschka_self_attention, raschka_multi_head: a sequence attends to itself.

#include "attncl/attention.h"
#include "model/arch.h"

// -- basic_self_attention: softmax(x x^T) x, scores as they are

static attncl_status basic_build(struct build *b, const void *settings)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_graph *g = b->graph;
    attncl_value x, weights;
    (void)settings;
    TRY(attncl__input(b, "x", &x));

    const int rank = attncl__input_find(b, "x")->rank;
    const int64_t *dim = attncl__input_find(b, "x")->dim;
    const int64_t n_batch = rank == 2 ? 1 : dim[0], n_seq = attncl__input_axis(b, 'T');
    desc.scale = 1;
    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    const attncl_value head =
        attncl_reshape(g, x, 4, (const int64_t[]){n_batch, 1, n_seq, dim[rank - 1]});
    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = head, .key = head, .value = head};
    const attncl_value y = attncl_attention(g, &desc, &in, &weights);
    const int64_t pairs[3] = {n_batch, n_seq, n_seq};
    attncl_graph_output(g, "output", attncl_reshape(g, y, rank, dim));
    attncl_graph_output(g, "attention_weights",
                        attncl_reshape(g, weights, rank, pairs + (3 - rank)));
    return ATTNCL_OK;
}

static const struct port basic_inputs[] = {PORT("x", F32, "B T C; T C"), {0}};
static const struct port basic_outputs[] = {
    PORT("output", F32, "B T C; T C"), PORT("attention_weights", F32, "B T T; T T"), {0}};

const struct arch_class attncl__arch_basic_self_attention = {
    .name = "basic_self_attention",
    .example = "{}",
    .inputs = basic_inputs,
    .outputs = basic_outputs,
    .build = basic_build,
};

// -- raschka_self_attention and raschka_multi_head: H heads, each as wide as the input
//
//   q_n = U_query_n x, keys and values alike;   z_n = softmax(q_n k_n^T / sqrt(C)) v_n

struct wide_settings {
    int64_t width, heads;
};

struct wide_params {
    attncl_value query, key, value; // [H C, C]
};

// The maps of all heads stacked, so that each projection is one GEMM.
static attncl_value as_one_map(struct build *b, const struct wide_settings *s, attncl_value u)
{
    const int64_t dim[2] = {s->heads * s->width, s->width};
    return attncl_reshape(b->graph, u, 2, dim);
}

// x [T, C] -> z [1, H, T, C], weights [1, H, T, T]
static attncl_value attend(struct build *b, const struct wide_settings *s,
                           const struct wide_params *params, attncl_value x,
                           attncl_value *weights_ret)
{
    attncl_graph *g = b->graph;
    const int64_t n_seq = attncl__input_axis(b, 'T');
    const int64_t dim[3] = {n_seq, 1, s->heads * s->width};
    const attncl_value maps[3] = {params->query, params->key, params->value};
    attncl_value heads[3];
    for (int i = 0; i < 3; ++i) {
        const attncl_value y = attncl_linear(g, x, as_one_map(b, s, maps[i]), ATTNCL_NONE_VALUE);
        heads[i] =
            attncl_split_heads(g, attncl_reshape(g, y, 3, dim), s->heads, ATTNCL_LAYOUT_TIME_FIRST);
    }
    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = heads[0], .key = heads[1], .value = heads[2]};
    return attncl_attention(g, NULL, &in, weights_ret);
}

static const struct key one_keys[] = {
    {"d", KEY_INT, AT(wide_settings, width), .min = 1},
    SETTING(KEY_INT, AT(wide_settings, heads), .otherwise = 1),
    {0},
};

static struct wide_params one_params(struct params *p, const struct wide_settings *s)
{
    struct wide_params params;
    params.query = PARAM(p, "U_query", INIT_UNIFORM(0, 1), s->width, s->width);
    params.key = PARAM(p, "U_key", INIT_UNIFORM(0, 1), s->width, s->width);
    params.value = PARAM(p, "U_value", INIT_UNIFORM(0, 1), s->width, s->width);
    return params;
}

static void one_load(struct params *p, const void *settings)
{
    one_params(p, settings);
}

static attncl_status one_build(struct build *b, const void *settings)
{
    const struct wide_settings *s = settings;
    attncl_value x, weights;
    TRY(attncl__input(b, "x", &x));
    const struct wide_params params = one_params(&b->params, s);
    const attncl_value z = attend(b, s, &params, x, &weights);

    const int64_t n_seq = attncl__input_axis(b, 'T');
    const int64_t dim[2] = {n_seq, s->width}, pairs[2] = {n_seq, n_seq};
    attncl_graph_output(b->graph, "output", attncl_reshape(b->graph, z, 2, dim));
    attncl_graph_output(b->graph, "attention_weights", attncl_reshape(b->graph, weights, 2, pairs));
    return ATTNCL_OK;
}

static const struct port wide_inputs[] = {PORT("x", F32, "T d"), {0}};
static const struct port one_outputs[] = {
    PORT("output", F32, "T d"), PORT("attention_weights", F32, "T T"), {0}};

const struct arch_class attncl__arch_raschka_self_attention = {
    .name = "raschka_self_attention",
    .example = "{\"d\": 16}",
    .settings_bytes = sizeof(struct wide_settings),
    .keys = one_keys,
    .inputs = wide_inputs,
    .outputs = one_outputs,
    .load = one_load,
    .build = one_build,
};

static const struct key many_keys[] = {
    {"d", KEY_INT, AT(wide_settings, width), .min = 1},
    {"heads", KEY_INT, AT(wide_settings, heads), .min = 1},
    {0},
};

struct many_params {
    struct wide_params heads;
    attncl_value weight, bias; // [C, H C], [C]
};

static struct many_params many_params(struct params *p, const struct wide_settings *s)
{
    const struct param_init linear = attncl__init_fan_in(s->heads * s->width);
    struct many_params params;
    params.heads.query =
        PARAM(p, "multihead_U_query", INIT_UNIFORM(0, 1), s->heads, s->width, s->width);
    params.heads.key =
        PARAM(p, "multihead_U_key", INIT_UNIFORM(0, 1), s->heads, s->width, s->width);
    params.heads.value =
        PARAM(p, "multihead_U_value", INIT_UNIFORM(0, 1), s->heads, s->width, s->width);
    params.weight = PARAM(p, "linear.weight", linear, s->width, s->heads * s->width);
    params.bias = PARAM(p, "linear.bias", linear, s->width);
    return params;
}

static void many_load(struct params *p, const void *settings)
{
    many_params(p, settings);
}

static attncl_status many_build(struct build *b, const void *settings)
{
    const struct wide_settings *s = settings;
    attncl_graph *g = b->graph;
    attncl_value x, weights;
    TRY(attncl__input(b, "x", &x));
    const struct many_params params = many_params(&b->params, s);
    const attncl_value z = attend(b, s, &params.heads, x, &weights);
    const attncl_value merged = attncl_merge_heads(g, z, ATTNCL_LAYOUT_TIME_FIRST); // [T, 1, H C]
    const attncl_value y = attncl_linear(g, merged, params.weight, params.bias);

    const int64_t n_seq = attncl__input_axis(b, 'T');
    const int64_t dim[2] = {n_seq, s->width}, pairs[3] = {s->heads, n_seq, n_seq};
    const int64_t per_head[3] = {s->heads, n_seq, s->width};
    attncl_graph_output(g, "output", attncl_reshape(g, y, 2, dim));
    attncl_graph_output(g, "z", attncl_reshape(g, z, 3, per_head));
    attncl_graph_output(g, "attention_weights", attncl_reshape(g, weights, 3, pairs));
    return ATTNCL_OK;
}

static const struct port many_outputs[] = {
    PORT("output", F32, "T d"),
    PORT("z", F32, "heads T d"),
    PORT("attention_weights", F32, "heads T T"),
    {0},
};

const struct arch_class attncl__arch_raschka_multi_head = {
    .name = "raschka_multi_head",
    .example = "{\"d\": 16, \"heads\": 4}",
    .settings_bytes = sizeof(struct wide_settings),
    .keys = many_keys,
    .inputs = wide_inputs,
    .outputs = many_outputs,
    .load = many_load,
    .build = many_build,
};

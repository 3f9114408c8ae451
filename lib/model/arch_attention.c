// SPDX-License-Identifier: MIT
//
// dot_product_attention, bilinear_attention, additive_attention, multi_head_attention: batch first,
// keys masked by lengths.

#include <inttypes.h>

#include "attncl/attention.h"
#include "layer/layer.h"
#include "model/arch.h"

struct attention_inputs {
    attncl_value queries, keys, values; // [B, Q, .], [B, K, .], [B, K, .]
    attncl_value lens;                  // [B] or [B, Q], or null
    int64_t n_batch, n_queries, n_keys;
};

static struct attention_inputs declare_inputs(struct build *b)
{
    struct attention_inputs in;
    in.queries = attncl__input(b, "queries");
    in.keys = attncl__input(b, "keys");
    in.values = attncl__input(b, "values");
    in.lens = attncl__input(b, "valid_lens");
    in.n_batch = attncl__input_axis(b, 'B');
    in.n_queries = attncl__input_axis(b, 'Q');
    in.n_keys = attncl__input_axis(b, 'K');
    return in;
}

#define VALID_LENS PORT("valid_lens", INT, "B Q; B", .optional = true)

// -- dot_product_attention

// [B, T, C] as one head [B, 1, T, C]
static attncl_value view_one_head(struct build *b, attncl_value x)
{
    return attncl_split_heads(b->graph, x, 1, ATTNCL_LAYOUT_BATCH_FIRST);
}

// The outputs.  scale 0: 1 / sqrt(C)
static attncl_value add_dot_product(struct build *b, const struct attention_inputs *in, float scale)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_value weights;
    desc.scale = scale;
    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    const attncl_attention_inputs heads = {.struct_size = sizeof heads,
                                           .query = view_one_head(b, in->queries),
                                           .key = view_one_head(b, in->keys),
                                           .value = view_one_head(b, in->values),
                                           .valid_lens = in->lens};
    const attncl_value y = attncl_attention(b->graph, &desc, &heads, &weights);
    const int64_t dim[3] = {in->n_batch, in->n_queries, in->n_keys};
    attncl_graph_output(b->graph, "output",
                        attncl_merge_heads(b->graph, y, ATTNCL_LAYOUT_BATCH_FIRST));
    attncl_graph_output(b->graph, "attention_weights", attncl_reshape(b->graph, weights, 3, dim));
    return ATTNCL_NONE_VALUE;
}

static attncl_value dot_product_build(struct build *b, const void *settings)
{
    const struct attention_inputs in = declare_inputs(b);
    (void)settings;
    return add_dot_product(b, &in, 0);
}

static const struct port attended_outputs[] = {
    PORT("output", F32, "B Q E"), PORT("attention_weights", F32, "B Q K"), {0}};

const struct arch_class attncl__arch_dot_product_attention = {
    .example = "{}",
    .inputs = PORTS(PORT("queries", F32, "B Q C"), PORT("keys", F32, "B K C"),
                    PORT("values", F32, "B K E"), VALID_LENS),
    .outputs = attended_outputs,
    .build = dot_product_build,
};

// -- bilinear_attention: scores q^T M k, unscaled

struct sizes_settings {
    int64_t query_size, key_size, num_hiddens; // num_hiddens: of additive_attention
};

static const struct key bilinear_keys[] = {
    {"query_size", KEY_INT, AT(sizes_settings, query_size), .min = 1},
    {"key_size", KEY_INT, AT(sizes_settings, key_size), .min = 1},
    {0},
};

static attncl_value bilinear_build(struct build *b, const void *settings)
{
    const struct sizes_settings *s = settings;
    struct attention_inputs in = declare_inputs(b);
    const attncl_value m =
        PARAM(&b->params, "M", attncl__init_fan_in(s->key_size), s->query_size, s->key_size);
    in.keys = attncl_linear(b->graph, in.keys, m, ATTNCL_NONE_VALUE);
    return add_dot_product(b, &in, 1);
}

static const struct port sized_inputs[] = {
    PORT("queries", F32, "B Q query_size"),
    PORT("keys", F32, "B K key_size"),
    PORT("values", F32, "B K E"),
    VALID_LENS,
    {0},
};

const struct arch_class attncl__arch_bilinear_attention = {
    .example = "{\"query_size\": 20, \"key_size\": 24}",
    .settings_bytes = sizeof(struct sizes_settings),
    .keys = bilinear_keys,
    .inputs = sized_inputs,
    .outputs = attended_outputs,
    .build = bilinear_build,
};

// -- additive_attention

static attncl_value add_additive(struct build *b, const struct sizes_settings *s,
                                 const struct attention_inputs *in, attncl_value *weights_ret)
{
    const int64_t n_query = s->query_size, n_key = s->key_size, n_hidden = s->num_hiddens;
    const attncl_value none = ATTNCL_NONE_VALUE;
    struct params *p = &b->params;
    attncl_graph *g = b->graph;
    const attncl_value w_k = PARAM(p, "W_k.weight", attncl__init_fan_in(n_key), n_hidden, n_key);
    const attncl_value w_q =
        PARAM(p, "W_q.weight", attncl__init_fan_in(n_query), n_hidden, n_query);
    const attncl_value w_v = PARAM(p, "w_v.weight", attncl__init_fan_in(n_hidden), 1, n_hidden);
    const attncl_value q = attncl_linear(g, in->queries, w_q, none);
    const attncl_value k = attncl_linear(g, in->keys, w_k, none);
    return attncl_additive_attention(g, q, k, in->values, w_v, in->lens, weights_ret);
}

static attncl_value additive_build(struct build *b, const void *settings)
{
    const struct attention_inputs in = declare_inputs(b);
    attncl_value weights;
    attncl_graph_output(b->graph, "output", add_additive(b, settings, &in, &weights));
    attncl_graph_output(b->graph, "attention_weights", weights);
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_additive_attention = {
    .example = "{\"query_size\": 20, \"key_size\": 24, \"num_hiddens\": 32}",
    .settings_bytes = sizeof(struct sizes_settings),
    .keys = KEYS(KEYS_OF(bilinear_keys, 0),
                 {"num_hiddens", KEY_INT, AT(sizes_settings, num_hiddens), .min = 1}),
    .inputs = sized_inputs,
    .outputs = attended_outputs,
    .build = additive_build,
};

// -- multi_head_attention

enum score { SCORE_DOT, SCORE_ADDITIVE };

struct multi_head_settings {
    int64_t num_hiddens, num_heads, query_size, key_size, value_size, additive_size;
    bool bias;
    enum score score;
};

static double default_additive_size(const void *settings)
{
    const struct multi_head_settings *s = settings;
    return (double)(s->num_hiddens / s->num_heads);
}

static attncl_status multi_head_check(void *settings)
{
    const struct multi_head_settings *s = settings;
    REQUIRE(s->num_hiddens % s->num_heads == 0, ATTNCL_ERR_FORMAT,
            "num_hiddens = %" PRId64 " cannot be cut into num_heads = %" PRId64, s->num_hiddens,
            s->num_heads);
    return ATTNCL_OK;
}

static const struct choice scores[] = {{"dot", SCORE_DOT}, {"additive", SCORE_ADDITIVE}, {0}};

static attncl_mha_params declare_params(struct params *p, const struct multi_head_settings *s)
{
    const int64_t width = s->num_hiddens;
    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;
    attncl__param_linear(p, "W_q", width, s->query_size, s->bias, &params.query_weight,
                         &params.query_bias);
    attncl__param_linear(p, "W_k", width, s->key_size, s->bias, &params.key_weight,
                         &params.key_bias);
    attncl__param_linear(p, "W_v", width, s->value_size, s->bias, &params.value_weight,
                         &params.value_bias);
    attncl__param_linear(p, "W_o", width, width, s->bias, &params.output_weight,
                         &params.output_bias);
    return params;
}

// Projects x [B, n, C] and makes heads batch entries: [B H, n, C / H].
static attncl_value project_heads(attncl_graph *g, const struct multi_head_settings *s,
                                  const struct attention_inputs *in, attncl_value x, int64_t n,
                                  attncl_value weight, attncl_value bias)
{
    const int64_t dim[3] = {in->n_batch * s->num_heads, n, s->num_hiddens / s->num_heads};
    x = attncl_linear(g, x, weight, bias);
    x = attncl_split_heads(g, x, s->num_heads, ATTNCL_LAYOUT_BATCH_FIRST);
    return attncl_reshape(g, x, 3, dim);
}

// Repeats lengths [B] or [B, Q] for each head: [B H] or [B H, Q].
static attncl_value repeat_lens(attncl_graph *g, int64_t n_heads, attncl_value lens)
{
    struct tensor_desc d;
    attncl_value *each;
    if (!attncl__given(lens) || !attncl__layer_shape(g, lens, "valid_lens", &d))
        return lens;
    each = attncl__alloc_zero((size_t)n_heads * sizeof *each);
    if (!each)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "lengths of %" PRId64 " heads", n_heads);
    const int64_t n_batch = d.dim[0], n_each = d.rank == 2 ? d.dim[1] : 1;
    for (int64_t i = 0; i < n_heads; ++i)
        each[i] = i ? each[0] : attncl_reshape(g, lens, 3, (const int64_t[]){n_batch, 1, n_each});
    lens = attncl_reshape(g, attncl_concat(g, (size_t)n_heads, each, 1), d.rank,
                          (const int64_t[]){n_batch * n_heads, n_each});
    attncl__free(each);
    return lens;
}

static attncl_value add_additive_heads(struct build *b, const struct multi_head_settings *s,
                                       const attncl_mha_params *p, struct attention_inputs in,
                                       attncl_value *weights_ret)
{
    const int64_t width = s->num_hiddens / s->num_heads;
    const int64_t heads[4] = {in.n_batch, s->num_heads, in.n_queries, width};
    const struct sizes_settings sizes = {width, width, s->additive_size};
    attncl_graph *g = b->graph;
    in.lens = repeat_lens(g, s->num_heads, in.lens);
    in.queries = project_heads(g, s, &in, in.queries, in.n_queries, p->query_weight, p->query_bias);
    in.keys = project_heads(g, s, &in, in.keys, in.n_keys, p->key_weight, p->key_bias);
    in.values = project_heads(g, s, &in, in.values, in.n_keys, p->value_weight, p->value_bias);
    attncl__params_enter(&b->params, "attention");
    attncl_value y = add_additive(b, &sizes, &in, weights_ret);
    attncl__params_leave(&b->params);
    y = attncl_merge_heads(g, attncl_reshape(g, y, 4, heads), ATTNCL_LAYOUT_BATCH_FIRST);
    return attncl__layer_project(g, "output", y, p->output_weight, p->output_bias,
                                 ATTNCL_NONE_VALUE);
}

static attncl_value multi_head_build(struct build *b, const void *settings)
{
    const struct multi_head_settings *s = settings;
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    const struct attention_inputs in = declare_inputs(b);
    attncl_value weights;

    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    const attncl_mha_params params = declare_params(&b->params, s);
    const attncl_attention_inputs sequences = {.struct_size = sizeof sequences,
                                               .query = in.queries,
                                               .key = in.keys,
                                               .value = in.values,
                                               .valid_lens = in.lens};
    const attncl_value y = s->score == SCORE_ADDITIVE
                               ? add_additive_heads(b, s, &params, in, &weights)
                               : attncl_multi_head_attention(b->graph, &desc, &params, s->num_heads,
                                                             &sequences, &weights);
    const int64_t dim[3] = {in.n_batch * s->num_heads, in.n_queries, in.n_keys};
    attncl_graph_output(b->graph, "output", y);
    attncl_graph_output(b->graph, "attention_weights", attncl_reshape(b->graph, weights, 3, dim));
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_multi_head_attention = {
    .example = "{\"num_hiddens\": 64, \"num_heads\": 4, \"query_size\": 20, "
               "\"key_size\": 24, \"value_size\": 28}",
    .settings_bytes = sizeof(struct multi_head_settings),
    .keys = KEYS(
        {"num_hiddens", KEY_INT, AT(multi_head_settings, num_hiddens), .min = 1},
        {"num_heads", KEY_INT, AT(multi_head_settings, num_heads), .min = 1},
        {"query_size", KEY_INT, AT(multi_head_settings, query_size), .min = 1,
         OR_AS("num_hiddens")},
        {"key_size", KEY_INT, AT(multi_head_settings, key_size), .min = 1, OR_AS("num_hiddens")},
        {"value_size", KEY_INT, AT(multi_head_settings, value_size), .min = 1,
         OR_AS("num_hiddens")},
        {"bias", KEY_BOOL, AT(multi_head_settings, bias), OR(false)}, CHECK(multi_head_check),
        {"score", KEY_WORD, AT(multi_head_settings, score), .choices = scores, OR_WORD("dot")},
        {"additive_size", KEY_INT, AT(multi_head_settings, additive_size), .min = 1,
         OR_FROM(default_additive_size), WHEN("score", "additive")}),
    .inputs = PORTS(PORT("queries", F32, "B Q query_size"), PORT("keys", F32, "B K key_size"),
                    PORT("values", F32, "B K value_size"), VALID_LENS),
    .outputs = PORTS(PORT("output", F32, "B Q num_hiddens"),
                     PORT("attention_weights", F32, "num_heads*B Q K")),
    .build = multi_head_build,
};

// SPDX-License-Identifier: MIT
//
// Keys and parameters of layers.

#include <inttypes.h>

#include "layer/layer.h"
#include "model/block_layers.h"

// -- layer norm

struct norm_params attncl__norm_params(struct params *p, const char *name, enum norm_kind kind,
                                       int64_t width)
{
    struct norm_params norm = {.name = name, .kind = kind};
    attncl__params_enter(p, "%s", name);
    norm.weight = PARAM(p, "weight", INIT_CONSTANT(1), width);
    norm.bias = PARAM_IF(kind == NORM_LAYER, p, "bias", INIT_CONSTANT(0), width);
    attncl__params_leave(p);
    return norm;
}

struct norm_params attncl__norm_optional(struct params *p, const char *name, int64_t width)
{
    struct norm_params norm = {.name = name};
    attncl__params_enter(p, "%s", name);
    const bool half = attncl__param_given(p, "weight") != attncl__param_given(p, "bias");
    const struct param_init none = INIT_CONSTANT(0); // a new model has no such norm
    norm.weight = half ? PARAM(p, "weight", none, width) : PARAM_OPTIONAL(p, "weight", width);
    norm.bias = half ? PARAM(p, "bias", none, width) : PARAM_OPTIONAL(p, "bias", width);
    attncl__params_leave(p);
    return norm;
}

attncl_value attncl__add_norm(struct build *b, struct norm_params norm, double eps, attncl_value x)
{
    if (norm.kind == NORM_LAYER)
        return attncl__layer_normalise(b->graph, norm.name, x, norm.weight, norm.bias, eps);
    attncl_graph_push_scope(b->graph, norm.name);
    const attncl_value y = attncl_rms_norm(b->graph, x, norm.weight, (float)eps);
    attncl_graph_pop_scope(b->graph);
    return y;
}

// -- a feed-forward network

const struct choice attncl__activation_choices[] = {
    {"identity", ATTNCL_IDENTITY},   {"gelu", ATTNCL_GELU},
    {"relu", ATTNCL_RELU},           {"sigmoid", ATTNCL_SIGMOID},
    {"tanh", ATTNCL_TANH},           {"silu", ATTNCL_SILU},
    {"gelu_tanh", ATTNCL_GELU_TANH}, {0},
};

const struct key attncl__ffn_keys[] = {
    {"d_model", KEY_INT, AT(ffn_settings, d_model), .min = 1},
    {"d_ff", KEY_INT, AT(ffn_settings, d_ff), .min = 1},
    {"activation", KEY_WORD, AT(ffn_settings, activation), .choices = attncl__activation_choices,
     .any_case = true, OR_WORD("ReLU")},
    {"is_gated", KEY_BOOL, AT(ffn_settings, gated), OR(false)},
    {"bias1", KEY_BOOL, AT(ffn_settings, bias1), OR(true)},
    {"bias2", KEY_BOOL, AT(ffn_settings, bias2), OR(true)},
    {"bias_gate", KEY_BOOL, AT(ffn_settings, bias_gate), OR(true)},
    {0},
};

void attncl__ffn_params(struct params *p, const struct ffn_settings *s, attncl_ffn_params *ret)
{
    const int64_t c = s->d_model, f = s->d_ff;
    attncl__param_linear(p, "layer1", f, c, s->bias1, &ret->layer1_weight, &ret->layer1_bias);
    ret->gate_weight = ret->gate_bias = ATTNCL_NONE_VALUE;
    if (s->gated)
        attncl__param_linear(p, "linear_v", f, c, s->bias_gate, &ret->gate_weight, &ret->gate_bias);
    attncl__param_linear(p, "layer2", c, f, s->bias2, &ret->layer2_weight, &ret->layer2_bias);
}

// -- an AFT layer

#define KIND(value) SETTING(KEY_WORD, AT(aft_settings, kind), .otherwise = (value))
#define D_MODEL     "d_model", KEY_INT, AT(aft_settings, d_model), .min = 1
#define SEQ_LEN     "seq_len", KEY_INT, AT(aft_settings, seq_len), .min = 1
#define BIAS        "bias", KEY_BOOL, AT(aft_settings, bias), OR(true)

const struct key attncl__aft_local_keys[] = {
    KIND(ATTNCL_AFT_LOCAL),
    {D_MODEL},
    {SEQ_LEN},
    {"local_window_size", KEY_INT, AT(aft_settings, window), .min = 0},
    {BIAS},
    {0},
};

const struct key attncl__aft_full_keys[] = {
    KIND(ATTNCL_AFT_FULL), {D_MODEL}, {SEQ_LEN}, {BIAS}, {0}};

const struct key attncl__aft_simple_keys[] = {KIND(ATTNCL_AFT_SIMPLE), {D_MODEL}, {BIAS}, {0}};

static attncl_status check_conv(void *settings)
{
    const struct aft_settings *s = settings;
    REQUIRE(s->d_model % s->heads == 0, ATTNCL_ERR_FORMAT,
            "d_model is %" PRId64 ", not a multiple of heads, %" PRId64, s->d_model, s->heads);
    return ATTNCL_OK;
}

const struct key attncl__aft_conv_keys[] = {
    KIND(ATTNCL_AFT_CONV),
    {D_MODEL},
    {"heads", KEY_INT, AT(aft_settings, heads), .min = 1},
    {"window_size", KEY_INT, AT(aft_settings, filter), .min = 1, .parity = PARITY_ODD},
    {BIAS},
    CHECK(check_conv),
    {0},
};

void attncl__aft_params(struct params *p, const struct aft_settings *s, attncl_aft_params *ret)
{
    const int64_t width = s->d_model, n = s->seq_len;
    const int64_t keys = s->kind == ATTNCL_AFT_CONV ? s->heads : width;
    const struct param_init zero = INIT_CONSTANT(0);
    attncl__param_linear(p, "query", width, width, s->bias, &ret->query_weight, &ret->query_bias);
    attncl__param_linear(p, "key", keys, width, s->bias, &ret->key_weight, &ret->key_bias);
    attncl__param_linear(p, "value", width, width, s->bias, &ret->value_weight, &ret->value_bias);
    if (s->kind == ATTNCL_AFT_CONV)
        ret->pos_bias = PARAM(p, "w", zero, s->heads, s->filter);
    else
        ret->pos_bias = PARAM_IF(s->kind != ATTNCL_AFT_SIMPLE, p, "pos_bias", zero, n, n);
    if (s->kind == ATTNCL_AFT_LOCAL)
        attncl__param_check_window(p, "local_mask", n, s->window);
    attncl__param_linear(p, "output", width, width, true, &ret->output_weight, &ret->output_bias);
}

attncl_aft_desc attncl__aft_desc(const struct aft_settings *s, bool causal)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    desc.kind = s->kind;
    desc.window = s->window;
    desc.causal = causal;
    return desc;
}

// -- multi-head attention

static attncl_status check_factors(const struct mha_settings *s, const char *key,
                                   const struct json_numbers *factors)
{
    const int64_t n = (s->rotary.width + 1) / 2;
    if (!s->rope || s->rotary.scaling != ATTNCL_ROTARY_LONGROPE)
        return ATTNCL_OK;
    REQUIRE((int64_t)factors->n == n, ATTNCL_ERR_FORMAT,
            "%s has %zu entries, rope_width is %" PRId64 ": expected %" PRId64, key, factors->n,
            s->rotary.width, n);
    for (int64_t i = 0; i < n; ++i)
        REQUIRE(factors->list[i] > 0, ATTNCL_ERR_FORMAT, "%s[%" PRId64 "] is %g, must be above 0",
                key, i, factors->list[i]);
    return ATTNCL_OK;
}

static attncl_status check_mha(void *settings)
{
    const struct mha_settings *s = settings;
    REQUIRE(s->head_dim > 0, ATTNCL_ERR_FORMAT,
            "d_model = %" PRId64 " cannot be cut into heads = %" PRId64, s->d_model, s->heads);
    REQUIRE(!s->rope || s->rotary.width + s->rotary.width % 2 <= s->head_dim, ATTNCL_ERR_FORMAT,
            "rope_width is %" PRId64 ", made even it must be at most head_dim, %" PRId64,
            s->rotary.width, s->head_dim);
    TRY(check_factors(s, "rope_short_factor", &s->rope_short));
    TRY(check_factors(s, "rope_long_factor", &s->rope_long));
    REQUIRE(s->heads % s->n_kv_heads == 0, ATTNCL_ERR_FORMAT,
            "heads = %" PRId64 " is not a multiple of n_kv_heads = %" PRId64, s->heads,
            s->n_kv_heads);
    return ATTNCL_OK;
}

static double default_head_dim(const void *settings)
{
    const struct mha_settings *s = settings;
    return s->d_model % s->heads == 0 ? (double)(s->d_model / s->heads) : 0;
}

static const struct choice rope_pairs[] = {
    {"halves", ATTNCL_ROTARY_HALVES}, {"neighbours", ATTNCL_ROTARY_NEIGHBOURS}, {0}};
static const struct choice rope_scalings[] = {
    {"none", ATTNCL_ROTARY_UNSCALED},     {"linear", ATTNCL_ROTARY_LINEAR},
    {"llama3", ATTNCL_ROTARY_LLAMA3},     {"yarn", ATTNCL_ROTARY_YARN},
    {"longrope", ATTNCL_ROTARY_LONGROPE}, {0}};

#define ROTARY(field) offsetof(attncl_rotary_desc, field)
#define LLAMA3        WHEN("rope_scaling", "llama3")
#define YARN          WHEN("rope_scaling", "yarn")
#define LONGROPE      WHEN("rope_scaling", "longrope")
#define LONGER        UNLESS("rope_scaling", "none")

// The names in transformers, prefixed with rope_.
static const struct key rotary_keys[] = {
    {"rope_theta", KEY_NUMBER, ROTARY(theta), .min = 1.000001, OR(10000)},
    {"rope_pairs", KEY_WORD, ROTARY(pairs), .choices = rope_pairs, OR_WORD("halves")},
    {"rope_scaling", KEY_WORD, ROTARY(scaling), .choices = rope_scalings, OR_WORD("none")},
    {"rope_factor", KEY_NUMBER, ROTARY(factor), .min = 1, LONGER},
    {"rope_original_max_position_embeddings", KEY_INT, ROTARY(original_max_position), .min = 1,
     WHEN("rope_scaling", "llama3", "yarn")},
    {"rope_original_max_position_embeddings", KEY_INT, ROTARY(original_max_position),
     .min = 2, // its logarithm divides
     LONGROPE},
    {"rope_low_freq_factor", KEY_NUMBER, ROTARY(low_freq_factor), .min = 1e-9, OR(1), LLAMA3},
    {"rope_high_freq_factor", KEY_NUMBER, ROTARY(high_freq_factor), .min = 1e-9, OR(4), LLAMA3},
    {"rope_beta_fast", KEY_NUMBER, ROTARY(beta_fast), .min = 1e-9, OR(32), YARN},
    {"rope_beta_slow", KEY_NUMBER, ROTARY(beta_slow), .min = 1e-9, OR(1), YARN},
    {"rope_attention_factor", KEY_NUMBER, ROTARY(attention_factor), OR(0),
     WHEN("rope_scaling", "yarn", "longrope")},
    {"rope_mscale", KEY_NUMBER, ROTARY(mscale), OR(0), YARN},
    {"rope_mscale_all_dim", KEY_NUMBER, ROTARY(mscale_all_dim), OR(0), YARN},
    {0},
};

const struct key attncl__mha_keys[] = {
    {"d_model", KEY_INT, AT(mha_settings, d_model), .min = 1},
    {"heads", KEY_INT, AT(mha_settings, heads), .min = 1},
    {"n_kv_heads", KEY_INT, AT(mha_settings, n_kv_heads), .min = 1, OR_AS("heads")},
    {"head_dim", KEY_INT, AT(mha_settings, head_dim), .min = 1, OR_FROM(default_head_dim)},
    {"bias", KEY_BOOL, AT(mha_settings, bias), OR(true)},
    {"value_bias", KEY_BOOL, AT(mha_settings, value_bias), OR(true)},
    {"output_bias", KEY_BOOL, AT(mha_settings, output_bias), OR(true)},
    {"qk_norm", KEY_BOOL, AT(mha_settings, qk_norm), OR(false)},
    {"window", KEY_INT, AT(mha_settings, window), .min = 0, OR(0)},
    {"attention_scale", KEY_NUMBER, AT(mha_settings, scale), .min = 0, OR(0)},
    {"softcap", KEY_NUMBER, AT(mha_settings, softcap), .min = 0, OR(0)},
    {"alibi", KEY_BOOL, AT(mha_settings, alibi), OR(false)},
    {"alibi_max", KEY_NUMBER, AT(mha_settings, alibi_max), .min = 1e-9, OR(8),
     WHEN("alibi", "true")},
    {"rope", KEY_BOOL, AT(mha_settings, rope), OR(false)},
    {"rope_width", KEY_INT, AT(mha_settings, rotary.width), .min = 1, OR_AS("head_dim"),
     WHEN("rope", "true")},
    KEYS_OF(rotary_keys, AT(mha_settings, rotary), WHEN("rope", "true")),
    {"rope_truncate", KEY_BOOL, AT(mha_settings, rope_truncate), OR(true), YARN},
    {"rope_short_factor", KEY_LIST, AT(mha_settings, rope_short), LONGROPE},
    {"rope_long_factor", KEY_LIST, AT(mha_settings, rope_long), LONGROPE},
    CHECK(check_mha),
    {0},
};

void attncl__mha_params(struct params *p, const struct mha_settings *s, attncl_mha_params *ret)
{
    const int64_t c = s->d_model, heads = s->heads * s->head_dim;
    const int64_t groups = s->n_kv_heads * s->head_dim;
    attncl__param_linear(p, "query.linear", heads, c, s->bias, &ret->query_weight,
                         &ret->query_bias);
    attncl__param_linear(p, "key.linear", groups, c, s->bias, &ret->key_weight, &ret->key_bias);
    attncl__param_linear(p, "value.linear", groups, c, s->value_bias, &ret->value_weight,
                         &ret->value_bias);
    attncl__param_linear(p, "output", c, heads, s->output_bias, &ret->output_weight,
                         &ret->output_bias);
    if (s->qk_norm) {
        ret->query_norm = attncl__norm_params(p, "query_norm", NORM_RMS, s->head_dim).weight;
        ret->key_norm = attncl__norm_params(p, "key_norm", NORM_RMS, s->head_dim).weight;
    }
}

// The table shared by all layers of a graph with these rotations; null without rotations.
static attncl_value get_rotary_table(struct build *b, const struct mha_settings *s, int64_t n)
{
    attncl_value *const table = &b->rotary[s->is_local];
    attncl_rotary_desc desc = s->rotary;
    // A decoder keeps keys, so that all its graphs must turn alike: a short prompt's, too.
    const int64_t context = b->n_positions ? b->n_positions : n;
    if (!s->rope)
        return ATTNCL_NONE_VALUE;
    desc.struct_size = sizeof desc;
    desc.truncate = s->rope_truncate;
    desc.factors = context > desc.original_max_position ? s->rope_long.list : s->rope_short.list;
    if (!table->id)
        *table = attncl_rotary_table(b->graph, &desc, n);
    return *table;
}

attncl_attention_desc attncl__mha_desc(struct build *b, const struct mha_settings *s, int64_t n)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    desc.scale = (float)s->scale;
    desc.softcap = (float)s->softcap;
    desc.window = s->window;
    desc.rotary = get_rotary_table(b, s, n);
    desc.rotary_pairs = s->rotary.pairs;
    if (s->alibi)
        desc.slopes = attncl_alibi_slopes(b->graph, s->heads, s->alibi_max);
    return desc;
}

// -- a spatial gating unit and a gMLP block

void attncl__sgu_params(struct params *p, const struct sgu_settings *s, attncl_sgu_params *ret)
{
    const struct norm_params norm = attncl__norm_params(p, "norm", NORM_LAYER, s->d_z / 2);
    ret->norm_weight = norm.weight;
    ret->norm_bias = norm.bias;
    ret->norm_eps = (float)s->norm_eps;
    ret->weight = PARAM(p, "weight", INIT_UNIFORM(-0.01, 0.01), s->seq_len, s->seq_len);
    ret->bias = PARAM(p, "bias", INIT_CONSTANT(1), s->seq_len);
}

const struct key attncl__sgu_keys[] = {
    // Even, as the gating unit halves it.
    {"d_z", KEY_INT, AT(sgu_settings, d_z), .min = 2, .parity = PARITY_EVEN},
    {"seq_len", KEY_INT, AT(sgu_settings, seq_len), .min = 1},
    NORM_EPS_KEY(AT(sgu_settings, norm_eps)),
    {0},
};

const struct key attncl__gmlp_keys[] = {
    {"d_model", KEY_INT, AT(gmlp_settings, d_model), .min = 1},
    {"d_ffn", KEY_INT, AT(gmlp_settings, d_ffn), .min = 2, .parity = PARITY_EVEN},
    {"seq_len", KEY_INT, AT(gmlp_settings, seq_len), .min = 1},
    NORM_EPS_KEY(AT(gmlp_settings, norm_eps)),
    {0},
};

void attncl__gmlp_params(struct params *p, const struct gmlp_settings *s, attncl_sgu_params *gate,
                         attncl_gmlp_params *ret)
{
    const struct sgu_settings sgu = {s->d_ffn, s->seq_len, s->norm_eps};

    const struct norm_params norm = attncl__norm_params(p, "norm", NORM_LAYER, s->d_model);
    ret->norm_weight = norm.weight;
    ret->norm_bias = norm.bias;
    ret->norm_eps = (float)s->norm_eps;
    attncl__param_linear(p, "proj1", s->d_ffn, s->d_model, true, &ret->proj1_weight,
                         &ret->proj1_bias);
    attncl__params_enter(p, "sgu");
    attncl__sgu_params(p, &sgu, gate);
    ret->sgu = gate;
    attncl__params_leave(p);
    attncl__param_linear(p, "proj2", s->d_model, s->d_ffn / 2, true, &ret->proj2_weight,
                         &ret->proj2_bias);
}

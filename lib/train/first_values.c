// SPDX-License-Identifier: MIT
//
// Initial values of parameters from a file, or copied from a layer.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

static attncl_status alloc_values(const attncl_param *param, float **values_ret, size_t *bytes_ret)
{
    struct tensor_desc desc;
    TRY(attncl__desc_make(ATTNCL_F32, param->shape.rank, param->shape.dim, &desc));
    *bytes_ret = attncl__desc_bytes(&desc);
    *values_ret = attncl__alloc(*bytes_ret);
    REQUIRE(*values_ret, ATTNCL_ERR_NO_MEMORY, "%zu bytes of parameter %s", *bytes_ret,
            param->name);
    return ATTNCL_OK;
}

// -- initialising a feedback transformer from a transformer.  The feedback transformer's attention reads
// memories, means of the layers' results, where the transformer's attention reads a layer norm.  So keys
// and values are divided by the approximate size of a memory, that of an embedded token.  The query's
// bias becomes query_pos_bias.  The keys' bias is dropped, as softmax ignores it.

// Replacements that turn a parameter's name into that of its source (table in docs/training.md).
static const struct {
    const char *own, *source;
} renamed[] = {
    {"src_embed.weight", "src_embed.linear.weight"},
    {"transformer.", "encoder."},
    {".attn.", ".self_attn."},
    {".query_pos_bias", ".query.linear.bias"},
    {"generator.", "generator.projection."},
};

enum { SOURCE_NAME_BYTES = PARAM_NAME_BYTES + 64 };

static void name_source(const char *own, char ret[SOURCE_NAME_BYTES])
{
    snprintf(ret, SOURCE_NAME_BYTES, "%s", own);
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; ++i) {
        char *at = strstr(ret, renamed[i].own);
        const size_t n = strlen(renamed[i].source);
        if (!at)
            continue;
        const char *after = at + strlen(renamed[i].own);
        memmove(at + n, after, strlen(after) + 1);
        memcpy(at, renamed[i].source, n);
    }
}

// Parameters that a transformer lacks.
static bool keeps_initial(const char *name)
{
    return strstr(name, "_pos_") || strcmp(name, "transformer.weights") == 0;
}

struct mapping {
    bool is_needed;       // a transformer initialises a feedback transformer
    double embed_factor;  // of the file's embedding, so that layers see the same vectors
    double embed_scale;   // the model's
    bool has_norm;        // after the embedding
    double memory_factor; // of key and value weights; set from the embedding, the first parameter
};

// Compares the keys that both models have.
static attncl_status compare_models(const struct json *source, const struct json *own,
                                    struct mapping *m)
{
    bool tied;
    double scale;
    TRY(attncl__json_bool(own, "tie_generator", NULL, &tied));
    for (const char *key = NULL; (key = attncl__json_next(own, key)) != NULL;) {
        const bool may_differ = strcmp(key, "layer") == 0 || strcmp(key, "seq_len") == 0 ||
                                (strcmp(key, "embed_scale") == 0 && !tied);
        if (!may_differ && attncl__json_has(source, key))
            TRY(attncl__compare_value(source, own, "the model's", key, "the file's"));
    }
    TRY(attncl__json_double(source, "embed_scale", NULL, &scale));
    TRY(attncl__json_double(own, "embed_scale", NULL, &m->embed_scale));
    m->embed_factor = scale == m->embed_scale ? 1 : scale / m->embed_scale;
    return attncl__json_bool(own, "embed_norm", NULL, &m->has_norm);
}

static attncl_status find_mapping(const attncl_trainer *t, const attncl_safetensors *init,
                                  struct mapping *m)
{
    const char *arch = attncl_safetensors_metadata(init, "attncl.arch"), *layer = "";
    const char *config = attncl_safetensors_metadata(init, "attncl.config"), *own_layer = "";
    const struct json *own = t->config.model;
    struct json *source = NULL;
    bool present;
    int64_t limit;
    attncl_status status = ATTNCL_OK;
    TRY(attncl__json_text(own, "layer", &present, &own_layer));
    if (t->config.arch != &attncl__arch_lm || strcmp(own_layer, "feedback") != 0 || !config ||
        !arch || strcmp(arch, "lm") != 0)
        return ATTNCL_OK;
    TRY(attncl__json_parse(config, strlen(config), JSON_CONFIG_LIMITS, &source));
    TRY_DONE(attncl__json_text(source, "layer", &present, &layer));
    m->is_needed = strcmp(layer, "transformer") == 0;
    if (!m->is_needed)
        goto done;
    TRY_DONE(attncl__train_fill_model(t->config.arch, source, &limit));
    status = compare_models(source, own, m);
done:
    attncl__json_free(source);
    return status;
}

// -- values from a file

// With `maps`, a bias [C] may become one by heads, [H, D].
static attncl_status check_shape(const attncl_array *a, const attncl_param *param, bool maps)
{
    struct tensor_desc have, want;
    REQUIRE(
        attncl__is_float(a->dtype), ATTNCL_ERR_UNSUPPORTED,
        "parameter %s is %s, training begins with floats%s", a->name, attncl_dtype_name(a->dtype),
        a->dtype == ATTNCL_U8 ? "; attncl convert --dtype f32 makes floats of 8 and 4 bits" : "");
    TRY(attncl__desc_make(a->dtype, a->rank, a->dim, &have));
    TRY(attncl__desc_make(ATTNCL_F32, param->shape.rank, param->shape.dim, &want));
    const bool splits_heads = maps && have.rank == 1 && want.rank == 2 &&
                              attncl__desc_count(&have) == attncl__desc_count(&want);
    REQUIRE(splits_heads || attncl__desc_same_shape(&have, &want), ATTNCL_ERR_SHAPE,
            "parameter %s has shape %s, the configuration's is %s", a->name, SHAPE(&have),
            SHAPE(&want));
    return ATTNCL_OK;
}

static double root_mean_square(const float *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum / (double)n);
}

static void scale_values(struct mapping *m, const char *name, float *values, size_t n)
{
    const bool is_embedding = strcmp(name, "src_embed.weight") == 0;
    const bool reads_memory =
        strstr(name, ".key.linear.weight") || strstr(name, ".value.linear.weight");
    const double factor = is_embedding ? m->embed_factor : reads_memory ? m->memory_factor : 1;
    for (size_t i = 0; i < n; ++i)
        values[i] = (float)(factor * (double)values[i]);
    const double size = is_embedding ? m->embed_scale * root_mean_square(values, n) : 0;
    if (is_embedding)
        m->memory_factor = m->has_norm || !(size > 0) ? 1 : 1 / size;
}

static attncl_status write_values(attncl_trainer *t, const attncl_param *param,
                                  const attncl_array *a, struct mapping *m)
{
    float *values;
    size_t bytes;
    TRY(alloc_values(param, &values, &bytes));
    const size_t count = bytes / sizeof *values;
    attncl_status status = attncl__convert(a->dtype, a->data, ATTNCL_F32, values, count);
    if (status == ATTNCL_OK && m->is_needed)
        scale_values(m, param->name, values, count);
    if (status == ATTNCL_OK)
        status = attncl_model_param_write(t->model, param->name, values, bytes);
    attncl__free(values);
    return status;
}

attncl_status attncl__write_first_values(attncl_trainer *t, const attncl_safetensors *init)
{
    char name[SOURCE_NAME_BYTES];
    struct mapping m = {0};
    TRY(find_mapping(t, init, &m));
    for (size_t i = 0; i < attncl_model_param_count(t->model); ++i) {
        attncl_param param = ATTNCL_PARAM_INIT;
        TRY(attncl_model_param_at(t->model, i, &param));
        if (!param.trainable)
            continue;
        const attncl_array *a = attncl_safetensors_find(init, param.name);
        if (!a && m.is_needed) {
            name_source(param.name, name);
            a = attncl_safetensors_find(init, name);
        }
        if (!a && m.is_needed && keeps_initial(param.name))
            continue;
        REQUIRE(a, ATTNCL_ERR_FORMAT, "parameter %s is missing", m.is_needed ? name : param.name);
        TRY(check_shape(a, &param, m.is_needed));
        TRY(write_values(t, &param, a, &m));
    }
    return ATTNCL_OK;
}

// -- copies of a layer

static attncl_status copy_values(attncl_trainer *t, const char *from, const attncl_param *to)
{
    float *values;
    size_t bytes;
    TRY(alloc_values(to, &values, &bytes));
    attncl_status status = attncl_model_param_read(t->model, from, values, bytes);
    if (status == ATTNCL_OK)
        status = attncl_model_param_write(t->model, to->name, values, bytes);
    attncl__free(values);
    return status;
}

attncl_status attncl__clone_layers(attncl_trainer *t)
{
    static const char layers[] = "layers.";
    char from[PARAM_NAME_BYTES + 1];
    for (size_t i = 0; i < attncl_model_param_count(t->model); ++i) {
        attncl_param param = ATTNCL_PARAM_INIT;
        TRY(attncl_model_param_at(t->model, i, &param));
        const char *number = param.trainable ? strstr(param.name, layers) : NULL;
        if (!number)
            continue;
        number += strlen(layers);
        const size_t digits = strspn(number, "0123456789");
        snprintf(from, sizeof from, "%.*s0%s", (int)(number - param.name), param.name,
                 number + digits);
        TRY(copy_values(t, from, &param));
    }
    return ATTNCL_OK;
}

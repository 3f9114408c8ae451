// SPDX-License-Identifier: MIT

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/try.h"
#include "cases/lm.h"

bool lm_is(const struct case_data *t, const char *layer)
{
    return strcmp(t->c->sizes.layer, layer) == 0;
}

bool lm_is_feedback(const struct case_data *t)
{
    return lm_is(t, "feedback") || lm_is(t, "feedback_kv");
}

const char *lm_name(const struct case_data *t, int64_t layer, const char *name, const char *part,
                    char text[LM_NAME_BYTES])
{
    snprintf(text, LM_NAME_BYTES, "%s.layers.%d.%s.%s",
             lm_is_feedback(t) ? "transformer" : "encoder", (int)layer, name, part);
    return text;
}

static void add_weight(struct case_data *t, int64_t layer, const char *name, int64_t out,
                       int64_t in)
{
    char text[LM_NAME_BYTES];

    case_data_array_add(t, lm_name(t, layer, name, "weight", text), sqrt(3.0 / (double)in),
                        DIMS(out, in));
}

static void add_map(struct case_data *t, int64_t layer, const char *name, int64_t out, int64_t in)
{
    char text[LM_NAME_BYTES];

    add_weight(t, layer, name, out, in);
    case_data_array_add(t, lm_name(t, layer, name, "bias", text), 0.5, DIMS(out));
}

static void add_norm(struct case_data *t, int64_t layer, const char *name)
{
    const int64_t n = strcmp(name, "sgu.norm") == 0 ? t->c->sizes.F / 2 : t->c->sizes.C;
    char text[LM_NAME_BYTES];

    case_data_array_add(t, lm_name(t, layer, name, "weight", text), 1, DIMS(n));
    case_data_array_add(t, lm_name(t, layer, name, "bias", text), 0.5, DIMS(n));
}

static void add_gmlp_layer(struct case_data *t, int64_t layer)
{
    const struct sizes *s = &t->c->sizes;
    char text[LM_NAME_BYTES];

    add_norm(t, layer, "norm");
    add_map(t, layer, "proj1", s->F, s->C);
    add_norm(t, layer, "sgu.norm");
    case_data_array_add(t, lm_name(t, layer, "sgu", "weight", text), 0.1, DIMS(s->T, s->T));
    case_data_array_add(t, lm_name(t, layer, "sgu", "bias", text), 1, DIMS(s->T));
    add_map(t, layer, "proj2", s->C, s->F / 2);
}

static void add_aft(struct case_data *t, int64_t layer)
{
    const struct sizes *s = &t->c->sizes;
    const bool conv = lm_is(t, "aft_conv");
    char text[LM_NAME_BYTES];

    add_map(t, layer, "self_attn.query", s->C, s->C);
    add_map(t, layer, "self_attn.key", conv ? s->heads : s->C, s->C);
    add_map(t, layer, "self_attn.value", s->C, s->C);
    if (conv)
        case_data_array_add(t, lm_name(t, layer, "self_attn", "w", text), 1,
                            DIMS(s->heads, s->window));
    else if (!lm_is(t, "aft_simple"))
        case_data_array_add(t, lm_name(t, layer, "self_attn", "pos_bias", text), 1,
                            DIMS(s->T, s->T));
    add_map(t, layer, "self_attn.output", s->C, s->C);
}

static void add_attention(struct case_data *t, int64_t layer)
{
    const int64_t n = t->c->sizes.C;

    add_map(t, layer, "self_attn.query.linear", n, n);
    add_map(t, layer, "self_attn.key.linear", n, n);
    add_map(t, layer, "self_attn.value.linear", n, n);
    add_map(t, layer, "self_attn.output", n, n);
}

// Distances are told apart by embeddings and, where keys are shared, by a bias too.
static void add_feedback(struct case_data *t, int64_t layer)
{
    const struct sizes *s = &t->c->sizes;
    const int64_t width = s->C / s->heads;
    char text[LM_NAME_BYTES];

    add_weight(t, layer, "attn.query.linear", s->C, s->C);
    if (lm_is(t, "feedback")) {
        add_weight(t, layer, "attn.key.linear", s->C, s->C);
        add_map(t, layer, "attn.value.linear", s->C, s->C);
    } else {
        case_data_array_add(t, lm_name(t, layer, "attn", "key_pos_bias", text), 1,
                            DIMS(s->T, s->heads));
    }
    case_data_array_add(t, lm_name(t, layer, "attn", "key_pos_embeddings", text), 1,
                        DIMS(s->T, s->heads, width));
    case_data_array_add(t, lm_name(t, layer, "attn", "query_pos_bias", text), 1,
                        DIMS(s->heads, width));
    add_map(t, layer, "attn.output", s->C, s->C);
}

static void add_layer(struct case_data *t, int64_t layer)
{
    const struct sizes *s = &t->c->sizes;

    if (lm_is(t, "gmlp")) {
        add_gmlp_layer(t, layer);
        return;
    }
    add_norm(t, layer, "norm_self_attn");
    if (lm_is_feedback(t))
        add_feedback(t, layer);
    else if (lm_is(t, "transformer"))
        add_attention(t, layer);
    else
        add_aft(t, layer);
    add_norm(t, layer, "norm_ff");
    add_map(t, layer, "feed_forward.layer1", s->F, s->C);
    add_map(t, layer, "feed_forward.layer2", s->C, s->F);
}

attncl_status lm_parameters(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const bool feedback = lm_is_feedback(t);
    const double spread = sqrt(3.0 / (double)s->C);

    case_data_array_add(t, feedback ? "src_embed.weight" : "src_embed.linear.weight",
                        feedback ? 1 : spread, DIMS(s->V, s->C));
    for (int64_t layer = 0; layer < s->layers; ++layer)
        add_layer(t, layer);
    if (feedback)
        case_data_array_add(t, "transformer.weights", 1, DIMS(s->layers + 1));
    if (lm_is(t, "feedback_kv")) {
        case_data_array_add(t, "transformer.key.linear.weight", spread, DIMS(s->C, s->C));
        case_data_array_add(t, "transformer.value.linear.weight", spread, DIMS(s->C, s->C));
    }
    case_data_array_add(t, feedback ? "transformer.norm.weight" : "encoder.norm.weight", 1,
                        DIMS(s->C));
    case_data_array_add(t, feedback ? "transformer.norm.bias" : "encoder.norm.bias", 0.5,
                        DIMS(s->C));
    case_data_array_add(t, feedback ? "generator.weight" : "generator.projection.weight", spread,
                        DIMS(s->V, s->C));
    case_data_array_add(t, feedback ? "generator.bias" : "generator.projection.bias", 0.5,
                        DIMS(s->V));
    return t->status;
}

// Keys that a layer does not know are ignored.
static void config_text(const struct sizes *s, char text[512])
{
    snprintf(text, 512,
             "{\"layer\": \"%s\", \"n_vocab\": %d, \"d_model\": %d, \"n_layers\": %d, "
             "\"seq_len\": %d, \"local_window_size\": %d, \"window_size\": %d, \"heads\": %d, "
             "\"P\": %d, \"d_ff\": %d, \"d_ffn\": %d}",
             s->layer, (int)s->V, (int)s->C, (int)s->layers, (int)s->T, (int)s->window,
             (int)s->window, (int)s->heads, (int)s->T, (int)s->F, (int)s->F);
}

static attncl_status write_model(const struct case_data *t, const char *path)
{
    attncl_array arrays[MAX_CASE_ARRAYS] = {0};
    char config[512];
    const char *const metadata[] = {"attncl.arch", "lm", "attncl.config", config, NULL};
    size_t n = 0;

    config_text(&t->c->sizes, config);
    for (int i = 0; i < t->n_arrays; ++i) {
        const struct case_data_array *a = &t->arrays[i];
        if (a->dtype != ATTNCL_F32)
            continue;
        arrays[n] = (attncl_array){.name = a->name,
                                   .dtype = a->dtype,
                                   .rank = a->rank,
                                   .data = a->data,
                                   .bytes = case_data_array_bytes(a)};
        memcpy(arrays[n++].dim, a->dim, sizeof a->dim);
    }
    return attncl_safetensors_write(path, arrays, n, metadata);
}

attncl_status lm_open(struct case_data *t, attncl_model **model_ret)
{
    const char *directory = getenv("TMPDIR");
    char path[512];

    snprintf(path, sizeof path, "%s/attncl-bench-XXXXXX",
             directory && directory[0] ? directory : "/tmp");
    const int fd = mkstemp(path);
    REQUIRE(fd >= 0, ATTNCL_ERR_IO, "%s cannot be created", path);
    close(fd);
    attncl_status status = write_model(t, path);
    if (status == ATTNCL_OK)
        status = attncl_model_open(t->ctx, path, model_ret);
    unlink(path);
    return status;
}

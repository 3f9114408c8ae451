// SPDX-License-Identifier: MIT

#include "cases/lm_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/try.h"

// Kinds of layers.
enum {
    LOCAL = 1,
    WHOLE_BIAS = 2,
    SIMPLE = 4,
    CONV = 8,
    TRANSFORMER = 16,
    GMLP = 32,
    FEEDBACK = 64,    // keys and values by each layer
    FEEDBACK_KV = 128 // one projection for all layers
};
#define AFT        (LOCAL | WHOLE_BIAS | SIMPLE | CONV)
#define FEEDBACKS  (FEEDBACK | FEEDBACK_KV)
#define ENCODERS   (AFT | TRANSFORMER | GMLP)
#define ATTENTIONS (AFT | TRANSFORMER | FEEDBACKS)

static int kind_of(const struct case_data *t)
{
    static const char *const names[] = {"aft_local",   "aft_full", "aft_simple", "aft_conv",
                                        "transformer", "gmlp",     "feedback",   "feedback_kv"};
    int i = 0;

    while (strcmp(t->c->sizes.layer, names[i]) != 0)
        ++i;
    return 1 << i;
}

struct param {
    int kinds;
    const char *name;
    double spread;     // 0: that of a linear map
    const char *shape; // letters of extent()
};
#define MAP_OF(kinds, name, out, in)                                                               \
    {(kinds), name ".weight", 0, out in},                                                          \
    {                                                                                              \
        (kinds), name ".bias", 0.5, out                                                            \
    }
#define NORM_OF(kinds, name, n)                                                                    \
    {(kinds), name ".weight", 1, n},                                                               \
    {                                                                                              \
        (kinds), name ".bias", 0.5, n                                                              \
    }

static const struct param layer_params[] = {
    NORM_OF(ATTENTIONS, "norm_self_attn", "C"),
    MAP_OF(AFT, "self_attn.query", "C", "C"),
    MAP_OF(AFT & ~CONV, "self_attn.key", "C", "C"),
    MAP_OF(CONV, "self_attn.key", "H", "C"),
    MAP_OF(AFT, "self_attn.value", "C", "C"),
    {CONV, "self_attn.w", 1, "HW"},
    {LOCAL | WHOLE_BIAS, "self_attn.pos_bias", 1, "TT"},
    MAP_OF(TRANSFORMER, "self_attn.query.linear", "C", "C"),
    MAP_OF(TRANSFORMER, "self_attn.key.linear", "C", "C"),
    MAP_OF(TRANSFORMER, "self_attn.value.linear", "C", "C"),
    MAP_OF(AFT | TRANSFORMER, "self_attn.output", "C", "C"),
    {FEEDBACKS, "attn.query.linear.weight", 0, "CC"},
    {FEEDBACK, "attn.key.linear.weight", 0, "CC"},
    MAP_OF(FEEDBACK, "attn.value.linear", "C", "C"),
    {FEEDBACK_KV, "attn.key_pos_bias", 1, "TH"},
    {FEEDBACKS, "attn.key_pos_embeddings", 1, "THD"},
    {FEEDBACKS, "attn.query_pos_bias", 1, "HD"},
    MAP_OF(FEEDBACKS, "attn.output", "C", "C"),
    NORM_OF(ATTENTIONS, "norm_ff", "C"),
    MAP_OF(ATTENTIONS, "feed_forward.layer1", "F", "C"),
    MAP_OF(ATTENTIONS, "feed_forward.layer2", "C", "F"),
    NORM_OF(GMLP, "norm", "C"),
    MAP_OF(GMLP, "proj1", "F", "C"),
    NORM_OF(GMLP, "sgu.norm", "G"),
    {GMLP, "sgu.weight", 0.1, "TT"},
    {GMLP, "sgu.bias", 1, "T"},
    MAP_OF(GMLP, "proj2", "C", "G"),
};
static const struct param model_params[] = {
    {ENCODERS, "src_embed.linear.weight", 0, "VC"},
    {FEEDBACKS, "src_embed.weight", 1, "VC"},
    {FEEDBACKS, "transformer.weights", 1, "N"},
    {FEEDBACK_KV, "transformer.key.linear.weight", 0, "CC"},
    {FEEDBACK_KV, "transformer.value.linear.weight", 0, "CC"},
    NORM_OF(ENCODERS, "encoder.norm", "C"),
    NORM_OF(FEEDBACKS, "transformer.norm", "C"),
    MAP_OF(ENCODERS, "generator.projection", "V", "C"),
    MAP_OF(FEEDBACKS, "generator", "V", "C"),
};
enum {
    N_LAYER_PARAMS = sizeof layer_params / sizeof layer_params[0],
    N_MODEL_PARAMS = sizeof model_params / sizeof model_params[0],
    NAME_BYTES = 96
};

static int64_t extent(const struct sizes *s, char letter)
{
    const struct {
        char letter;
        int64_t value;
    } list[] = {{'V', s->V},     {'T', s->T},      {'F', s->F},
                {'G', s->F / 2}, // a gate's channels
                {'H', s->heads}, {'W', s->window}, {'N', s->layers + 1}};

    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i)
        if (list[i].letter == letter)
            return list[i].value;
    return letter == 'D' ? s->C / s->heads : s->C;
}

static void add_params(struct case_data *t, const char *prefix, const struct param *list, size_t n)
{
    char name[NAME_BYTES];
    int64_t dim[ATTNCL_MAX_RANK];

    for (size_t i = 0; i < n; ++i) {
        const struct param *p = &list[i];
        const int rank = (int)strlen(p->shape);

        if (!(p->kinds & kind_of(t)))
            continue;
        for (int axis = 0; axis < rank; ++axis)
            dim[axis] = extent(&t->c->sizes, p->shape[axis]);
        snprintf(name, sizeof name, "%s%s", prefix, p->name);
        case_array_add(t, name, p->spread > 0 ? p->spread : sqrt(3.0 / (double)dim[rank - 1]), rank,
                       dim);
    }
}

// "encoder.layers.2."
static const char *prefix_of(const struct case_data *t, int64_t layer, char text[NAME_BYTES])
{
    snprintf(text, NAME_BYTES, "%s.layers.%d.", kind_of(t) & FEEDBACKS ? "transformer" : "encoder",
             (int)layer);
    return text;
}

attncl_status lm_parameters(struct case_data *t)
{
    char prefix[NAME_BYTES];

    for (int64_t layer = 0; layer < t->c->sizes.layers; ++layer)
        add_params(t, prefix_of(t, layer, prefix), layer_params, N_LAYER_PARAMS);
    add_params(t, "", model_params, N_MODEL_PARAMS);
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
        const struct case_array *a = &t->arrays[i];
        if (a->dtype != ATTNCL_F32)
            continue;
        arrays[n] = (attncl_array){.name = a->name,
                                   .dtype = a->dtype,
                                   .rank = a->rank,
                                   .data = a->data,
                                   .bytes = case_array_bytes(a)};
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

// SPDX-License-Identifier: MIT

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/try.h"
#include "cases/lm.h"

const char *lm_name(int64_t layer, const char *name, const char *part, char text[LM_NAME_BYTES])
{
    snprintf(text, LM_NAME_BYTES, "encoder.layers.%d.%s.%s", (int)layer, name, part);
    return text;
}

static void add_map(struct trial *t, int64_t layer, const char *name, int64_t out, int64_t in)
{
    char text[LM_NAME_BYTES];

    trial_array_add(t, lm_name(layer, name, "weight", text), sqrt(3.0 / (double)in), DIMS(out, in));
    trial_array_add(t, lm_name(layer, name, "bias", text), 0.5, DIMS(out));
}

static void add_norm(struct trial *t, int64_t layer, const char *name, int64_t n)
{
    char text[LM_NAME_BYTES];

    trial_array_add(t, lm_name(layer, name, "weight", text), 1, DIMS(n));
    trial_array_add(t, lm_name(layer, name, "bias", text), 0.5, DIMS(n));
}

static void add_gmlp_layer(struct trial *t, int64_t layer)
{
    const struct sizes *s = &t->c->sizes;
    char text[LM_NAME_BYTES];

    add_norm(t, layer, "norm", s->C);
    add_map(t, layer, "proj1", s->F, s->C);
    add_norm(t, layer, "sgu.norm", s->F / 2);
    trial_array_add(t, lm_name(layer, "sgu", "weight", text), 0.1, DIMS(s->T, s->T));
    trial_array_add(t, lm_name(layer, "sgu", "bias", text), 1, DIMS(s->T));
    add_map(t, layer, "proj2", s->C, s->F / 2);
}

static void add_aft_layer(struct trial *t, int64_t layer)
{
    const struct sizes *s = &t->c->sizes;
    char text[LM_NAME_BYTES];

    add_norm(t, layer, "norm_self_attn", s->C);
    add_map(t, layer, "self_attn.query", s->C, s->C);
    add_map(t, layer, "self_attn.key", s->C, s->C);
    add_map(t, layer, "self_attn.value", s->C, s->C);
    trial_array_add(t, lm_name(layer, "self_attn", "pos_bias", text), 1, DIMS(s->T, s->T));
    add_map(t, layer, "self_attn.output", s->C, s->C);
    add_norm(t, layer, "norm_ff", s->C);
    add_map(t, layer, "feed_forward.layer1", s->F, s->C);
    add_map(t, layer, "feed_forward.layer2", s->C, s->F);
}

attncl_status lm_parameters(struct trial *t)
{
    const struct sizes *s = &t->c->sizes;
    const double spread = sqrt(3.0 / (double)s->C);

    trial_array_add(t, "src_embed.linear.weight", spread, DIMS(s->V, s->C));
    for (int64_t layer = 0; layer < s->layers; ++layer) {
        if (strcmp(s->layer, "gmlp") == 0)
            add_gmlp_layer(t, layer);
        else
            add_aft_layer(t, layer);
    }
    trial_array_add(t, "encoder.norm.weight", 1, DIMS(s->C));
    trial_array_add(t, "encoder.norm.bias", 0.5, DIMS(s->C));
    trial_array_add(t, "generator.projection.weight", spread, DIMS(s->V, s->C));
    trial_array_add(t, "generator.projection.bias", 0.5, DIMS(s->V));
    return t->status;
}

static void config_text(const struct sizes *s, char text[256])
{
    snprintf(text, 256,
             "{\"layer\": \"%s\", \"n_vocab\": %d, \"d_model\": %d, \"n_layers\": %d, "
             "\"seq_len\": %d, \"local_window_size\": %d, \"d_ff\": %d, \"d_ffn\": %d}",
             s->layer, (int)s->V, (int)s->C, (int)s->layers, (int)s->T, (int)s->window, (int)s->F,
             (int)s->F);
}

static attncl_status write_model(const struct trial *t, const char *path)
{
    attncl_array arrays[TRIAL_MAX_ARRAYS] = {0};
    char config[256];
    const char *const metadata[] = {"attncl.arch", "lm", "attncl.config", config, NULL};
    size_t n = 0;

    config_text(&t->c->sizes, config);
    for (int i = 0; i < t->n_arrays; ++i) {
        const struct trial_array *a = &t->arrays[i];
        if (a->dtype != ATTNCL_F32)
            continue;
        arrays[n] = (attncl_array){.name = a->name,
                                   .dtype = a->dtype,
                                   .rank = a->rank,
                                   .data = a->data,
                                   .bytes = trial_array_bytes(a)};
        memcpy(arrays[n++].dim, a->dim, sizeof a->dim);
    }
    return attncl_safetensors_write(path, arrays, n, metadata);
}

attncl_status lm_open(struct trial *t, attncl_model **model_ret)
{
    const char *folder = getenv("TMPDIR");
    char path[512];

    snprintf(path, sizeof path, "%s/attncl-bench-XXXXXX", folder && folder[0] ? folder : "/tmp");
    const int fd = mkstemp(path);
    REQUIRE(fd >= 0, ATTNCL_ERR_IO, "%s cannot be made", path);
    close(fd);
    attncl_status status = write_model(t, path);
    if (status == ATTNCL_OK)
        status = attncl_model_open(t->ctx, path, model_ret);
    unlink(path);
    return status;
}

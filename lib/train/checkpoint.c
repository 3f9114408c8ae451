// SPDX-License-Identifier: MIT
//
// Checkpoints, written.

#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/safetensors.h"

void attncl__checkpoint_name(enum kept kept, bool has_averages, const char *name,
                             char ret[CHECKPOINT_NAME_BYTES])
{
    static const char *const before[N_KEPT] = {
        [KEPT_WEIGHT] = "",
        [KEPT_EXP_AVG] = "optimizer.exp_avg.",
        [KEPT_EXP_AVG_SQ] = "optimizer.exp_avg_sq.",
        [KEPT_MAX_EXP_AVG_SQ] = "optimizer.max_exp_avg_sq.",
        [KEPT_MOMENTUM_BUFFER] = "optimizer.momentum_buffer.",
        [KEPT_AVERAGE] = "",
    };
    const bool is_aside = kept == KEPT_WEIGHT && has_averages;
    snprintf(ret, CHECKPOINT_NAME_BYTES, "%s%s", is_aside ? "optimizer.param." : before[kept],
             name);
}

bool attncl__checkpoint_place(const attncl_trainer *t, const struct param_piece *piece,
                              struct place *ret)
{
    const attncl_tensor *tensor = t->model->params.list[piece->param].tensor;
    size_t count = 1;
    for (int i = 0; i < piece->shape.rank; ++i)
        count *= (size_t)piece->shape.dim[i];
    for (size_t i = 0; i < t->n_trained; ++i) {
        if (t->trained[i].tensor[KEPT_WEIGHT] != tensor)
            continue;
        const size_t row = piece->n_rows ? count / (size_t)piece->n_rows : 0;
        *ret = (struct place){i, row * (size_t)piece->first, count};
        return true;
    }
    return false;
}

// -- what goes into the file

struct file {
    attncl_array *arrays; // they own their names
    size_t n;
    float **values;        // [n_trained * N_KEPT], owned; NULL: not in the file
    const char **metadata; // key, value ... NULL
    char *state;           // attncl.train, owned
};

static void free_file(const attncl_trainer *t, struct file *f)
{
    for (size_t i = 0; i < f->n; ++i)
        attncl__free((char *)f->arrays[i].name);
    for (size_t i = 0; f->values && i < t->n_trained * N_KEPT; ++i)
        attncl__free(f->values[i]);
    attncl__free(f->values);
    attncl__free(f->arrays);
    attncl__free(f->metadata);
    attncl__free(f->state);
}

static attncl_status read_tensor(const struct trained *trained, enum kept kept, float **ret)
{
    const size_t bytes = trained->count * sizeof **ret;
    *ret = attncl__alloc(bytes);
    REQUIRE(*ret, ATTNCL_ERR_NO_MEMORY, "%zu bytes of %s", bytes, trained->name);
    return attncl_tensor_read(trained->tensor[kept], *ret, bytes);
}

static attncl_status add_piece(const attncl_trainer *t, const struct param_piece *piece,
                               enum kept kept, bool model_alone, struct file *f)
{
    const bool has_averages = t->config.settings.ema > 0 && !model_alone;
    char name[CHECKPOINT_NAME_BYTES];
    struct place place;
    if (!attncl__checkpoint_place(t, piece, &place))
        return ATTNCL_OK;
    const struct trained *trained = &t->trained[place.trained];
    if (!trained->tensor[kept])
        return ATTNCL_OK;
    float **values = &f->values[place.trained * N_KEPT + kept];
    if (!*values)
        TRY(read_tensor(trained, kept, values));
    attncl__checkpoint_name(kept, has_averages, piece->name, name);
    const char *copy = attncl__copy_text(name);
    REQUIRE(copy, ATTNCL_ERR_NO_MEMORY, "name of %s", name);
    attncl_array *array = &f->arrays[f->n++];
    *array = (attncl_array){.name = copy,
                            .dtype = ATTNCL_F32,
                            .rank = piece->shape.rank,
                            .data = *values + place.offset,
                            .bytes = place.count * sizeof **values};
    memcpy(array->dim, piece->shape.dim, sizeof array->dim);
    return ATTNCL_OK;
}

// Of the model alone, its averages where there are any.
static bool belongs(const attncl_trainer *t, enum kept kept, bool model_alone)
{
    const enum kept shown = t->config.settings.ema > 0 ? KEPT_AVERAGE : KEPT_WEIGHT;
    return !model_alone || kept == shown;
}

static attncl_status collect(const attncl_trainer *t, bool model_alone, struct file *f)
{
    const struct param_table *table = &t->model->params;
    const size_t capacity = table->n_pieces * N_KEPT;
    f->arrays = attncl__alloc_array(capacity, sizeof *f->arrays);
    f->values = attncl__alloc_array(t->n_trained * N_KEPT, sizeof *f->values);
    REQUIRE(f->arrays && f->values, ATTNCL_ERR_NO_MEMORY, "%zu tensors of a checkpoint", capacity);
    for (int kept = 0; kept < N_KEPT; ++kept)
        for (size_t i = 0; i < table->n_pieces && belongs(t, (enum kept)kept, model_alone); ++i)
            TRY(add_piece(t, &table->pieces[i], (enum kept)kept, model_alone, f));
    return ATTNCL_OK;
}

static attncl_status set_state(const attncl_trainer *t, struct json *state)
{
    char hash[24], precision[24];
    snprintf(hash, sizeof hash, "\"%016" PRIx64 "\"", attncl__dataset_hash(t->data));
    snprintf(precision, sizeof precision, "\"%s\"", attncl__precision_name(t->context));
    if (strcmp(precision, "\"float32\"") != 0)
        TRY(attncl__json_set(state, "precision", precision));
    TRY(attncl__json_set_int(state, "step", t->step));
    TRY(attncl__json_set_int(state, "seed", t->config.settings.seed));
    TRY(attncl__json_set(state, "data_hash", hash));
    if (isfinite(t->best_loss))
        TRY(attncl__json_set_number(state, "best_loss", t->best_loss));
    TRY(attncl__json_set_int(state, "best_step", t->best_step));
    TRY(attncl__json_set_int(state, "n_worse", t->n_worse));
    return attncl__json_set(state, "config", t->config_text);
}

static attncl_status write_state(const attncl_trainer *t, char **ret)
{
    struct json *state = NULL;
    TRY(attncl__json_parse("{}", 2, JSON_CONFIG_LIMITS, &state));
    attncl_status status = set_state(t, state);
    if (status == ATTNCL_OK)
        status = attncl__json_write(state, JSON_ONE_LINE, ret);
    attncl__json_free(state);
    return status;
}

static attncl_status add_metadata(const attncl_trainer *t, bool model_alone, struct file *f)
{
    const attncl_model *model = t->model;
    f->metadata = attncl__alloc_array(model->n_metadata + 3, sizeof *f->metadata);
    REQUIRE(f->metadata, ATTNCL_ERR_NO_MEMORY, "%zu metadata values", model->n_metadata);
    size_t n = 0;
    for (size_t i = 0; i < model->n_metadata; ++i)
        f->metadata[n++] = model->metadata[i];
    if (model_alone)
        return ATTNCL_OK;
    TRY(write_state(t, &f->state));
    f->metadata[n++] = "attncl.train";
    f->metadata[n++] = f->state;
    return ATTNCL_OK;
}

static attncl_status save(attncl_trainer *t, const char *path, bool model_alone)
{
    attncl_status status = ATTNCL_OK;
    struct file f = {0};
    REQUIRE(t && path, ATTNCL_ERR_ARGUMENT, "trainer or path is NULL");
    TRY(attncl__check_usable(t));
    if (attncl_ranks_rank(t->ranks) != 0)
        return ATTNCL_OK;
    TRY_DONE(collect(t, model_alone, &f));
    TRY_DONE(add_metadata(t, model_alone, &f));
    TRY_DONE(attncl__st_write_durably(path, f.arrays, f.n, f.metadata));
done:
    free_file(t, &f);
    return status;
}

attncl_status attncl_trainer_save(attncl_trainer *trainer, const char *path)
{
    return save(trainer, path, false);
}

attncl_status attncl_trainer_save_model(attncl_trainer *trainer, const char *path)
{
    return save(trainer, path, true);
}

// SPDX-License-Identifier: MIT
//
// Checkpoints: saving and resuming.  Resuming checks everything before its first write.

#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// The prefix of a parameter's name, for one kind of kept values.
enum { PREFIX_BYTES = 40 };
static void write_prefix(const attncl_trainer *t, enum kept kept, bool has_averages,
                         char ret[PREFIX_BYTES])
{
    ret[0] = '\0';
    if (kept == KEPT_WEIGHT && has_averages)
        snprintf(ret, PREFIX_BYTES, "optimizer.param.");
    else if (kept >= KEPT_STATES && kept < KEPT_AVERAGE)
        snprintf(ret, PREFIX_BYTES, "optimizer.%s.", t->states[kept - KEPT_STATES]);
}

// The tensor of a parameter's kept values, with the shape of the parameter's tensor; NULL: none are kept.
static attncl_tensor *find_kept(const attncl_trainer *t, const struct param_piece *piece,
                                enum kept kept)
{
    const attncl_tensor *weight = t->model->params.list[piece->param].tensor;
    for (size_t i = 0; i < t->n_trained; ++i)
        if (t->trained[i].tensor[KEPT_WEIGHT] == weight)
            return t->trained[i].tensor[kept];
    return NULL;
}

// With model_alone, saves only the averages or, without averages, the weights.
static attncl_status add_kept(const attncl_trainer *t, enum kept kept, bool model_alone,
                              attncl_results *saved)
{
    const bool has_averages = t->config.settings.ema > 0;
    const enum kept saved_kept = has_averages ? KEPT_AVERAGE : KEPT_WEIGHT;
    const struct param_table *table = &t->model->params;
    char prefix[PREFIX_BYTES];
    write_prefix(t, kept, has_averages, prefix);
    for (size_t i = 0; i < table->n_pieces && (!model_alone || kept == saved_kept); ++i) {
        attncl_tensor *tensor = find_kept(t, &table->pieces[i], kept);
        if (tensor)
            TRY(attncl__results_add_param(saved, &table->pieces[i], prefix, tensor));
    }
    return ATTNCL_OK;
}

static attncl_status set_state(const attncl_trainer *t, struct json *state)
{
    char hash[24], precision[24];
    snprintf(hash, sizeof hash, "\"%016" PRIx64 "\"", attncl__dataset_hash(t->data));
    snprintf(precision, sizeof precision, "\"%s\"", attncl__precision_name(t->context));
    if (strcmp(precision, "\"float32\"") != 0)
        TRY(attncl__json_set(state, "precision", precision));
    TRY(attncl__json_set_int(state, "step", t->progress.step));
    TRY(attncl__json_set_int(state, "seed", t->config.settings.seed));
    TRY(attncl__json_set(state, "data_hash", hash));
    if (isfinite(t->progress.best_loss))
        TRY(attncl__json_set_number(state, "best_loss", t->progress.best_loss));
    TRY(attncl__json_set_int(state, "best_step", t->progress.best_step));
    TRY(attncl__json_set_int(state, "n_worse", t->progress.n_worse));
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

static attncl_status save_checkpoint(attncl_trainer *t, const char *path, bool model_alone)
{
    attncl_status status = ATTNCL_OK;
    attncl_results saved = {0};
    char *state = NULL;
    REQUIRE(t && path, ATTNCL_ERR_ARGUMENT, "trainer or path is NULL");
    TRY(attncl__check_usable(t));
    if (attncl_ranks_rank(t->ranks) != 0)
        return ATTNCL_OK;
    for (int kept = 0; kept < N_KEPT; ++kept)
        TRY_DONE(add_kept(t, (enum kept)kept, model_alone, &saved));
    if (!model_alone)
        TRY_DONE(write_state(t, &state));
    TRY_DONE(attncl__results_save(&saved, t->model,
                                  (const char *[]){state ? "attncl.train" : NULL, state, NULL},
                                  path, true));
done:
    attncl__results_clear(&saved);
    attncl__free(state);
    return status;
}

attncl_status attncl_trainer_save(attncl_trainer *trainer, const char *path)
{
    return save_checkpoint(trainer, path, false);
}

attncl_status attncl_trainer_save_model(attncl_trainer *trainer, const char *path)
{
    return save_checkpoint(trainer, path, true);
}

// -- resuming

struct saved {
    attncl_safetensors *file;
    struct json *state;
    const struct json *config;
    attncl_train_state progress;
};

static attncl_status read_state(struct saved *saved)
{
    static const struct json_limits limits = {8, 10000, false};
    const char *text = attncl_safetensors_metadata(saved->file, "attncl.train");
    bool present;
    REQUIRE(text, ATTNCL_ERR_FORMAT, "metadata attncl.train is missing: this is no checkpoint");
    TRY(attncl__json_parse(text, strlen(text), &limits, &saved->state));
    TRY(attncl__json_int(saved->state, "step", NULL, &saved->progress.step));
    TRY(attncl__json_int(saved->state, "best_step", NULL, &saved->progress.best_step));
    TRY(attncl__json_int(saved->state, "n_worse", NULL, &saved->progress.n_worse));
    saved->progress.best_loss = INFINITY;
    TRY(attncl__json_double(saved->state, "best_loss", &present, &saved->progress.best_loss));
    REQUIRE(saved->progress.step >= 0 && saved->progress.step < INT32_MAX, ATTNCL_ERR_FORMAT,
            "step is %" PRId64, saved->progress.step);
    return attncl__json_object(saved->state, "config", NULL, &saved->config);
}

attncl_status attncl__compare_value(const struct json *saved, const struct json *own,
                                    const char *what, const char *key, const char *whose)
{
    attncl_status status = ATTNCL_OK;
    char *was = NULL, *is = NULL;
    TRY_DONE(attncl__json_write_value(saved, key, &was));
    TRY_DONE(attncl__json_write_value(own, key, &is));
    if (!was || !is || strcmp(was, is) != 0)
        status = FAIL(ATTNCL_ERR_STATE, "%s %s is %s, %s is %s", what, key, is ? is : "absent",
                      whose, was ? was : "absent");
done:
    attncl__free(was);
    attncl__free(is);
    return status;
}

static const char checkpoints[] = "the checkpoint's";

static attncl_status compare_objects(const struct json *saved, const struct json *own,
                                     const char *what)
{
    for (const char *key = NULL; (key = attncl__json_next(own, key)) != NULL;)
        TRY(attncl__compare_value(saved, own, what, key, checkpoints));
    for (const char *key = NULL; (key = attncl__json_next(saved, key)) != NULL;)
        TRY(attncl__compare_value(saved, own, what, key, checkpoints));
    return ATTNCL_OK;
}

static attncl_status compare_parts(const struct json *saved, const struct json *own)
{
    const struct json *a, *b;
    TRY(attncl__compare_value(saved, own, "the configuration's", "arch", checkpoints));
    TRY(attncl__json_object(saved, "model", NULL, &a));
    TRY(attncl__json_object(own, "model", NULL, &b));
    TRY(compare_objects(a, b, "the model's"));
    TRY(attncl__json_object(saved, "train", NULL, &a));
    TRY(attncl__json_object(own, "train", NULL, &b));
    TRY(attncl__json_object(a, "optimizer", NULL, &a));
    TRY(attncl__json_object(b, "optimizer", NULL, &b));
    return attncl__compare_value(a, b, "the optimizer's", "kind", checkpoints);
}

// A file without precision has float32.
static attncl_status compare_precision(const attncl_trainer *t, const struct saved *saved)
{
    const char *own = attncl__precision_name(t->context), *was = "float32";
    bool present;
    TRY(attncl__json_text(saved->state, "precision", &present, &was));
    REQUIRE(strcmp(own, was) == 0, ATTNCL_ERR_STATE,
            "the precision is %s, the checkpoint's is %.40s", own, was);
    return ATTNCL_OK;
}

static attncl_status compare_data(const attncl_trainer *t, const struct saved *saved)
{
    char own[24];
    const char *hash;
    TRY(attncl__json_text(saved->state, "data_hash", NULL, &hash));
    snprintf(own, sizeof own, "%016" PRIx64, attncl__dataset_hash(t->data));
    REQUIRE(strcmp(hash, own) == 0, ATTNCL_ERR_STATE,
            "the data have hash %s, the checkpoint's had %.40s", own, hash);
    return ATTNCL_OK;
}

static attncl_status check_array(const attncl_array *a, const struct param_piece *piece)
{
    struct tensor_desc have, want;
    TRY(attncl__desc_make(a->dtype, a->rank, a->dim, &have));
    TRY(attncl__desc_make(ATTNCL_F32, piece->shape.rank, piece->shape.dim, &want));
    REQUIRE(a->dtype == ATTNCL_F32, ATTNCL_ERR_FORMAT, "tensor %s has type %s, expected F32",
            a->name, attncl_dtype_name(a->dtype));
    REQUIRE(attncl__desc_same_shape(&have, &want), ATTNCL_ERR_SHAPE,
            "tensor %s has shape %s, expected %s", a->name, SHAPE(&have), SHAPE(&want));
    return ATTNCL_OK;
}

// Finds a parameter's array in the file.  Names without prefix are averages or, in a file without
// averages, weights.
static attncl_status find_array(const attncl_trainer *t, const struct saved *saved,
                                const struct param_piece *piece, enum kept kept,
                                const attncl_array **ret)
{
    char prefix[PREFIX_BYTES], name[PARAM_NAME_BYTES + PREFIX_BYTES];
    for (int has_averages = 1; has_averages >= 0; --has_averages) {
        write_prefix(t, kept, has_averages, prefix);
        snprintf(name, sizeof name, "%s%s", prefix, piece->name);
        *ret = attncl_safetensors_find(saved->file, name);
        if (*ret)
            return check_array(*ret, piece);
    }
    return FAIL(ATTNCL_ERR_FORMAT, "tensor %s is missing", name);
}

// Checks that the file has all kept values; with `writes`, writes them to the tensors.  Rows that no
// parameter fills stay zero.
static attncl_status read_arrays(const attncl_trainer *t, const struct saved *saved, bool writes)
{
    const struct param_table *table = &t->model->params;
    const attncl_array *array;
    for (size_t i = 0; i < table->n_pieces * N_KEPT; ++i) {
        const struct param_piece *piece = &table->pieces[i / N_KEPT];
        const enum kept kept = (enum kept)(i % N_KEPT);
        attncl_tensor *tensor = find_kept(t, piece, kept);
        if (tensor)
            TRY(find_array(t, saved, piece, kept, &array));
        if (tensor && writes)
            TRY(attncl__tensor_write_part(tensor, attncl__param_offset(piece), array->data,
                                          array->bytes));
    }
    return ATTNCL_OK;
}

static attncl_status read_saved(const attncl_trainer *t, struct saved *saved)
{
    TRY(read_state(saved));
    TRY(compare_parts(saved->config, t->config.root));
    TRY(compare_precision(t, saved));
    TRY(compare_data(t, saved));
    return read_arrays(t, saved, false);
}

attncl_status attncl_trainer_resume(attncl_trainer *trainer, const char *path)
{
    REQUIRE(trainer && path, ATTNCL_ERR_ARGUMENT, "trainer or path is NULL");
    struct saved saved = {.progress = ATTNCL_TRAIN_STATE_INIT};
    attncl_status status = ATTNCL_OK;
    TRY_DONE(attncl_safetensors_open(path, &saved.file)); // its messages name the file
    TRY_DONE(attncl__prefix_failure(read_saved(trainer, &saved), "%s", path));
    attncl__drop_batches(trainer);
    if (trainer->is_broken)
        attncl__drop_step_graphs(trainer); // a graph whose run failed refuses further runs
    trainer->is_broken = true;             // until all is written
    if (trainer->fault)
        TRY_DONE(attncl__tensor_clear(trainer->fault));
    TRY_DONE(read_arrays(trainer, &saved, true));
    trainer->is_broken = false;
    saved.progress.accuracy = trainer->progress.accuracy;
    trainer->progress = saved.progress;
    TRY_DONE(attncl__begin_replicas(trainer));
done:
    attncl__json_free(saved.state);
    attncl_safetensors_close(saved.file);
    return status;
}

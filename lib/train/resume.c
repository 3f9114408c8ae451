// SPDX-License-Identifier: MIT
//
// Continuing from a checkpoint: everything is compared and found before the first write.

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

struct saved {
    attncl_safetensors *file;
    struct json *state;
    const struct json *config;
    int64_t step, best_step, n_worse;
    double best_loss;
};

// -- reading

static attncl_status read_state(struct saved *saved)
{
    static const struct json_limits limits = {8, 10000, false};
    const char *text = attncl_safetensors_metadata(saved->file, "attncl.train");
    bool present;
    REQUIRE(text, ATTNCL_ERR_FORMAT, "metadata attncl.train is missing: this is no checkpoint");
    TRY(attncl__json_parse(text, strlen(text), &limits, &saved->state));
    TRY(attncl__json_int(saved->state, "step", NULL, &saved->step));
    TRY(attncl__json_int(saved->state, "best_step", NULL, &saved->best_step));
    TRY(attncl__json_int(saved->state, "n_worse", NULL, &saved->n_worse));
    saved->best_loss = INFINITY;
    TRY(attncl__json_double(saved->state, "best_loss", &present, &saved->best_loss));
    REQUIRE(saved->step >= 0 && saved->step < INT32_MAX, ATTNCL_ERR_FORMAT, "step is %" PRId64,
            saved->step);
    return attncl__json_object(saved->state, "config", NULL, &saved->config);
}

// -- comparing

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

// Not in the file: float32.
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

// -- elements

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

// Finds a parameter's array in the file.  Plain names are those of averages, or of weights in a file without averages.
static attncl_status find(const attncl_trainer *t, const struct saved *saved,
                          const struct param_piece *piece, enum kept kept, const attncl_array **ret)
{
    char prefix[PREFIX_BYTES], name[PARAM_NAME_BYTES + PREFIX_BYTES];
    for (int has_averages = 1; has_averages >= 0; --has_averages) {
        attncl__checkpoint_prefix(t, kept, has_averages, prefix);
        snprintf(name, sizeof name, "%s%s", prefix, piece->name);
        *ret = attncl_safetensors_find(saved->file, name);
        if (*ret)
            return check_array(*ret, piece);
    }
    return FAIL(ATTNCL_ERR_FORMAT, "tensor %s is missing", name);
}

// Finds all that is kept in the file; then writes it.  Rows that no parameter fills stay zero.
static attncl_status take_arrays(const attncl_trainer *t, const struct saved *saved, bool writes)
{
    const struct param_table *table = &t->model->params;
    const attncl_array *array;
    for (size_t i = 0; i < table->n_pieces * N_KEPT; ++i) {
        const struct param_piece *piece = &table->pieces[i / N_KEPT];
        const enum kept kept = (enum kept)(i % N_KEPT);
        attncl_tensor *tensor = attncl__find_kept(t, piece, kept);
        if (tensor)
            TRY(find(t, saved, piece, kept, &array));
        if (tensor && writes)
            TRY(attncl__tensor_write_part(tensor, attncl__param_offset(piece), array->data,
                                          array->bytes));
    }
    return ATTNCL_OK;
}

// -- all of it

static attncl_status read_saved(const attncl_trainer *t, const char *path, struct saved *saved)
{
    TRY(attncl_safetensors_open(path, &saved->file));
    TRY(read_state(saved));
    TRY(compare_parts(saved->config, t->config.root));
    TRY(compare_precision(t, saved));
    TRY(compare_data(t, saved));
    return take_arrays(t, saved, false);
}

attncl_status attncl_trainer_resume(attncl_trainer *trainer, const char *path)
{
    REQUIRE(trainer && path, ATTNCL_ERR_ARGUMENT, "trainer or path is NULL");
    struct saved saved = {0};
    attncl_status status = ATTNCL_OK;
    TRY_DONE(attncl__prefix_failure(read_saved(trainer, path, &saved), "%s", path));
    attncl__drop_batches(trainer);
    if (trainer->is_broken)
        attncl__drop_step_graphs(trainer); // those whose runs failed refuse others
    trainer->is_broken = true;             // until all is written
    if (trainer->fault)
        TRY_DONE(attncl__tensor_clear(trainer->fault));
    TRY_DONE(take_arrays(trainer, &saved, true));
    trainer->is_broken = false;
    trainer->step = saved.step;
    trainer->best_loss = saved.best_loss;
    trainer->best_step = saved.best_step;
    trainer->n_worse = saved.n_worse;
    TRY_DONE(attncl__begin_replicas(trainer));
done:
    attncl__json_free(saved.state);
    attncl_safetensors_close(saved.file);
    return status;
}

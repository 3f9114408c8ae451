// SPDX-License-Identifier: MIT
//
// Checkpoints, written.

#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void attncl__checkpoint_prefix(const attncl_trainer *t, enum kept kept, bool has_averages,
                               char ret[PREFIX_BYTES])
{
    ret[0] = '\0';
    if (kept == KEPT_WEIGHT && has_averages)
        snprintf(ret, PREFIX_BYTES, "optimizer.param.");
    else if (kept >= KEPT_STATES && kept < KEPT_AVERAGE)
        snprintf(ret, PREFIX_BYTES, "optimizer.%s.", t->states[kept - KEPT_STATES]);
}

attncl_tensor *attncl__find_kept(const attncl_trainer *t, const struct param_piece *piece,
                                 enum kept kept)
{
    const attncl_tensor *weight = t->model->params.list[piece->param].tensor;
    for (size_t i = 0; i < t->n_trained; ++i)
        if (t->trained[i].tensor[KEPT_WEIGHT] == weight)
            return t->trained[i].tensor[kept];
    return NULL;
}

// The model alone has its averages where there are any.
static attncl_status add_kept(const attncl_trainer *t, enum kept kept, bool model_alone,
                              attncl_results *saved)
{
    const bool has_averages = t->config.settings.ema > 0;
    const enum kept shown = has_averages ? KEPT_AVERAGE : KEPT_WEIGHT;
    const struct param_table *table = &t->model->params;
    char prefix[PREFIX_BYTES];
    attncl__checkpoint_prefix(t, kept, has_averages, prefix);
    for (size_t i = 0; i < table->n_pieces && (!model_alone || kept == shown); ++i) {
        attncl_tensor *tensor = attncl__find_kept(t, &table->pieces[i], kept);
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

static attncl_status save(attncl_trainer *t, const char *path, bool model_alone)
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
    return save(trainer, path, false);
}

attncl_status attncl_trainer_save_model(attncl_trainer *trainer, const char *path)
{
    return save(trainer, path, true);
}

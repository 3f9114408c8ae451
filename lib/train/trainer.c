// SPDX-License-Identifier: MIT
//
// Trainers: creation, queries, destruction.

#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/struct.h"

// -- data

static attncl_status check_kind(const struct train_config *c, const attncl_trainer_options *o)
{
    const struct arch_class *arch = c->arch;
    const size_t n_lengths = c->settings.data.lengths.n;
    REQUIRE(arch->target != TARGET_NEXT_TOKENS || !o->pairs, ATTNCL_ERR_ARGUMENT,
            "pairs are for archs seq2seq_bahdanau, seq2seq_transformer and encoder, the "
            "configuration's is %s",
            c->arch_name);
    REQUIRE(arch->target <= TARGET_NEXT_TOKENS || (!o->data && !o->tokens), ATTNCL_ERR_ARGUMENT,
            "a text and tokens are for arch lm, the configuration's is %s", c->arch_name);
    REQUIRE(n_lengths == 1 || ((o->data || o->tokens) && !o->batches), ATTNCL_ERR_FORMAT,
            "configuration: train: seq_len has %zu lengths, pairs and ready batches have one",
            n_lengths);
    REQUIRE(!c->settings.clones_layers || arch != &attncl__arch_seq2seq_bahdanau, ATTNCL_ERR_FORMAT,
            "configuration: train: clone_layers is true, arch %s has no layers to copy",
            c->arch_name);
    return ATTNCL_OK;
}

// Metadata copied from the initial model, besides the data's.
static const char *const kept_keys[] = {"attncl.tokenizer", "attncl.eos"};

// Reads a tokenizer.json and removes the spaces between its values, as it becomes metadata.
static attncl_status read_tokenizer(const char *path, char **ret)
{
    attncl_status status = ATTNCL_OK;
    bool quoted = false;
    uint64_t bytes = 0;
    size_t n = 0;
    int fd = -1;
    char *text = NULL;

    TRY(attncl__file_open(path, &fd, &bytes));
    text = attncl__alloc((size_t)bytes + 1);
    if (!text)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%" PRIu64 " bytes", bytes));
    TRY_DONE(attncl__file_read(fd, text, (size_t)bytes));
    text[bytes] = '\0';
    for (size_t i = 0; i < bytes; ++i) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && strchr(" \t\r\n", text[i]))
            continue;
        text[n++] = text[i];
        if (quoted && text[i] == '\\')
            text[n++] = text[++i]; // at worst the final zero
    }
    text[n] = '\0';
    *ret = text;
    text = NULL; // ownership has passed to the caller

done:
    attncl__free(text);
    attncl__file_close(&fd);
    return attncl__prefix_failure(status, "%s", path);
}

// tokenizer: text of a tokenizer.json; NULL: none.
static attncl_status open_data(attncl_trainer *t, const attncl_trainer_options *o,
                               const attncl_safetensors *init, const char *tokenizer)
{
    struct dataset_options options = t->config.settings.data;
    const char *vocab_key = o->pairs ? "attncl.source_vocab" : "attncl.vocab";
    const char *target_key =
        options.pair_form == PAIR_SENTENCES ? "attncl.target_vocab" : "attncl.labels";
    const int n_given = (o->data != NULL) + (o->tokens != NULL) + (o->pairs != NULL);
    REQUIRE(n_given <= 1, ATTNCL_ERR_ARGUMENT,
            "%d of data, tokens and pairs are given, expected one", n_given);
    REQUIRE(n_given || o->batches, ATTNCL_ERR_ARGUMENT,
            "none of data, tokens, pairs and batches is given");
    REQUIRE(!o->tokenizer || o->data, ATTNCL_ERR_ARGUMENT,
            "%s: a tokenizer is for a text in data, which is not given", o->tokenizer);
    TRY(check_kind(&t->config, o));
    options.seed = (uint64_t)t->config.settings.seed;
    options.accumulate = t->config.settings.accumulate;
    options.tokenizer = tokenizer;
    options.tokenizer_path = o->tokenizer ? o->tokenizer : o->init;
    options.has_model = init && attncl__json_has(t->config.model, "n_vocab");
    options.vocabulary = init ? attncl_safetensors_metadata(init, vocab_key) : NULL;
    options.target_vocabulary = init ? attncl_safetensors_metadata(init, target_key) : NULL;
    if (n_given == 0)
        return attncl__dataset_open(&attncl__data_batches, o->batches, &options, &t->data);
    const struct dataset_class *text = tokenizer ? &attncl__data_encoded : &attncl__data_text;
    const struct dataset_class *class = o->data     ? text
                                        : o->tokens ? &attncl__data_tokens
                                                    : &attncl__data_pairs;
    const char *path = o->data ? o->data : o->tokens ? o->tokens : o->pairs;
    TRY(attncl__dataset_open(class, path, &options, &t->data));
    return o->batches ? attncl__dataset_use_batches(t->data, o->batches) : ATTNCL_OK;
}

// -- model

// Adds the data's metadata to the model, for sampling from it.
static attncl_status add_metadata(attncl_trainer *t, const attncl_safetensors *init)
{
    const char *key, *value;
    for (size_t i = 0; (key = attncl__dataset_metadata(t->data, i, &value)) != NULL; ++i)
        TRY(attncl__model_add_metadata(t->model, key, value));
    for (size_t i = 0; init && i < sizeof kept_keys / sizeof *kept_keys; ++i) {
        value = attncl_safetensors_metadata(init, kept_keys[i]);
        if (value && !attncl_model_metadata(t->model, kept_keys[i]))
            TRY(attncl__model_add_metadata(t->model, kept_keys[i], value));
    }
    return ATTNCL_OK;
}

static attncl_status create_model(attncl_trainer *t, const attncl_safetensors *init,
                                  const char *init_path)
{
    char *text = NULL;
    TRY(attncl__json_write(t->config.model, JSON_ONE_LINE, &text));
    attncl_status status = attncl_model_create(t->context, t->config.arch_name, text,
                                               (uint64_t)t->config.settings.seed, &t->model);
    attncl__free(text);
    TRY(status);
    TRY(add_metadata(t, init));
    if (init)
        return attncl__prefix_failure(attncl__write_first_values(t, init), "%s", init_path);
    return t->config.settings.clones_layers ? attncl__clone_layers(t) : ATTNCL_OK;
}

// -- creation

// Checks the windows before the first step: an evaluation may come late.
static attncl_status check_windows(const attncl_trainer *t)
{
    const struct train_settings *s = &t->config.settings;
    const int64_t limit = s->model.limit ? s->model.limit : INT64_MAX;
    const bool cuts_windows = t->data->class->endless && !t->data->ready;
    REQUIRE(!cuts_windows || s->data.seq_len <= limit, ATTNCL_ERR_FORMAT,
            "configuration: train: seq_len is %" PRId64 ", the model takes at most %" PRId64,
            s->data.seq_len, limit);
    REQUIRE(t->data->count[SPLIT_VALID] == 0 || s->data.valid_len <= limit, ATTNCL_ERR_FORMAT,
            "configuration: train: valid_len is %" PRId64 ", the model takes at most %" PRId64,
            s->data.valid_len, limit);
    return ATTNCL_OK;
}

// Completes the configuration with the data's sizes, and writes its text.
static attncl_status complete_config(attncl_trainer *t)
{
    struct train_config *c = &t->config;
    int64_t source, target;
    attncl__dataset_vocabularies(t->data, &source, &target);
    TRY(attncl__train_config_end(c, source, target, t->data->pad));
    TRY(check_windows(t));
    const int n_ranks = attncl_ranks_size(t->ranks);
    REQUIRE(c->settings.data.batch_size >= n_ranks, ATTNCL_ERR_FORMAT,
            "configuration: train: batch_size is %" PRId64 ", there are %d ranks to share it",
            c->settings.data.batch_size, n_ranks);
    return attncl__json_write(c->root, JSON_LINES, &t->config_text);
}

static attncl_status fill_trainer(attncl_trainer *t, const char *config_json,
                                  const attncl_trainer_options *o)
{
    attncl_status status = ATTNCL_OK;
    attncl_safetensors *init = NULL;
    char *given = NULL;
    if (o->init)
        TRY_DONE(attncl_safetensors_open(o->init, &init));
    TRY_DONE(attncl__train_config_begin(&t->config, config_json, o->steps, o->seed));
    if (o->tokenizer)
        TRY_DONE(read_tokenizer(o->tokenizer, &given));
    const char *inherited = init ? attncl_safetensors_metadata(init, kept_keys[0]) : NULL;
    TRY_DONE(open_data(t, o, init, given ? given : inherited));
    TRY_DONE(complete_config(t));
    TRY_DONE(create_model(t, init, o->init));
    TRY_DONE(attncl__create_trained(t));
    TRY_DONE(attncl__begin_replicas(t));
done:
    attncl__free(given);
    attncl_safetensors_close(init);
    return status;
}

attncl_status attncl_trainer_create(attncl_context *context, const char *config_json,
                                    const attncl_trainer_options *options,
                                    attncl_trainer **trainer_ret)
{
    attncl_trainer_options o = ATTNCL_TRAINER_OPTIONS_INIT;
    REQUIRE(context && config_json && options && trainer_ret, ATTNCL_ERR_ARGUMENT,
            "context, config_json, options or trainer_ret is NULL");
    TRY(STRUCT_READ(attncl_trainer_options, &o, options));

    attncl_trainer *t = attncl__alloc_zero(sizeof *t);
    REQUIRE(t, ATTNCL_ERR_NO_MEMORY, "trainer");
    t->context = context;
    t->ranks = o.ranks;
    t->progress = (attncl_train_state)ATTNCL_TRAIN_STATE_INIT;
    t->progress.accuracy = NAN;
    t->progress.best_loss = INFINITY;
    const attncl_status status = fill_trainer(t, config_json, &o);
    if (status != ATTNCL_OK) {
        attncl_trainer_destroy(t);
        return status;
    }
    *trainer_ret = t;
    return ATTNCL_OK;
}

void attncl_trainer_destroy(attncl_trainer *trainer)
{
    if (!trainer)
        return;
    attncl__drop_batches(trainer);
    attncl__drop_step_graphs(trainer);
    attncl__free_grad_sums(trainer);
    attncl__destroy_trained(trainer);
    attncl_model_destroy(trainer->model);
    attncl__dataset_close(trainer->data);
    attncl__free(trainer->config_text);
    attncl__train_config_free(&trainer->config);
    attncl__free(trainer);
}

// -- queries

const char *attncl_trainer_config(const attncl_trainer *trainer)
{
    return trainer ? trainer->config_text : NULL;
}

attncl_model *attncl_trainer_model(attncl_trainer *trainer)
{
    return trainer ? trainer->model : NULL;
}

attncl_status attncl_trainer_plan(const attncl_trainer *trainer, attncl_train_plan *plan_ret)
{
    REQUIRE(trainer && plan_ret, ATTNCL_ERR_ARGUMENT, "trainer or plan_ret is NULL");
    attncl_train_plan plan = trainer->config.settings.plan;
    plan.struct_size = sizeof plan;
    plan.n_train_batches = attncl__dataset_count(trainer->data, SPLIT_TRAIN);
    plan.n_valid_batches = attncl__dataset_count(trainer->data, SPLIT_VALID);
    return STRUCT_WRITE(attncl_train_plan, plan_ret, &plan);
}

attncl_status attncl_trainer_state(const attncl_trainer *trainer, attncl_train_state *state_ret)
{
    REQUIRE(trainer && state_ret, ATTNCL_ERR_ARGUMENT, "trainer or state_ret is NULL");
    return STRUCT_WRITE(attncl_train_state, state_ret, &trainer->progress);
}

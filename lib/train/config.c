// SPDX-License-Identifier: MIT
//
// The configuration of training: read, completed and checked.

#include "train/config.h"

#include <inttypes.h>
#include <string.h>

#include "model/block_models.h"

static const double default_rate = 1e-3, default_noam_rate = 1; // torch.optim.Adam's, labml's

void attncl__train_config_free(struct train_config *c)
{
    attncl__json_free(c->root);
    *c = (struct train_config){0};
}

// -- the data's part

// The objects "model" and "train" of the root.
static attncl_status find_parts(const struct train_config *c, struct json **model_ret,
                                struct json **train_ret)
{
    REQUIRE(attncl__json_has(c->root, "model"), ATTNCL_ERR_FORMAT, "model is missing");
    TRY(attncl__json_inner(c->root, "model", model_ret));
    return attncl__json_inner(c->root, "train", train_ret);
}

static attncl_status read_data_part(struct train_config *c, const int64_t *steps,
                                    const uint64_t *seed)
{
    struct json *model, *train;
    const char *arch;
    TRY(attncl__json_text(c->root, "arch", NULL, &arch));
    TRY(attncl__arch_find(arch, &c->arch));
    TRY(find_parts(c, &model, &train));
    if (steps)
        TRY(attncl__json_set_int(train, "steps", *steps));
    if (seed) {
        REQUIRE(*seed <= INT32_MAX, ATTNCL_ERR_ARGUMENT, "seed is %" PRIu64 ", must be at most %d",
                *seed, INT32_MAX);
        TRY(attncl__json_set_int(train, "seed", (int64_t)*seed));
    }
    TRY(attncl__prefix_failure(attncl__train_read_model(c->arch, model, &c->settings), "model"));
    return attncl__prefix_failure(attncl__config_read(attncl__train_data_keys, train, &c->settings),
                                  "train");
}

attncl_status attncl__train_config_begin(struct train_config *c, const char *text,
                                         const int64_t *steps, const uint64_t *seed)
{
    *c = (struct train_config){0};
    attncl_status status = attncl__json_parse(text, strlen(text), JSON_CONFIG_LIMITS, &c->root);
    if (status == ATTNCL_OK)
        status = read_data_part(c, steps, seed);
    if (status != ATTNCL_OK)
        attncl__train_config_free(c);
    return attncl__prefix_failure(status, "configuration");
}

// -- the model's part

static attncl_status complete_vocabulary(struct json *model, const char *key, int64_t size)
{
    bool present = false;
    int64_t given = 0;
    TRY(attncl__json_int(model, key, &present, &given));
    if (size == 0)
        return ATTNCL_OK;
    REQUIRE(!present || given >= size, ATTNCL_ERR_FORMAT,
            "model: %s is %" PRId64 ", the data have a vocabulary of %" PRId64, key, given, size);
    return present ? ATTNCL_OK : attncl__json_set_int(model, key, size);
}

// A language model without a length of its own remembers the one that it was trained with.
static attncl_status complete_model(const struct arch_class *arch, struct json *model,
                                    int64_t seq_len, int64_t source, int64_t target)
{
    if (arch->target == TARGET_NEXT_TOKENS && !attncl__json_has(model, "seq_len"))
        TRY(attncl__json_set_int(model, "seq_len", seq_len));
    if (arch->target == TARGET_SENTENCES) {
        TRY(complete_vocabulary(model, "src_vocab_size", source));
        return complete_vocabulary(model, "tgt_vocab_size", target);
    }
    TRY(complete_vocabulary(model, "n_vocab", source));
    return arch->target == TARGET_LABELS ? complete_vocabulary(model, "n_classes", target)
                                         : ATTNCL_OK;
}

attncl_status attncl__train_fill_model(const struct arch_class *arch, struct json *model,
                                       int64_t *limit_ret)
{
    void *settings = attncl__alloc_zero(arch->settings_bytes);
    attncl_status status =
        settings ? ATTNCL_OK : FAIL(ATTNCL_ERR_NO_MEMORY, "settings of arch %s", arch->name);
    if (status == ATTNCL_OK)
        status = attncl__arch_configure(arch, model, settings);
    if (status == ATTNCL_OK)
        status = attncl__config_fill(arch->keys, model, settings);
    if (status == ATTNCL_OK)
        *limit_ret = arch->target == TARGET_NEXT_TOKENS ? attncl__lm_limit(settings) : 0;
    attncl__free(settings);
    return attncl__prefix_failure(status, "model");
}

// -- the optimiser's part

// What depends on the kind and on the model's width.
static attncl_status complete_optimizer(struct json *optimizer, const struct json *model)
{
    const char *kind;
    int64_t width = 0;
    bool present;
    if (!attncl__json_has(optimizer, "kind"))
        TRY(attncl__json_set(optimizer, "kind", "\"adam\""));
    TRY(attncl__json_text(optimizer, "kind", NULL, &kind));
    const bool noam = strcmp(kind, "noam") == 0;
    if (!attncl__json_has(optimizer, "learning_rate"))
        TRY(attncl__json_set_number(optimizer, "learning_rate",
                                    noam ? default_noam_rate : default_rate));
    TRY(attncl__json_int(model, "d_model", &present, &width));
    if (noam && present && !attncl__json_has(optimizer, "d_model"))
        TRY(attncl__json_set_int(optimizer, "d_model", width));
    return ATTNCL_OK;
}

// -- all of it

static attncl_status read_train(struct train_config *c, const struct json *model,
                                struct json *train, int64_t pad)
{
    struct json *optimizer, *schedule;
    TRY(attncl__json_inner(train, "optimizer", &optimizer));
    TRY(attncl__json_inner(train, "schedule", &schedule));
    TRY(complete_optimizer(optimizer, model));
    TRY(attncl__train_read_model(c->arch, model, &c->settings));
    c->settings.pad = pad;
    TRY(attncl__config_read(attncl__train_keys, train, &c->settings));
    TRY(attncl__config_check_keys(attncl__train_keys, train, &c->settings));
    return attncl__config_fill(attncl__train_keys, train, &c->settings);
}

// The keys of the whole configuration; the objects under "model" and "train" have keys of their own.
static const struct key root_keys[] = {{.name = "arch", .type = KEY_WORD},
                                       {.name = "model", .type = KEY_INTS},
                                       {.name = "train", .type = KEY_INTS},
                                       {0}};

attncl_status attncl__train_config_end(struct train_config *c, int64_t source_vocabulary,
                                       int64_t target_vocabulary, int64_t pad)
{
    attncl_status status = ATTNCL_OK;
    struct json *model, *train;
    TRY_DONE(attncl__config_check_keys(root_keys, c->root, NULL));
    TRY_DONE(find_parts(c, &model, &train));
    TRY_DONE(complete_model(c->arch, model, c->settings.data.seq_len, source_vocabulary,
                            target_vocabulary));
    TRY_DONE(attncl__train_fill_model(c->arch, model, &c->settings.model.limit));
    status = attncl__prefix_failure(read_train(c, model, train, pad), "train");
done:
    return attncl__prefix_failure(status, "configuration");
}

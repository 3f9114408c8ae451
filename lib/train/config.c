// SPDX-License-Identifier: MIT
//
// The configuration of training: its keys, ranges and defaults; some defaults depend on the model.

#include "train/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/block_models.h"

// The form of the data that the model takes: the targets of pairs, and the order of axes.
static attncl_status read_data_form(const struct arch_class *arch, const struct json *model,
                                    struct train_settings *s)
{
    bool batch_first = false, present;
    const char *pool = "mean", *layer = "";
    s->data.pair_form = PAIR_SENTENCES;
    s->data.time_first = arch->target == TARGET_NEXT_TOKENS;
    if (arch->target != TARGET_LABELS)
        return ATTNCL_OK;
    TRY(attncl__json_bool(model, "batch_first", &present, &batch_first));
    TRY(attncl__json_text(model, "pool", &present, &pool));
    s->data.pair_form = strcmp(pool, "none") == 0 ? PAIR_TAGS : PAIR_CLASS;
    TRY(attncl__json_text(model, "layer", &present, &layer));
    s->data.time_first = !batch_first;
    s->data.with_lens = strcmp(layer, "transformer") == 0; // other layers take no lengths
    return ATTNCL_OK;
}

// The form of the data that the model takes, its longest window and its width.
static attncl_status read_model(const struct arch_class *arch, const struct json *model,
                                struct train_settings *s)
{
    enum { PAIR_LENGTH = 10, LABELLED_LENGTH = 64, WINDOW = 256 };
    int64_t max_len = INT64_MAX, n_memories = INT64_MAX - 1;
    bool present;
    TRY(read_data_form(arch, model, s));
    s->model.seq_len = s->model.width = 0;
    TRY(attncl__json_int(model, "seq_len", &present, &s->model.seq_len));
    TRY(attncl__json_int(model, "max_len", &present, &max_len));
    TRY(attncl__json_int(model, "P", &present, &n_memories));
    TRY(attncl__json_int(model, "d_model", &present, &s->model.width));
    s->model.longest_window = max_len >= 1 ? max_len : INT64_MAX;
    if (n_memories >= 1 && n_memories + 1 < s->model.longest_window)
        s->model.longest_window = n_memories + 1;
    s->data.seq_len = arch->target == TARGET_SENTENCES ? PAIR_LENGTH
                      : arch->target == TARGET_LABELS  ? LABELLED_LENGTH
                                                       : WINDOW;
    if (attncl__json_has(model, "seq_len"))
        s->data.seq_len = s->model.seq_len;
    else if (attncl__json_has(model, "max_len"))
        s->data.seq_len = max_len < WINDOW ? max_len : WINDOW;
    s->data.lengths = (struct json_pairs){1, {{0, s->data.seq_len}}};
    return ATTNCL_OK;
}

// A constant length may exceed the model's limit, because ready batches have their own lengths.
static attncl_status check_length(const struct train_settings *s, int64_t step, int64_t length)
{
    const bool changes = s->data.lengths.n > 1;
    const int64_t limit = changes && s->model.limit ? s->model.limit : INT32_MAX;
    char from[64] = "";
    if (changes)
        snprintf(from, sizeof from, " from step %" PRId64 " on", step);
    REQUIRE(length >= 1, ATTNCL_ERR_FORMAT, "seq_len is %" PRId64 "%s, must be at least 1", length,
            from);
    REQUIRE(length <= limit, ATTNCL_ERR_FORMAT,
            "seq_len is %" PRId64 "%s, the model takes at most %" PRId64, length, from, limit);
    return ATTNCL_OK;
}

// Checks the pairs (step, length), whose steps rise from 0 on; sets seq_len to the greatest length.
static attncl_status check_lengths(void *settings)
{
    struct train_settings *s = settings;
    const struct json_pairs *lengths = &s->data.lengths;
    s->data.seq_len = 0;
    for (size_t i = 0; i < lengths->n; ++i) {
        const int64_t step = lengths->list[i][0], length = lengths->list[i][1];
        REQUIRE(i > 0 || step == 0, ATTNCL_ERR_FORMAT,
                "seq_len begins at step %" PRId64 ", must begin at step 0", step);
        REQUIRE(i == 0 || (step > lengths->list[i - 1][0] && step <= INT32_MAX), ATTNCL_ERR_FORMAT,
                "seq_len has step %" PRId64 " after step %" PRId64
                ", steps must rise, to %d at most",
                step, lengths->list[i - 1][0], INT32_MAX);
        TRY(check_length(s, step, length));
        s->data.seq_len = length > s->data.seq_len ? length : s->data.seq_len;
    }
    return ATTNCL_OK;
}

// The windows of `attncl eval`, so that both compute the same held-out loss.
static double default_valid_len(const void *settings)
{
    const struct train_settings *s = settings;
    const int64_t n = s->model.seq_len ? s->model.seq_len : s->data.seq_len;
    return (double)(n < s->model.longest_window ? n : s->model.longest_window);
}

static const struct choice orders[] = {
    {"sequential", ORDER_SEQUENTIAL}, {"shuffled", ORDER_SHUFFLED}, {"random", ORDER_RANDOM}, {0}};

// The keys needed to open the data.
static const struct key data_keys[] = {
    {"batch_size", KEY_INT, AT(train_settings, data.batch_size), .min = 1, OR(32)},
    {"seq_len", KEY_PAIRS, AT(train_settings, data.lengths), OR_PRESET},
    CHECK(check_lengths),
    {"valid_len", KEY_INT, AT(train_settings, data.valid_len), .min = 1,
     OR_FROM(default_valid_len)},
    {"valid_fraction", KEY_NUMBER, AT(train_settings, data.valid_fraction), .below = 1, OR(0.1)},
    {"batches", KEY_WORD, AT(train_settings, data.order), .choices = orders, OR_WORD("shuffled")},
    {"min_frequency", KEY_INT, AT(train_settings, data.min_frequency), .min = 1, OR(2)},
    {"accumulate", KEY_INT, AT(train_settings, accumulate), .min = 1, OR(1)},
    {"steps", KEY_INT, AT(train_settings, plan.steps), .min = 1, OR(1000)},
    {"seed", KEY_INT, AT(train_settings, seed), OR(0)},
    {"clone_layers", KEY_BOOL, AT(train_settings, clones_layers), OR(false)},
    {0},
};

// -- the schedule: by default constant, or optimizer noam's

static const struct choice schedules[] = {{"constant", ATTNCL_RATE_CONSTANT},
                                          {"linear", ATTNCL_RATE_LINEAR},
                                          {"cosine", ATTNCL_RATE_COSINE},
                                          {"noam", ATTNCL_RATE_INVERSE_SQRT},
                                          {0}};

static double default_warmup(const void *settings)
{
    const struct optim_settings *optimizer = &((const struct train_settings *)settings)->optimizer;
    return optimizer->is_noam ? optimizer->schedule.warmup : 2000;
}

static attncl_status check_schedule(void *settings)
{
    struct train_settings *s = settings;
    attncl_schedule_desc *schedule = &s->optimizer.schedule;
    REQUIRE(!s->optimizer.is_noam || schedule->kind == ATTNCL_RATE_INVERSE_SQRT, ATTNCL_ERR_FORMAT,
            "kind is not noam, optimizer noam has its own schedule");
    schedule->n_steps = (double)s->plan.steps;
    if (schedule->kind != ATTNCL_RATE_INVERSE_SQRT || s->optimizer.is_noam)
        return ATTNCL_OK;
    REQUIRE(s->model.width > 0, ATTNCL_ERR_FORMAT, "kind is noam, the model has no d_model");
    schedule->d_model = (double)s->model.width;
    return ATTNCL_OK;
}

static const struct key schedule_keys[] = {
    {"kind", KEY_WORD, AT(train_settings, optimizer.schedule.kind), .choices = schedules,
     OR_PRESET},
    {"warmup", KEY_NUMBER, AT(train_settings, optimizer.schedule.warmup), .min = 1,
     OR_FROM(default_warmup), WHEN("kind", "noam")},
    {"warmup", KEY_NUMBER, AT(train_settings, optimizer.schedule.warmup), OR(0),
     UNLESS("kind", "noam")},
    // The name in PyTorch's schedulers.
    {"min_lr", KEY_NUMBER, AT(train_settings, optimizer.schedule.min_rate), .only_given = true},
    {"min_learning_rate", KEY_NUMBER, AT(train_settings, optimizer.schedule.min_rate), OR_PRESET},
    CHECK(check_schedule),
    {0},
};

// All keys; read_model() has set the defaults that depend on the model.
static const struct key train_keys[] = {
    KEYS_OF(data_keys, 0),
    {"optimizer", KEY_OBJECT, AT(train_settings, optimizer), .inner = attncl__optim_keys},
    {"schedule", KEY_OBJECT, 0, .inner = schedule_keys},
    {"grad_norm_clip", KEY_NUMBER, AT(train_settings, grad_norm_clip), OR(1)},
    {"clip", KEY_WORD, AT(train_settings, clip), .choices = attncl__clip_choices, OR_WORD("torch")},
    {"grad_value_clip", KEY_NUMBER, AT(train_settings, grad_value_clip), OR(0)},
    {"dropout", KEY_NUMBER, AT(train_settings, dropout), .max = 1, OR(0)},
    {"label_smoothing", KEY_NUMBER, AT(train_settings, label_smoothing), .below = 1, OR(0)},
    {"pad", KEY_INT, AT(train_settings, pad), .min = INT32_MIN, OR_PRESET},
    {"ema", KEY_NUMBER, AT(train_settings, ema), .below = 1, OR(0)},
    {"eval_every", KEY_INT, AT(train_settings, plan.eval_every), OR(500)},
    {"checkpoint_every", KEY_INT, AT(train_settings, plan.checkpoint_every), OR(500)},
    {"keep", KEY_INT, AT(train_settings, plan.keep), .min = 1, OR(3)},
    {"patience", KEY_INT, AT(train_settings, plan.patience), OR(0)},
    {"sample", KEY_INT, AT(train_settings, plan.sample), OR(100)},
    {0},
};

// -- reading

void attncl__train_config_free(struct train_config *c)
{
    attncl__json_free(c->root);
    *c = (struct train_config){0};
}

static attncl_status read_data_part(struct train_config *c, const int64_t *steps,
                                    const uint64_t *seed)
{
    TRY(attncl__json_text(c->root, "arch", NULL, &c->arch_name));
    TRY(attncl__arch_find(c->arch_name, &c->arch));
    REQUIRE(c->arch->target != TARGET_NONE, ATTNCL_ERR_FORMAT,
            "arch %s has no loss: it cannot be trained", c->arch_name);
    REQUIRE(attncl__json_has(c->root, "model"), ATTNCL_ERR_FORMAT, "model is missing");
    TRY(attncl__json_inner(c->root, "model", &c->model));
    TRY(attncl__json_inner(c->root, "train", &c->train));
    if (steps)
        TRY(attncl__json_set_int(c->train, "steps", *steps));
    if (seed) {
        REQUIRE(*seed <= INT32_MAX, ATTNCL_ERR_ARGUMENT, "seed is %" PRIu64 ", must be at most %d",
                *seed, INT32_MAX);
        TRY(attncl__json_set_int(c->train, "seed", (int64_t)*seed));
    }
    TRY(attncl__prefix_failure(read_model(c->arch, c->model, &c->settings), "model"));
    return attncl__prefix_failure(attncl__config_read(data_keys, c->train, &c->settings), "train");
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

// -- the model

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

// A language model without its own length records the length of its training.
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
        settings ? ATTNCL_OK : FAIL(ATTNCL_ERR_NO_MEMORY, "settings of the model");
    if (status == ATTNCL_OK)
        status = attncl__arch_configure(arch, model, settings);
    if (status == ATTNCL_OK)
        status = attncl__config_fill(arch->keys, model, settings);
    if (status == ATTNCL_OK)
        *limit_ret = arch->target == TARGET_NEXT_TOKENS ? attncl__lm_limit(settings) : 0;
    attncl__free(settings);
    return attncl__prefix_failure(status, "model");
}

// -- the optimiser

// Adds defaults that depend on the kind and on the model's width.
static attncl_status complete_optimizer(struct json *optimizer, const struct json *model)
{
    const double default_rate = 1e-3, default_noam_rate = 1; // torch.optim.Adam's, labml's
    const char *kind;
    int64_t width = 0;
    bool present;
    if (!attncl__json_has(optimizer, "kind"))
        TRY(attncl__json_set(optimizer, "kind", "\"adam\""));
    TRY(attncl__prefix_failure(attncl__json_text(optimizer, "kind", NULL, &kind), "optimizer"));
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

static attncl_status read_train(struct train_config *c, int64_t pad)
{
    struct json *const train = c->train;
    struct json *optimizer, *schedule;
    TRY(attncl__json_inner(train, "optimizer", &optimizer));
    TRY(attncl__json_inner(train, "schedule", &schedule));
    TRY(complete_optimizer(optimizer, c->model));
    TRY(read_model(c->arch, c->model, &c->settings));
    c->settings.pad = pad;
    TRY(attncl__config_read(train_keys, train, &c->settings));
    TRY(attncl__config_check_keys(train_keys, train, &c->settings));
    return attncl__config_fill(train_keys, train, &c->settings);
}

// The outermost keys of the configuration.
static const struct key root_keys[] = {{.name = "arch", .type = KEY_WORD},
                                       {.name = "model", .type = KEY_INTS},
                                       {.name = "train", .type = KEY_INTS},
                                       {0}};

attncl_status attncl__train_config_end(struct train_config *c, int64_t source_vocabulary,
                                       int64_t target_vocabulary, int64_t pad)
{
    attncl_status status = ATTNCL_OK;
    TRY_DONE(attncl__config_check_keys(root_keys, c->root, NULL));
    TRY_DONE(complete_model(c->arch, c->model, c->settings.data.seq_len, source_vocabulary,
                            target_vocabulary));
    TRY_DONE(attncl__train_fill_model(c->arch, c->model, &c->settings.model.limit));
    status = attncl__prefix_failure(read_train(c, pad), "train");
done:
    return attncl__prefix_failure(status, "configuration");
}

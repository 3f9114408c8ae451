// SPDX-License-Identifier: MIT
//
// The keys of training: their names, ranges and defaults, and what the model implies of its data.

#include "train/config_keys.h"

#include <string.h>

#include "base/try.h"

// The windows that `attncl eval` will take of the model, so that both find the same held-out loss.
static attncl_status read_eval_window(const struct json *model, int64_t seq_len, int64_t *ret)
{
    int64_t max_len = INT64_MAX, n_memories = INT64_MAX - 1;
    bool present;
    *ret = seq_len;
    TRY(attncl__json_int(model, "seq_len", &present, ret));
    TRY(attncl__json_int(model, "max_len", &present, &max_len));
    TRY(attncl__json_int(model, "P", &present, &n_memories));
    if (max_len >= 1 && *ret > max_len)
        *ret = max_len;
    if (n_memories >= 1 && *ret > n_memories + 1)
        *ret = n_memories + 1;
    return ATTNCL_OK;
}

// What the model makes of the data: which targets pairs have, and the order of axes.
attncl_status attncl__train_data_form(const struct arch_class *arch, const struct json *model,
                                      struct train_settings *s)
{
    bool batch_first = false, present;
    const char *pool = "mean", *layer = "";
    s->pair_form = PAIR_SENTENCES;
    s->time_first = arch->target == TARGET_NEXT_TOKENS;
    if (arch->target != TARGET_LABELS)
        return ATTNCL_OK;
    TRY(attncl__json_bool(model, "batch_first", &present, &batch_first));
    TRY(attncl__json_text(model, "pool", &present, &pool));
    s->pair_form = strcmp(pool, "none") == 0 ? PAIR_TAGS : PAIR_CLASS;
    TRY(attncl__json_text(model, "layer", &present, &layer));
    s->time_first = !batch_first;
    s->with_lens = strcmp(layer, "transformer") == 0; // the others take no lengths
    return ATTNCL_OK;
}

static attncl_status read_lengths(struct config *config, const struct arch_class *arch,
                                  const struct json *model, struct train_settings *s)
{
    enum { PAIR_LENGTH = 10, LABELLED_LENGTH = 64, WINDOW = 256 };
    int64_t seq_len = arch->target == TARGET_SENTENCES ? PAIR_LENGTH
                      : arch->target == TARGET_LABELS  ? LABELLED_LENGTH
                                                       : WINDOW;
    bool present;
    TRY(attncl__json_int(model, "seq_len", &present, &seq_len));
    if (!present)
        TRY(attncl__json_int(model, "max_len", &present, &seq_len));
    if (!attncl__json_has(model, "seq_len") && seq_len > WINDOW)
        seq_len = WINDOW;
    TRY(attncl__config_int_or(config, "batch_size", 1, 32, &s->batch_size));
    TRY(attncl__config_int_or(config, "seq_len", 1, seq_len, &s->seq_len));
    TRY(read_eval_window(model, s->seq_len, &seq_len));
    return attncl__config_int_or(config, "valid_len", 1, seq_len, &s->valid_len);
}

static attncl_status read_fraction(struct config *config, const char *key, double otherwise,
                                   double high, bool is_open, double *ret)
{
    TRY(attncl__config_number_or(config, key, 0, otherwise, ret));
    REQUIRE(is_open ? *ret < high : *ret <= high, ATTNCL_ERR_FORMAT, "%s is %g, must be %s %g", key,
            *ret, is_open ? "less than" : "at most", high);
    return ATTNCL_OK;
}

attncl_status attncl__train_data_keys(struct config *config, const struct arch_class *arch,
                                      const struct json *model, struct train_settings *s)
{
    static const struct choice orders[] = {
        {"sequential", ORDER_SEQUENTIAL}, {"shuffled", ORDER_SHUFFLED}, {"random", ORDER_RANDOM}};
    int order;
    TRY(read_lengths(config, arch, model, s));
    TRY(read_fraction(config, "valid_fraction", 0.1, 1, true, &s->valid_fraction));
    TRY(attncl__config_choice(config, "batches", orders, N_CHOICES(orders), "shuffled", &order));
    s->order = (enum dataset_order)order;
    TRY(attncl__config_int_or(config, "min_frequency", 1, 2, &s->min_frequency));
    TRY(attncl__config_int_or(config, "steps", 1, 1000, &s->steps));
    return attncl__config_int_or(config, "seed", 0, 0, &s->seed);
}

static attncl_status read_schedule(struct config *config, const struct json *model,
                                   struct train_settings *s)
{
    static const struct choice kinds[] = {{"constant", ATTNCL_RATE_CONSTANT},
                                          {"linear", ATTNCL_RATE_LINEAR},
                                          {"cosine", ATTNCL_RATE_COSINE},
                                          {"noam", ATTNCL_RATE_INVERSE_SQRT}};
    attncl_schedule_desc *schedule = &s->optimizer.schedule;
    const bool has_own = schedule->kind == ATTNCL_RATE_INVERSE_SQRT;
    double warmup = schedule->warmup;
    int kind;
    TRY(attncl__config_choice(config, "kind", kinds, N_CHOICES(kinds),
                              has_own ? "noam" : "constant", &kind));
    REQUIRE(!has_own || kind == ATTNCL_RATE_INVERSE_SQRT, ATTNCL_ERR_FORMAT,
            "kind is not noam, optimizer noam has its own schedule");
    schedule->kind = (attncl_rate_schedule)kind;
    if (!has_own)
        warmup = kind == ATTNCL_RATE_INVERSE_SQRT ? 2000 : 0;
    TRY(attncl__config_number_or(config, "warmup", kind == ATTNCL_RATE_INVERSE_SQRT, warmup,
                                 &schedule->warmup));
    double min_lr = 0; // as PyTorch's schedulers name it; no key of its own where it is not given
    if (config->object && attncl__json_has(config->object, "min_lr"))
        TRY(attncl__config_number(config, "min_lr", 0, &min_lr));
    TRY(attncl__config_number_or(config, "min_learning_rate", 0, min_lr, &schedule->min_rate));
    schedule->n_steps = (double)s->steps;
    if (kind != ATTNCL_RATE_INVERSE_SQRT || has_own)
        return ATTNCL_OK;
    int64_t width = 0;
    TRY(attncl__json_int(model, "d_model", NULL, &width));
    schedule->d_model = (double)width;
    return ATTNCL_OK;
}

static attncl_status read_objects(struct config *config, const struct json *model,
                                  struct train_settings *s)
{
    struct config inner;
    TRY(attncl__config_object(config, "optimizer", &inner));
    attncl_status status = attncl__optim_configure(&inner, &s->optimizer);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("optimizer");
        return status;
    }
    TRY(attncl__config_object(config, "schedule", &inner));
    status = read_schedule(&inner, model, s);
    if (status != ATTNCL_OK)
        attncl__error_prefix("schedule");
    return status;
}

attncl_status attncl__train_keys(struct config *config, const struct arch_class *arch,
                                 const struct json *model, int64_t pad, struct train_settings *s)
{
    TRY(attncl__train_data_keys(config, arch, model, s));
    TRY(read_objects(config, model, s));
    TRY(attncl__config_number_or(config, "grad_norm_clip", 0, 1, &s->grad_norm_clip));
    TRY(attncl__clip_configure(config, "clip", &s->clip));
    TRY(attncl__config_number_or(config, "grad_value_clip", 0, 0, &s->grad_value_clip));
    TRY(read_fraction(config, "dropout", 0, 1, false, &s->dropout));
    TRY(read_fraction(config, "label_smoothing", 0, 1, true, &s->label_smoothing));
    TRY(attncl__config_int_or(config, "pad", INT32_MIN, pad, &s->pad));
    TRY(attncl__config_int_or(config, "accumulate", 1, 1, &s->accumulate));
    TRY(read_fraction(config, "ema", 0, 1, true, &s->ema));
    TRY(attncl__config_int_or(config, "eval_every", 0, 500, &s->eval_every));
    TRY(attncl__config_int_or(config, "checkpoint_every", 0, 500, &s->checkpoint_every));
    TRY(attncl__config_int_or(config, "keep", 1, 3, &s->keep));
    TRY(attncl__config_int_or(config, "patience", 0, 0, &s->patience));
    return attncl__config_int_or(config, "sample", 0, 100, &s->sample);
}

// SPDX-License-Identifier: MIT
//
// A language model's decoder: a prompt in one pass, steps after a prompt, a start from the model's
// file.  The result is the scores after the last token.  Checked against the definition for the
// first tokens, and against single steps for the whole text.

#include "cases/define.h"

#include <stdio.h>

#include "base/try.h"
#include "device/context.h"

static attncl_status open_prompt(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;

    TRY(lm_open(t, DIMS(s->B, s->V)));
    struct lm_state *state = t->state;
    case_array_add(t, "stepped", 0, DIMS(s->B, s->V));
    case_array_add(t, "first", 0, DIMS(N_CHECKED_STEPS, s->B, s->V));
    TRY(t->status);
    const double start = clock_now();
    TRY(attncl_decoder_create(state->model, s->B, NULL, &state->decoder));
    t->compile_s = clock_now() - start;
    return ATTNCL_OK;
}

// Prefills the first n tokens.
static attncl_status take_prompt(struct case_data *t, int64_t n, float *logits)
{
    const struct lm_state *state = t->state;

    TRY(attncl_decoder_reset(state->decoder));
    return attncl_decoder_prefill(state->decoder, n, case_array_find(t, "tokens")->data, logits);
}

static attncl_status run_prefill(struct case_data *t)
{
    return take_prompt(t, t->c->sizes.T, case_array_find(t, "y")->data);
}

// Takes all tokens one by one, for the check.
static attncl_status read_steps(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const struct lm_state *state = t->state;
    const int32_t *tokens = case_array_find(t, "tokens")->data;
    float *first = case_array_find(t, "first")->data, *last = case_array_find(t, "stepped")->data;

    TRY(attncl_decoder_reset(state->decoder));
    for (int64_t p = 0; p < s->T; ++p) {
        float *logits = p < N_CHECKED_STEPS ? first + p * s->B * s->V : p < s->T - 1 ? NULL : last;
        TRY(attncl_decoder_step(state->decoder, tokens + p * s->B, logits));
    }
    return ATTNCL_OK;
}

// The steps' first scores must be the definition's, and the result must be the last step's scores.
static void check_prompt(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct part some = {0, N_CHECKED_STEPS, 1};
    // CPUs round what such weights are multiplied by, four times in a layer and once after them, by
    // up to 2^-16 of the largest: 256 u.
    const bool rounds = s->weights == ATTNCL_Q8 || s->weights == ATTNCL_Q4;
    const double sum_length = (double)(s->layers * (3 * s->C + s->F + s->T) + s->C +
                                       (rounds ? 256 * (4 * s->layers + 1) : 0));

    check_compare(c, sum_length, PART(t, "first", ALL, LAST, ALL),
                  lm_define(t, PART(t, "tokens", some, LAST)));
    check_compare(c, sum_length, case_whole(t, "y"), case_whole(t, "stepped"));
}

static double all_tokens(const struct sizes *s)
{
    return (double)(s->T * s->B);
}

FAMILY(lm_prefill, .suite = SUITE_MODEL, .open = open_prompt, .close = lm_close, .run = run_prefill,
       .read = read_steps, .check = check_prompt, .tokens = all_tokens)

static attncl_status open_steps(struct case_data *t)
{
    TRY(open_prompt(t));
    t->repeats = (size_t)(t->c->sizes.T - t->c->sizes.S);
    return ATTNCL_OK;
}

static attncl_status prepare_steps(struct case_data *t)
{
    TRY(take_prompt(t, t->c->sizes.S, NULL));
    return attncl_context_finish(t->ctx);
}

// Each step's scores are read back, as sampling needs them.
static attncl_status run_steps(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const struct lm_state *state = t->state;
    const int32_t *tokens = case_array_find(t, "tokens")->data;
    float *logits = case_array_find(t, "y")->data;

    for (int64_t p = s->S; p < s->T; ++p)
        TRY(attncl_decoder_step(state->decoder, tokens + p * s->B, logits));
    return ATTNCL_OK;
}

static double tokens_of_step(const struct sizes *s)
{
    return (double)s->B;
}

FAMILY(lm_step, .suite = SUITE_MODEL, .open = open_steps, .close = lm_close,
       .prepare = prepare_steps, .run = run_steps, .read = read_steps, .check = check_prompt,
       .tokens = tokens_of_step)

static attncl_status open_start(struct case_data *t)
{
    TRY(open_prompt(t));
    return lm_write(t, ((struct lm_state *)t->state)->path);
}

// Closes the previous run's model.
static attncl_status prepare_start(struct case_data *t)
{
    lm_close_model(t->state);
    return ATTNCL_OK;
}

// From the file to the scores after a prompt, in a new context: programs come from the cache.
static attncl_status run_start(struct case_data *t)
{
    struct lm_state *state = t->state;
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_device_info device = ATTNCL_DEVICE_INFO_INIT;
    char address[32];

    TRY(attncl_context_device(t->ctx, &device));
    snprintf(address, sizeof address, "%d:%d", device.platform, device.device);
    options.device = address;
    options.cache_dir = t->ctx->cache_directory;
    TRY(attncl_context_create(&options, &state->ctx));
    TRY(attncl_model_open(state->ctx, state->path, NULL, &state->model));
    TRY(attncl_decoder_create(state->model, t->c->sizes.B, NULL, &state->decoder));
    return run_prefill(t);
}

FAMILY(lm_start, .suite = SUITE_MODEL, .open = open_start, .close = lm_close,
       .prepare = prepare_start, .run = run_start, .read = read_steps, .check = check_prompt)

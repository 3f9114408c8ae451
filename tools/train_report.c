// SPDX-License-Identifier: MIT
//
// The output of attncl train: progress on a terminal, a line after each evaluation, samples, the end.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler.h"
#include "train.h"

enum { TIME_BYTES = 32, LINE_BYTES = 160 };
static const double SAMPLE_TEMPERATURE = 0.8;
static const double BITS_PER_NAT = 1.44269504088896340736;

// "1:02:03", "2:03".
static const char *time_text(double seconds, char ret[TIME_BYTES])
{
    const long long s = seconds > 0 && seconds < 1e12 ? (long long)(seconds + 0.5) : 0;

    if (s >= 3600)
        snprintf(ret, TIME_BYTES, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(ret, TIME_BYTES, "%lld:%02lld", s / 60, s % 60);
    return ret;
}

static double seconds_left(const struct train_progress *p)
{
    const double done = (double)(p->last.step - p->first_step);

    return done > 0 ? (seconds_now() - p->begin) * (double)(p->n_steps - p->last.step) / done : 0;
}

void train_show_step(const struct train_progress *p)
{
    char text[LINE_BYTES], left[TIME_BYTES];

    snprintf(text, sizeof text, "step %lld/%lld  %.4f nats %.3f bits/%s  %.0f tokens/s  %s left",
             (long long)p->last.step, (long long)p->n_steps, p->last.loss,
             p->last.loss * BITS_PER_NAT, p->unit, p->tokens_per_s,
             time_text(seconds_left(p), left));
    progress_text(text);
}

void train_print_evaluation(const struct train_progress *p)
{
    char left[TIME_BYTES], accuracy[32] = "";

    if (isfinite(p->best.accuracy))
        snprintf(accuracy, sizeof accuracy, ", accuracy %.4f", p->best.accuracy);
    progress_clear();
    printf(
        "step %lld/%lld: loss %.4f nats, held out %.6f nats (%.4f bits per %s%s)%s; %.0f tokens/s, "
        "%s left\n",
        (long long)p->last.step, (long long)p->n_steps, p->last.loss, p->valid_loss,
        p->valid_loss * BITS_PER_NAT, p->unit, p->best.best_step == p->last.step ? ", best" : "",
        accuracy, p->tokens_per_s, time_text(seconds_left(p), left));
    fflush(stdout);
}

// -- the end

static int print_json(const struct train_progress *p, bool early, const char *model_path,
                      attncl_context *context)
{
    const bool evaluated = isfinite(p->best.best_loss);

    return json_print(
        json_pack("{sI so so so so sb so ss so}", "steps", (json_int_t)p->best.step, "loss",
                  json_number(p->last.step > 0 ? p->last.loss : NAN), "valid_loss",
                  json_number(p->valid_loss), "best_loss", json_number(p->best.best_loss),
                  "best_step", evaluated ? json_integer(p->best.best_step) : json_null(),
                  "stopped_early", early, "seconds", json_number(seconds_now() - p->begin), "model",
                  model_path, "device", json_device(context)));
}

int train_print_end(const struct train_progress *p, const struct train_request *r, bool early,
                    const char *model_path, attncl_context *context)
{
    char taken[TIME_BYTES];

    progress_clear();
    if (r->json)
        return print_json(p, early, model_path, context);
    printf("%lld steps%s in %s", (long long)p->best.step,
           early ? ", stopped early: no better evaluation" : "",
           time_text(seconds_now() - p->begin, taken));
    if (isfinite(p->best.best_loss))
        printf("; lowest held-out loss %.6f nats (%.4f bits per %s) at step %lld",
               p->best.best_loss, p->best.best_loss * BITS_PER_NAT, p->unit,
               (long long)p->best.best_step);
    printf("; %s\n", model_path);
    return TOOL_OK;
}

// -- a sample

static int print_tokens(struct session *s, struct sampler *sampler, int64_t n)
{
    const size_t end = s->n_tokens + (size_t)n;
    int status = TOOL_OK;

    tokens_print(s, 0, false, stdout);
    for (size_t before; (before = s->n_tokens) < end && status == TOOL_OK && !sampler->ended;) {
        status = sampler_next(sampler, s, (int64_t)(end - before));
        tokens_print(s, before, false, stdout);
    }
    tokens_print_end(s, stdout);
    printf("\n\n");
    fflush(stdout);
    return status;
}

// Without a prompt the text continues a line end, or the first character if the vocabulary has no line end.
static int read_prompt(struct session *s, const char *prompt)
{
    const struct vocabulary *v = &s->vocabulary;
    const char *text = prompt ? prompt : "\n";
    char only[8] = "";

    if (!prompt && !v->tokenizer && !strchr(v->text, '\n'))
        text = memcpy(only, v->text, v->start[1]);
    return vocabulary_encode(s, "--prompt", text, strlen(text), 0);
}

int train_check_prompt(attncl_model *model, const char *prompt)
{
    struct session s = {.model = model};
    int status = vocabulary_open(&s);

    if (status == TOOL_OK)
        status = read_prompt(&s, prompt);
    if (status == TOOL_OK && s.n_tokens == 0)
        status = tool_error("--prompt is empty");
    free(s.tokens);
    vocabulary_close(&s.vocabulary);
    return status;
}

int train_print_sample(const struct train_progress *p, attncl_context *context,
                       const char *model_path, const char *prompt, int64_t n)
{
    struct session s = {.context = context};
    int status = TOOL_OK;

    TOOL_TRY(tool_status(attncl_model_open(context, model_path, NULL, &s.model)));
    status = vocabulary_open(&s);
    if (status == TOOL_OK)
        status = read_prompt(&s, prompt);
    if (status == TOOL_OK) {
        struct sampler sampler = {.model = s.model,
                                  .options = ATTNCL_DECODER_OPTIONS_INIT,
                                  .sampling = ATTNCL_SAMPLING_INIT};
        sampler.options.window = attncl_model_decoder_limit(s.model);
        sampler.sampling.temperature = SAMPLE_TEMPERATURE;
        sampler.sampling.seed = (uint64_t)p->last.step;
        progress_clear();
        status = print_tokens(&s, &sampler, n);
        sampler_close(&sampler);
    }
    free(s.tokens);
    vocabulary_close(&s.vocabulary);
    attncl_model_destroy(s.model);
    return status;
}

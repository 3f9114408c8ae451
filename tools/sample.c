// SPDX-License-Identifier: MIT
//
// attncl sample: writes text with a language model, token by token.

#define _POSIX_C_SOURCE 200809L // open_memstream
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler.h"

static const char usage[] =
    "usage: attncl sample MODEL --prompt S [options]\n"
    "\n"
    "Prints the prompt and its continuation by a language model, as it is generated: N\n"
    "tokens, or up to the model's limit, unless a token of the model's attncl.eos ends the\n"
    "text before.  On a terminal, the speeds of prompt and steps follow.\n";

struct request {
    struct session_options session;
    const char *prompt, *stop; // stop null: none
    int64_t length;            // -1: up to the limit
    int64_t top_k, seed;
    double temperature;
    attncl_dtype state_dtype;
    bool crop, ignores_eos, json;
};

struct times {       // seconds
    double start_up; // until the prompt begins, with everything compiled
    double prompt;   // until the first token is drawn
    double steps;    // for n_steps tokens more
    int64_t n_steps;
};

// The text of the session's tokens, which grows.
struct continuation {
    const struct request *request;
    struct session *session;
    size_t n_prompt;
    bool is_timed;
    struct times times;
    FILE *memory; // writes to `text`
    char *text;   // the text, or the token numbers
    size_t bytes; // in `text`
    size_t known; // bytes before the stop text, or before a possible beginning of it
    size_t shown; // bytes printed
    bool ended;   // the stop text was found
    bool failed;  // out of memory
};

// The position of the stop text, or of its beginning at the end of the text.
static size_t find_stop(const struct continuation *t)
{
    const char *stop = t->request->stop;
    const size_t n = stop ? strlen(stop) : 0;
    size_t at = n > 0 ? t->known : t->bytes;

    while (at < t->bytes && memcmp(t->text + at, stop, t->bytes - at < n ? t->bytes - at : n) != 0)
        at++;
    return at;
}

static void flush_memory(struct continuation *t)
{
    t->failed = t->failed || fflush(t->memory) != 0 || ferror(t->memory);
}

// Adds the text of the tokens from number `from` on, up to the one that completes the stop text.
static void add_tokens(struct continuation *t, size_t from)
{
    struct session *s = t->session;
    const char *stop = t->request->stop;
    const size_t end = s->n_tokens;

    for (; from < end && !t->ended; from = s->n_tokens) {
        s->n_tokens = stop ? from + 1 : end;
        tokens_print(s, from, t->request->session.text_is_numbers, t->memory);
        flush_memory(t);
        t->known = find_stop(t);
        t->ended = stop && t->bytes - t->known >= strlen(stop);
    }
}

static int print_new(struct continuation *t)
{
    progress_clear();
    if (t->failed)
        return tool_error("out of memory");
    if (t->request->json)
        return TOOL_OK;
    fwrite(t->text + t->shown, 1, t->known - t->shown, stdout);
    t->shown = t->known;
    return output_flush();
}

// Adds the time of a call that began at `begin` and drew n tokens; compiling, if it did, counts as start-up.
static void add_time(struct continuation *t, double begin, int64_t n)
{
    const double compiled = fmax(begin, t->session->compiled), seconds = seconds_now() - compiled;
    struct times *times = &t->times;

    if (times->prompt == 0) {
        times->start_up = compiled - t->session->opened;
        times->prompt = seconds;
    } else {
        times->start_up += compiled - begin; // a text beyond the window has a new graph
        times->steps += seconds;
        times->n_steps += n;
    }
}

static int generate(struct continuation *t, struct sampler *sampler, int64_t length)
{
    struct session *s = t->session;

    if (length == 0)
        return print_new(t);
    if (t->is_timed && sampler_warm_up(sampler, s->tokens, s->n_tokens) != TOOL_OK)
        return TOOL_FAILED;
    for (size_t before = s->n_tokens; length > 0 && !sampler->ended && !t->ended;
         before = s->n_tokens) {
        const double begin = seconds_now();
        TOOL_TRY(sampler_next(sampler, s, length));
        add_time(t, begin, (int64_t)(s->n_tokens - before));
        add_tokens(t, before);
        TOOL_TRY(print_new(t));
        length -= (int64_t)(s->n_tokens - before);
    }
    return TOOL_OK;
}

static int report_line(const struct continuation *t)
{
    const struct times *times = &t->times;
    attncl_device_info device = ATTNCL_DEVICE_INFO_INIT;

    TOOL_TRY(tool_status(attncl_context_device(t->session->context, &device)));
    printf("prompt: %zu tokens in %.1f ms, %.1f tokens/s; ", t->n_prompt, 1e3 * times->prompt,
           (double)t->n_prompt / times->prompt);
    if (times->n_steps > 0)
        printf("steps: %lld tokens in %.1f ms, %.1f tokens/s; ", (long long)times->n_steps,
               1e3 * times->steps, (double)times->n_steps / times->steps);
    printf("start-up: %.2f s; %s\n", times->start_up, device.name);
    return TOOL_OK;
}

static json_t *json_times(const struct continuation *t)
{
    const struct times *times = &t->times;
    const double n_prompt = (double)t->n_prompt, n_steps = (double)times->n_steps;

    if (times->prompt == 0)
        return json_object(); // nothing was drawn
    return json_pack("{so so so sI so so}", "start_up_s", json_number(times->start_up), "prompt_s",
                     json_number(times->prompt), "prompt_tokens_per_s",
                     json_number(n_prompt / times->prompt), "step_tokens",
                     (json_int_t)times->n_steps, "step_s", json_number(times->steps),
                     "step_tokens_per_s", json_number(n_steps / times->steps));
}

static json_t *json_characters(const struct continuation *t)
{
    json_t *text = t->request->session.text_is_numbers ? NULL : json_stringn(t->text, t->known);

    return text ? text : json_null();
}

static int report(struct continuation *t)
{
    const struct session *s = t->session;

    if (!t->ended) {
        tokens_print_end(s, t->memory);
        flush_memory(t);
        t->known = t->bytes;
    }
    TOOL_TRY(print_new(t));
    if (!t->request->json) {
        printf("\n");
        return t->is_timed && t->times.prompt > 0 ? report_line(t) : TOOL_OK;
    }
    json_t *tokens = json_array(), *times = json_times(t);
    for (size_t i = 0; i < s->n_tokens; i++)
        json_array_append_new(tokens, json_integer(s->tokens[i]));
    json_t *told =
        json_pack("{so so sI so}", "text", json_characters(t), "tokens", tokens, "prompt_tokens",
                  (json_int_t)t->n_prompt, "device", json_device(s->context));
    json_object_update(told, times);
    json_decref(times);
    return json_print(told);
}

static int write_text(struct continuation *t, struct sampler *sampler, int64_t length)
{
    t->memory = open_memstream(&t->text, &t->bytes);
    if (!t->memory)
        return tool_error("out of memory");
    tokens_print(t->session, 0, t->request->session.text_is_numbers, t->memory);
    flush_memory(t);
    t->known = t->bytes; // the prompt may hold the stop text
    int status = generate(t, sampler, length);
    if (status == TOOL_OK)
        status = report(t);
    fclose(t->memory);
    free(t->text);
    return status;
}

// The number of tokens to generate after a prompt of n; -1, reported, if the request is wrong.  The last token is
// written, not read, so it needs no position.
static int64_t choose_length(const struct request *r, int64_t n, int64_t limit)
{
    const int64_t needed = n + (r->length > 0 ? r->length - 1 : 0);

    if (r->length < 0 && (r->crop || limit == 0)) {
        if (r->crop && !r->json)
            return INT64_MAX; // until the process is interrupted
        tool_error(r->json ? "--json needs --length: the text would not end"
                           : "this model has no limit: --length is missing");
        return -1;
    }
    if (limit == 0 || r->crop || needed <= limit)
        return r->length >= 0 ? r->length : limit - n + 1;
    tool_error("a prompt of %lld and %lld more tokens need %lld positions, the model has %lld; "
               "--crop continues beyond them",
               (long long)n, (long long)(r->length > 0 ? r->length : 0), (long long)needed,
               (long long)limit);
    return -1;
}

// Published code crops to seq_len, though models of transformer layers can read more.
static int64_t choose_window(const struct request *r, const attncl_model *model)
{
    const int64_t limit = attncl_model_decoder_limit(model);
    const int64_t cropped = r->crop ? attncl_model_config_int(model, "seq_len", limit) : limit;

    return cropped >= 1 && (limit == 0 || cropped < limit) ? cropped : limit;
}

// Finds mistakes in the request before compiling anything.
static int run(struct session *session, const void *request)
{
    const struct request *r = request;
    const attncl_model *model = session->model;
    const int64_t window = choose_window(r, model);
    struct sampler sampler = {.model = session->model,
                              .options = ATTNCL_DECODER_OPTIONS_INIT,
                              .sampling = ATTNCL_SAMPLING_INIT};
    // A pipe gets only the text, without a warm-up before it.
    struct continuation text = {
        .request = r, .session = session, .is_timed = r->json || isatty(STDOUT_FILENO)};

    sampler.options.window = window;
    sampler.options.state_dtype = r->state_dtype;
    sampler.sampling.temperature = r->temperature;
    sampler.sampling.top_k = r->top_k;
    sampler.sampling.seed = (uint64_t)r->seed;
    sampler.ignores_end = r->ignores_eos;
    text.n_prompt = session->n_tokens;
    const int64_t length = choose_length(r, (int64_t)text.n_prompt, window);
    if (length < 0)
        return TOOL_FAILED;
    int status = write_text(&text, &sampler, length);
    sampler_close(&sampler);
    return status;
}

static bool take_state_dtype(const char *text, void *dtype_ret)
{
    return take_state_type("--state-dtype", text, dtype_ret);
}

int command_sample(int argc, char **argv)
{
    struct request r = {.length = -1, .temperature = 1, .state_dtype = ATTNCL_F32};
    const struct option_row rows[] = {
        {"prompt", 'p', OPTION_TEXT, &r.prompt, "S",
         .help = "the beginning of the text, at least one character"},
        {"tokens", 'i', OPTION_SWITCH, &r.session.text_is_numbers,
         .help = "the prompt holds token numbers, \"5 12 7\"; numbers are printed, too"},
        {"length", 'n', OPTION_INTEGER, &r.length, "N",
         .help = "number of tokens to generate (default: up to the model's limit)",
         .high = INT32_MAX},
        {"crop", 0, OPTION_SWITCH, &r.crop,
         .help = "continue beyond seq_len, reading the last seq_len tokens;\n"
                 "without --length, do not stop"},
        {"temperature", 't', OPTION_NUMBER, &r.temperature, "X",
         .help = "divide the scores by X (default 1); 0: always take the likeliest token",
         .high = 1e6},
        {"top-k", 'k', OPTION_INTEGER, &r.top_k, "K",
         .help = "draw from the K likeliest tokens (default 0: from all)", .high = INT32_MAX},
        {"seed", 's', OPTION_INTEGER, &r.seed, "S",
         .help = "seed of the random numbers (default 0)", .high = INT64_MAX},
        {"ignore-eos", 0, OPTION_SWITCH, &r.ignores_eos,
         .help = "go on after the tokens that end a text, attncl.eos of the model"},
        {"stop", 0, OPTION_TEXT, &r.stop, "TEXT",
         .help = "end in front of TEXT where the continuation holds it"},
        {"state-dtype", 0, OPTION_CALL, &r.state_dtype, "TYPE",
         .help =
             "type of the KV cache and of gMLP's rows: f16, bf16 or f32 (default f32);\nq8: of the "
             "KV cache alone",
         .take = take_state_dtype},
        JSON_OPTION(&r.json, "print the text, its tokens and the times as JSON, at the end"),
        DEVICE_OPTION(&r.session.device),
        PRECISION_OPTION(&r.session.precision),
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {.name = NULL},
    };
    const int status = tool_options("sample", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (!r.prompt || !*r.prompt) {
        tool_error("sample: --prompt is missing or empty; see attncl sample --help");
        return TOOL_USAGE;
    }
    if (r.stop && (!*r.stop || r.session.text_is_numbers)) {
        tool_error("sample: --stop %s; see attncl sample --help",
                   *r.stop ? "is a text, with --tokens there are numbers" : "is empty");
        return TOOL_USAGE;
    }
    r.session.text = r.prompt;
    r.session.text_name = "--prompt";
    r.session.text_bytes = strlen(r.prompt);
    return session_use(&r.session, run, &r);
}

// SPDX-License-Identifier: MIT
//
// attncl eval: how well a language model predicts a text.
//
//   nll = mean over tokens 1 .. n-1 of -log p(token i | the tokens before it in its window)
//
// The text is cut into adjacent windows of T tokens: window i reads tokens iT .. iT+T-1 and predicts
// iT+1 .. iT+T, the last window fewer, so that every token but the first is predicted once.  B windows run
// at once, as a batch.
//
// Under mpirun the ranks take batches in turn.  Losses are added in the order of the text, so that any number of
// ranks prints the same result.
//
// Speeds exclude compiling: the first batch of a new graph is not timed, except the very first batch, which runs
// once untimed before.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { DEFAULT_BATCH = 32, DEFAULT_WINDOW = 256, MAX_BATCH = 1 << 16, MAX_SCORES = 1 << 26 };

static const char usage[] =
    "usage: attncl eval MODEL TEXT [options]\n"
    "\n"
    "Measures how well a language model predicts a UTF-8 text: the mean negative log likelihood\n"
    "per token (nats), and the perplexity.  The model file needs attncl.tokenizer or attncl.vocab\n"
    "(tokens are characters then) in its metadata.  The text is read in windows of the model's\n"
    "seq_len (default 256), at most max_len and P + 1.  Every token but the first is predicted\n"
    "once.  Under mpirun, the ranks share the windows.\n";

struct request {
    struct session_options session;
    const char *text;
    int64_t bytes[2]; // begin and end in the file; end -1: the file's end
    int64_t batch;
    attncl_ranks *ranks;
    bool json;
};

// Windows of one length, which run as one graph.
struct batch {
    attncl_graph *graph;
    int64_t length, n_windows; // T, B
    int32_t *tokens, *targets; // [T, B]
};

static void close_batch(struct batch *b)
{
    attncl_graph_destroy(b->graph);
    free(b->tokens);
    free(b->targets);
    memset(b, 0, sizeof *b);
}

static int open_batch(attncl_model *model, int64_t length, int64_t n_windows, struct batch *b)
{
    attncl_array inputs[] = {
        {.name = "tokens", .dtype = ATTNCL_I32, .rank = 2, .dim = {length, n_windows}},
        {.name = "targets", .dtype = ATTNCL_I32, .rank = 2, .dim = {length, n_windows}}};
    const size_t count = (size_t)(length * n_windows);

    close_batch(b);
    b->length = length;
    b->n_windows = n_windows;
    b->tokens = calloc(count, sizeof *b->tokens);
    b->targets = calloc(count, sizeof *b->targets);
    if (!b->tokens || !b->targets)
        return tool_error("out of memory");
    inputs[0].data = b->tokens;
    inputs[1].data = b->targets;
    inputs[0].bytes = inputs[1].bytes = count * sizeof *b->tokens;
    return tool_status(attncl_model_graph(model, inputs, 2, &b->graph));
}

// Runs adjacent windows of `text`: column w is the text from w * length on.  *loss_ret: the sum of all losses.
static int run_batch(struct batch *b, const int32_t *text, double *loss_ret)
{
    const int64_t T = b->length, B = b->n_windows;
    const size_t bytes = (size_t)(T * B) * sizeof *b->tokens;
    float mean = 0;

    for (int64_t t = 0; t < T; t++) {
        for (int64_t w = 0; w < B; w++) {
            b->tokens[t * B + w] = text[w * T + t];
            b->targets[t * B + w] = text[w * T + t + 1];
        }
    }
    TOOL_TRY(tool_status(attncl_graph_write(b->graph, "tokens", b->tokens, bytes)));
    TOOL_TRY(tool_status(attncl_graph_write(b->graph, "targets", b->targets, bytes)));
    TOOL_TRY(tool_status(attncl_graph_run(b->graph)));
    TOOL_TRY(tool_status(attncl_graph_read(b->graph, "loss", &mean, sizeof mean)));
    *loss_ret = (double)mean * (double)(T * B);
    return TOOL_OK;
}

// How the predictions are cut into batches: batches of whole windows, then a smaller one, then the last, shorter
// window alone.
struct cut {
    int64_t total, window, batch; // predictions, predictions of a window, windows of a batch
};

static int64_t window_length_at(const struct cut *c, int64_t done)
{
    return c->total - done < c->window ? c->total - done : c->window;
}

static int64_t n_windows_at(const struct cut *c, int64_t done)
{
    const int64_t left = (c->total - done) / window_length_at(c, done);

    return left < c->batch ? left : c->batch;
}

static int64_t count_batches(const struct cut *c)
{
    const int64_t n_windows = c->total / c->window;
    return n_windows / c->batch + (n_windows % c->batch > 0) + (c->total % c->window > 0);
}

struct results {
    double *loss;    // [count_batches()], sums of losses
    double *seconds; // [count_batches()]; 0: not timed
};

// Runs this rank's batches.  *start_ret: when the first timed batch began.
static int run_batches(attncl_model *model, const struct cut *c, attncl_ranks *ranks,
                       const int32_t *text, const struct results *results, double *start_ret)
{
    struct batch b = {0};
    int status = TOOL_OK;

    for (int64_t done = 0, i = 0; done < c->total && status == TOOL_OK; i++) {
        const int64_t length = window_length_at(c, done), n_windows = n_windows_at(c, done);
        const bool is_first = !b.graph, is_new = length != b.length || n_windows != b.n_windows;
        if (attncl_ranks_rank(ranks) == 0)
            progress_bar("eval", "tokens", done, c->total);
        if (i % attncl_ranks_size(ranks) == attncl_ranks_rank(ranks)) {
            if (is_new)
                status = open_batch(model, length, n_windows, &b);
            if (status == TOOL_OK && is_first)
                status = run_batch(&b, text + done, &results->loss[i]);
            const double begin = seconds_now();
            *start_ret = is_first ? begin : *start_ret;
            if (status == TOOL_OK)
                status = run_batch(&b, text + done, &results->loss[i]);
            if (is_first || !is_new)
                results->seconds[i] = seconds_now() - begin;
        }
        done += length * n_windows;
    }
    progress_clear();
    close_batch(&b);
    return status;
}

struct outcome {
    double loss, start;
    double tokens_per_s; // the sum of all ranks' speeds
    double step_s;       // the longest time of a rank
    int64_t step_tokens; // timed tokens of all ranks
};

static void add_results(const struct cut *c, int n_ranks, const struct results *results,
                        struct outcome *ret)
{
    const int64_t n = count_batches(c);

    for (int rank = 0; rank < n_ranks; rank++) {
        double seconds = 0;
        int64_t tokens = 0;
        for (int64_t done = 0, i = 0; i < n; i++) {
            const int64_t count = window_length_at(c, done) * n_windows_at(c, done);
            if (i % n_ranks == rank && results->seconds[i] > 0) {
                seconds += results->seconds[i];
                tokens += count;
            }
            done += count;
        }
        ret->tokens_per_s += seconds > 0 ? (double)tokens / seconds : 0;
        ret->step_s = fmax(ret->step_s, seconds);
        ret->step_tokens += tokens;
    }
    for (int64_t i = 0; i < n; i++)
        ret->loss += results->loss[i];
}

static int evaluate(attncl_model *model, const struct cut *c, attncl_ranks *ranks,
                    const int32_t *text, struct outcome *ret)
{
    const size_t n = (size_t)count_batches(c);
    double *all = calloc(2 * n, sizeof *all);
    const struct results results = {all, all ? all + n : NULL};

    if (!all)
        return tool_error("out of memory");
    int status = run_batches(model, c, ranks, text, &results, &ret->start);
    if (status == TOOL_OK && attncl_ranks_sum_double(ranks, all, 2 * n) != ATTNCL_OK)
        status = tool_failed();
    if (status == TOOL_OK)
        add_results(c, attncl_ranks_size(ranks), &results, ret);
    free(all);
    return status;
}

static int report(const struct request *r, const struct session *session,
                  const struct outcome *found, int64_t n)
{
    const char *unit = token_unit(session, r->session.text_is_numbers);
    const double nll = found->loss / (double)n, perplexity = exp(nll);
    const double start_up = found->start - session->opened;
    attncl_device_info device = ATTNCL_DEVICE_INFO_INIT;

    if (r->json)
        return json_print(
            json_pack("{so so sI so sI so so so}", "nll", json_number(nll), "perplexity",
                      json_number(perplexity), unit, (json_int_t)n, "start_up_s",
                      json_number(start_up), "step_tokens", (json_int_t)found->step_tokens,
                      "step_s", json_number(found->step_s), "step_tokens_per_s",
                      json_number(found->tokens_per_s), "device", json_device(session->context)));
    TOOL_TRY(tool_status(attncl_context_device(session->context, &device)));
    printf("nll %.6f  perplexity %.4f  %s %lld\n", nll, perplexity, unit, (long long)n);
    printf("%.1f %s per second after %.2f s of start-up on %s\n", found->tokens_per_s, unit,
           start_up, device.name);
    return TOOL_OK;
}

// The smaller of window and bound; a bound below 1 means none.
static int64_t apply_limit(int64_t window, int64_t bound)
{
    return bound >= 1 && bound < window ? bound : window;
}

static int64_t choose_window(const attncl_model *model)
{
    const int64_t given = attncl_model_config_int(model, "seq_len", DEFAULT_WINDOW);
    int64_t window = given >= 1 ? given : DEFAULT_WINDOW; // layers without seq_len take any
    window = apply_limit(window, attncl_model_config_int(model, "max_len", window));
    // A feedback transformer reads a token and at most P memories.
    return apply_limit(window - 1, attncl_model_config_int(model, "P", window)) + 1;
}

// A run keeps scores [T, B, n_vocab]: 4 GB for 32 windows and 128,000 tokens.
static int64_t choose_batch(const attncl_model *model, int64_t window)
{
    const int64_t n_vocab = attncl_model_config_int(model, "n_vocab", 1);
    const int64_t batch = MAX_SCORES / n_vocab / window;

    return batch < 1 ? 1 : batch < DEFAULT_BATCH ? batch : DEFAULT_BATCH;
}

static int run(struct session *session, const void *request)
{
    const struct request *r = request;
    const int64_t window = choose_window(session->model);
    const struct cut cut = {.total = (int64_t)session->n_tokens - 1,
                            .window = window,
                            .batch = r->batch ? r->batch : choose_batch(session->model, window)};
    struct outcome found = {0};

    if (session->n_tokens < 2)
        return tool_error("%s: %zu %s in the range, at least 2 are needed", r->text,
                          session->n_tokens, token_unit(session, r->session.text_is_numbers));
    TOOL_TRY(evaluate(session->model, &cut, r->ranks, session->tokens, &found));
    return attncl_ranks_rank(r->ranks) == 0 ? report(r, session, &found, cut.total) : TOOL_OK;
}

int command_eval(int argc, char **argv)
{
    struct request r = {.bytes = {0, -1}};
    const struct option_row rows[] = {
        {"bytes", 0, OPTION_RANGE, r.bytes, "A:B",
         .help = "read only bytes A to B-1 of TEXT; A or B may be omitted", .high = INT64_MAX},
        {"batch", 0, OPTION_INTEGER, &r.batch, "N",
         .help = "windows in a batch (default 32, fewer for large vocabularies)", .low = 1,
         .high = MAX_BATCH},
        {"tokens", 'i', OPTION_SWITCH, &r.session.text_is_numbers,
         .help = "TEXT holds token numbers: \"tokens\" [n] of a safetensors file, or "
                 "numbers\nseparated by spaces or line ends"},
        JSON_OPTION(&r.json, "print the result and the times as JSON"),
        DEVICES_OPTION(&r.session.device),
        PRECISION_OPTION(&r.session.precision),
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {"TEXT", .kind = OPTION_OPERAND, .value = &r.text},
        {.name = NULL},
    };
    int status = tool_options("eval", usage, rows, argc, argv);
    enum { HEADER = 8 }; // offset of the JSON header in a safetensors file
    char *text;

    if (status != OPTIONS_OK)
        return status;
    status = ranks_begin(&r.ranks);
    if (status != TOOL_OK)
        return status;
    r.session.device = ranks_device(r.session.device);
    text = read_range(r.text, r.bytes, &r.session.text_bytes);
    r.session.text = text;
    r.session.text_name = r.text;
    r.session.text_offset = r.bytes[0];
    const bool is_whole = r.bytes[0] == 0 && r.bytes[1] < 0;
    if (r.session.text_is_numbers && text && is_whole && r.session.text_bytes > HEADER &&
        text[HEADER] == '{')
        r.session.input = r.text;
    status = text ? session_use(&r.session, run, &r) : TOOL_FAILED;
    free(text);
    return status;
}

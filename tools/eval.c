// SPDX-License-Identifier: MIT
//
// attncl eval: how well a language model predicts a text.
//
//   nll = mean over characters 1 .. n-1 of -log p(character i | the characters of its window before
//   it)
//
// The text is cut into windows of T characters side by side: window i reads characters iT .. iT+T-1
// and predicts iT+1 .. iT+T, the last one less, so that every character but the first is predicted
// once.  B windows run at once.
//
// Under mpirun the ranks take these batches in turn.  Their losses are added in the order of the text,
// so that any number of ranks prints the same figure.

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { DEFAULT_BATCH = 32, DEFAULT_WINDOW = 256, MAX_BATCH = 1 << 16 };

static const char usage[] =
    "usage: attncl eval MODEL TEXT [options]\n"
    "\n"
    "Mean negative log likelihood per character (nats) and perplexity of the UTF-8 file\n"
    "TEXT under a language model with attncl.vocab in its metadata.  The text is read in\n"
    "windows of the model's seq_len (256 when it has none), at most its max_len and P + 1;\n"
    "every character but the first is predicted once.  Under mpirun the ranks share them.\n";

struct request {
    struct session_options session;
    const char *text;
    int64_t bytes[2]; // begin and end in the file; end -1: the file's
    int64_t batch;
    attncl_ranks *ranks;
    bool json;
};

// The file's bytes of the range, the caller's to free; NULL, with a line on stderr, on failure.
static char *read_range(const struct request *r, size_t *bytes_ret)
{
    FILE *file;
    char *data = NULL;
    long long size = -1;

    errno = 0;
    file = fopen(r->text, "rb");
    const bool reads = file && (fgetc(file) != EOF || !ferror(file)); // a directory opens only
    if (reads && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size < 0) {
        tool_error("%s: %s", r->text, errno ? strerror(errno) : "cannot be read");
    } else if (r->bytes[0] > size || r->bytes[1] > size) {
        tool_error("%s: the range ends at byte %lld, the file at %lld", r->text,
                   (long long)(r->bytes[1] < r->bytes[0] ? r->bytes[0] : r->bytes[1]), size);
    } else {
        *bytes_ret = (size_t)((r->bytes[1] < 0 ? size : r->bytes[1]) - r->bytes[0]);
        data = malloc(*bytes_ret + 1);
        if (!data || fseek(file, (long)r->bytes[0], SEEK_SET) != 0 ||
            fread(data, 1, *bytes_ret, file) != *bytes_ret) {
            tool_error("%s: %s", r->text, errno ? strerror(errno) : "cannot be read");
            free(data);
            data = NULL;
        }
        if (data)
            data[*bytes_ret] = '\0';
    }
    if (file)
        fclose(file);
    return data;
}

// Windows of one length run as one graph.
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
    if (attncl_model_graph(model, inputs, 2, &b->graph) != ATTNCL_OK)
        return tool_failed();
    return TOOL_OK;
}

// Windows side by side: column w of the batch is the text from w * length on.  *loss_ret: the sum of
// all its predictions.
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
    if (attncl_graph_write(b->graph, "tokens", b->tokens, bytes) != ATTNCL_OK ||
        attncl_graph_write(b->graph, "targets", b->targets, bytes) != ATTNCL_OK ||
        attncl_graph_run(b->graph) != ATTNCL_OK ||
        attncl_graph_read(b->graph, "loss", &mean, sizeof mean) != ATTNCL_OK)
        return tool_failed();
    *loss_ret = (double)mean * (double)(T * B);
    return TOOL_OK;
}

// The text's n - 1 predictions in batches: whole windows, what is left of them in a smaller batch, the
// short window alone.
struct cut {
    int64_t total, window, batch;
};

static int64_t n_batches(const struct cut *c)
{
    const int64_t n_windows = c->total / c->window;
    return n_windows / c->batch + (n_windows % c->batch > 0) + (c->total % c->window > 0);
}

// Runs this rank's batches; loss_of: of each batch, [n_batches()].
static int run_batches(attncl_model *model, const struct cut *c, attncl_ranks *ranks,
                       const int32_t *text, double *loss_of)
{
    struct batch b = {0};
    int status = TOOL_OK;

    for (int64_t done = 0, i = 0; done < c->total && status == TOOL_OK; i++) {
        const int64_t left = c->total - done;
        const int64_t length = left < c->window ? left : c->window;
        const int64_t n_windows = left / length < c->batch ? left / length : c->batch;
        if (attncl_ranks_rank(ranks) == 0)
            progress_bar("eval", "tokens", done, c->total);
        if (i % attncl_ranks_size(ranks) == attncl_ranks_rank(ranks)) {
            if (length != b.length || n_windows != b.n_windows)
                status = open_batch(model, length, n_windows, &b);
            if (status == TOOL_OK)
                status = run_batch(&b, text + done, &loss_of[i]);
        }
        done += length * n_windows;
    }
    progress_clear();
    close_batch(&b);
    return status;
}

static int evaluate(attncl_model *model, const struct cut *c, attncl_ranks *ranks,
                    const int32_t *text, double *sum_ret)
{
    const int64_t n = n_batches(c);
    double *loss_of = calloc((size_t)n, sizeof *loss_of);
    int status =
        loss_of ? run_batches(model, c, ranks, text, loss_of) : tool_error("out of memory");

    if (status == TOOL_OK && attncl_ranks_sum_double(ranks, loss_of, (size_t)n) != ATTNCL_OK)
        status = tool_failed();
    *sum_ret = 0;
    for (int64_t i = 0; i < n && status == TOOL_OK; i++)
        *sum_ret += loss_of[i];
    free(loss_of);
    return status;
}

static const char *unit(const struct request *r)
{
    return r->session.text_is_numbers ? "tokens" : "characters";
}

static int report(const struct request *r, attncl_context *context, double sum, int64_t n,
                  double seconds)
{
    const double nll = sum / (double)n, perplexity = exp(nll), rate = (double)n / seconds;
    attncl_device_info device = ATTNCL_DEVICE_INFO_INIT;

    if (r->json)
        return json_print(
            json_pack("{so so sI so so}", "nll", json_number(nll), "perplexity",
                      json_number(perplexity), unit(r), (json_int_t)n,
                      r->session.text_is_numbers ? "tokens_per_second" : "characters_per_second",
                      json_number(rate), "device", json_device(context)));
    if (attncl_context_device(context, &device) != ATTNCL_OK)
        return tool_failed();
    printf("nll %.6f  perplexity %.4f  %s %lld\n", nll, perplexity, unit(r), (long long)n);
    printf("%.1f %s per second on %s\n", rate, unit(r), device.name);
    return TOOL_OK;
}

// A bound below 1 is none.
static int64_t at_most(int64_t window, int64_t bound)
{
    return bound >= 1 && bound < window ? bound : window;
}

static int64_t window_of(const attncl_model *model)
{
    const int64_t given = attncl_model_config_int(model, "seq_len", DEFAULT_WINDOW);
    int64_t window = given >= 1 ? given : DEFAULT_WINDOW; // a layer without one ignores it
    window = at_most(window, attncl_model_config_int(model, "max_len", window));
    // a token and the P memories of a feedback transformer
    return at_most(window - 1, attncl_model_config_int(model, "P", window)) + 1;
}

static int run(struct session *session, const void *request)
{
    const struct request *r = request;
    const double start = seconds_now();
    const struct cut cut = {.total = (int64_t)session->n_tokens - 1,
                            .window = window_of(session->model),
                            .batch = r->batch};
    double sum = 0;
    int status;

    if (session->n_tokens < 2)
        return tool_error("%s: %zu %s in the range, at least 2 are needed", r->text,
                          session->n_tokens, unit(r));
    status = evaluate(session->model, &cut, r->ranks, session->tokens, &sum);
    if (status == TOOL_OK && attncl_ranks_rank(r->ranks) == 0)
        status = report(r, session->context, sum, cut.total, seconds_now() - start);
    return status;
}

int command_eval(int argc, char **argv)
{
    struct request r = {.bytes = {0, -1}, .batch = DEFAULT_BATCH};
    const struct option_row rows[] = {
        {"bytes", 'b', OPTION_RANGE, r.bytes, "A:B",
         .help = "only bytes A to B-1 of TEXT; either may be left out", .high = INT64_MAX},
        {"batch", 'n', OPTION_INTEGER, &r.batch, "N", .help = "windows computed at once (32)",
         .low = 1, .high = MAX_BATCH},
        {"tokens", 'i', OPTION_SWITCH, &r.session.text_is_numbers,
         .help = "TEXT holds token numbers, between spaces or line ends"},
        JSON_OPTION(&r.json, "the result as JSON"),
        DEVICES_OPTION(&r.session.device),
        PRECISION_OPTION(&r.session.precision),
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {"TEXT", .kind = OPTION_OPERAND, .value = &r.text},
        {.name = NULL},
    };
    int status = tool_options("eval", usage, rows, argc, argv);
    char *text;

    if (status != OPTIONS_OK)
        return status;
    status = ranks_begin(&r.ranks);
    if (status != TOOL_OK)
        return status;
    r.session.device = ranks_device(r.session.device);
    text = read_range(&r, &r.session.text_bytes);
    r.session.text = text;
    r.session.text_name = r.text;
    r.session.text_offset = r.bytes[0];
    status = text ? session_use(&r.session, run, &r) : TOOL_FAILED;
    free(text);
    return status;
}

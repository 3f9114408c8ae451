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

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { VAL_DEVICE = 'd', VAL_BYTES = 'b', VAL_BATCH = 'n' };
enum { DEFAULT_BATCH = 32, DEFAULT_WINDOW = 256, MAX_BATCH = 1 << 16 };

static const struct option options[] = {{"device", required_argument, NULL, VAL_DEVICE},
                                        {"bytes", required_argument, NULL, VAL_BYTES},
                                        {"batch", required_argument, NULL, VAL_BATCH},
                                        {NULL, 0, NULL, 0}};

static const struct command command = {
    .name = "eval",
    .usage = "usage: attncl eval MODEL TEXT [options]\n"
             "\n"
             "Mean negative log likelihood per character (nats) and perplexity of the UTF-8 file "
             "TEXT under a\n"
             "language model with attncl.vocab in its metadata.  The text is read in windows of "
             "the model's seq_len\n"
             "(256 when it has none), at most its max_len and P + 1; every character but the "
             "first is predicted\n"
             "once.\n"
             "\n"
             "  -b, --bytes A:B   only bytes A to B-1 of TEXT; either may be left out\n"
             "  -n, --batch N     windows computed at once (32)\n"
             "  -d, --device D    gpu, cpu, PLATFORM:DEVICE, or part of a device's name\n"
             "  -v, --verbose     the library's log on stderr\n"
             "  -h, --help        this text\n",
    .options = options,
    .n_operands = 2,
};

struct request {
    const char *model, *text, *device;
    int64_t begin, end; // bytes; end -1: the file's
    int64_t batch;
};

// "A:B", ":B", "A:" or ":".
static bool parse_range(const char *text, int64_t *begin_ret, int64_t *end_ret)
{
    const char *colon = strchr(text, ':');
    char first[32] = "0";
    const size_t n = colon ? (size_t)(colon - text) : 0;

    if (!colon || n >= sizeof first) {
        tool_error("--bytes: '%s' is not of the form A:B", text);
        return false;
    }
    if (n > 0) {
        memcpy(first, text, n);
        first[n] = '\0';
    }
    if (!tool_integer("--bytes", first, 0, INT64_MAX, begin_ret))
        return false;
    *end_ret = -1;
    return colon[1] == '\0' || tool_integer("--bytes", colon + 1, *begin_ret, INT64_MAX, end_ret);
}

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
    } else if (r->begin > size || r->end > size) {
        tool_error("%s: the range ends at byte %lld, the file at %lld", r->text,
                   (long long)(r->end < r->begin ? r->begin : r->end), size);
    } else {
        *bytes_ret = (size_t)((r->end < 0 ? size : r->end) - r->begin);
        data = malloc(*bytes_ret + 1);
        if (!data || fseek(file, (long)r->begin, SEEK_SET) != 0 ||
            fread(data, 1, *bytes_ret, file) != *bytes_ret) {
            tool_error("%s: %s", r->text, errno ? strerror(errno) : "cannot be read");
            free(data);
            data = NULL;
        }
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

// Windows side by side: column w of the batch is the text from w * length on.  Adds their loss to
// *sum.
static int run_batch(struct batch *b, const int32_t *text, double *sum)
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
    *sum += (double)mean * (double)(T * B);
    return TOOL_OK;
}

// The text's n - 1 predictions: whole windows in batches, what is left of them in a smaller batch,
// the short window alone.
static int evaluate(attncl_model *model, int64_t window, int64_t batch, const int32_t *text,
                    int64_t n, double *sum)
{
    const int64_t total = n - 1;
    struct batch b = {0};
    int status = TOOL_OK;

    for (int64_t done = 0; done < total && status == TOOL_OK;) {
        const int64_t left = total - done;
        const int64_t length = left < window ? left : window;
        const int64_t n_windows = left / length < batch ? left / length : batch;
        progress_bar("eval", done, total);
        if (length != b.length || n_windows != b.n_windows)
            status = open_batch(model, length, n_windows, &b);
        if (status == TOOL_OK)
            status = run_batch(&b, text + done, sum);
        done += length * n_windows;
    }
    progress_bar("eval", total, total);
    close_batch(&b);
    return status;
}

static int report(attncl_context *context, double sum, int64_t n, double seconds)
{
    attncl_device_info device;

    if (attncl_context_device(context, &device) != ATTNCL_OK)
        return tool_failed();
    printf("nll %.6f  perplexity %.4f  characters %lld\n", sum / (double)n, exp(sum / (double)n),
           (long long)n);
    printf("%.1f characters per second on %s\n", (double)n / seconds, device.name);
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

// With an open model.
static int eval_model(const struct request *r, const struct session *session)
{
    const int64_t window = window_of(session->model);
    struct vocabulary vocabulary = {0};
    char *text = NULL;
    int32_t *tokens = NULL;
    size_t bytes = 0, n = 0;
    double sum = 0, start;
    int status = TOOL_FAILED;

    if (!vocabulary_open(session->model, &vocabulary))
        return TOOL_FAILED;
    text = read_range(r, &bytes);
    if (!text || !vocabulary_encode(&vocabulary, text, bytes, r->begin, &tokens, &n))
        goto done;
    if (n < 2) {
        tool_error("%s: %zu characters in the range, at least 2 are needed", r->text, n);
        goto done;
    }
    start = seconds_now();
    status = evaluate(session->model, window, r->batch, tokens, (int64_t)n, &sum);
    if (status == TOOL_OK)
        status = report(session->context, sum, (int64_t)n - 1, seconds_now() - start);

done:
    free(tokens);
    free(text);
    vocabulary_close(&vocabulary);
    return status;
}

static int run(const struct request *r)
{
    struct session session = {0};
    const int status = session_open(r->device, false, r->model, &session);

    if (status != TOOL_OK)
        return status;
    return session_close(&session, eval_model(r, &session));
}

int command_eval(int argc, char **argv)
{
    struct request r = {.end = -1, .batch = DEFAULT_BATCH};
    int option, status = TOOL_OK;

    while ((option = tool_option(&command, argc, argv, &status)) != OPTION_DONE) {
        switch (option) {
        case VAL_DEVICE:
            r.device = optarg;
            break;
        case VAL_BYTES:
            if (!parse_range(optarg, &r.begin, &r.end))
                return TOOL_USAGE;
            break;
        case VAL_BATCH:
            if (!tool_integer("--batch", optarg, 1, MAX_BATCH, &r.batch))
                return TOOL_USAGE;
            break;
        default:
            return status;
        }
    }
    r.model = argv[optind];
    r.text = argv[optind + 1];
    return run(&r);
}

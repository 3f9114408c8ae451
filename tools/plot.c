// SPDX-License-Identifier: MIT
//
// attncl plot: curves and heat map of a positional encoding or of attention pooling.

#include <stdlib.h>
#include <string.h>

#include "picture.h"

enum { VAL_DEVICE = 'd', VAL_COLUMNS = 'c' };

static const struct option options[] = {{"device", required_argument, NULL, VAL_DEVICE},
                                        {"columns", required_argument, NULL, VAL_COLUMNS},
                                        {NULL, 0, NULL, 0}};

static const struct command command = {
    .name = "plot",
    .usage = "usage: attncl plot MODEL INPUT FILE.png [options]\n"
             "\n"
             "Runs a model file of arch positional_encoding or attention_pooling on the arrays of "
             "INPUT and draws it:\n"
             "an encoding's columns over the positions and the whole table; the pooled curve with "
             "the points it was made\n"
             "of, and the attention weights.  Needs gnuplot.\n"
             "\n"
             "  -c, --columns A:B  columns A to B, both included, of an encoding (default 6:9)\n"
             "  -d, --device D     gpu, cpu, PLATFORM:DEVICE, or part of a device's name\n"
             "  -v, --verbose      the library's log on stderr\n"
             "  -h, --help         this text\n",
    .options = options,
    .n_operands = 3,
};

enum { MAX_CURVES = 16 };

struct request {
    const char *model, *input, *output, *device;
    int64_t first, last; // columns; first -1: the default ones
};

static const attncl_array *result_named(const attncl_results *results, const char *name)
{
    for (size_t i = 0; i < attncl_results_count(results); i++)
        if (strcmp(attncl_results_at(results, i)->name, name) == 0)
            return attncl_results_at(results, i);
    return NULL;
}

static double largest(const float *x, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

static int draw_encoding(const struct request *r, const struct session *s,
                         const attncl_results *results)
{
    const attncl_array *table = result_named(results, "encoding");
    struct curve curves[MAX_CURVES];
    struct picture picture;
    int n = 0;

    if (!table || table->rank != 2)
        return tool_error("the model gave no encoding [T, C]");
    const int64_t length = table->dim[0], width = table->dim[1];
    int64_t first = r->first, last = r->last;
    if (first < 0) {
        first = width > 6 ? 6 : 0;
        last = first + 3 < width ? first + 3 : width - 1;
    }
    if (last >= width || last - first >= MAX_CURVES)
        return tool_error(
            "--columns %lld:%lld: the encoding has %lld columns, at most %d are drawn",
            (long long)first, (long long)last, (long long)width, MAX_CURVES);
    float *values = array_floats(s->context, table);
    if (!values)
        return TOOL_FAILED;
    for (int64_t c = first; c <= last; c++, n++) {
        curves[n] = (struct curve){.y = values + c, .n = length, .step = width};
        snprintf(curves[n].title, sizeof curves[n].title, "column %lld", (long long)c);
    }
    int status = picture_open(r->output, 1, 2, &picture);
    if (status == TOOL_OK) {
        const struct matrix_view m = {values, length, width, width, 1};
        picture_curves(&picture, "positional encoding", "position", "value", curves, n);
        picture_heatmap(&picture, "positional encoding", "column", "position", &m, -1, 1);
        status = picture_close(&picture, status);
    }
    free(values);
    return status;
}

static int draw_pooling(const struct request *r, const struct session *s,
                        const attncl_safetensors *input, const attncl_results *results)
{
    // The points it was made of, where it was asked, what it answered, and how it weighed them.
    const attncl_array *arrays[] = {
        attncl_safetensors_find(input, "x_train"), attncl_safetensors_find(input, "y_train"),
        attncl_safetensors_find(input, "x_val"), result_named(results, "y_hat"),
        result_named(results, "attention_w")};
    float *values[5] = {NULL};
    struct picture picture;
    int status = TOOL_OK;

    for (int i = 0; status == TOOL_OK && i < 5; i++) {
        values[i] = arrays[i] ? array_floats(s->context, arrays[i]) : NULL;
        if (!values[i])
            status = TOOL_FAILED;
    }
    if (status == TOOL_OK)
        status = picture_open(r->output, 1, 2, &picture);
    if (status == TOOL_OK) {
        const int64_t n = arrays[0]->dim[0], m = arrays[2]->dim[0];
        const struct curve curves[] = {
            {.title = "y_hat", .x = values[2], .y = values[3], .n = m, .step = 1},
            {.title = "y_train",
             .x = values[0],
             .y = values[1],
             .n = n,
             .step = 1,
             .points = true}};
        // attention_w is [keys, queries]: queries go down.
        const struct matrix_view weights = {values[4], m, n, 1, m};
        picture_curves(&picture, "attention pooling", "x", "y", curves, 2);
        picture_heatmap(&picture, "attention weights", "keys", "queries", &weights, 0,
                        largest(values[4], n * m));
        status = picture_close(&picture, status);
    }
    for (int i = 0; i < 5; i++)
        free(values[i]);
    return status;
}

static int draw(const struct request *r, const struct session *s, const attncl_safetensors *input)
{
    const char *arch = attncl_model_arch(s->model);
    const bool encoding = strcmp(arch, "positional_encoding") == 0;
    attncl_results *results = NULL;
    int status;

    if (!encoding && strcmp(arch, "attention_pooling") != 0)
        return tool_error("arch %s has no plot; positional_encoding and attention_pooling have",
                          arch);
    status = session_run(s, input, &results, NULL);
    if (status == TOOL_OK)
        status = encoding ? draw_encoding(r, s, results) : draw_pooling(r, s, input, results);
    attncl_results_destroy(results);
    return status;
}

static int run(const struct request *r)
{
    struct session session = {0};
    attncl_safetensors *input = NULL;
    int status;

    if (attncl_safetensors_open(r->input, &input) != ATTNCL_OK)
        return tool_failed();
    status = session_open(r->device, false, r->model, &session);
    if (status == TOOL_OK)
        status = session_close(&session, draw(r, &session, input));
    attncl_safetensors_close(input);
    return status;
}

static bool parse_columns(const char *text, struct request *r)
{
    char head[24] = "";
    const char *colon = strchr(text, ':');

    if (!colon || (size_t)(colon - text) >= sizeof head) {
        tool_error("--columns %s is not A:B; see attncl plot --help", text);
        return false;
    }
    memcpy(head, text, (size_t)(colon - text));
    return tool_integer("--columns", head, 0, INT32_MAX, &r->first) &&
           tool_integer("--columns", colon + 1, r->first, INT32_MAX, &r->last);
}

int command_plot(int argc, char **argv)
{
    struct request r = {.first = -1};
    int option, status = TOOL_OK;

    while ((option = tool_option(&command, argc, argv, &status)) != OPTION_DONE) {
        switch (option) {
        case VAL_DEVICE:
            r.device = optarg;
            break;
        case VAL_COLUMNS:
            if (!parse_columns(optarg, &r))
                return TOOL_USAGE;
            break;
        default:
            return status;
        }
    }
    r.model = argv[optind];
    r.input = argv[optind + 1];
    r.output = argv[optind + 2];
    return run(&r);
}

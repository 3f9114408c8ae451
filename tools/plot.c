// SPDX-License-Identifier: MIT
//
// attncl plot: curves and heat map of a positional encoding or of attention pooling.

#include <stdlib.h>
#include <string.h>

#include "picture.h"

static const char usage[] = "usage: attncl plot MODEL INPUT FILE.png [options]\n"
                            "\n"
                            "Runs a model of arch positional_encoding or attention_pooling on the "
                            "arrays in INPUT and draws\n"
                            "the result: an encoding's columns over the positions and the whole "
                            "table, or the pooled curve\n"
                            "with its data points and the attention weights.  Needs gnuplot.\n";

enum { MAX_CURVES = 16 };

struct request {
    struct session_options session;
    const char *output;
    int64_t columns[2]; // first and last; -1: none given
};

static const attncl_array *result_named(const attncl_results *results, const char *name)
{
    for (size_t i = 0; i < attncl_results_count(results); i++)
        if (strcmp(attncl_results_at(results, i)->name, name) == 0)
            return attncl_results_at(results, i);
    return NULL;
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
    int64_t first = r->columns[0], last = r->columns[1];
    if (first < 0 && last < 0) {
        first = width > 6 ? 6 : 0;
        last = first + 3 < width ? first + 3 : width - 1;
    }
    first = first < 0 ? 0 : first;
    last = last < 0 ? width - 1 : last;
    if (last >= width || last < first || last - first >= MAX_CURVES)
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
                        const attncl_results *results)
{
    // The given points, where they are pooled, the pooled values and their weights.
    const attncl_array *arrays[] = {
        attncl_safetensors_find(s->input, "x_train"), attncl_safetensors_find(s->input, "y_train"),
        attncl_safetensors_find(s->input, "x_val"), result_named(results, "y_hat"),
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
                        matrix_max_abs(&weights));
        status = picture_close(&picture, status);
    }
    for (int i = 0; i < 5; i++)
        free(values[i]);
    return status;
}

static int draw(struct session *s, const void *request)
{
    const char *arch = attncl_model_arch(s->model);
    const bool encoding = strcmp(arch, "positional_encoding") == 0;
    attncl_results *results = NULL;
    int status;

    if (!encoding && strcmp(arch, "attention_pooling") != 0)
        return tool_error("arch %s has no plot; positional_encoding and attention_pooling have",
                          arch);
    status = session_run_model(s, &results, NULL);
    if (status == TOOL_OK)
        status = encoding ? draw_encoding(request, s, results) : draw_pooling(request, s, results);
    attncl_results_destroy(results);
    return status;
}

int command_plot(int argc, char **argv)
{
    struct request r = {.columns = {-1, -1}};
    const struct option_row rows[] = {
        {"columns", 0, OPTION_RANGE, r.columns, "A:B",
         .help = "draw columns A to B of an encoding, both included (default 6:9)",
         .high = INT32_MAX},
        DEVICE_OPTION(&r.session.device),
        PRECISION_OPTION(&r.session.precision),
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {"INPUT", .kind = OPTION_OPERAND, .value = &r.session.input},
        {"FILE", .kind = OPTION_OPERAND, .value = &r.output},
        {.name = NULL},
    };
    const int status = tool_options("plot", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (output_check_apart(r.output, r.session.model, r.session.input) != TOOL_OK)
        return TOOL_FAILED;
    return session_use(&r.session, draw, &r);
}

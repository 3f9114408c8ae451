// SPDX-License-Identifier: MIT
//
// attncl plot: curves and heat maps of a positional encoding or of attention pooling.

#include <stdlib.h>
#include <string.h>

#include "picture.h"

static const char usage[] =
    "usage: attncl plot MODEL INPUT FILE [options]\n"
    "       attncl plot ARRAYS FILE [options]\n"
    "\n"
    "Runs a model of arch positional_encoding or attention_pooling on the arrays in INPUT\n"
    "and draws the result: an encoding's columns over the positions and the whole table, or\n"
    "the pooled curve with its data points, the true curve y_val where INPUT has one, and the\n"
    "attention weights.  Or draws an array of ARRAYS, a safetensors or .npy file, as a heat\n"
    "map: of three axes a panel for each matrix, of four a grid of panels.  FILE is an SVG\n"
    "file where its name ends so, else PNG.  Needs gnuplot.\n";

enum { MAX_CURVES = 16, MAX_VARIED = 8 };

struct request {
    struct session_options session;
    const char *output; // null: draws a file of arrays, not a model
    int64_t columns[2]; // first and last; -1: not given
    const char *vary;   // "KEY=VALUE,VALUE..." of the configuration; null: none
    struct array_request arrays;
};

static const attncl_array *find_result(const attncl_results *results, const char *name)
{
    for (size_t i = 0; i < attncl_results_count(results); i++)
        if (strcmp(attncl_results_at(results, i)->name, name) == 0)
            return attncl_results_at(results, i);
    return NULL;
}

static int draw_encoding(const struct request *r, const attncl_results *results)
{
    const attncl_array *table = find_result(results, "encoding");
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
    float *values = array_floats(table);
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

// The results of one configuration.
struct pooled {
    char title[136]; // "KEY VALUE"
    float *y_hat, *weights;
};

// The input's data points and true curve.
struct data {
    const attncl_array *arrays[4]; // x_train, y_train, x_val, y_val; y_val may be NULL
    float *values[4];
};

static int read_data(const struct session *s, struct data *data)
{
    static const char *const names[] = {"x_train", "y_train", "x_val", "y_val"};

    for (int i = 0; i < 4; i++) {
        data->arrays[i] = attncl_safetensors_find(s->input, names[i]);
        if (data->arrays[i] && !(data->values[i] = array_floats(data->arrays[i])))
            return TOOL_FAILED;
    }
    const attncl_array *x = data->arrays[2], *y = data->arrays[3];
    if (x && y && (y->rank != 1 || x->rank != 1 || x->dim[0] != y->dim[0]))
        return tool_error("input y_val, the true curve, must be [n] as x_val is");
    return TOOL_OK;
}

static int run_pooling(const struct session *s, attncl_model *model, struct pooled *ret)
{
    const size_t n = attncl_safetensors_count(s->input);
    attncl_array *inputs = calloc(n + 1, sizeof *inputs);
    attncl_results *results = NULL;
    size_t n_inputs = 0;
    int status = TOOL_OK;

    if (!inputs)
        return tool_error("out of memory");
    for (size_t i = 0; i < n; i++) {
        const attncl_array *array = attncl_safetensors_at(s->input, i);
        if (strcmp(array->name, "y_val") != 0) // for the picture only
            inputs[n_inputs++] = *array;
    }
    if (attncl_model_run(model, inputs, n_inputs, &results, NULL) != ATTNCL_OK)
        status = tool_failed();
    free(inputs);
    if (status == TOOL_OK) {
        ret->y_hat = array_floats(find_result(results, "y_hat"));
        ret->weights = array_floats(find_result(results, "attention_w"));
        status = ret->y_hat && ret->weights ? TOOL_OK : TOOL_FAILED;
    }
    attncl_results_destroy(results);
    return status;
}

// Runs the model with `value`, JSON or a bare word, for a key of its configuration.
static int run_varied(const struct session *s, const char *key, const char *value,
                      struct pooled *ret)
{
    json_t *config = json_loads(attncl_model_metadata(s->model, "attncl.config"), 0, NULL);
    json_t *set = json_loads(value, JSON_DECODE_ANY, NULL);
    attncl_model *model = NULL;
    int status = TOOL_OK;

    json_object_set_new(config, key, set ? set : json_string(value));
    char *text = json_dumps(config, 0);
    snprintf(ret->title, sizeof ret->title, "%s %s", key, value);
    if (!text)
        status = tool_error("--vary: %s=%s is not UTF-8", key, value);
    else if (attncl_model_create(s->context, "attention_pooling", text, 0, &model) != ATTNCL_OK)
        status = tool_failed();
    else
        status = run_pooling(s, model, ret);
    free(text);
    json_decref(config);
    attncl_model_destroy(model);
    return status;
}

// Runs the model, or with --vary a model for each value.
static int run_configurations(const struct request *r, const struct session *s,
                              struct pooled pooled[MAX_VARIED], int *n_ret)
{
    char key[64];
    const size_t length = r->vary ? strcspn(r->vary, "=") : 0;

    *n_ret = 1;
    strcpy(pooled[0].title, "attention pooling");
    if (!r->vary)
        return run_pooling(s, s->model, &pooled[0]);
    if (length == 0 || length >= sizeof key || !r->vary[length] || !r->vary[length + 1])
        return tool_error("--vary: '%s' is not of the form KEY=VALUE,VALUE...", r->vary);
    snprintf(key, sizeof key, "%.*s", (int)length, r->vary);
    const char *at = r->vary + length;
    for (*n_ret = 0; *at; ++*n_ret) {
        char value[64];
        const size_t n = strcspn(++at, ",");
        if (*n_ret == MAX_VARIED)
            return tool_error("--vary: more than %d values", MAX_VARIED);
        snprintf(value, sizeof value, "%.*s", (int)n, at);
        TOOL_TRY(run_varied(s, key, value, &pooled[*n_ret]));
        at += n;
    }
    return TOOL_OK;
}

static void draw_estimate(struct picture *picture, const struct data *d, const struct pooled *p)
{
    const int64_t n = d->arrays[0]->dim[0], m = d->arrays[2]->dim[0];
    const struct curve curves[] = {
        {.title = "y_hat", .x = d->values[2], .y = p->y_hat, .n = m, .step = 1},
        {.title = "y_train",
         .x = d->values[0],
         .y = d->values[1],
         .n = n,
         .step = 1,
         .points = true},
        {.title = "y", .x = d->values[2], .y = d->values[3], .n = m, .step = 1, .dashed = true}};

    picture_curves(picture, p->title, "x", "y", curves, d->values[3] ? 3 : 2);
}

// Draws the estimates and below them their weights; side by side if there is one configuration.
static int draw_pooling(const struct request *r, const struct session *s)
{
    struct data data = {{0}, {0}};
    struct pooled pooled[MAX_VARIED] = {{{0}, NULL, NULL}};
    struct picture picture;
    int n = 0, status = read_data(s, &data);

    if (status == TOOL_OK)
        status = run_configurations(r, s, pooled, &n);
    if (status == TOOL_OK)
        status = picture_open(r->output, n > 1 ? 2 : 1, n > 1 ? n : 2, &picture);
    if (status == TOOL_OK) {
        const int64_t n_keys = data.arrays[0]->dim[0], n_queries = data.arrays[2]->dim[0];
        for (int i = 0; i < n; i++)
            draw_estimate(&picture, &data, &pooled[i]);
        for (int i = 0; i < n; i++) {
            // attention_w is [keys, queries]: queries go down.
            const struct matrix_view weights = {pooled[i].weights, n_queries, n_keys, 1, n_queries};
            picture_heatmap(&picture, n > 1 ? pooled[i].title : "attention weights", "keys",
                            "queries", &weights, 0, matrix_max_abs(&weights));
        }
        status = picture_close(&picture, status);
    }
    for (int i = 0; i < MAX_VARIED; i++) {
        free(pooled[i].y_hat);
        free(pooled[i].weights);
    }
    for (int i = 0; i < 4; i++)
        free(data.values[i]);
    return status;
}

static int draw(struct session *s, const void *request)
{
    const struct request *r = request;
    const char *arch = attncl_model_arch(s->model);
    attncl_results *results = NULL;
    int status;

    if (strcmp(arch, "attention_pooling") == 0)
        return draw_pooling(r, s);
    if (strcmp(arch, "positional_encoding") != 0)
        return tool_error("arch %s has no plot; positional_encoding and attention_pooling have",
                          arch);
    if (r->vary)
        return tool_error(
            "--vary is for arch attention_pooling, the model has positional_encoding");
    status = session_run_model(s, &results, NULL);
    if (status == TOOL_OK)
        status = draw_encoding(r, results);
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
        {"vary", 0, OPTION_TEXT, &r.vary, "K=V,V",
         .help = "attention pooling with each value of a key of the configuration, up to 8:\n"
                 "kernel=constant,gaussian or sigma=0.1,0.5,1"},
        {"array", 0, OPTION_TEXT, &r.arrays.name, "NAME",
         .help = "which array of a file of several"},
        {"index", 0, OPTION_TEXT, &r.arrays.index, "I,J",
         .help = "draw the part of the array at these indices of its first axes"},
        DEVICE_OPTION(&r.session.device),
        PRECISION_OPTION(&r.session.precision),
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {"INPUT", .kind = OPTION_OPERAND, .value = &r.session.input},
        {"FILE", .kind = OPTION_LAST, .value = &r.output},
        {.name = NULL},
    };
    const int status = tool_options("plot", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (r.output && (r.arrays.name || r.arrays.index)) {
        tool_error("plot: --array and --index are for a file of arrays, not for a model");
        return TOOL_USAGE;
    }
    if (!r.output && (r.vary || r.columns[0] >= 0 || r.columns[1] >= 0)) {
        tool_error("plot: --vary and --columns are for a model, INPUT and FILE");
        return TOOL_USAGE;
    }
    r.arrays.file = r.session.model;
    r.arrays.picture = r.output ? r.output : r.session.input;
    TOOL_TRY(
        output_check_apart(r.arrays.picture, r.session.model, r.output ? r.session.input : NULL));
    return r.output ? session_use(&r.session, draw, &r) : draw_file(&r.arrays);
}

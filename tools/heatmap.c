// SPDX-License-Identifier: MIT
//
// Heat maps of the attention weights among a model's outputs and the position biases among its parameters, with a
// panel per batch entry (down) and head (across).

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "picture.h"

enum { MAX_ROWS = 8, MAX_COLUMNS = 8 }; // panels of one picture

// Matrices of queries times keys, one for each batch entry and head.
struct matrix_stack {
    const char *name;
    const float *data;
    int64_t n_batch, n_heads, n_queries, n_keys;
    int64_t batch_step, head_step, query_step, key_step;
    double low, high; // range of the colours
};

static struct matrix_view get_panel(const struct matrix_stack *s, int64_t batch, int64_t head)
{
    return (struct matrix_view){s->data + batch * s->batch_step + head * s->head_step, s->n_queries,
                                s->n_keys, s->query_step, s->key_step};
}

static double stack_max_abs(const struct matrix_stack *s)
{
    double max = 0;

    for (int64_t b = 0; b < s->n_batch; b++)
        for (int64_t h = 0; h < s->n_heads; h++) {
            const struct matrix_view m = get_panel(s, b, h);
            max = fmax(max, matrix_max_abs(&m));
        }
    return max;
}

// Makes a file name of an array's name: replaces all but letters, digits, dots and dashes.
static void clean_name(const char *name, char *clean, size_t capacity)
{
    size_t n = 0;
    for (; name[n] && n + 1 < capacity; n++) {
        const char c = name[n];
        const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || c == '-' || c == '_' || (c == '.' && n > 0);
        clean[n] = c;
        if (!plain)
            clean[n] = '_';
    }
    clean[n] = '\0';
}

// Draws the panels from batch entry b0 and head h0 on.
static int draw_page(const struct matrix_stack *s, const char *path, int64_t b0, int64_t h0)
{
    const int64_t rows = s->n_batch - b0 < MAX_ROWS ? s->n_batch - b0 : MAX_ROWS;
    const int64_t columns = s->n_heads - h0 < MAX_COLUMNS ? s->n_heads - h0 : MAX_COLUMNS;
    struct picture picture;
    char title[160];

    TOOL_TRY(picture_open(path, (int)rows, (int)columns, &picture));
    for (int64_t b = b0; b < b0 + rows; b++)
        for (int64_t h = h0; h < h0 + columns; h++) {
            const struct matrix_view m = get_panel(s, b, h);
            int used = snprintf(title, sizeof title, "%.100s", s->name);
            if (s->n_batch > 1)
                used += snprintf(title + used, sizeof title - (size_t)used, ", batch %lld",
                                 (long long)b);
            if (s->n_heads > 1)
                snprintf(title + used, sizeof title - (size_t)used, ", head %lld", (long long)h);
            picture_heatmap(&picture, title, "keys", "queries", &m, s->low, s->high);
        }
    return picture_close(&picture, TOOL_OK);
}

// Draws the matrices into DIRECTORY/NAME.png, or into several files if there are too many for one.
static int draw_stack(const struct matrix_stack *s, const char *directory)
{
    const bool one = s->n_batch <= MAX_ROWS && s->n_heads <= MAX_COLUMNS;
    char clean[160], path[4096];

    clean_name(s->name, clean, sizeof clean);
    for (int64_t b = 0; b < s->n_batch; b += MAX_ROWS)
        for (int64_t h = 0; h < s->n_heads; h += MAX_COLUMNS) {
            int n;
            if (one)
                n = snprintf(path, sizeof path, "%s/%s.png", directory, clean);
            else
                n = snprintf(path, sizeof path, "%s/%s-batch%lld-head%lld.png", directory, clean,
                             (long long)b, (long long)h);
            if (n < 0 || (size_t)n >= sizeof path)
                return tool_error("%s: the path is too long", directory);
            TOOL_TRY(draw_page(s, path, b, h));
        }
    return TOOL_OK;
}

struct weights_output {
    const char *arch, *array;
    const char
        *axes; // b batch, h head, m batch times heads, q query, k key; missing axes have length 1
    const char *heads; // the configuration's key of the heads in m
};
static const struct weights_output outputs[] = {
    {"basic_self_attention", "attention_weights", "bqk", NULL},
    {"raschka_self_attention", "attention_weights", "qk", NULL},
    {"raschka_multi_head", "attention_weights", "hqk", NULL},
    {"dot_product_attention", "attention_weights", "bqk", NULL},
    {"bilinear_attention", "attention_weights", "bqk", NULL},
    {"additive_attention", "attention_weights", "bqk", NULL},
    {"multi_head_attention", "attention_weights", "mqk", "num_heads"},
    {"seq2seq_bahdanau", "attention_weights", "bqk", NULL},
    {"seq2seq_predict", "attention_weights", "bqk", NULL},
    {"mha", "attn", "qkbh", NULL},
    {"feedback_attention", "attn", "kbh", NULL},
    {"attention_pooling", "attention_w", "kq", NULL},
};
static const struct weights_output layer_output = {NULL, NULL, "qkbh", NULL};
enum { N_OUTPUTS = sizeof outputs / sizeof outputs[0] };

float *array_floats(const attncl_array *array)
{
    size_t count = 1;

    for (int i = 0; i < array->rank; i++)
        count *= (size_t)array->dim[i];
    float *values = calloc(count + 1, sizeof *values);
    int64_t *integers = NULL;
    attncl_status status = ATTNCL_ERR_NO_MEMORY;
    if (values)
        status = attncl_elements_convert(array->dtype, array->data, ATTNCL_F32, values, count);
    if (status == ATTNCL_ERR_DTYPE) { // an array of integers
        integers = calloc(count + 1, sizeof *integers);
        status = integers ? attncl_elements_convert(array->dtype, array->data, ATTNCL_I64, integers,
                                                    count)
                          : ATTNCL_ERR_NO_MEMORY;
        for (size_t i = 0; integers && i < count; i++)
            values[i] = (float)integers[i];
    }
    if (status != ATTNCL_OK) {
        tool_error("%s: %s", array->name,
                   status == ATTNCL_ERR_NO_MEMORY ? "out of memory" : attncl_last_error());
        free(values);
        values = NULL;
    }
    free(integers);
    return values;
}

static void set_axis(struct matrix_stack *s, char axis, int64_t extent, int64_t step, int64_t heads)
{
    switch (axis) {
    case 'b':
        s->n_batch = extent, s->batch_step = step;
        break;
    case 'h':
        s->n_heads = extent, s->head_step = step;
        break;
    case 'm':
        s->n_heads = heads > 0 ? heads : 1, s->head_step = step;
        s->n_batch = extent / s->n_heads, s->batch_step = step * s->n_heads;
        break;
    case 'q':
        s->n_queries = extent, s->query_step = step;
        break;
    default:
        s->n_keys = extent, s->key_step = step;
    }
}

// Sets the stack's extents and strides.  The array may lack leading axes; false if it has more axes than names.
static bool read_axes(struct matrix_stack *s, const attncl_array *array, const char *axes,
                      int64_t heads)
{
    const int n = (int)strlen(axes);
    int64_t step = 1;

    if (array->rank > n)
        return false;
    s->n_batch = s->n_heads = s->n_queries = s->n_keys = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        set_axis(s, axes[n - array->rank + i], array->dim[i], step, heads);
        step *= array->dim[i];
    }
    return step > 0; // an empty array has no picture
}

bool is_shown_attention(const attncl_array *array)
{
    return strchr(array->name, '.') && name_ends_with(array->name, "attn");
}

// Finds the axes of an output; NULL if it holds no attention weights.
static const struct weights_output *find_output(const char *arch, const attncl_array *array)
{
    if (is_shown_attention(array))
        return &layer_output;
    for (int o = 0; o < N_OUTPUTS; o++)
        if (strcmp(outputs[o].arch, arch) == 0 && strcmp(outputs[o].array, array->name) == 0)
            return &outputs[o];
    return NULL;
}

// Draws and frees the values.
static int draw_values(struct matrix_stack *s, float *values, const char *directory, int *n_drawn)
{
    s->data = values;
    s->high = stack_max_abs(s);
    if (s->low < 0) { // biases: a range symmetric about 0
        s->high = s->high > 0 ? s->high : 1;
        s->low = -s->high;
    }
    const int status = draw_stack(s, directory);
    free(values);
    ++*n_drawn;
    return status;
}

static int draw_weights(const struct session *session, const attncl_results *results,
                        const char *directory, int *n_drawn)
{
    for (size_t i = 0; i < attncl_results_count(results); i++) {
        const attncl_array *array = attncl_results_at(results, i);
        const struct weights_output *output = find_output(attncl_model_arch(session->model), array);
        struct matrix_stack s = {.name = array->name};
        if (!output)
            continue;
        const int64_t heads =
            output->heads ? attncl_model_config_int(session->model, output->heads, 1) : 1;
        if (!read_axes(&s, array, output->axes, heads))
            continue;
        float *values = array_floats(array);
        TOOL_TRY(values ? draw_values(&s, values, directory, n_drawn) : TOOL_FAILED);
    }
    return TOOL_OK;
}

// AFT-conv's w, [heads, s], as a matrix of biases for each head; the caller frees it.
static float *expand_conv_biases(const float *w, int64_t heads, int64_t size, int64_t n)
{
    float *bias = calloc((size_t)(heads * n * n) + 1, sizeof *bias);
    for (int64_t h = 0; bias && h < heads; h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t at = j - i + (size - 1) / 2;
                if (at >= 0 && at < size)
                    bias[(h * n + i) * n + j] = w[h * size + at];
            }
    return bias;
}

// Draws a parameter if it holds position biases.
static int draw_bias(const struct session *session, const attncl_array *array,
                     const char *directory, int *n_drawn)
{
    const bool table = name_ends_with(array->name, "pos_bias") && array->rank == 2;
    const bool conv = name_ends_with(array->name, "w") && array->rank == 2;
    const int64_t n_max =
        256; // positions drawn for AFT-conv, whose biases repeat along the diagonal
    struct matrix_stack s = {.name = array->name, .n_batch = 1, .n_heads = 1};

    if (!table && !conv)
        return TOOL_OK;
    float *values = array_floats(array);
    if (!values)
        return TOOL_FAILED;
    s.n_queries = array->dim[0];
    s.n_keys = array->dim[1];
    if (conv) {
        const int64_t heads = array->dim[0], size = array->dim[1];
        int64_t n = attncl_model_config_int(session->model, "seq_len", 2 * size);
        n = n < n_max ? n : n_max;
        float *matrices = expand_conv_biases(values, heads, size, n);
        free(values);
        values = matrices;
        s.n_heads = heads, s.head_step = n * n;
        s.n_queries = s.n_keys = n;
    } else {
        // AFT-local ignores the table outside its window.
        const int64_t window =
            attncl_model_config_int(session->model, "local_window_size", INT32_MAX);
        for (int64_t i = 0; i < s.n_queries; i++)
            for (int64_t j = 0; j < s.n_keys; j++)
                if (i - j >= window || j - i >= window)
                    values[i * s.n_keys + j] = 0;
    }
    if (!values)
        return tool_error("out of memory");
    s.query_step = s.n_keys;
    s.key_step = 1;
    s.low = -1;
    if (s.n_queries * s.n_keys > 0)
        return draw_values(&s, values, directory, n_drawn);
    free(values);
    return TOOL_OK;
}

// Whether the model has an AFT layer; in other models a parameter called w is something else.
static bool has_biases(const attncl_model *model)
{
    const char *config = attncl_model_metadata(model, "attncl.config");
    return strncmp(attncl_model_arch(model), "aft_", 4) == 0 ||
           (config && strstr(config, "\"aft_"));
}

int draw_heatmaps(const struct session *session, const char *model_path,
                  const attncl_results *results, const char *directory)
{
    attncl_safetensors *file = NULL;
    struct stat there;
    int n_drawn = 0, status;

    const bool made = mkdir(directory, 0777) == 0;
    if (!made && errno != EEXIST)
        return tool_error("%s: %s", directory, strerror(errno));
    if (stat(directory, &there) == 0 && !S_ISDIR(there.st_mode))
        return tool_error("%s is a file, expected a directory", directory);
    status = draw_weights(session, results, directory, &n_drawn);
    if (status == TOOL_OK && has_biases(session->model)) {
        if (attncl_safetensors_open(model_path, &file) != ATTNCL_OK)
            status = tool_failed();
        for (size_t i = 0; status == TOOL_OK && i < attncl_safetensors_count(file); i++)
            status = draw_bias(session, attncl_safetensors_at(file, i), directory, &n_drawn);
        attncl_safetensors_close(file);
    }
    if (status == TOOL_OK && n_drawn == 0)
        status = tool_error("arch %s has neither attention weights among its outputs nor position "
                            "biases among its parameters: nothing to draw",
                            attncl_model_arch(session->model));
    if (status != TOOL_OK && made)
        rmdir(directory); // empty unless something was drawn
    return status;
}

// SPDX-License-Identifier: MIT
//
// attncl convert: a model file with its matrices in another type.  Needs no device.

#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl convert MODEL OUTPUT --dtype f16|bf16|f32|q8|q4\n"
    "\n"
    "Converts a model's matrices (trained parameters with two or more axes) to another float\n"
    "type, rounded to nearest.  Vectors, such as biases and norms, and tables that are not\n"
    "trained keep their type.  On a device, f16 and bf16 weights of linear layers and\n"
    "embeddings take half the memory of f32; the kernels compute in float32.\n"
    "\n"
    "q8 and q4 are 8 and 4 bits for weights of linear layers and embeddings alone, in blocks of "
    "32\n"
    "inputs; where their number is no multiple of 32, weights become f16.  Other matrices\n"
    "keep their type.  Such a model is not trained; --dtype f32 makes floats of it again.\n";

static bool take_dtype(const char *text, void *dtype_ret)
{
    return take_weight_type("--dtype", text, dtype_ret);
}

// What is written: the file's arrays and metadata, some of them replaced.
struct converted {
    attncl_array *arrays;
    void **data; // of those that were converted, else NULL
    size_t n;
    const char **metadata;
    size_t n_metadata;
};

static void converted_free(struct converted *c)
{
    for (size_t i = 0; c->data && i < c->n; i++)
        free(c->data[i]);
    free(c->data);
    free(c->arrays);
    free(c->metadata);
}

static attncl_array *array_named(struct converted *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->arrays[i].name, name) == 0)
            return &c->arrays[i];
    return NULL;
}

static int copy_list(const attncl_safetensors *file, struct converted *c)
{
    const char *key, *value;
    size_t n = 0;

    c->n = attncl_safetensors_count(file);
    while (attncl_safetensors_metadata_at(file, n, &value))
        n++;
    c->arrays = calloc(c->n + 1, sizeof *c->arrays);
    c->data = calloc(c->n + 1, sizeof *c->data);
    c->metadata = calloc(2 * n + 1, sizeof *c->metadata);
    if (!c->arrays || !c->data || !c->metadata)
        return tool_error("out of memory");
    for (size_t i = 0; i < c->n; i++)
        c->arrays[i] = *attncl_safetensors_at(file, i);
    for (size_t i = 0; i < n; i++) {
        key = attncl_safetensors_metadata_at(file, i, &value);
        c->metadata[c->n_metadata++] = key;
        c->metadata[c->n_metadata++] = value;
    }
    return TOOL_OK;
}

static bool is_quantised(attncl_dtype dtype)
{
    return dtype == ATTNCL_Q8 || dtype == ATTNCL_Q4;
}

// Elements, which `data` gets, as the array's.
static void replace(attncl_array *array, attncl_dtype dtype, void *data, size_t bytes)
{
    array->dtype = dtype;
    array->data = data;
    array->bytes = bytes;
}

static int convert_array(attncl_array *array, attncl_dtype dtype, void **data)
{
    const size_t count = array->bytes / attncl_dtype_bytes(array->dtype);
    const size_t bytes = count * attncl_dtype_bytes(dtype);
    void *to = malloc(bytes + 1);

    if (!to)
        return tool_error("out of memory");
    if (attncl_elements_convert(array->dtype, array->data, dtype, to, count) != ATTNCL_OK) {
        free(to);
        return tool_error("%s: %s", array->name, attncl_last_error());
    }
    free(*data);
    *data = to;
    replace(array, dtype, to, bytes);
    return TOOL_OK;
}

static void forget_metadata(struct converted *c, const char *key)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_metadata; i += 2)
        if (strcmp(c->metadata[i], key) != 0) {
            c->metadata[n++] = c->metadata[i];
            c->metadata[n++] = c->metadata[i + 1];
        }
    for (size_t i = n; i < c->n_metadata; i++)
        c->metadata[i] = NULL;
    c->n_metadata = n;
}

static char *quantised_key(const char *name)
{
    const size_t bytes = sizeof ATTNCL_QUANTISED_KEY + strlen(name);
    char *key = malloc(bytes);

    if (key)
        snprintf(key, bytes, ATTNCL_QUANTISED_KEY "%s", name);
    return key;
}

// What is in 8 or 4 bits becomes floats [n, k].
static int widen(struct converted *c, size_t i, attncl_dtype dtype, const int64_t dim[2])
{
    attncl_array *array = &c->arrays[i];
    const size_t bytes = (size_t)(dim[0] * dim[1]) * sizeof(float);
    float *values = malloc(bytes + 1);
    char *key = quantised_key(array->name);

    if (!values || !key) {
        free(values);
        free(key);
        return tool_error("out of memory");
    }
    c->data[i] = values;
    forget_metadata(c, key);
    free(key);
    if (attncl_dequantise(dtype, dim[0], dim[1], array->data, values) != ATTNCL_OK)
        return tool_error("%s: %s", array->name, attncl_last_error());
    array->rank = 2;
    memcpy(array->dim, dim, 2 * sizeof dim[0]);
    replace(array, ATTNCL_F32, values, bytes);
    return TOOL_OK;
}

// Floats [n, k] become bytes.
static int quantise(struct converted *c, size_t i, attncl_dtype dtype)
{
    attncl_array *array = &c->arrays[i];
    const int64_t n = array->dim[0], k = array->dim[1];
    const size_t bytes = attncl_quantised_bytes(dtype, n, k);
    unsigned char *to = malloc(bytes + 1);

    if (!to)
        return tool_error("out of memory");
    if (attncl_quantise(dtype, n, k, array->data, to) != ATTNCL_OK) {
        free(to);
        return tool_error("%s: %s", array->name, attncl_last_error());
    }
    free(c->data[i]);
    c->data[i] = to;
    replace(array, dtype, to, bytes);
    return TOOL_OK;
}

static int convert_parameter(const attncl_safetensors *file, const attncl_entry *e,
                             attncl_dtype dtype, struct converted *c, size_t i)
{
    attncl_array *array = &c->arrays[i];
    attncl_dtype was = array->dtype, becomes = dtype;
    int64_t dim[2];
    int status = TOOL_OK;

    if (is_quantised(dtype) && !e->is_map)
        return TOOL_OK;
    if (array->dtype == ATTNCL_U8) {
        if (attncl_safetensors_quantised(file, array->name, &was, dim) != ATTNCL_OK)
            return tool_error("%s: %s", array->name, attncl_last_error());
        if (was != dtype)
            status = widen(c, i, was, dim);
    }
    if (was == dtype || status != TOOL_OK)
        return status;
    if (is_quantised(dtype))
        becomes = array->dim[1] % 32 == 0 ? ATTNCL_F32 : ATTNCL_F16;
    if (array->dtype != becomes)
        status = convert_array(array, becomes, &c->data[i]);
    if (status == TOOL_OK && is_quantised(dtype) && becomes == ATTNCL_F32)
        status = quantise(c, i, dtype);
    return status;
}

// Converts the parameters that the description names.
static int convert_parameters(const attncl_safetensors *file, const attncl_description *description,
                              attncl_dtype dtype, struct converted *c)
{
    const attncl_entry *e;
    int status = TOOL_OK;

    for (size_t i = 0; status == TOOL_OK && (e = attncl_description_at(description, i)) != NULL;
         i++) {
        attncl_array *array = e->kind == ATTNCL_ENTRY_PARAMETER ? array_named(c, e->name) : NULL;
        if (array && array->rank >= 2)
            status = convert_parameter(file, e, dtype, c, (size_t)(array - c->arrays));
    }
    return status;
}

static int convert(const char *from, const char *to, attncl_dtype dtype)
{
    attncl_safetensors *file = NULL;
    attncl_description *description = NULL;
    struct converted c = {.n = 0};
    int status;

    if (attncl_safetensors_open(from, &file) != ATTNCL_OK)
        return tool_failed();
    if (attncl_description_create_for(file, &description) != ATTNCL_OK ||
        attncl_description_check(description) != ATTNCL_OK)
        status = tool_error("%s: %s", from, attncl_last_error());
    else
        status = copy_list(file, &c);
    if (status == TOOL_OK)
        status = convert_parameters(file, description, dtype, &c);
    output_file_begin();
    if (status == TOOL_OK && attncl_safetensors_write(to, c.arrays, c.n, c.metadata) != ATTNCL_OK)
        status = tool_failed();
    output_file_end();
    converted_free(&c);
    attncl_description_destroy(description);
    attncl_safetensors_close(file);
    return status;
}

int command_convert(int argc, char **argv)
{
    const char *from = NULL, *to = NULL;
    attncl_dtype dtype = ATTNCL_DTYPE_NONE;
    const struct option_row rows[] = {
        {"dtype", 0, OPTION_CALL, &dtype, "TYPE", .help = "the new type: f16, bf16, f32, q8 or q4",
         .take = take_dtype},
        {"MODEL", .kind = OPTION_OPERAND, .value = &from},
        {"OUTPUT", .kind = OPTION_OPERAND, .value = &to},
        {.name = NULL},
    };
    int status = tool_options("convert", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (dtype == ATTNCL_DTYPE_NONE) {
        tool_error("convert: --dtype is missing: f16, bf16, f32, q8 or q4");
        return TOOL_USAGE;
    }
    status = output_check_apart(to, from, NULL);
    return status == TOOL_OK ? convert(from, to, dtype) : status;
}

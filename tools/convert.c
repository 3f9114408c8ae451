// SPDX-License-Identifier: MIT
//
// attncl convert: a model file with its matrices in another float type.  Needs no device.

#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl convert MODEL OUTPUT --dtype f16|bf16|f32\n"
    "\n"
    "Converts a model's matrices (trained parameters with two or more axes) to another float\n"
    "type, rounded to nearest.  Vectors, such as biases and norms, and tables that are not\n"
    "trained keep their type.  On a device, f16 and bf16 weights of linear layers and\n"
    "embeddings take half the memory of f32; the kernels compute in float32.\n";

static bool take_dtype(const char *text, void *dtype_ret)
{
    return take_float_type("--dtype", text, dtype_ret);
}

// What is written: the file's arrays, some of them replaced.
struct converted {
    attncl_array *arrays;
    void **data; // of those that were converted, else NULL
    size_t n;
    const char **metadata;
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
        c->metadata[2 * i] = key;
        c->metadata[2 * i + 1] = value;
    }
    return TOOL_OK;
}

static int convert_array(attncl_array *array, attncl_dtype dtype, void **data_ret)
{
    const size_t count = array->bytes / attncl_dtype_bytes(array->dtype);
    const size_t bytes = count * attncl_dtype_bytes(dtype);
    void *data = malloc(bytes + 1);

    if (!data)
        return tool_error("out of memory");
    *data_ret = data;
    if (attncl_elements_convert(array->dtype, array->data, dtype, data, count) != ATTNCL_OK)
        return tool_error("%s: %s", array->name, attncl_last_error());
    array->dtype = dtype;
    array->data = data;
    array->bytes = bytes;
    return TOOL_OK;
}

// Converts the parameters that the description names.
static int convert_parameters(const attncl_description *description, attncl_dtype dtype,
                              struct converted *c)
{
    const attncl_entry *e;
    int status = TOOL_OK;

    for (size_t i = 0; status == TOOL_OK && (e = attncl_description_at(description, i)) != NULL;
         i++) {
        attncl_array *array = e->kind == ATTNCL_ENTRY_PARAMETER ? array_named(c, e->name) : NULL;
        if (array && array->rank >= 2 && array->dtype != dtype)
            status = convert_array(array, dtype, &c->data[array - c->arrays]);
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
        status = convert_parameters(description, dtype, &c);
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
        {"dtype", 0, OPTION_CALL, &dtype, "TYPE", .help = "the new type: f16, bf16 or f32",
         .take = take_dtype},
        {"MODEL", .kind = OPTION_OPERAND, .value = &from},
        {"OUTPUT", .kind = OPTION_OPERAND, .value = &to},
        {.name = NULL},
    };
    int status = tool_options("convert", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (dtype == ATTNCL_DTYPE_NONE) {
        tool_error("convert: --dtype is missing: f16, bf16 or f32");
        return TOOL_USAGE;
    }
    status = output_check_apart(to, from, NULL);
    return status == TOOL_OK ? convert(from, to, dtype) : status;
}

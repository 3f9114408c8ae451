// SPDX-License-Identifier: MIT
//
// attncl convert: writes a model file with its matrices in another type.  Needs no device.

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

struct conversion {
    attncl_safetensors *file;
    attncl_array *from,
        *to; // [n], as stored and as written; quantised ones that change have their type, Q8 or Q4
    size_t n;
    const char **metadata; // key, value ..., NULL
    size_t n_metadata;
    void *data; // of the array being written
};

static void free_conversion(struct conversion *c)
{
    free(c->from);
    free(c->to);
    free(c->metadata);
    free(c->data);
    attncl_safetensors_close(c->file);
}

static int list_arrays(struct conversion *c)
{
    const char *key, *value;
    size_t n = 0;

    c->n = attncl_safetensors_count(c->file);
    while (attncl_safetensors_metadata_at(c->file, n, &value))
        n++;
    c->from = calloc(c->n + 1, sizeof *c->from);
    c->to = calloc(c->n + 1, sizeof *c->to);
    c->metadata = calloc(2 * n + 1, sizeof *c->metadata);
    if (!c->from || !c->to || !c->metadata)
        return tool_error("out of memory");
    for (size_t i = 0; i < c->n; i++)
        c->from[i] = c->to[i] = *attncl_safetensors_at(c->file, i);
    for (size_t i = 0; i < n; i++) {
        key = attncl_safetensors_metadata_at(c->file, i, &value);
        c->metadata[c->n_metadata++] = key;
        c->metadata[c->n_metadata++] = value;
    }
    return TOOL_OK;
}

static bool is_quantised(attncl_dtype dtype)
{
    return dtype == ATTNCL_Q8 || dtype == ATTNCL_Q4;
}

// Removes the metadata that says that array `name` is quantised; the writer adds its own.
static void remove_quantised_metadata(struct conversion *c, const char *name)
{
    const size_t prefix = sizeof ATTNCL_QUANTISED_KEY - 1;
    size_t n = 0;

    for (size_t i = 0; i < c->n_metadata; i += 2)
        if (strncmp(c->metadata[i], ATTNCL_QUANTISED_KEY, prefix) != 0 ||
            strcmp(c->metadata[i] + prefix, name) != 0) {
            c->metadata[n++] = c->metadata[i];
            c->metadata[n++] = c->metadata[i + 1];
        }
    c->metadata[c->n_metadata = n] = NULL;
}

static int plan_parameter(struct conversion *c, const attncl_entry *e, attncl_dtype dtype, size_t i)
{
    attncl_array *from = &c->from[i];
    attncl_dtype was = from->dtype;
    int64_t dim[2];

    if (is_quantised(dtype) && !e->is_map)
        return TOOL_OK;
    if (was == ATTNCL_U8) {
        if (attncl_safetensors_quantised(c->file, from->name, &was, dim) != ATTNCL_OK)
            return tool_error("%s: %s", from->name, attncl_last_error());
        if (was == dtype)
            return TOOL_OK;
        if (is_quantised(was)) {
            *from = attncl_array_make(from->name, was, 2, dim, NULL);
            remove_quantised_metadata(c, from->name);
        }
    }
    c->to[i] = attncl_array_make(from->name,
                                 is_quantised(dtype) && from->dim[1] % 32 != 0 ? ATTNCL_F16 : dtype,
                                 from->rank, from->dim, NULL);
    return TOOL_OK;
}

// Sets the type to write of each parameter that the description names.
static int plan_parameters(struct conversion *c, const attncl_description *description,
                           attncl_dtype dtype)
{
    const attncl_entry *e;

    for (size_t i = 0; (e = attncl_description_at(description, i)) != NULL; i++) {
        if (e->kind != ATTNCL_ENTRY_PARAMETER)
            continue;
        for (size_t k = 0; k < c->n; k++)
            if (strcmp(c->from[k].name, e->name) == 0 && c->from[k].rank >= 2) {
                TOOL_TRY(plan_parameter(c, e, dtype, k));
                break;
            }
    }
    return TOOL_OK;
}

// Converts c->data from type `from` to type `to`; if one is quantised, the other must be F32.
static attncl_status change_type(struct conversion *c, const attncl_array *array, attncl_dtype from,
                                 attncl_dtype to)
{
    const attncl_array result = attncl_array_make(array->name, to, array->rank, array->dim, NULL);
    const int64_t n = array->dim[0], k = array->dim[1];
    attncl_status status;
    void *data = malloc(result.bytes + 1);

    if (!data)
        return ATTNCL_ERR_NO_MEMORY;
    if (is_quantised(from))
        status = attncl_dequantise(from, n, k, c->data, data);
    else if (is_quantised(to))
        status = attncl_quantise(to, n, k, c->data, data);
    else
        status =
            attncl_elements_convert(from, c->data, to, data, result.bytes / attncl_dtype_bytes(to));
    free(c->data);
    c->data = data;
    return status;
}

// The writer's source: reads array i and converts it, through F32 if one of its types is quantised.
static attncl_status provide_array(void *conversion, size_t i, const void **data_ret)
{
    struct conversion *c = conversion;
    const attncl_array *from = &c->from[i], *to = &c->to[i];
    attncl_dtype type = from->dtype;
    attncl_status status;

    free(c->data);
    c->data = output_interrupted() ? NULL : malloc(from->bytes + 1);
    if (!c->data)
        return ATTNCL_ERR_NO_MEMORY;
    status = attncl_safetensors_read(c->file, from->name, c->data, from->bytes);
    if (status == ATTNCL_OK && type != to->dtype && type != ATTNCL_F32 &&
        (is_quantised(type) || is_quantised(to->dtype))) {
        status = change_type(c, to, type, ATTNCL_F32);
        type = ATTNCL_F32;
    }
    if (status == ATTNCL_OK && type != to->dtype)
        status = change_type(c, to, type, to->dtype);
    *data_ret = c->data;
    return status;
}

static int convert(const char *from, const char *to, attncl_dtype dtype)
{
    attncl_description *description = NULL;
    struct conversion c = {.n = 0};
    int status;

    TOOL_TRY(tool_status(attncl_safetensors_open_header(from, &c.file)));
    if (attncl_description_create_for(c.file, &description) != ATTNCL_OK ||
        attncl_description_check(description) != ATTNCL_OK)
        status = tool_error("%s: %s", from, attncl_last_error());
    else
        status = list_arrays(&c);
    if (status == TOOL_OK)
        status = plan_parameters(&c, description, dtype);
    output_file_begin();
    const attncl_status written =
        status == TOOL_OK
            ? attncl_safetensors_write_from(to, c.to, c.n, c.metadata, provide_array, &c)
            : ATTNCL_OK;
    output_file_end();
    if (written != ATTNCL_OK)
        status = tool_failed();
    attncl_description_destroy(description);
    free_conversion(&c);
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

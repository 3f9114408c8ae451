// SPDX-License-Identifier: MIT
//
// attncl inspect: tensors, metadata, architecture and parameter count of a safetensors file.  Needs
// no device.

#include <string.h>

#include <jansson.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl inspect FILE [--json]\n"
    "\n"
    "Shows what a safetensors file holds: metadata, tensors, and for a model file its\n"
    "architecture and the number of its trained parameters (masks and fixed position tables\n"
    "do not count).\n";

static int64_t count_elements(const attncl_array *array)
{
    int64_t n = 1;

    for (int i = 0; i < array->rank; i++)
        n *= array->dim[i];
    return n;
}

// A state_dict of PyTorch has buffers besides parameters: AFT-local's window and the sinusoidal
// table, which is a parameter only in models with learned positions.
static bool is_buffer(const attncl_safetensors *file, const attncl_array *array)
{
    const char *config = attncl_safetensors_metadata(file, "attncl.config");

    if (name_ends_with(array->name, "local_mask"))
        return true;
    return name_ends_with(array->name, "positional_encodings") &&
           !(config && strstr(config, "\"learned_pos\""));
}

static int64_t count_parameters(const attncl_safetensors *file)
{
    int64_t n = 0;

    for (size_t i = 0; i < attncl_safetensors_count(file); i++) {
        const attncl_array *array = attncl_safetensors_at(file, i);
        if (!is_buffer(file, array))
            n += count_elements(array);
    }
    return n;
}

// "[2, 3]"
static void print_shape(const attncl_array *array)
{
    printf("[");
    for (int i = 0; i < array->rank; i++)
        printf("%s%lld", i ? ", " : "", (long long)array->dim[i]);
    printf("]");
}

// A value on one line: control characters as JSON writes them.
static void print_value(const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", stdout);
        else if (*text == '\t')
            fputs("\\t", stdout);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
}

static void print_text(const attncl_safetensors *file)
{
    const char *arch = attncl_safetensors_metadata(file, "attncl.arch");
    const char *key, *value;
    size_t bytes = 0;

    if (arch)
        printf("architecture  %s\nparameters    %lld\n", arch, (long long)count_parameters(file));
    for (size_t i = 0; (key = attncl_safetensors_metadata_at(file, i, &value)) != NULL; i++) {
        printf("metadata      %s = ", key);
        print_value(value);
        printf("\n");
    }
    for (size_t i = 0; i < attncl_safetensors_count(file); i++) {
        const attncl_array *array = attncl_safetensors_at(file, i);
        printf("%-5s %12zu bytes  %s ", attncl_dtype_name(array->dtype), array->bytes, array->name);
        print_shape(array);
        printf("\n");
        bytes += array->bytes;
    }
    printf("%zu tensors, %zu bytes\n", attncl_safetensors_count(file), bytes);
}

static json_t *tensor_json(const attncl_array *array)
{
    json_t *shape = json_array();

    for (int i = 0; i < array->rank; i++)
        json_array_append_new(shape, json_integer(array->dim[i]));
    return json_pack("{ss ss so sI}", "name", array->name, "dtype", attncl_dtype_name(array->dtype),
                     "shape", shape, "bytes", (json_int_t)array->bytes);
}

static int print_json(const attncl_safetensors *file)
{
    json_t *metadata = json_object(), *tensors = json_array();
    const char *key, *value;

    for (size_t i = 0; (key = attncl_safetensors_metadata_at(file, i, &value)) != NULL; i++)
        json_object_set_new(metadata, key, json_string(value));
    for (size_t i = 0; i < attncl_safetensors_count(file); i++)
        json_array_append_new(tensors, tensor_json(attncl_safetensors_at(file, i)));
    json_t *root = json_pack(
        "{ss? sI so so}", "architecture", attncl_safetensors_metadata(file, "attncl.arch"),
        "parameters", (json_int_t)count_parameters(file), "metadata", metadata, "tensors", tensors);
    if (!root)
        return tool_error("out of memory");
    json_dumpf(root, stdout, 0);
    putchar('\n');
    json_decref(root);
    return TOOL_OK;
}

int command_inspect(int argc, char **argv)
{
    bool json = false;
    const char *path = NULL;
    const struct option_row rows[] = {
        {"json", 'j', OPTION_SWITCH, &json, .help = "as JSON"},
        {"FILE", .kind = OPTION_OPERAND, .value = &path},
        {.name = NULL},
    };
    attncl_safetensors *file = NULL;
    int status = tool_options("inspect", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (attncl_safetensors_open(path, &file) != ATTNCL_OK)
        return tool_failed();
    status = TOOL_OK;
    if (json)
        status = print_json(file);
    else
        print_text(file);
    attncl_safetensors_close(file);
    return status;
}

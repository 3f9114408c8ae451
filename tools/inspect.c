// SPDX-License-Identifier: MIT
//
// attncl inspect: tensors, metadata, architecture and parameter count of a safetensors file.  Needs
// no device.

#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { VAL_JSON = 'j' };

static const struct option options[] = {{"json", no_argument, NULL, VAL_JSON}, {NULL, 0, NULL, 0}};

static const struct command command = {
    .name = "inspect",
    .usage = "usage: attncl inspect FILE [--json]\n"
             "\n"
             "Shows what a safetensors file holds: metadata, tensors, and for a model file its "
             "architecture and the\n"
             "number of its trained parameters (masks and fixed position tables do not count).\n"
             "\n"
             "  -j, --json      as JSON\n"
             "  -v, --verbose   the library's log on stderr\n"
             "  -h, --help      this text\n",
    .options = options,
    .n_operands = 1,
};

static int64_t count_elements(const attncl_array *array)
{
    int64_t n = 1;

    for (int i = 0; i < array->rank; i++)
        n *= array->dim[i];
    return n;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

// PyTorch keeps buffers beside parameters in a state_dict: AFT-local's window and the sinusoidal
// table, which is a parameter only in models with learned positions.
static bool is_buffer(const attncl_safetensors *file, const attncl_array *array)
{
    const char *config = attncl_safetensors_metadata(file, "attncl.config");

    if (ends_with(array->name, "local_mask"))
        return true;
    return ends_with(array->name, "positional_encodings") &&
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

static void print_json(const attncl_safetensors *file)
{
    const char *arch = attncl_safetensors_metadata(file, "attncl.arch");
    const char *key, *value;

    printf("{\"architecture\": ");
    if (arch)
        json_string(stdout, arch);
    else
        printf("null");
    printf(", \"parameters\": %lld,\n \"metadata\": {", (long long)count_parameters(file));
    for (size_t i = 0; (key = attncl_safetensors_metadata_at(file, i, &value)) != NULL; i++) {
        printf(i ? ",\n  " : "\n  ");
        json_string(stdout, key);
        printf(": ");
        json_string(stdout, value);
    }
    printf("},\n \"tensors\": [");
    for (size_t i = 0; i < attncl_safetensors_count(file); i++) {
        const attncl_array *array = attncl_safetensors_at(file, i);
        printf(i ? ",\n  {\"name\": " : "\n  {\"name\": ");
        json_string(stdout, array->name);
        printf(", \"dtype\": \"%s\", \"shape\": ", attncl_dtype_name(array->dtype));
        print_shape(array);
        printf(", \"bytes\": %zu}", array->bytes);
    }
    printf("]}\n");
}

int command_inspect(int argc, char **argv)
{
    attncl_safetensors *file = NULL;
    bool json = false;
    int option, status = TOOL_OK;

    while ((option = tool_option(&command, argc, argv, &status)) != OPTION_DONE) {
        if (option == OPTION_EXIT)
            return status;
        json = true;
    }
    if (attncl_safetensors_open(argv[optind], &file) != ATTNCL_OK)
        return tool_failed();
    if (json)
        print_json(file);
    else
        print_text(file);
    attncl_safetensors_close(file);
    return TOOL_OK;
}

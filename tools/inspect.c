// SPDX-License-Identifier: MIT
//
// attncl inspect: describes a safetensors file, tells whether it can run, or describes an architecture.  Needs no
// device.

#include <string.h>

#include <jansson.h>

#include "describe.h"
#include "tool.h"

static const char usage[] =
    "usage: attncl inspect FILE [--json]\n"
    "       attncl inspect --arch NAME [--config JSON] [--json]\n"
    "\n"
    "Prints the metadata and tensors of a safetensors file.  For a model file, it also prints\n"
    "the architecture, inputs, outputs, the number of trained parameters (without masks and\n"
    "fixed position tables), missing parameters, wrong shapes, and ignored tensors.  Exit\n"
    "status 1 if the model cannot run.\n"
    "\n"
    "With --arch, prints an architecture's configuration keys, parameters, inputs and outputs\n"
    "with their shapes, for the configuration or a small example.  Letters in shapes are free\n"
    "axes (T sequence, B batch), names are keys; {i} stands for each layer.\n";

static int64_t count_elements(const attncl_array *array)
{
    int64_t n = 1;

    for (int i = 0; i < array->rank; i++)
        n *= array->dim[i];
    return n;
}

struct inspected {
    const attncl_safetensors *file;
    attncl_description *description; // null: not a model file, or one that cannot be described
    char problem[1200]; // why the model cannot run; "": it can, or the file is no model
};

static bool is_model(const attncl_safetensors *file)
{
    return attncl_safetensors_metadata(file, "attncl.arch") ||
           attncl_safetensors_metadata(file, "attncl.config");
}

static void describe_file(struct inspected *x)
{
    attncl_status status = ATTNCL_OK;

    if (is_model(x->file))
        status = attncl_description_create_for(x->file, &x->description);
    if (x->description)
        status = attncl_description_check(x->description);
    if (status != ATTNCL_OK)
        snprintf(x->problem, sizeof x->problem, "%s", attncl_last_error());
}

// Elements of the trained parameters in the file.
static int64_t count_parameters(const struct inspected *x)
{
    const attncl_entry *e;
    const attncl_array *array;
    int64_t n = 0;

    for (size_t i = 0; (e = attncl_description_at(x->description, i)) != NULL; i++)
        if (e->kind == ATTNCL_ENTRY_PARAMETER &&
            (array = attncl_safetensors_find(x->file, e->name)) != NULL)
            n += count_elements(array);
    return n;
}

// Prints a value on one line, with control characters as in JSON.  Cuts a long one, such as a tokenizer.
static void print_value(const char *text)
{
    enum { LONG = 4000, SHOWN = 100 };
    const size_t bytes = strlen(text);
    const char *end = text + (bytes > LONG ? SHOWN : bytes);

    while ((*end & 0xc0) == 0x80) // do not split a UTF-8 character
        end--;
    for (; text < end; text++) {
        if (*text == '\n')
            fputs("\\n", stdout);
        else if (*text == '\t')
            fputs("\\t", stdout);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    if (bytes > LONG)
        printf("... (%zu bytes)", bytes);
}

static void print_text(const struct inspected *x)
{
    const attncl_safetensors *file = x->file;
    const char *arch = attncl_safetensors_metadata(file, "attncl.arch");
    const char *key, *value;
    size_t bytes = 0;

    if (arch)
        printf("architecture  %s\n", arch);
    if (x->description)
        printf("parameters    %lld\n", (long long)count_parameters(x));
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
    describe_text(x->description, ATTNCL_ENTRY_INPUT, false);
}

static json_t *json_tensor(const attncl_array *array)
{
    return json_pack("{ss ss so sI}", "name", array->name, "dtype", attncl_dtype_name(array->dtype),
                     "shape", json_shape(array), "bytes", (json_int_t)array->bytes);
}

static int print_json(const struct inspected *x)
{
    json_t *metadata = json_object(), *tensors = json_array();
    const char *key, *value;

    for (size_t i = 0; (key = attncl_safetensors_metadata_at(x->file, i, &value)) != NULL; i++)
        json_object_set_new(metadata, key, json_string(value));
    for (size_t i = 0; i < attncl_safetensors_count(x->file); i++)
        json_array_append_new(tensors, json_tensor(attncl_safetensors_at(x->file, i)));
    json_t *root = json_pack("{ss? so so}", "architecture",
                             attncl_safetensors_metadata(x->file, "attncl.arch"), "metadata",
                             metadata, "tensors", tensors);
    bool complete = root != NULL;
    if (complete && is_model(x->file))
        complete = json_object_set_new(root, "runs", json_boolean(!*x->problem)) == 0;
    if (complete && x->description)
        complete =
            json_object_set_new(root, "parameters", json_integer(count_parameters(x))) == 0 &&
            describe_values_json(x->description, root) &&
            describe_problems_json(x->description, root);
    if (!complete) {
        json_decref(root);
        root = NULL;
    }
    return json_print(root);
}

static int inspect_file(const char *path, bool json)
{
    struct inspected x = {.file = NULL};
    attncl_safetensors *file = NULL;
    int status = TOOL_OK;

    TOOL_TRY(tool_status(attncl_safetensors_open(path, &file)));
    x.file = file;
    describe_file(&x);
    if (json)
        status = print_json(&x);
    else
        print_text(&x);
    if (status == TOOL_OK && *x.problem) {
        fflush(stdout);
        status = tool_error("%s: %s", path, x.problem);
    }
    attncl_description_destroy(x.description);
    attncl_safetensors_close(file);
    return status;
}

// -- an architecture

struct arch_request {
    const char *arch, *config; // config null: a small example
    bool symbols, json;
};

static int print_arch_json(const attncl_description *description)
{
    json_t *root = json_pack("{ss ss}", "architecture", attncl_description_arch(description),
                             "config", attncl_description_config(description));

    if (root &&
        !(describe_keys_json(description, root) && describe_tensors_json(description, root) &&
          describe_values_json(description, root))) {
        json_decref(root);
        root = NULL;
    }
    return json_print(root);
}

static int inspect_arch(const struct arch_request *request)
{
    attncl_description *description = NULL;
    const bool symbols = request->symbols || !request->config;
    int status = TOOL_OK;

    TOOL_TRY(tool_status(
        attncl_description_create(request->arch, request->config, symbols, &description)));
    if (request->json) {
        status = print_arch_json(description);
    } else {
        describe_line("architecture", "%s", attncl_description_arch(description));
        describe_line(request->config ? "configuration" : "example", "%s",
                      attncl_description_config(description));
        describe_text(description, ATTNCL_ENTRY_KEY, symbols);
    }
    attncl_description_destroy(description);
    return status;
}

int command_inspect(int argc, char **argv)
{
    struct arch_request request = {.arch = NULL};
    const char *path = NULL;
    const struct option_row rows[] = {
        {"arch", 'a', OPTION_TEXT, &request.arch, "NAME",
         .help = "describe an architecture instead of a file"},
        {"config", 0, OPTION_TEXT, &request.config, "JSON",
         .help = "the architecture's configuration, as in metadata attncl.config"},
        {"symbols", 0, OPTION_SWITCH, &request.symbols,
         .help = "print the names of the configuration's integers in shapes"},
        {"json", 'j', OPTION_SWITCH, &request.json, .help = "print JSON"},
        {"FILE", .kind = OPTION_LAST, .value = &path},
        {.name = NULL},
    };
    const int status = tool_options("inspect", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (!path == !request.arch) {
        tool_error(path ? "inspect takes a file name or --arch, not both"
                        : "inspect: a file name or --arch is missing");
        return TOOL_USAGE;
    }
    if (path && (request.config || request.symbols)) {
        tool_error("inspect: %s is for --arch, not for a file",
                   request.config ? "--config" : "--symbols");
        return TOOL_USAGE;
    }
    return request.arch ? inspect_arch(&request) : inspect_file(path, request.json);
}

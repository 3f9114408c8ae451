// SPDX-License-Identifier: MIT
//
// Loads a model file and runs it on the arrays of an input file.
//
//     run_model MODEL.safetensors INPUT.safetensors

#include <attncl/attncl.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what)
{
    fprintf(stderr, "run_model: %s: %s\n", what, attncl_last_error());
    return EXIT_FAILURE;
}

// The file's arrays in a row.  Names and data stay the file's.
static attncl_array *list_arrays(const attncl_safetensors *file, size_t *n_ret)
{
    const size_t n = attncl_safetensors_count(file);
    attncl_array *arrays = (attncl_array *)calloc(n + 1, sizeof *arrays);

    for (size_t i = 0; arrays && i < n; i++)
        arrays[i] = *attncl_safetensors_at(file, i);
    *n_ret = n;
    return arrays;
}

static void print_array(const attncl_array *array)
{
    const float *x = (const float *)array->data;

    printf("%s: %s [", array->name, attncl_dtype_name(array->dtype));
    for (int i = 0; i < array->rank; i++)
        printf("%s%lld", i ? ", " : "", (long long)array->dim[i]);
    printf("]");
    for (size_t i = 0; array->dtype == ATTNCL_F32 && i < array->bytes / sizeof *x && i < 4; i++)
        printf(" %g", (double)x[i]);
    printf("\n");
}

static int run(attncl_context *context, const char *model_path, const char *input_path)
{
    int result = EXIT_FAILURE;
    attncl_model *model = NULL;
    attncl_safetensors *file = NULL;
    attncl_array *inputs = NULL;
    attncl_results *results = NULL;
    size_t n = 0;

    if (attncl_model_open(context, model_path, NULL, &model) != ATTNCL_OK) {
        fail(model_path);
    } else if (attncl_safetensors_open(input_path, &file) != ATTNCL_OK) {
        fail(input_path);
    } else if ((inputs = list_arrays(file, &n)) == NULL) {
        fprintf(stderr, "run_model: out of memory\n");
    } else if (attncl_model_run(model, inputs, n, &results, NULL) != ATTNCL_OK) {
        fail(attncl_model_arch(model));
    } else {
        for (size_t i = 0; i < attncl_results_count(results); i++)
            print_array(attncl_results_at(results, i));
        result = EXIT_SUCCESS;
    }
    attncl_results_destroy(results);
    free(inputs);
    attncl_safetensors_close(file);
    attncl_model_destroy(model);
    return result;
}

int main(int argc, char **argv)
{
    attncl_context *context = NULL;
    int result;

    if (argc != 3) {
        fprintf(stderr, "usage: run_model MODEL.safetensors INPUT.safetensors\n");
        return 2;
    }
    if (attncl_context_create(NULL, &context) != ATTNCL_OK)
        return fail("no device");
    result = run(context, argv[1], argv[2]);
    if (attncl_context_destroy(context) != ATTNCL_OK)
        result = fail("closing the device");
    return result;
}

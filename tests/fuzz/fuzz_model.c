// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a model file, described and opened.  Arrays input.NAME of the same file
// are the inputs it runs with, if they ask for no more than a kernel compiler takes in time.

#include <string.h>

#include "attncl/describe.h"
#include "attncl/model.h"
#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "fuzz/fuzz.h"

enum { MAX_INPUTS = 12, MAX_ELEMENTS = 4096 };

static size_t inputs_of(const attncl_safetensors *file, attncl_array inputs[MAX_INPUTS])
{
    const attncl_array *a;
    size_t n = 0;
    for (size_t i = 0; n < MAX_INPUTS && (a = attncl_safetensors_at(file, i)) != NULL; ++i) {
        if (strncmp(a->name, "input.", 6) != 0)
            continue;
        inputs[n] = *a;
        inputs[n++].name = a->name + 6;
    }
    return n;
}

static void check_file(const attncl_safetensors *file)
{
    attncl_description *d = NULL;
    if (fuzz_is_ok(attncl_description_create_for(file, &d)))
        (void)fuzz_is_ok(attncl_description_check(d));
    attncl_description_destroy(d);
}

static void run_model(attncl_model *model, const attncl_safetensors *file)
{
    attncl_array inputs[MAX_INPUTS];
    attncl_results *results = NULL;
    const size_t n = inputs_of(file, inputs);
    for (size_t i = 0; i < n; ++i)
        if (inputs[i].bytes > MAX_ELEMENTS * sizeof(float))
            return;
    if (fuzz_is_ok(attncl_model_run(model, inputs, n, &results, NULL)))
        MUST(attncl_results_count(results) > 0);
    else
        MUST(!results);
    attncl_results_destroy(results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    attncl_safetensors *file = NULL;
    attncl_model *model = NULL;
    if (!fuzz_is_ok(attncl_safetensors_parse(data, size, &file)))
        return 0;
    check_file(file);
    if (fuzz_is_ok(attncl_model_open(fuzz_context(), fuzz_path(data, size), NULL, &model)))
        run_model(model, file);
    attncl_model_destroy(model);
    attncl_safetensors_close(file);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_framed(data, size, max_size, seed);
}

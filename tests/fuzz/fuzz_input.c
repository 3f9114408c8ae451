// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a file of inputs for one of some models, which the first byte chooses.
// The models are golden files of tests/data and stay open.

#include <string.h>

#include "attncl/model.h"
#include "attncl/safetensors.h"
#include "fuzz/fuzz.h"

enum { MAX_INPUTS = 12, MAX_BYTES = 16384 };
static const char *const names[] = {
    "lm_aft_local_grad",   "seq2seq_bahdanau_grad",    "masked_softmax_grad",
    "cross_entropy_grad",  "encoder_transformer_grad", "gru_grad",
    "optimizer_step_adam", "clip_grad_norm_torch",
};
enum { N_MODELS = sizeof names / sizeof names[0] };

static attncl_model *model_of(unsigned which)
{
    static attncl_model *models[N_MODELS];
    char path[512];
    if (!models[which]) {
        snprintf(path, sizeof path, "%s/%s.safetensors", ATTNCL_TEST_DATA, names[which]);
        MUST(attncl_model_open(fuzz_context(), path, NULL, &models[which]) == ATTNCL_OK);
    }
    return models[which];
}

static void run_model(attncl_model *model, const attncl_safetensors *file)
{
    attncl_array inputs[MAX_INPUTS];
    const attncl_array *a;
    attncl_results *results = NULL;
    size_t n = 0;
    for (size_t i = 0; n < MAX_INPUTS && (a = attncl_safetensors_at(file, i)) != NULL; ++i) {
        inputs[n++] = *a;
        if (a->bytes > MAX_BYTES)
            return;
    }
    if (fuzz_is_ok(attncl_model_run(model, inputs, n, &results, NULL)))
        MUST(attncl_results_count(results) > 0);
    else
        MUST(!results);
    attncl_results_destroy(results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    attncl_safetensors *file = NULL;
    if (size < 1 || !fuzz_is_ok(attncl_safetensors_parse(data + 1, size - 1, &file)))
        return 0;
    run_model(model_of(data[0] % N_MODELS), file);
    attncl_safetensors_close(file);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (size < 1)
        return LLVMFuzzerMutate(data, size, max_size);
    return 1 + fuzz_mutate_framed(data + 1, size - 1, max_size - 1, seed);
}

// SPDX-License-Identifier: MIT
//
// Steps of decoding whose keys and values are kept in F32, F16 and BF16 (attncl_decoder_create()), in
// turn, in CPU time: medians, and how much memory the states take.  The model's weights are random.
//
//     state_types '{"layer": "transformer", "heads": 8, "d_model": 512, "d_ff": 2048, "n_layers": 8, "n_vocab": 64, "max_len": 4200}' 4096

#include <attncl/attncl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_TYPES = 3, N_STEPS = 25 };

static const attncl_dtype types[N_TYPES] = {ATTNCL_F32, ATTNCL_F16, ATTNCL_BF16};

struct decoding {
    attncl_decoder *decoder;
    double step[N_STEPS]; // seconds
};

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// A decoder that has taken a prompt of n tokens, and one step.
static attncl_status begin(attncl_model *model, attncl_dtype type, int64_t n, struct decoding *ret)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    int32_t *tokens = (int32_t *)malloc(((size_t)n + 1) * sizeof *tokens);
    attncl_status status = tokens ? ATTNCL_OK : ATTNCL_ERR_NO_MEMORY;

    options.state_dtype = type;
    if (status == ATTNCL_OK)
        status = attncl_decoder_create(model, 1, &options, &ret->decoder);
    for (int64_t i = 0; i <= n && status == ATTNCL_OK; i++)
        tokens[i] = (int32_t)((i * 7 + 3) % attncl_decoder_vocabulary(ret->decoder));
    if (status == ATTNCL_OK)
        status = attncl_decoder_prefill(ret->decoder, n, tokens, NULL);
    if (status == ATTNCL_OK)
        status = attncl_decoder_step(ret->decoder, tokens + n, NULL);
    free(tokens);
    return status;
}

static attncl_status measure(attncl_model *model, int64_t n)
{
    struct decoding decodings[N_TYPES] = {{NULL, {0}}};
    const int32_t token = 1;
    float *scores = NULL;
    attncl_status status = ATTNCL_OK;

    for (int k = 0; k < N_TYPES && status == ATTNCL_OK; k++)
        status = begin(model, types[k], n, &decodings[k]);
    if (status == ATTNCL_OK)
        scores = (float *)calloc((size_t)attncl_decoder_vocabulary(decodings[0].decoder),
                                 sizeof *scores);
    for (int i = 0; i < N_STEPS && status == ATTNCL_OK; i++)
        for (int k = 0; k < N_TYPES && status == ATTNCL_OK; k++) {
            const double start = (double)clock(); // of all threads
            status = scores ? attncl_decoder_step(decodings[k].decoder, &token, scores)
                            : ATTNCL_ERR_NO_MEMORY;
            decodings[k].step[i] = ((double)clock() - start) / CLOCKS_PER_SEC;
        }
    for (int k = 0; k < N_TYPES; k++) {
        struct decoding *d = &decodings[k];
        attncl_memory_report memory = ATTNCL_MEMORY_REPORT_INIT;
        qsort(d->step, N_STEPS, sizeof d->step[0], smaller_first);
        if (status == ATTNCL_OK)
            status = attncl_graph_memory(attncl_decoder_graph(d->decoder), &memory);
        if (status == ATTNCL_OK)
            printf("%-4s after %d tokens: states %.1f MB, a step %.3f ms, F32 by it %.2f\n",
                   attncl_dtype_name(types[k]), (int)n, 1e-6 * (double)memory.state_bytes,
                   1e3 * d->step[N_STEPS / 2],
                   decodings[0].step[N_STEPS / 2] / d->step[N_STEPS / 2]);
    }
    for (int k = 0; k < N_TYPES; k++)
        attncl_decoder_destroy(decodings[k].decoder);
    free(scores);
    return status;
}

int main(int argc, char **argv)
{
    const char *small = "{\"layer\": \"transformer\", \"heads\": 2, \"d_model\": 32, \"d_ff\": 64, "
                        "\"n_layers\": 2, \"n_vocab\": 65, \"max_len\": 128}";
    const int64_t n = argc > 2 ? strtol(argv[2], NULL, 10) : 64;
    attncl_context *context = NULL;
    attncl_model *model = NULL;
    attncl_status status = attncl_context_create(NULL, &context);

    if (status == ATTNCL_OK)
        status = attncl_model_create(context, "lm", argc > 1 ? argv[1] : small, 1, &model);
    if (status == ATTNCL_OK)
        status = measure(model, n);
    if (status != ATTNCL_OK)
        fprintf(stderr, "state_types: %s\n", attncl_last_error());
    attncl_model_destroy(model);
    attncl_context_destroy(context);
    return status == ATTNCL_OK ? 0 : 1;
}

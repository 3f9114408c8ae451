// SPDX-License-Identifier: MIT
//
// Decoding with a language model, by the position reached: what a prompt costs at once and token by
// token, and what a step after it costs, whose scores the host reads or which draws the likeliest token on
// the device, in CPU time.  The model's weights are random.
//
//     decode '{"layer": "transformer", "heads": 8, "d_model": 512, "d_ff": 2048, "n_layers": 6, "n_vocab": 512}'

#include <attncl/attncl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_REPEATS = 5, N_STEPS = 32, LONGEST = 1920 };

struct costs {
    double prompt[N_REPEATS], by_steps, step[N_REPEATS], drawn[N_REPEATS]; // seconds
    double difference; // of scores, relative to the largest
};

// CPU time of all threads, which is the time of work that no other process disturbs.
static double seconds_now(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x)
{
    qsort(x, N_REPEATS, sizeof *x, smaller_first);
    return x[N_REPEATS / 2];
}

static double largest_difference(const float *a, const float *b, int64_t n)
{
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        if (!(fabs((double)a[i] - (double)b[i]) <= difference) && !isnan(difference))
            difference = fabs((double)a[i] - (double)b[i]); // NaN stays
    }
    return difference / largest;
}

// Tokens after a prompt, drawn on the device; seconds each.
static attncl_status draw(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                          double *seconds_ret)
{
    attncl_sampling likeliest = ATTNCL_SAMPLING_INIT;
    int32_t drawn[N_STEPS];
    attncl_status status = attncl_decoder_reset(decoder);

    likeliest.temperature = 0;
    if (status == ATTNCL_OK)
        status = attncl_decoder_prefill(decoder, n, tokens, NULL);
    const double start = seconds_now();
    if (status == ATTNCL_OK)
        status = attncl_decoder_sample(decoder, N_STEPS, tokens + n, &likeliest, drawn);
    *seconds_ret = (seconds_now() - start) / N_STEPS;
    return status;
}

// scores: [2][vocabulary]
static attncl_status measure(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                             float *scores, struct costs *costs)
{
    const int64_t n_vocab = attncl_decoder_vocabulary(decoder);
    attncl_status status = attncl_decoder_reset(decoder);
    if (status == ATTNCL_OK) // a driver may compile at the first launch of a kernel
        status = attncl_decoder_step(decoder, tokens, scores);
    if (status == ATTNCL_OK)
        status = attncl_decoder_reset(decoder);
    double start = seconds_now();
    for (int64_t t = 0; t < n && status == ATTNCL_OK; t++)
        status = attncl_decoder_step(decoder, tokens + t, t + 1 == n ? scores : NULL);
    costs->by_steps = seconds_now() - start;

    for (int r = -1; r < N_REPEATS && status == ATTNCL_OK; r++) { // -1: compiles
        status = attncl_decoder_reset(decoder);
        start = seconds_now();
        if (status == ATTNCL_OK)
            status = attncl_decoder_prefill(decoder, n, tokens, scores + n_vocab);
        const double end = seconds_now();
        costs->prompt[r < 0 ? 0 : r] = end - start;
        if (r < 0)
            costs->difference = largest_difference(scores, scores + n_vocab, n_vocab);
        for (int i = 0; i < N_STEPS && status == ATTNCL_OK; i++)
            status = attncl_decoder_step(decoder, tokens + n + i, scores + n_vocab);
        costs->step[r < 0 ? 0 : r] = (seconds_now() - end) / N_STEPS;
        if (status == ATTNCL_OK)
            status = draw(decoder, n, tokens, &costs->drawn[r < 0 ? 0 : r]);
    }
    return status;
}

static attncl_status print_curve(attncl_decoder *decoder)
{
    static const int64_t lengths[] = {16, 64, 256, 512, 1024, LONGEST};
    static int32_t tokens[LONGEST + N_STEPS];
    const int64_t n_vocab = attncl_decoder_vocabulary(decoder),
                  limit = attncl_decoder_limit(decoder);
    float *scores = (float *)malloc(2 * (size_t)n_vocab * sizeof *scores);
    attncl_status status = scores ? ATTNCL_OK : ATTNCL_ERR_NO_MEMORY;

    for (int i = 0; i < LONGEST + N_STEPS; i++)
        tokens[i] = (int32_t)((i * 7 + 3) % n_vocab);
    printf("| prompt | at once, ms | by steps, ms | ratio | a step after it, ms | one that draws, "
           "ms | "
           "ratio | difference |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0] && status == ATTNCL_OK; i++) {
        struct costs costs;
        if (limit > 0 && lengths[i] + N_STEPS > limit)
            break;
        status = measure(decoder, lengths[i], tokens, scores, &costs);
        if (status == ATTNCL_OK) {
            const double prompt = median(costs.prompt), step = median(costs.step),
                         drawn = median(costs.drawn);
            printf("| %d | %.2f | %.1f | %.1f | %.3f | %.3f | %.2f | %.1e |\n", (int)lengths[i],
                   1e3 * prompt, 1e3 * costs.by_steps, costs.by_steps / prompt, 1e3 * step,
                   1e3 * drawn, step / drawn, costs.difference);
        }
    }
    free(scores);
    return status;
}

int main(int argc, char **argv)
{
    const char *small = "{\"layer\": \"aft_local\", \"seq_len\": 2048, \"local_window_size\": 32, "
                        "\"d_model\": 32, \"d_ff\": 64, \"n_layers\": 2, \"n_vocab\": 65}";
    attncl_context *context = NULL;
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;
    attncl_status status = attncl_context_create(NULL, &context);

    if (status == ATTNCL_OK)
        status = attncl_model_create(context, "lm", argc > 1 ? argv[1] : small, 1, &model);
    if (status == ATTNCL_OK)
        status = attncl_decoder_create(model, 1, NULL, &decoder);
    if (status == ATTNCL_OK)
        status = print_curve(decoder);
    if (status != ATTNCL_OK)
        fprintf(stderr, "decode: %s\n", attncl_last_error());
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
    attncl_context_destroy(context);
    return status == ATTNCL_OK ? 0 : 1;
}

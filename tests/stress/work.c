// SPDX-License-Identifier: MIT

#include <stdio.h>
#include <string.h>

#include "attncl/ops.h"
#include "attncl/train.h"
#include "stress/work.h"

enum { N = 257, N_RUNS = 8, N_TOKENS = 6, MAX_LOGITS = 64 };

static const char *const names[STRESS_MODELS] = {
    "lm_transformer", // the decoder's
    "mha_grad",       "aft_local_grad", "gru_grad", "cross_entropy_grad",
};

void stress_inputs_load(struct stress_inputs *ret, const char *text_path)
{
    for (int i = 0; i < STRESS_MODELS; ++i)
        golden_load(&ret->models[i], names[i]);
    snprintf(ret->text, sizeof ret->text, "%s", text_path);
    FILE *file = fopen(text_path, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 200; ++i)
        fputc("abcdefg"[i * i % 7], file);
    ck_assert_int_eq(fclose(file), 0);
}

void stress_inputs_free(struct stress_inputs *inputs)
{
    for (int i = 0; i < STRESS_MODELS; ++i)
        golden_free(&inputs->models[i]);
}

static attncl_status run_model(attncl_context *ctx, const struct golden *golden,
                               struct strbuf *result)
{
    attncl_model *model = NULL;
    attncl_results *results = NULL;
    attncl_status status = attncl_model_open(ctx, golden->path, NULL, &model);
    if (status == ATTNCL_OK)
        status = attncl_model_run(model, golden->inputs, golden->n_inputs, &results, NULL);
    for (size_t i = 0; status == ATTNCL_OK && i < attncl_results_count(results); ++i) {
        const attncl_array *a = attncl_results_at(results, i);
        attncl__strbuf_add_bytes(result, a->data, a->bytes);
    }
    attncl_results_destroy(results);
    attncl_model_destroy(model);
    return status;
}

static attncl_status decode(attncl_context *ctx, const struct golden *golden, struct strbuf *result)
{
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;
    float logits[MAX_LOGITS] = {0};
    attncl_status status = attncl_model_open(ctx, golden->path, NULL, &model);
    if (status == ATTNCL_OK)
        status = attncl_decoder_create(model, 1, NULL, &decoder);
    for (int32_t i = 0; status == ATTNCL_OK && i < N_TOKENS; ++i) {
        status = attncl_decoder_step(decoder, &i, logits);
        attncl__strbuf_add_bytes(result, logits,
                                 (size_t)attncl_decoder_vocabulary(decoder) * sizeof *logits);
    }
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
    return status;
}

static attncl_status train(attncl_context *ctx, const char *text, struct strbuf *result)
{
    static const char config[] =
        "{\"arch\": \"lm\", \"model\": {\"d_model\": 8, \"n_layers\": 1, \"n_vocab\": 7, "
        "\"max_len\": 8, \"layer\": \"transformer\", \"heads\": 2, \"d_ff\": 8}, \"train\": {"
        "\"seq_len\": 8, \"batch_size\": 2, \"steps\": 4, \"dropout\": 0.1}}";
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_trainer *trainer = NULL;
    options.data = text;
    attncl_status status = attncl_trainer_create(ctx, config, &options, &trainer);
    for (int i = 0; status == ATTNCL_OK && i < 3; ++i) {
        attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
        status = attncl_trainer_step(trainer, &step);
        attncl__strbuf_add_bytes(result, &step.loss, sizeof step.loss);
    }
    attncl_trainer_destroy(trainer);
    return status;
}

// y = (x + x) x, again and again on its own result.
static attncl_status repeat(attncl_context *ctx, struct strbuf *result)
{
    attncl_graph *g = NULL;
    float x[N];
    for (int i = 0; i < N; ++i)
        x[i] = (float)i / N;
    attncl_status status = attncl_graph_create(ctx, &g);
    if (status != ATTNCL_OK)
        return status;
    const attncl_value in = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    attncl_graph_output(g, "y", attncl_mul(g, attncl_add(g, in, in), in));
    status = attncl_graph_compile(g, NULL);
    for (int i = 0; status == ATTNCL_OK && i < N_RUNS; ++i) {
        status = attncl_graph_write(g, "x", x, sizeof x);
        if (status == ATTNCL_OK)
            status = attncl_graph_run(g);
        if (status == ATTNCL_OK)
            status = attncl_graph_read(g, "y", x, sizeof x);
    }
    attncl__strbuf_add_bytes(result, x, sizeof x);
    attncl_graph_destroy(g);
    return status;
}

attncl_status stress_work(attncl_context *ctx, const struct stress_inputs *inputs, int kind,
                          struct strbuf *result)
{
    if (kind < STRESS_MODELS)
        return run_model(ctx, &inputs->models[kind], result);
    if (kind == STRESS_MODELS)
        return decode(ctx, &inputs->models[0], result);
    return kind == STRESS_MODELS + 1 ? train(ctx, inputs->text, result) : repeat(ctx, result);
}

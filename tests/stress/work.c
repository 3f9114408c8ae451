// SPDX-License-Identifier: MIT

#include <stdio.h>
#include <string.h>

#include "attncl/train.h"
#include "stress/work.h"
#include "support/work.h"

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

attncl_status stress_work(attncl_context *ctx, const struct stress_inputs *inputs, int kind,
                          struct strbuf *result)
{
    if (kind < STRESS_MODELS)
        return run_golden(ctx, &inputs->models[kind], result);
    if (kind == STRESS_MODELS)
        return decode_golden(ctx, &inputs->models[0], result);
    return kind == STRESS_MODELS + 1 ? train(ctx, inputs->text, result)
                                     : run_small(ctx, false, result);
}

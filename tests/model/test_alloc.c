// SPDX-License-Identifier: MIT
// Every request for host memory fails once: what was asked for is refused, nothing leaks, and the
// next attempt works.

#include <string.h>

#include "attncl/describe.h"
#include "base/alloc.h"
#include "base/try.h"
#include "support/golden.h"

enum { MAX_REQUESTS = 20000 };

// Opens, runs and closes; the first failure's status.
static attncl_status whole_run(const struct golden *golden)
{
    attncl_status status = ATTNCL_OK;
    attncl_model *model = NULL;
    attncl_results *results = NULL;

    TRY_DONE(attncl_model_open(test_context(), golden->path, NULL, &model));
    TRY_DONE(attncl_model_run(model, golden->inputs, golden->n_inputs, &results, NULL));
done:
    ck_assert(status == ATTNCL_OK || !results);
    attncl_results_destroy(results);
    attncl_model_destroy(model);
    return status;
}

static attncl_status decode(const struct golden *golden)
{
    attncl_status status = ATTNCL_OK;
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;
    const int32_t token = 1, prompt[3] = {1, 2, 3};
    const attncl_sampling sampling = ATTNCL_SAMPLING_INIT;
    int32_t drawn[2];

    TRY_DONE(attncl_model_open(test_context(), golden->path, NULL, &model));
    TRY_DONE(attncl_decoder_create(model, 1, NULL, &decoder));
    TRY_DONE(attncl_decoder_prefill(decoder, 3, prompt, NULL));
    TRY_DONE(attncl_decoder_step(decoder, &token, NULL));
    TRY_DONE(attncl_decoder_sample(decoder, 2, &token, &sampling, drawn));
done:
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
    return status;
}

static attncl_status describe(const struct golden *golden)
{
    attncl_description *description = NULL;
    const attncl_status status = attncl_description_create_for(golden->file, &description);
    attncl_description_destroy(description);
    return status;
}

static attncl_status describe_example(const struct golden *golden)
{
    attncl_description *description = NULL;
    const char *arch = attncl_safetensors_metadata(golden->file, "attncl.arch");
    const attncl_status status = attncl_description_create(arch, NULL, 1, &description);
    attncl_description_destroy(description);
    return status;
}

static attncl_status count_devices(const struct golden *golden)
{
    size_t count;
    (void)golden;
    return attncl_device_count(&count); // heap failures give no blank names either
}

static const struct {
    const char *golden;
    attncl_status (*act)(const struct golden *golden);
} walks[] = {
    {"seq2seq_transformer_beams", whole_run},
    {"linear", whole_run},
    {"lm_sample", whole_run},
    {"encoder_gmlp", whole_run},
    {"lm_aft_local", decode},
    {"linear_grad", whole_run},
    {"train_lm_gmlp", whole_run},
    {"aft_local", describe},
    {"gru", describe_example},
    {"gru", whole_run},
    {"classes_mean_grad", whole_run},
    {"seq2seq_predict", whole_run},
    {"linear", count_devices},
};
enum { N_WALKS = sizeof walks / sizeof walks[0] };

LOOP_TEST(each_request_may_fail, 0, N_WALKS)
{
    struct golden golden;
    golden_load(&golden, walks[_i].golden);
    ck_ok(walks[_i].act(&golden)); // programs are built and stay
    const size_t alive = attncl__alloc_live();

    size_t n = 1;
    for (; n < MAX_REQUESTS; n += n < 200 ? 1 : 17) {
        attncl__alloc_fail_at(n);
        const attncl_status status = walks[_i].act(&golden);
        const bool reached = attncl__alloc_has_failed();
        attncl__alloc_fail_at(0);
        ck_assert_uint_eq(attncl__alloc_live(), alive);
        if (!reached)
            break;
        ck_assert_msg(status == ATTNCL_ERR_NO_MEMORY,
                      "request %zu failed, and the status is %s (%s)", n,
                      attncl_status_name(status), attncl_last_error());
    }
    ck_assert_uint_lt(n, MAX_REQUESTS);
    ck_ok(walks[_i].act(&golden));
    golden_free(&golden);
}

// SPDX-License-Identifier: MIT
// A call of OpenCL fails while a decoder draws tokens: it is as before, or refuses until it is reset.

#include <string.h>

#include "faults/failure.h"
#include "support/golden.h"

FAULTS_FIXTURE;

enum { MAX_CALLS = 3000, N_TOKENS = 5, N_LOGITS = 11 };

static const char *const models[] = {"lm_aft_local", "lm_transformer", "lm_feedback_kv"};

// Calls of the first drawing, which compiles its graph too, or of another.
LOOP_TEST(a_decoder_that_draws, 0, COUNT_OF(models) * 4)
{
    const bool all = _i % 2 != 0, compiled = _i / 2 % 2 != 0;
    const attncl_sampling sampling = ATTNCL_SAMPLING_INIT;
    int32_t want[N_TOKENS], got[N_TOKENS];
    const int32_t first = 3, second = 4;
    float want_logits[N_LOGITS], logits[N_LOGITS];
    struct golden golden;
    attncl_decoder *d = NULL;

    attncl_model *model = golden_open(&golden, models[_i / 4]);
    ck_ok(attncl_decoder_create(model, 1, NULL, &d));
    ck_ok(attncl_decoder_step(d, &first, NULL));
    ck_ok(attncl_decoder_sample(d, N_TOKENS, &second, &sampling, want));
    ck_ok(attncl_decoder_step(d, &first, want_logits));
    size_t n = 1;
    for (; n < MAX_CALLS; n += 1 + n / 8) {
        if (!compiled) {
            attncl_decoder_destroy(d);
            ck_ok(attncl_decoder_create(model, 1, NULL, &d));
        }
        ck_ok(attncl_decoder_reset(d));
        ck_ok(attncl_decoder_step(d, &first, NULL));
        faults_plan(
            (struct fault_plan){.at = n, .all = all, .code = CL_OUT_OF_RESOURCES, .queries = true});
        attncl_status status = attncl_decoder_sample(d, N_TOKENS, &second, &sampling, got);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        if (status == ATTNCL_OK) { // a smaller launch was found
            ck_assert_msg(!compiled, "call %zu, %s: unnoticed", n, report.first);
            ck_assert_mem_eq(got, want, sizeof want);
            continue;
        }
        ck_assert_int_eq(attncl_decoder_position(d), 1);
        status = attncl_decoder_sample(d, N_TOKENS, &second, &sampling, got);
        if (status == ATTNCL_OK)
            ck_assert_mem_eq(got, want, sizeof want);
        else
            ck_fails(attncl_decoder_step(d, &first, NULL), ATTNCL_ERR_STATE, "reset");
        ck_ok(attncl_decoder_reset(d));
        ck_ok(attncl_decoder_step(d, &first, NULL));
        ck_ok(attncl_decoder_sample(d, N_TOKENS, &second, &sampling, got));
        ck_assert_mem_eq(got, want, sizeof want);
        ck_ok(attncl_decoder_step(d, &first, logits));
        ck_assert_mem_eq(logits, want_logits, sizeof logits);
    }
    ck_assert_uint_gt(n, 4);
    ck_assert_uint_lt(n, MAX_CALLS);
    attncl_decoder_destroy(d);
    golden_close(&golden, model);
}

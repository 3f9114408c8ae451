// SPDX-License-Identifier: MIT
// Inputs that are unusual but right.

#include "support/directory.h"
#include "support/golden.h"

FIXTURE(directory_begin, directory_down);

// A length past the axis sees all of it, however large: 2^32 and 2^40 are 0 in 32 bits.
TEST(a_length_may_exceed_an_int)
{
    enum { B = 2, Q = 2, K = 3 };
    static const float scores[B * Q * K] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3};
    static const int64_t lens[B] = {INT64_C(1) << 40, 2}, capped[B] = {K, 2};
    attncl_array inputs[] = {
        {"X", ATTNCL_F32, 3, {B, Q, K}, scores, sizeof scores},
        {"valid_lens", ATTNCL_I64, 1, {B}, lens, sizeof lens},
    };
    struct golden golden;
    attncl_results *huge = NULL, *exact = NULL;
    attncl_model *model = golden_open(&golden, "masked_softmax");
    ck_ok(attncl_model_run(model, inputs, 2, &huge, NULL));
    inputs[1].data = capped;
    ck_ok(attncl_model_run(model, inputs, 2, &exact, NULL));
    const float *x = attncl_results_at(huge, 0)->data, *y = attncl_results_at(exact, 0)->data;
    for (int i = 0; i < B * Q * K; ++i)
        ck_assert_float_eq(x[i], y[i]);
    ck_assert_float_gt(x[K - 1], 0.5f);
    attncl_results_destroy(huge);
    attncl_results_destroy(exact);
    golden_close(&golden, model);
}

// No target is negative, so nothing is padding.
TEST(a_negative_pad_pads_nothing)
{
    static const float logits[4] = {1, 2, 3, 4};
    static const int32_t targets[2] = {0, 1};
    static const double expected = 0.81326168751822283; // (log(1 + e) + log(1 + 1 / e)) / 2
    const attncl_array inputs[] = {
        {"logits", ATTNCL_F32, 2, {2, 2}, logits, sizeof logits},
        {"targets", ATTNCL_I32, 1, {2}, targets, sizeof targets},
    };
    struct golden golden;
    attncl_model *model = NULL;
    attncl_results *results = NULL;
    golden_load(&golden, "cross_entropy");
    const char *path = IN_DIRECTORY("pad.safetensors");
    golden_rewrite(&golden, path, (struct golden_change){.config = "{\"pad\": -100}"});
    ck_ok(attncl_model_open(test_context(), path, NULL, &model));
    ck_ok(attncl_model_run(model, inputs, 2, &results, NULL));
    ck_assert_double_eq_tol(*(const float *)attncl_results_at(results, 0)->data, expected, 1e-6);
    attncl_results_destroy(results);
    golden_close(&golden, model);
}

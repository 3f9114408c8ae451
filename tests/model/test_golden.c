// SPDX-License-Identifier: MIT
// Every architecture against what PyTorch computes in float64 (tests/data), twice: the same bits.

#include <string.h>

#include "support/golden.h"

// Norms hold values near 1 through a model, so that roundings of 2^-24 add up along its depth: some
// 30 ops of two layers, sums of up to 14 terms each.
static const double tolerance = 30 * 14 * 6e-8;

static void run(const char *name, void *user)
{
    (void)user;
    if (strncmp(name, "dropout_", strlen("dropout_")) != 0) // a loss's: test_dropout_golden.c
        golden_run(name, tolerance);
}

TEST(results_are_those_of_pytorch)
{
    golden_each(run, NULL);
}

// An absent optional input is None: without a mask everything is visible, as with a mask of ones.
LOOP_TEST(no_mask_is_a_mask_of_ones, 0, 5)
{
    static const char *const masked[] = {"aft_local", "spatial_gating_unit", "encoder_gmlp", "mha",
                                         "encoder_transformer"};
    struct golden golden;
    attncl_model *model = NULL;
    attncl_results *with = NULL, *without = NULL;
    golden_load(&golden, masked[_i]);
    attncl_array *mask = golden_input(&golden, "mask");
    unsigned char *ones = malloc(mask->bytes);
    memset(ones, 1, mask->bytes);
    mask->data = ones;

    ck_ok(attncl_model_open(test_context(), golden.path, NULL, &model));
    ck_ok(attncl_model_run(model, golden.inputs, golden.n_inputs, &with, NULL));
    *mask = golden.inputs[--golden.n_inputs];
    ck_ok(attncl_model_run(model, golden.inputs, golden.n_inputs, &without, NULL));
    const attncl_array *a = attncl_results_at(with, 0), *b = attncl_results_at(without, 0);
    const float *x = a->data, *y = b->data;
    ck_assert_uint_eq(a->bytes, b->bytes);
    for (size_t i = 0; i < a->bytes / sizeof *x; ++i)
        ck_assert_float_eq_tol(x[i], y[i], 1e-5);
    free(ones);
    attncl_results_destroy(with);
    attncl_results_destroy(without);
    golden_close(&golden, model);
}

TEST(a_model_tells_about_itself)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "lm_aft_local");
    ck_assert_str_eq(attncl_model_arch(model), "lm");
    ck_assert_int_eq(attncl_model_config_int(model, "seq_len", -1), 12);
    ck_assert_int_eq(attncl_model_config_int(model, "absent", -1), -1);
    ck_assert_int_eq(attncl_model_config_int(model, "layer", -1), -1);
    ck_assert_str_eq(attncl_model_metadata(model, "attncl.arch"), "lm");
    ck_assert_ptr_null(attncl_model_metadata(model, "attncl.vocab"));
    golden_close(&golden, model);
}

TEST(a_model_holds_its_context)
{
    struct golden golden;
    attncl_model *model = golden_open(&golden, "softmax"); // no parameter that would hold it
    ck_fails(attncl_context_destroy(test_context()), ATTNCL_ERR_STATE, "");
    golden_close(&golden, model);
}

// SPDX-License-Identifier: MIT
// Every architecture against what PyTorch computes in float64 (tests/data).

#include <string.h>

#include "support/golden.h"

static const char *const names[] = {
    "softmax",
    "masked_softmax",
    "layer_norm",
    "gelu",
    "linear",
    "bmm",
    "embedding",
    "cross_entropy",
    "cross_entropy_smoothed",
    "relative_shift",
    "attention_pooling_gaussian",
    "attention_pooling_boxcar",
    "attention_pooling_epanechikov",
    "aft_local",
    "aft_full",
    "aft_simple",
    "aft_conv",
    "spatial_gating_unit",
    "gmlp_block",
    "feed_forward",
    "transformer_layer",
    "layer_transformer",
    "encoder_gmlp",
    "encoder_transformer",
    "basic_self_attention",
    "raschka_self_attention",
    "raschka_multi_head",
    "dot_product_attention",
    "additive_attention",
    "multi_head_attention",
    "mha",
    "gru",
    "seq2seq_bahdanau",
    "feedback_attention_joint",
    "feedback_attention_split",
    "feedback_layer",
    "feedback_transformer",
    "feedback_transformer_kv",
    "lm_aft_local",
    "lm_transformer_learned",
    "linear_f16",
    "linear_bf16",
    "linear_f64",
    "positional_encoding",
    "encoder_aft_local",
    "lm_aft_window_0",
    "lm_aft_window_over",
    "lm_aft_full",
    "lm_aft_simple",
    "lm_gmlp",
    "lm_sample",
    "lm_aft_conv",
    "lm_sample_aft_conv",
    "basic_self_attention_2d",
    "lm_transformer",
    "lm_transformer_no_pos",
    "lm_sample_transformer",
    "gru_from_zeros",
    "seq2seq_predict",
    "seq2seq_predict_all",
    "relative_shift_table",
    "attention_pooling_constant",
    "transpose_qkv",
    "transpose_output",
    "subsequent_mask",
    "local_mask_0",
    "local_mask_3",
    "feedback_layer_first",
    "feedback_transformer_deep",
    "lm_feedback",
    "lm_feedback_kv",
    "lm_sample_feedback",
    "lm_sample_feedback_kv",
    "optimizer_step_adam",
    "optimizer_step_adam_torch",
    "optimizer_step_adam_amsgrad",
    "optimizer_step_noam",
    "optimizer_step_sgd",
    "optimizer_step_sgd_first",
    "optimizer_step_sgd_momentum",
    "optimizer_step_sgd_nesterov",
    "optimizer_step_adamw",
    "optimizer_step_adamw_amsgrad",
    "clip_grad_norm_torch",
    "clip_grad_norm_d2l",
    "clip_grad_norm_within",
    "train_lm_aft_local",
    "train_lm_transformer",
    "train_lm_gmlp",
    "train_lm_feedback_kv",
    "train_lm_sgd",
    "train_lm_adamw",
    "train_seq2seq_bahdanau",
};
// Norms hold values near 1 through a model, so that roundings of 2^-24 add up along its depth: some
// 30 ops of two layers, sums of up to 14 terms each.
static const double tolerance = 30 * 14 * 6e-8;

TABLE_TEST(results_are_those_of_pytorch, names)
{
    golden_run(names[_i], tolerance);
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

// SPDX-License-Identifier: MIT
// What models of other PyTorch libraries need (tests/data/generate.py, torch_modules()): post-norm
// layers, norms with another eps, tied generators, token encoders, batch-first inputs.

#include "support/golden.h"

static const char *const names[] = {
    "gelu_tanh",
    "feed_forward_gelu_tanh",
    "layer_post_norm",
    "encoder_post_norm",
    "encoder_post_norm_final",
    "encoder_no_norm",
    "encoder_aft_batch_first",
    "encoder_bert",
    "encoder_tokens_batch_first",
    "lm_gpt2",
    "lm_sample_gpt2",
    "lm_post_norm",
    "lm_no_bias",
    "lm_gmlp_eps",
    "lm_feedback_eps",
    "lm_aft_post_norm",
    "lm_feedback_tied",
    "mha_batch_first",
    "gru_batch_first",
    "train_lm_tied",
};
enum { N_NAMES = sizeof names / sizeof names[0] };

static const double tolerance = 30 * 14 * 6e-8; // as in test_golden.c

LOOP_TEST(results_are_those_of_pytorch, 0, N_NAMES)
{
    golden_run(names[_i], tolerance);
}

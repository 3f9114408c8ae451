// SPDX-License-Identifier: MIT
//
// lm.

#include "model/arch.h"
#include "model/block_models.h"

static const struct port inputs[] = {
    PORT("tokens", INDEX, "T B", .below = "n_vocab"),
    PORT("targets", INDEX, "T B", .optional = true, .below = "n_vocab"),
    {0},
};
static const struct port outputs[] = {
    PORT("output", F32, "T B n_vocab"), PORT("loss", F32, "", .optional = true), {0}};

const struct arch_class attncl__arch_lm = {
    .name = "lm",
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256, \"n_layers\": 2, \"n_vocab\": 100, \"max_len\": 40}",
    .settings_bytes = sizeof(struct lm_settings),
    .keys = attncl__lm_keys,
    .inputs = inputs,
    .outputs = outputs,
    .build = attncl__lm_build,
    .target = TARGET_NEXT_TOKENS,
    .build_step = attncl__lm_build_step,
    .build_prefill = attncl__lm_build_prefill,
    .build_sampling_step = attncl__lm_build_sampling_step,
    .build_cropped_step = attncl__lm_build_cropped_step,
    .vocabulary = attncl__lm_vocabulary,
    .limit = attncl__lm_step_limit,
};

// SPDX-License-Identifier: MIT
// A language model: settings, parameters, and the nodes of a sequence, of a step and of
// a prompt.
#ifndef ATTNCL_MODEL_BLOCK_LM_H
#define ATTNCL_MODEL_BLOCK_LM_H

#include "model/block_embed.h"
#include "model/block_encoder.h"
#include "model/block_feedback.h"

struct lm_settings {
    int layer;
    bool norm_first;  // of a feedback transformer; it knows no other order
    bool is_feedback; // a feedback transformer, else an encoder with a causal mask
    struct encoder_settings encoder;
    struct feedback_settings feedback;
    struct embed_settings embed;
    bool tied; // the generator's weight is the embedding's
    enum presence generator_bias;
};

extern const struct key attncl__lm_keys[];
void attncl__lm_load(struct params *p, const void *settings);
attncl_status attncl__lm_build(struct build *b, const void *settings);
attncl_status attncl__lm_build_step(struct build *b, const void *settings, int64_t batch);
attncl_status attncl__lm_build_sampling_step(struct build *b, const void *settings, int64_t batch);
attncl_status attncl__lm_build_cropped_step(struct build *b, const void *settings, int64_t n_tokens,
                                            int64_t batch);
attncl_status attncl__lm_build_prefill(struct build *b, const void *settings, int64_t n_tokens,
                                       int64_t batch);
int64_t attncl__lm_vocabulary(const void *settings);
int64_t attncl__lm_limit(const void *settings);      // longest sequence, 0: any
int64_t attncl__lm_step_limit(const void *settings); // the same for a decoder

#endif

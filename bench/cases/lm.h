// SPDX-License-Identifier: MIT
// A language model of random weights: its parameters, its file, its reference.
#ifndef BENCH_LM_H
#define BENCH_LM_H

#include "harness/case_data.h"

// "encoder.layers.2.norm.weight" into `text`, which it returns; of layer 2, name "norm", part
// "weight".
enum { LM_NAME_BYTES = 96 };
const char *lm_name(const struct case_data *t, int64_t layer, const char *name, const char *part,
                    char text[LM_NAME_BYTES]);

// Whether the case's layers are of this kind.
bool lm_is(const struct case_data *t, const char *layer);
// Of either kind of Feedback Transformer: another embedding, and names of its own.
bool lm_is_feedback(const struct case_data *t);

// Adds every parameter of the model to the case's arrays, under its name in model files.
attncl_status lm_parameters(struct case_data *t);

// Opens a model with these parameters, through a file that is gone afterwards.
attncl_status lm_open(struct case_data *t, attncl_model **model_ret);

// Logits [T, 1, V] of tokens [T, 1].
struct host *lm_define(const struct case_data *t, const struct host *tokens);

#endif

// SPDX-License-Identifier: MIT
// A language model of random weights: its parameters, its file, its reference.
#ifndef BENCH_LM_MODEL_H
#define BENCH_LM_MODEL_H

#include "harness/case.h"

// Adds every parameter of the model to the case's arrays, under its name in model files.
attncl_status lm_parameters(struct case_data *t);

// Opens a model with these parameters, through a file that is gone afterwards.
attncl_status lm_open(struct case_data *t, attncl_model **model_ret);

// Logits [T, 1, V] of tokens [T, 1], in double precision:
//   logits = projection(LN(layers(embedding(tokens) sqrt(C) + sinusoids)))
//   logits = projection(feedback transformer(embedding(tokens)))
struct host *lm_define(const struct case_data *t, const struct host *tokens);

#endif

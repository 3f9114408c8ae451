// SPDX-License-Identifier: MIT
// Work for several threads and for many hours: unlike support/work.h it keeps nothing between calls
// and is safe in any thread.
#ifndef ATTNCL_TEST_STRESS_WORK_H
#define ATTNCL_TEST_STRESS_WORK_H

#include "base/strbuf.h"
#include "support/golden.h"

enum { STRESS_MODELS = 5, STRESS_KINDS = STRESS_MODELS + 3 };

// Golden models with their inputs, and a text to train with: read-only for the threads.
struct stress_inputs {
    struct golden models[STRESS_MODELS];
    char text[512]; // the path of a file
};
void stress_inputs_load(struct stress_inputs *ret, const char *text_path);
void stress_inputs_free(struct stress_inputs *inputs);

// Work of a kind in [0, STRESS_KINDS): runs of models with gradients, decoding, training, a graph
// run repeatedly.  Appends its results' bytes.
attncl_status stress_work(attncl_context *ctx, const struct stress_inputs *inputs, int kind,
                          struct strbuf *result);

#endif

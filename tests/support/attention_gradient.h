// SPDX-License-Identifier: MIT
// Gradients of attention against their reference (tests/ref/attention_bwd.c).
#ifndef ATTNCL_TEST_ATTENTION_GRADIENT_H
#define ATTNCL_TEST_ATTENTION_GRADIENT_H

#include "ref/ref.h"
#include "support/host.h"

struct attention_size {
    int64_t batch, heads, queries, keys, width, value_width;
};

struct attention_problem {
    struct ref_attention a;
    struct ref_attention_data x;
    bool time_first;
};

// weights: these have a gradient too.  A scale of 0 becomes the usual one.
struct attention_problem attention_problem_random(struct attention_size n, struct ref_attention a,
                                                  bool time_first, bool weights);

// [B, H, T, S]
struct host *attention_problem_weights(const struct attention_problem *p);

// Maxima and totals that the forward op saves.
struct host *attention_problem_rows(const struct host *q);

// y, and weights before dropout.
void attention_problem_forward(const struct attention_problem *p, struct host *y,
                               struct host *weights);

// y and the rows' statistics by the op itself.
void attention_problem_run(const struct attention_problem *p, struct host *y, struct host *rows);

// Runs both ops and compares the gradients.  tolerance: relative to the sum of the sizes of all terms.  Returns the
// largest error as that share.
double attention_problem_check(const struct attention_problem *p, double tolerance);

#endif

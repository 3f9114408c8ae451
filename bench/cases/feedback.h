// SPDX-License-Identifier: MIT
// The feedback transformer's definition.
#ifndef BENCH_FEEDBACK_H
#define BENCH_FEEDBACK_H

#include "ref/layers.h"

// x [T, 1, C] -> [T, 1, C].  Layers of one projection for all share key_weight and value_weight.
struct define_feedback {
    const struct ref_feedback_layer *layers;
    int64_t n_layers;
    const struct host *weights; // [n_layers + 1]
    const struct host *norm_weight, *norm_bias;
};
struct host *define_feedback(const struct define_feedback *p, const struct host *x);

#endif

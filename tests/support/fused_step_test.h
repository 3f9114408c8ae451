// SPDX-License-Identifier: MIT
// A residual stream with split-K partial sums still to add, by the reference.
#ifndef ATTNCL_TEST_FUSED_STEP_TEST_H
#define ATTNCL_TEST_FUSED_STEP_TEST_H

#include "support/op_test.h"

struct stream {
    struct host *x, *norm_weight, *norm_bias;
    struct host *partials, *bias; // NULL: x is complete
    struct host *reduced, *z;     // x', LN(x')
};

// Random, rows [m, d]; n_partials = 0: complete.
struct stream stream_make(unsigned seed, int64_t m, int64_t d, int64_t n_partials);

extern const float stream_eps;

// z W^T + b in double, [m, out]; b may be NULL.
struct host *map_rows(const struct host *z, const struct host *weight, const struct host *bias);

// The same with absolute values: what the error of map_rows() is measured by.
struct host *map_sizes(const struct host *z, const struct host *weight, const struct host *bias);

// Fails unless the sum of partials [S, m, d] is `want` up to `tolerance` times `size`.
void ck_partials(const struct host *partials, const struct host *want, const struct host *size,
                 double tolerance);

#endif

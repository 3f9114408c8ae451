// SPDX-License-Identifier: MIT
// What the tests of ffn_parts_fwd and aft_parts_fwd share: a residual stream whose last addend is
// in parts, by the definition.
#ifndef ATTNCL_TEST_PARTS_TEST_H
#define ATTNCL_TEST_PARTS_TEST_H

#include "support/op_test.h"

struct stream {
    struct host *x, *norm_weight, *norm_bias;
    struct host *parts, *bias; // NULL: x is whole
    struct host *whole, *z;    // x', LN(x')
};

// Random, rows [m, d]; n_parts = 0: whole.
struct stream stream_make(unsigned seed, int64_t m, int64_t d, int64_t n_parts);

extern const float stream_eps;

// z W^T + b in double, [m, out]; b may be NULL.
struct host *map_rows(const struct host *z, const struct host *weight, const struct host *bias);

// The same with absolute values: what the error of map_rows() is measured by.
struct host *map_sizes(const struct host *z, const struct host *weight, const struct host *bias);

// Fails unless the sum of parts [S, m, d] is `want` up to `tolerance` times `size`.
void ck_parts(const struct host *parts, const struct host *want, const struct host *size,
              double tolerance);

// The slices that the device of the tests would take, or so many with which a slice is one vector
// wide at least.
int slices_of(int64_t width, int wanted);

#endif

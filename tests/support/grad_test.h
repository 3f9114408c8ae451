// SPDX-License-Identifier: MIT
// Gradients against central differences of definitions.
#ifndef ATTNCL_TEST_GRAD_TEST_H
#define ATTNCL_TEST_GRAD_TEST_H

#include "support/op_test.h"

// A definition of tests/ref as a test calls it: outputs from inputs, in the op's order; parameters
// as the op's.
typedef void (*ref_forward)(const void *params, struct host *const *in, struct host *const *out);

// d sum(out . dy) / d in[k] by central differences in double.  `out` receives the outputs; NULL
// outputs or dy do not count.
struct host *finite_differences(ref_forward forward, const void *params, struct host *const *in,
                                struct host *const *out, struct host *const *dy, int n_out, int k);

// Builds the op with random gradients dy of its F32 outputs, asks the graph for the gradients of
// the inputs whose bits are in `wanted`, and fails the test where one is off by more than
// `tolerance` of that input's largest difference.  Keep it small: the definition is computed twice
// for every element.
void ck_gradients(const char *name, const void *params, struct host *const *in, int n_in,
                  unsigned wanted, ref_forward forward, double tolerance);

#endif

// SPDX-License-Identifier: MIT
// Gradients against central differences of definitions.
#ifndef ATTNCL_TEST_GRAD_TEST_H
#define ATTNCL_TEST_GRAD_TEST_H

#include "support/op_spec.h"
#include "support/op_test.h"

// Builds the op with random gradients dy of its F32 outputs, asks the graph for the gradients of
// the inputs whose bits are in `wanted`, and fails the test where one is off by more than
// `tolerance` of that input's largest difference.  Keep it small: the definition is computed twice
// for every element.
void ck_gradients(const char *name, const void *params, struct host *const *in, int n_in,
                  unsigned wanted, ref_forward forward, double tolerance);

#endif

// SPDX-License-Identifier: MIT
// The definitions of all ops and layers in C double, as directly as they can be written: what tests
// compare with. Outputs are made by the caller with the right shape; NULL inputs are absent ones.
#ifndef ATTNCL_TEST_REF_H
#define ATTNCL_TEST_REF_H

#include "support/host.h"

// -- rows and elements
void ref_softmax_fwd(const struct host *x, struct host *y); // softmax.c
// y[i...] = base[start + i . stride], dtype as it is.
void ref_copy_fwd(const struct host *base, const struct tensor_desc *view,
                  struct host *y); // copy.c

#endif

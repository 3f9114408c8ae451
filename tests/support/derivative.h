// SPDX-License-Identifier: MIT
// Definitions of gradients against finite differences of the definitions they belong to.
#ifndef ATTNCL_TEST_DERIVATIVE_H
#define ATTNCL_TEST_DERIVATIVE_H

#include "support/host.h"

// The number whose gradient is asked for, of what `context` holds.
typedef double (*loss_fn)(void *context);

// Fails the test unless each element of `dx` is the derivative of loss() by the same element of x,
// by central differences in double: x moves by 1e-5, so that they are off by some 1e-10 of the
// third derivative and 1e-11 of the loss.  `name` is x's in messages.
void ck_derivative(loss_fn loss, void *context, struct host *x, const struct host *dx,
                   const char *name);

#endif

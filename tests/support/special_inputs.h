// SPDX-License-Identifier: MIT
// Small inputs of ops, for tests of what NaN and infinity in them do.  Each function fills in[], which is empty, and
// *out of the result's shape and type, and returns the number of inputs; optional ones stay NULL.
#ifndef ATTNCL_TEST_SPECIAL_INPUTS_H
#define ATTNCL_TEST_SPECIAL_INPUTS_H

#include "support/host.h"

int inputs_scored(struct host **in, struct host **out);

#endif

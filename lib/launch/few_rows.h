// SPDX-License-Identifier: MIT
// What kernels with products of a few rows share (cl/common/few_rows.clh): their macros.
#ifndef ATTNCL_LAUNCH_FEW_ROWS_H
#define ATTNCL_LAUNCH_FEW_ROWS_H

#include "launch/launch.h"

enum { FEW_ROWS_MOST = 16 }; // rows

// VW, LS = 1, OUT, MOST_ROWS and AHEAD for products of m rows; TAIL is the caller's.
void attncl__few_rows_form(const struct device_caps *caps, int64_t m, struct kspec *spec);

// Rows of weights, k floats each, ahead of the present ones that are worth asking for.
int64_t attncl__few_rows_ahead(const struct device_caps *caps, int64_t m, int64_t k);

#endif

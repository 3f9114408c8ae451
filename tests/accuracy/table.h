// SPDX-License-Identifier: MIT
// The table of measured errors, which `tests/run --accuracy` prints.
#ifndef ATTNCL_TEST_ACCURACY_TABLE_H
#define ATTNCL_TEST_ACCURACY_TABLE_H

#include <stdint.h>

// Appends a row to the file that ATTNCL_ACCURACY names; without it nothing.  `unit`: what `worst` counts; `where`: for
// which input it was found.
void table_add(const char *what, double worst, double bound, const char *unit, const char *where);

// Of so many cases one is taken: 1 in an exhaustive run, else `usual` (ATTNCL_ACCURACY_STRIDE).
uint32_t table_stride(uint32_t usual);

// The unit in the last place of a float that is `want`; of subnormal numbers that of the least normal one.
double ulp_of(double want);

#endif

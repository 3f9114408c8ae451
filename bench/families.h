// SPDX-License-Identifier: MIT
// The families of cases, one per name; a file of cases/ holds those that belong together.
#ifndef BENCH_FAMILIES_H
#define BENCH_FAMILIES_H

#include "cases.h"

// cases/rows.c
extern const struct family bench_softmax;

#endif

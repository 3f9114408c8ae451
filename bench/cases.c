// SPDX-License-Identifier: MIT
//
// The table of cases, from roofline.def and cases.def: what the others are measured by comes first.

#include "cases.h"

#include "families.h"

const char *const bench_suite_names[N_SUITES] = {
    [SUITE_OP] = "op", [SUITE_DEVICE] = "device", [SUITE_LAYER] = "layer", [SUITE_MODEL] = "model"};

const struct bench_case bench_cases[] = {
#define FULL(kind, title, ...)  {CASE_FULL, &bench_##kind, title, {__VA_ARGS__}},
#define QUICK(kind, title, ...) {CASE_QUICK, &bench_##kind, title, {__VA_ARGS__}},
#include "roofline/roofline.def"

#include "cases.def"
#undef FULL
#undef QUICK
};
const size_t bench_n_cases = sizeof bench_cases / sizeof bench_cases[0];

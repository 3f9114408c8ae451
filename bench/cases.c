// SPDX-License-Identifier: MIT
//
// The table of cases, from roofline.def and cases.def: what the others are measured by comes first.
// A family is the variable bench_NAME of a file in cases/ or roofline/.

#include "cases.h"

const char *const bench_suite_names[N_SUITES] = {
    [SUITE_OP] = "op", [SUITE_DEVICE] = "device", [SUITE_LAYER] = "layer", [SUITE_MODEL] = "model"};

#define CASE(sets, kind, ...) extern const struct family bench_##kind;
#include "roofline/roofline.def"

#include "cases.def"
#undef CASE

const struct bench_case bench_cases[] = {
#define CASE(sets, kind, title, ...) {(sets), &bench_##kind, title, {__VA_ARGS__}},
#include "roofline/roofline.def"

#include "cases.def"
#undef CASE
};
const size_t bench_n_cases = sizeof bench_cases / sizeof bench_cases[0];

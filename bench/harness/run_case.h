// SPDX-License-Identifier: MIT
// A case from nothing to its result: open, run once, check, and only then time.
#ifndef BENCH_RUN_CASE_H
#define BENCH_RUN_CASE_H

#include "harness/report.h"

void run_case(attncl_context *ctx, const struct bench_case *c,
              const struct measure_options *options, struct result *result_ret);

#endif

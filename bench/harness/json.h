// SPDX-License-Identifier: MIT
// The report's pieces as JSON, in the form of docs/benchmark-reports.md; owned by the caller.
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <jansson.h>

#include "harness/roofline.h"

const char *json_device_type(attncl_device_type type);
json_t *json_device(const attncl_device_info *info); // without results
json_t *json_case(const struct bench_case *c);       // as in --list
json_t *json_result(const struct run *x);
json_t *json_roofline(const struct roofline *x);

// Sets the shares of the roofline in a result, from its other fields, and returns them.
struct shares json_set_shares(json_t *result, const struct roofline *roofline);

#endif

// SPDX-License-Identifier: MIT
// The report's pieces as JSON, in the form of bench/JSON.md.
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "harness/report.h"

enum { JSON_SCHEMA = 2 };

json_t *json_report(int argc, char **argv, const char *label);
const char *json_device_type(attncl_device_type type);
// Appends a device without results and returns it, borrowed.
json_t *json_add_device(json_t *root, const attncl_device_info *info, enum case_set set,
                        uint64_t limit);
void json_add_refusal(json_t *root, const attncl_device_info *info, const char *reason);
// Returns it, borrowed.
json_t *json_add_result(json_t *device, const struct result *x);
// Its bound and its shares of roofline and copy, as they are now.
void json_set_shares(json_t *object, const struct result *x);
void json_set_roofline(json_t *device, const struct roofline *x);

#endif

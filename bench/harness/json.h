// SPDX-License-Identifier: MIT
// The report's pieces as JSON.
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "harness/report.h"

json_t *json_report(void);
// Appends a device without results and returns it, borrowed.
json_t *json_add_device(json_t *root, const attncl_device_info *info, enum case_set set);
void json_add_refusal(json_t *root, const attncl_device_info *info, const char *reason);
void json_add_result(json_t *device, const struct result *x);

#endif

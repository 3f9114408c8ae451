// SPDX-License-Identifier: MIT
// A report without devices: what measured, when, on which machine.
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <jansson.h>

enum { REPORT_SCHEMA = 2 };

// In the form of docs/benchmark-reports.md; owned by the caller.  revision, label: NULL where there is none.
json_t *machine_report(const char *program, const char *revision, int argc, char **argv,
                       const char *label);
// The environment variables that change figures, as far as they are set; owned by the caller.
json_t *machine_settings(void);

#endif

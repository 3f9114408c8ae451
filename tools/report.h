// SPDX-License-Identifier: MIT
// The file of attncl report, and its phases.
#ifndef ATTNCL_TOOL_REPORT_H
#define ATTNCL_TOOL_REPORT_H

#include <limits.h>

#include "tool.h"

struct report {
    const char *path, *device;
    bool fast;
    double limit;
    char tool[PATH_MAX], directory[PATH_MAX]; // this program and where it is
    char home[PATH_MAX], host[256], user[64];
    json_t *root;
};

// Replaces OUT.json.  Returns an exit status; a failure is reported.
int report_write(const struct report *r);

// Puts words in < > in the place of private names in all texts of the value.
void report_hide_private(const struct report *r, json_t *value);

// Adds a phase to the file: the process that `argv` starts, its output, log and programs.  bench: NULL, or the file in
// which the process leaves a report of attncl-bench.  Returns an exit status, of this file: TOOL_OK also where the process
// fails, which the file says.
int report_run_phase(const struct report *r, const char *name, char *const argv[],
                     const char *bench);

#endif

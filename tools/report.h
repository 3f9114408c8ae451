// SPDX-License-Identifier: MIT
// The file of attncl report, and its phases.
#ifndef ATTNCL_TOOL_REPORT_H
#define ATTNCL_TOOL_REPORT_H

#include <limits.h>

#include "tool.h"

struct report {
    const char *path, *device;
    bool fast;
    double limit;                             // seconds for each phase
    char tool[PATH_MAX], directory[PATH_MAX]; // this program and its directory
    char home[PATH_MAX], host[256], user[64];
    json_t *root;
};

// Replaces OUT.json.  Returns an exit status; reports a failure.
int report_write(const struct report *r);

// Replaces private names in all texts of the value by words in < >.
void report_hide_private(const struct report *r, json_t *value);

// Runs the process `argv` as a phase and adds its output, log and programs to the file.  bench: NULL, or the file where
// the process writes attncl-bench's report.  Returns an exit status: TOOL_OK even if the process fails, which the file
// then says.
int report_run_phase(const struct report *r, const char *name, char *const argv[],
                     const char *bench);

#endif

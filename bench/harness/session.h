// SPDX-License-Identifier: MIT
// A run of the benchmark: the devices, and the cases on them interleaved.
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "harness/options.h"
#include "harness/report.h"

// Opens the devices that the options name, runs the wanted cases and reports.  `directory`: of
// programs, to time compilation; NULL: not.  False, with a message printed, when there is no
// device.
bool session_run(const struct options *o, const char *directory, struct report *report);

#endif

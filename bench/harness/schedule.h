// SPDX-License-Identifier: MIT
// The order of a benchmark: the devices, and the cases on them interleaved.
#ifndef BENCH_SCHEDULE_H
#define BENCH_SCHEDULE_H

#include <signal.h>

#include "harness/report.h"

// Opens the devices that the options name, runs the wanted cases and reports.  `directory`: of
// programs, to time compilation; NULL: not.  False, with a message printed, when there is no
// device.
bool schedule_run(const struct options *o, const char *directory, struct report *report);

// Set, from a signal handler too, it ends the benchmark after the present round.
extern volatile sig_atomic_t schedule_stop;

#endif

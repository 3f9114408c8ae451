// SPDX-License-Identifier: MIT
// Two sides compared, case by case and device by device.
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdbool.h>

// Each side: JSON reports of schema 2, separated by commas; several are runs of the same programs.
// Prints a table per pair of devices and returns the program's exit status: 0; 1 when nothing could
// be compared, with what could not be read on standard error.
int compare_reports(const char *a, const char *b, bool markdown);

#endif

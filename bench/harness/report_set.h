// SPDX-License-Identifier: MIT
// A set of reports, one of the two compared: the devices of its reports, each with the best run of
// every case.
#ifndef BENCH_REPORT_SET_H
#define BENCH_REPORT_SET_H

#include <jansson.h>
#include <stdbool.h>

// Reads reports, separated by commas.  Returns an array of devices in the form of bench/JSON.md,
// owned by the caller; a device that is in several reports is there once, each of its cases with
// the run of the least minimum, or the one that was wrong.  NULL, with a message printed, when one
// cannot be read.
json_t *report_set_load(const char *paths);

// The text of a field; "" when there is none.
const char *report_set_text(const json_t *object, const char *field);
// Of two sides: the same device, though a driver more or less may have moved its number.
bool report_set_match(const json_t *a_devices, const json_t *a, const json_t *b_devices,
                      const json_t *b);
bool report_set_is_ok(const json_t *result); // it was timed
// A time of a result's `wall`; the nearest one that is known when a side does not give it.
double report_set_wall(const json_t *result, const char *field);

#endif

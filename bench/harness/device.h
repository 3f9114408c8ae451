// SPDX-License-Identifier: MIT
// A device of the benchmark and what is known of it.
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <jansson.h>

#include "harness/options.h"
#include "harness/roofline.h"

enum { MAX_DEVICES = 64 };

struct bench_device {
    attncl_device_info info;
    char address[32];    // "PLATFORM:DEVICE"
    attncl_context *ctx; // NULL: not run, for `reason`
    char reason[256];
    bool failed; // not run, though the driver says that it is available
    enum sizes_kind sizes;
    uint64_t loop_limit; // > 0: loops end after so many rounds, so that full sizes are left out
    bool driver_does_not_wait;
    size_t n_wanted, n_done;  // cases
    double spent_s;           // timing
    struct roofline roofline; // the best until now
    struct sensors *sensors;
    struct run *run; // of the present case; NULL: none
    json_t *json;    // borrowed from the report
};

struct devices {
    struct bench_device list[MAX_DEVICES];
    size_t n;
};

// Every device, or those that the options name.  False, with a message printed, when there is none.
bool devices_open(struct devices *all, const struct options *o);
// Returns how many could not be closed; messages are printed.
size_t devices_close(struct devices *all);

#endif

// SPDX-License-Identifier: MIT
// Kernels of one work-group in command lists that are timed: what a way of launching gains on a device.
#ifndef ATTNCL_LAUNCH_TIMED_KERNELS_H
#define ATTNCL_LAUNCH_TIMED_KERNELS_H

#include "launch/command_list.h"

// TIMED_SHORT: kernels of a list so many that the wait for its end counts little.
enum {
    N_TIMED_RUNS = 5,
    TIMED_SHORT = 64,
    TIMED_GROUP = 64,
    TIMED_LONG_COUNT = TIMED_GROUP * 2048
};

struct timed_kernels {
    attncl_context *ctx;
    struct device_caps caps;
    struct storage in, out[2]; // of a queue each
};

// Closed by the caller, after a failure too.
attncl_status attncl__timed_kernels_open(struct timed_kernels *t, attncl_context *ctx,
                                         const struct device_caps *caps);
void attncl__timed_kernels_close(struct timed_kernels *t);
// Appends a kernel that reads `count` numbers: 1 for a short one, TIMED_LONG_COUNT for a long one.
attncl_status attncl__timed_kernels_append(struct timed_kernels *t, struct command_list *list,
                                           int queue, int64_t count);
// The lists in turn: what slows the machine down meets all.  Seconds of each are sorted.
attncl_status attncl__timed_kernels_time(struct command_list *lists, int n_lists,
                                         double seconds[][N_TIMED_RUNS]);

#endif

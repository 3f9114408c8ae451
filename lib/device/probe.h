// SPDX-License-Identifier: MIT
// A probe compares kernels on this device with this driver at first use.  Its verdict is kept in the context and stored
// beside the program cache, keyed by a digest of the kernel sources.  Probes time nothing; `attncl tune` does.
#ifndef ATTNCL_DEVICE_PROBE_H
#define ATTNCL_DEVICE_PROBE_H

#include "device/context.h"

enum { PROBE_NAME_BYTES = 48, PROBE_WHY_BYTES = 512 };

enum probe_verdict { PROBE_UNKNOWN, PROBE_PASSED, PROBE_FAILED };
enum probe_mode {
    PROBE_LOOK_UP,
    PROBE_RUN
}; // LOOK_UP only uses known verdicts and creates no OpenCL object

struct probe {
    const char *name; // "mma gemm f32": as stored, and as `attncl devices` prints it
    // Writes what is wrong into `why`, initially ""; leaves it empty if nothing is.  Fails if it cannot compare.
    attncl_status (*run)(attncl_context *ctx, const struct device_caps *caps, const void *user,
                         char why[PROBE_WHY_BYTES]);
    const void *user;
};

// Returns the known verdict, or runs the probe as `mode` allows.  why: "" unless it failed.  UNKNOWN: not compared yet,
// or comparing failed, which is logged.  Thread-safe.
enum probe_verdict attncl__probe_get_verdict(attncl_context *ctx, const struct device_caps *caps,
                                             const struct probe *probe, enum probe_mode mode,
                                             char why[PROBE_WHY_BYTES]);

// Sets a verdict in this context.  No probe may run meanwhile.
void attncl__probe_remember(attncl_context *ctx, const char *name, enum probe_verdict verdict,
                            const char *why);
// Sets it in this context and stores it for later ones.  why: "" if it passed.
attncl_status attncl__verdict_store(attncl_context *ctx, const char *name, const char *why);

#endif

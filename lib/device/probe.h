// SPDX-License-Identifier: MIT
// A probe: a comparison of kernels on this device with this driver, made at first use.  What it found is known to the context
// and kept beside the program cache, by a digest of the kernel sources.  Nothing is timed: `attncl tune` does that.
#ifndef ATTNCL_DEVICE_PROBE_H
#define ATTNCL_DEVICE_PROBE_H

#include "device/context.h"

enum { PROBE_NAME_BYTES = 48, PROBE_WHY_BYTES = 512 };

enum probe_verdict { PROBE_UNKNOWN, PROBE_PASSED, PROBE_FAILED };
enum probe_mode { PROBE_LOOK_UP, PROBE_RUN }; // LOOK_UP: what is known; creates no OpenCL object

struct probe {
    const char *name; // "mma gemm f32": what is kept and what `attncl devices` prints
    // why: what is wrong, "" as it comes, where nothing is.  A failure: it cannot be compared.
    attncl_status (*run)(attncl_context *ctx, const struct device_caps *caps, const void *user,
                         char why[PROBE_WHY_BYTES]);
    const void *user;
};

// why: "" unless it failed.  UNKNOWN: nobody has looked, or it could not be compared, which the log says.  Any thread.
enum probe_verdict attncl__probe(attncl_context *ctx, const struct device_caps *caps,
                                 const struct probe *probe, enum probe_mode mode,
                                 char why[PROBE_WHY_BYTES]);

// What the context knows from now on; and what is kept for later ones.  No probe may run meanwhile.
void attncl__probe_remember(attncl_context *ctx, const char *name, enum probe_verdict verdict,
                            const char *why);
attncl_status attncl__verdict_keep(attncl_context *ctx, const char *name, const char *why);

#endif

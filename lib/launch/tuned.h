// SPDX-License-Identifier: MIT
// Lookup of tuned values: what kernels' host code asks before it uses a built-in configuration.
// The table and its file: store/tuning_table.h.
#ifndef ATTNCL_LAUNCH_TUNED_H
#define ATTNCL_LAUNCH_TUNED_H

#include "device/caps.h"
#include "store/tuning_table.h"

// The values for this kernel and class, or NULL.  Always NULL on devices with an iteration cap,
// whose tiles follow from exact counts.  The first use is logged.  Any thread.
const int *attncl__tuned(const struct device_caps *caps, enum tunable kernel, int class);

// The entry does not fit this device: logged once, not returned again.  `why`: "takes work-groups
// of 512; not used".
void attncl__tuned_reject(const struct device_caps *caps, enum tunable kernel, int class,
                          const char *why);

#endif

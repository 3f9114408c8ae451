// SPDX-License-Identifier: MIT
// Whether reductions over a work-group use shuffles.
#ifndef ATTNCL_LAUNCH_SHUFFLE_CHOICE_H
#define ATTNCL_LAUNCH_SHUFFLE_CHOICE_H

#include "device/context.h"

// Sets caps->shuffle to caps->shuffle_candidate or to none.  At first use on a device with this
// driver it builds kernels and runs them; afterwards it knows.  Any thread.
void attncl__choose_shuffle(attncl_context *ctx, struct device_caps *caps);

// The comparison alone.  `failed`: why kernels do not use caps->shuffle_candidate, "" where they do.
attncl_status attncl__shuffle_judge(attncl_context *ctx, const struct device_caps *caps,
                                    char failed[FINDING_BYTES]);

#endif

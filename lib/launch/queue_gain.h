// SPDX-License-Identifier: MIT
// What several queues gain and cost on a device, measured.
#ifndef ATTNCL_LAUNCH_QUEUE_GAIN_H
#define ATTNCL_LAUNCH_QUEUE_GAIN_H

#include "device/context.h"

// Whether the device may overlap kernels at all: measuring is worth it.
bool attncl__queues_may_gain(const attncl_context *ctx, const struct device_caps *caps);

// False: kernels of two queues do not overlap, or nothing can be said; *ret is then undefined.  At first use on a
// device with this driver it builds a kernel and runs it, for well below a second; afterwards it knows.  Any thread.
bool attncl__queues_gain(attncl_context *ctx, const struct device_caps *caps,
                         struct queue_gain *ret);

// The measurement alone.
attncl_status attncl__queues_measure(attncl_context *ctx, const struct device_caps *caps,
                                     struct queue_gain *ret);

#endif

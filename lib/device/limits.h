// SPDX-License-Identifier: MIT
// Limits of the device that launches ask for only where they may be met.
#ifndef ATTNCL_DEVICE_LIMITS_H
#define ATTNCL_DEVICE_LIMITS_H

#include "device/context.h"

// What every device allows, those of the embedded profile too.
enum { MIN_ARGUMENT_BYTES = 256 };

// Bytes that the arguments of one kernel may take together.
attncl_status attncl__device_argument_bytes(attncl_context *ctx, size_t *ret);

#endif

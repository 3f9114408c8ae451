// SPDX-License-Identifier: MIT
// Facts about devices that their drivers do not report: one table, in quirks.c.
#ifndef ATTNCL_DEVICE_QUIRKS_H
#define ATTNCL_DEVICE_QUIRKS_H

#include "attncl/context.h"
#include "device/caps.h"

enum device_vendor attncl__quirks_vendor(const attncl_device_info *info);

// Applies every matching row, in the table's order.
void attncl__quirks_apply(const attncl_device_info *info, struct device_caps *caps);

#endif

// SPDX-License-Identifier: MIT
// What is known of devices beyond what their drivers say: one table, in quirks.c.
#ifndef ATTNCL_DEVICE_QUIRKS_H
#define ATTNCL_DEVICE_QUIRKS_H

#include "attncl/context.h"
#include "device/caps.h"

enum device_vendor attncl__quirks_vendor(const attncl_device_info *info);

// Applies every row that matches, in the table's order.
void attncl__quirks_apply(const attncl_device_info *info, struct device_caps *caps);

#endif

// SPDX-License-Identifier: MIT
// Facts about devices that their drivers do not report: one table, in quirks.c.
#ifndef ATTNCL_DEVICE_QUIRKS_H
#define ATTNCL_DEVICE_QUIRKS_H

#include "attncl/context.h"
#include "device/caps.h"

enum device_vendor attncl__quirks_vendor(const attncl_device_info *info);

// Local memory of a multiprocessor, by NVIDIA's compute capability (major * 10 + minor); 0: not known.
size_t attncl__quirks_unit_local_bytes(unsigned compute_capability);

// Applies every matching row, in the table's order.
void attncl__quirks_apply(const attncl_device_info *info, struct device_caps *caps);

// The matrix instruction that the device's architecture has, by its exact name: a compiler may abort
// where it does not know the instruction.  compute_capability: NVIDIA's, major * 10 + minor.
enum matrix_instruction attncl__quirks_mma(const attncl_device_info *info,
                                           unsigned compute_capability);

// Shuffles, alike; *lanes_ret: the lanes that one reaches, 0 where there are none.
enum lane_shuffle attncl__quirks_shuffle(const attncl_device_info *info,
                                         unsigned compute_capability, unsigned *lanes_ret);

#endif

// SPDX-License-Identifier: MIT
// Which device a caller means.
#ifndef ATTNCL_DEVICE_SELECT_H
#define ATTNCL_DEVICE_SELECT_H

#include "device/platform.h"

// The device that `wanted` names ("gpu", "cpu", "1:0", part of a device's or platform's name; NULL
// or "": the best) as an index into the list.  ERR_NO_DEVICE names the devices there are.
attncl_status attncl__device_select(const struct device_list *list, const char *wanted,
                                    size_t *index_ret);

#endif

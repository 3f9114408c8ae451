// SPDX-License-Identifier: MIT
// Choosing a device by the caller's text.
#ifndef ATTNCL_DEVICE_SELECT_H
#define ATTNCL_DEVICE_SELECT_H

#include "device/platform.h"

// The index in the list of the device that `wanted` names ("gpu", "cpu", "1:0", part of a device's
// or platform's name; NULL or "": the best).  The message of ERR_NO_DEVICE lists the devices.
attncl_status attncl__device_select(const struct device_list *list, const char *wanted,
                                    size_t *index_ret);

#endif

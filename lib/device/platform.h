// SPDX-License-Identifier: MIT
// The list of OpenCL devices.
#ifndef ATTNCL_DEVICE_PLATFORM_H
#define ATTNCL_DEVICE_PLATFORM_H

#include "attncl/context.h"
#include "device/clerr.h"

struct device_entry {
    cl_platform_id platform;
    cl_device_id id;
    attncl_device_info info;
};

struct device_list {
    struct device_entry *entries;
    size_t n;
};

// Every device of every platform, in the loader's order.  Without any, an empty list and ATTNCL_OK.  One
// that cannot be described is an error: without it, another would be chosen.
// Starts as {0}; released by attncl__devices_free().
attncl_status attncl__devices_list(struct device_list *ret);
void attncl__devices_free(struct device_list *list);

// Fills everything but the two indices.
attncl_status attncl__device_describe(cl_device_id id, attncl_device_info *ret);

// TRY(DEVICE_ANSWER(id, CL_DEVICE_TYPE, &type)) fails with "clGetDeviceInfo of CL_DEVICE_TYPE: ...".
#define DEVICE_ANSWER(id, what, ret)                                                               \
    CL_CODE(clGetDeviceInfo((id), (what), sizeof *(ret), (ret), NULL), "clGetDeviceInfo "          \
                                                                       "of " #what)

// A text property without blanks at its ends; "" when the driver does not know it.  *ret is the
// caller's to attncl__free().
attncl_status attncl__device_text_whole(cl_device_id id, cl_device_info what, char **ret);
// Cut to `capacity` bytes at the end of a character.
attncl_status attncl__platform_text(cl_platform_id id, cl_platform_info what, char *out,
                                    size_t capacity);

#endif

// SPDX-License-Identifier: MIT
// OpenCL's header with the version this library is written to.
#ifndef ATTNCL_DEVICE_CL_H
#define ATTNCL_DEVICE_CL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#endif

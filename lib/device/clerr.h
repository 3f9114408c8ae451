// SPDX-License-Identifier: MIT
// TRY_CL, the fifth error macro: turns an OpenCL call's code into a status and a message.
#ifndef ATTNCL_DEVICE_CLERR_H
#define ATTNCL_DEVICE_CLERR_H

#include <stdbool.h>

#include "base/try.h"
#include "device/cl.h"

// "CL_OUT_OF_RESOURCES"; "unknown OpenCL error" for other codes.
const char *attncl__cl_name(cl_int code);
// True when a query's code means that the driver does not know the query, not that it failed.
bool attncl__cl_is_refusal(cl_int code);
attncl_status attncl__cl_fail(cl_int code, const char *call, const char *file, int line);

// TRY_CL(clFinish(queue)): returns on failure with "clFinish: CL_OUT_OF_RESOURCES (-5)".
#define TRY_CL(call)                                                                               \
    do {                                                                                           \
        const cl_int code_ = (call);                                                               \
        if (code_ != CL_SUCCESS)                                                                   \
            return attncl__cl_fail(code_, #call, __FILE__, __LINE__);                              \
    } while (0)

// TRY_DONE(CL_CALL(clFinish(queue))): when something must be released first.
#define CL_CALL(call) attncl__cl_check((call), #call, __FILE__, __LINE__)

// For calls that return an object:
// object = clCreateX(..., &code); TRY_DONE(CL_CODE(code, "clCreateX"));
#define CL_CODE(code, call) attncl__cl_check((code), (call), __FILE__, __LINE__)

static inline attncl_status attncl__cl_check(cl_int code, const char *call, const char *file,
                                             int line)
{
    return code == CL_SUCCESS ? ATTNCL_OK : attncl__cl_fail(code, call, file, line);
}

#endif

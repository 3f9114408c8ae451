// SPDX-License-Identifier: MIT
//
// OpenCL's error codes: their names, and the status of each.

#include <string.h>

#include "device/clerr.h"

// Without the codes of images, samplers, pipes and sub-devices, which the library does not create.
#define CL_CODE_LIST(X)                                                                            \
    X(CL_SUCCESS, 0)                                                                               \
    X(CL_DEVICE_NOT_FOUND, -1)                                                                     \
    X(CL_DEVICE_NOT_AVAILABLE, -2)                                                                 \
    X(CL_COMPILER_NOT_AVAILABLE, -3)                                                               \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4)                                                        \
    X(CL_OUT_OF_RESOURCES, -5)                                                                     \
    X(CL_OUT_OF_HOST_MEMORY, -6)                                                                   \
    X(CL_PROFILING_INFO_NOT_AVAILABLE, -7)                                                         \
    X(CL_MEM_COPY_OVERLAP, -8)                                                                     \
    X(CL_BUILD_PROGRAM_FAILURE, -11)                                                               \
    X(CL_MAP_FAILURE, -12)                                                                         \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET, -13)                                                        \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14)                                           \
    X(CL_COMPILE_PROGRAM_FAILURE, -15)                                                             \
    X(CL_LINKER_NOT_AVAILABLE, -16)                                                                \
    X(CL_LINK_PROGRAM_FAILURE, -17)                                                                \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, -19)                                                       \
    X(CL_INVALID_VALUE, -30)                                                                       \
    X(CL_INVALID_DEVICE_TYPE, -31)                                                                 \
    X(CL_INVALID_PLATFORM, -32)                                                                    \
    X(CL_INVALID_DEVICE, -33)                                                                      \
    X(CL_INVALID_CONTEXT, -34)                                                                     \
    X(CL_INVALID_QUEUE_PROPERTIES, -35)                                                            \
    X(CL_INVALID_COMMAND_QUEUE, -36)                                                               \
    X(CL_INVALID_HOST_PTR, -37)                                                                    \
    X(CL_INVALID_MEM_OBJECT, -38)                                                                  \
    X(CL_INVALID_BINARY, -42)                                                                      \
    X(CL_INVALID_BUILD_OPTIONS, -43)                                                               \
    X(CL_INVALID_PROGRAM, -44)                                                                     \
    X(CL_INVALID_PROGRAM_EXECUTABLE, -45)                                                          \
    X(CL_INVALID_KERNEL_NAME, -46)                                                                 \
    X(CL_INVALID_KERNEL_DEFINITION, -47)                                                           \
    X(CL_INVALID_KERNEL, -48)                                                                      \
    X(CL_INVALID_ARG_INDEX, -49)                                                                   \
    X(CL_INVALID_ARG_VALUE, -50)                                                                   \
    X(CL_INVALID_ARG_SIZE, -51)                                                                    \
    X(CL_INVALID_KERNEL_ARGS, -52)                                                                 \
    X(CL_INVALID_WORK_DIMENSION, -53)                                                              \
    X(CL_INVALID_WORK_GROUP_SIZE, -54)                                                             \
    X(CL_INVALID_WORK_ITEM_SIZE, -55)                                                              \
    X(CL_INVALID_GLOBAL_OFFSET, -56)                                                               \
    X(CL_INVALID_EVENT_WAIT_LIST, -57)                                                             \
    X(CL_INVALID_EVENT, -58)                                                                       \
    X(CL_INVALID_OPERATION, -59)                                                                   \
    X(CL_INVALID_BUFFER_SIZE, -61)                                                                 \
    X(CL_INVALID_GLOBAL_WORK_SIZE, -63)                                                            \
    X(CL_INVALID_PROPERTY, -64)                                                                    \
    X(CL_INVALID_COMPILER_OPTIONS, -66)                                                            \
    X(CL_INVALID_LINKER_OPTIONS, -67)                                                              \
    X(CL_MAX_SIZE_RESTRICTION_EXCEEDED, -72)                                                       \
    X(CL_PLATFORM_NOT_FOUND_KHR, -1001)

const char *attncl__cl_name(cl_int code)
{
    switch (code) {
#define NAME_OF(name, value)                                                                       \
    case value:                                                                                    \
        return #name;
        CL_CODE_LIST(NAME_OF)
#undef NAME_OF
    }
    return "unknown OpenCL error";
}

static attncl_status map_to_status(cl_int code)
{
    switch (code) {
    case CL_SUCCESS:
        return ATTNCL_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_INVALID_BUFFER_SIZE:
        return ATTNCL_ERR_DEVICE_MEMORY;
    case CL_OUT_OF_HOST_MEMORY:
        return ATTNCL_ERR_NO_MEMORY;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_COMPILE_PROGRAM_FAILURE:
    case CL_LINK_PROGRAM_FAILURE:
    case CL_COMPILER_NOT_AVAILABLE:
        return ATTNCL_ERR_COMPILE;
    case CL_DEVICE_NOT_FOUND:
    case CL_DEVICE_NOT_AVAILABLE:
    case -1001: // CL_PLATFORM_NOT_FOUND_KHR
        return ATTNCL_ERR_NO_DEVICE;
    default:
        // Includes CL_OUT_OF_RESOURCES, which drivers return for faults as well as for lack of memory.
        return ATTNCL_ERR_OPENCL;
    }
}

bool attncl__cl_is_refusal(cl_int code)
{
    return code == CL_INVALID_VALUE || code == CL_INVALID_OPERATION || code == CL_INVALID_DEVICE;
}

attncl_status attncl__cl_fail(cl_int code, const char *call, const char *file, int line)
{
    const int name_bytes = (int)strcspn(call, "(");

    return attncl__fail(map_to_status(code), file, line, "%.*s: %s (%d)", name_bytes, call,
                        attncl__cl_name(code), (int)code);
}

// SPDX-License-Identifier: MIT
#ifndef ATTNCL_STATUS_H
#define ATTNCL_STATUS_H
#include "attncl/export.h"
ATTNCL_BEGIN
#define ATTNCL_STATUS_LIST(X)                                                                      \
    X(OK, 0, "success")                                                                            \
    X(ERR_ARGUMENT, 1, "an argument is not acceptable")                                            \
    X(ERR_SHAPE, 2, "shapes disagree")                                                             \
    X(ERR_DTYPE, 3, "element types disagree")                                                      \
    X(ERR_STATE, 4, "the object is not in a state that allows this call")                          \
    X(ERR_UNSUPPORTED, 5, "not supported by this library or device")                               \
    X(ERR_NO_DEVICE, 6, "no OpenCL device matches")                                                \
    X(ERR_NO_MEMORY, 7, "out of host memory")                                                      \
    X(ERR_DEVICE_MEMORY, 8, "out of device memory")                                                \
    X(ERR_COMPILE, 9, "a kernel did not compile")                                                  \
    X(ERR_OPENCL, 10, "an OpenCL call failed")                                                     \
    X(ERR_BLAS, 11, "a CLBlast call failed")                                                       \
    X(ERR_IO, 12, "a file could not be read or written")                                           \
    X(ERR_FORMAT, 13, "a file's content is malformed")
typedef enum attncl_status {
#define ATTNCL_STATUS_ENUM(name, value, text) ATTNCL_##name = value,
    ATTNCL_STATUS_LIST(ATTNCL_STATUS_ENUM)
#undef ATTNCL_STATUS_ENUM
} attncl_status;
ATTNCL_API const char *attncl_status_name(attncl_status status);
ATTNCL_API const char *attncl_status_text(attncl_status status);
ATTNCL_API const char *attncl_last_error(void);
ATTNCL_API const char *attncl_last_error_where(void);
ATTNCL_END
#endif

// SPDX-License-Identifier: MIT
/**
 * @file attncl/status.h
 * What a call reports: a status for programs, a message for people.
 *
 * Every function that can fail returns an attncl_status.  On failure nothing has changed: outputs
 * are untouched and no object was created.  attncl_last_error() then gives one line with the fact
 * and the two values that disagree.  A NULL that a declaration does not allow is ERR_ARGUMENT, also where its Errors do
 * not list it.
 *
 * Threads: any; objects that nothing changes may be shared.
 */
#ifndef ATTNCL_STATUS_H
#define ATTNCL_STATUS_H

#include "attncl/export.h"

ATTNCL_BEGIN

/** Name, pinned value, one-line meaning.  Values are never reused. */
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

/** "ATTNCL_ERR_SHAPE" ...; "unknown status" for other values.  Static storage.  Any thread.
 * Errors: none. */
ATTNCL_API const char *attncl_status_name(attncl_status status);

/** The meaning of a status, one line; static storage.  Any thread.
 * Errors: none. */
ATTNCL_API const char *attncl_status_text(attncl_status status);

/**
 * The message of this thread's last failure, "" when there was none.  Borrowed: valid until the
 * next failing call of this thread.
 * Errors: none.
 */
ATTNCL_API const char *attncl_last_error(void);

/** Where in the library the last failure of this thread arose, "file.c:123"; "" when there was
 * none.  Borrowed.
 * Errors: none. */
ATTNCL_API const char *attncl_last_error_where(void);

ATTNCL_END

#endif

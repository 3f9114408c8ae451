// SPDX-License-Identifier: MIT
/**
 * @file attncl/version.h
 * Compile-time and run-time version.
 *
 * Threads: any; objects that nothing changes may be shared.
 */
#ifndef ATTNCL_VERSION_H
#define ATTNCL_VERSION_H

#include "attncl/export.h"

#define ATTNCL_VERSION_MAJOR 0
#define ATTNCL_VERSION_MINOR 1
#define ATTNCL_VERSION_PATCH 0
/** The version of these headers, "major.minor.patch". */
#define ATTNCL_VERSION_STRING "0.1.0"

ATTNCL_BEGIN

/** The version of the linked library, "major.minor.patch"; static storage.  Any thread.
 * Errors: none. */
ATTNCL_API const char *attncl_version(void);

ATTNCL_END

#endif

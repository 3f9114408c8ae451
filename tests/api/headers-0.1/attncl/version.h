// SPDX-License-Identifier: MIT
#ifndef ATTNCL_VERSION_H
#define ATTNCL_VERSION_H
#include "attncl/export.h"
#define ATTNCL_VERSION_MAJOR  0
#define ATTNCL_VERSION_MINOR  1
#define ATTNCL_VERSION_PATCH  0
#define ATTNCL_VERSION_STRING "0.1.0"
ATTNCL_BEGIN
ATTNCL_API const char *attncl_version(void);
ATTNCL_END
#endif

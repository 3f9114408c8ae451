// SPDX-License-Identifier: MIT
//
// The library's version.

#include "attncl/version.h"

const char *attncl_version(void)
{
    return ATTNCL_VERSION_STRING;
}

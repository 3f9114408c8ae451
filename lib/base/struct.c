// SPDX-License-Identifier: MIT
//
// The library's version, and option structs of callers compiled against older or newer headers.

#include "base/struct.h"

#include <string.h>

#include "attncl/version.h"
#include "base/try.h"

// No struct of any version is larger: a size beyond it was never set.
enum { MAX_STRUCT_BYTES = 1 << 14 };

static attncl_status check_size(const char *type, const void *given, size_t size, size_t *size_ret)
{
    REQUIRE(given, ATTNCL_ERR_ARGUMENT, "%s is NULL", type);
    memcpy(size_ret, given, sizeof *size_ret);
    REQUIRE(*size_ret >= sizeof *size_ret && *size_ret <= MAX_STRUCT_BYTES, ATTNCL_ERR_ARGUMENT,
            "%s has struct_size %zu, expected %zu: start from its initializer", type, *size_ret,
            size);
    return ATTNCL_OK;
}

attncl_status attncl__struct_read(const char *type, void *to, size_t size, const void *from)
{
    const unsigned char *bytes = from;
    size_t given = 0;

    TRY(check_size(type, from, size, &given));
    for (size_t i = size; i < given; ++i)
        REQUIRE(bytes[i] == 0, ATTNCL_ERR_ARGUMENT,
                "%s has struct_size %zu, this library knows %zu: byte %zu is set, must be 0", type,
                given, size, i);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &size, sizeof size);
    return ATTNCL_OK;
}

attncl_status attncl__struct_check(const char *type, const void *to, size_t size)
{
    size_t given = 0;

    return check_size(type, to, size, &given);
}

attncl_status attncl__struct_write(const char *type, void *to, const void *from, size_t size)
{
    size_t given = 0;

    TRY(check_size(type, to, size, &given));
    const size_t n = given < size ? given : size;
    memcpy((unsigned char *)to + sizeof size, (const unsigned char *)from + sizeof size,
           n - sizeof size);
    if (given > size)
        memset((unsigned char *)to + size, 0, given - size);
    return ATTNCL_OK;
}

const char *attncl_version(void)
{
    return ATTNCL_VERSION_STRING;
}

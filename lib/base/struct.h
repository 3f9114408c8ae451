// SPDX-License-Identifier: MIT
// Versioned structs of the public API.  Each starts with `size_t struct_size`, set by the caller's
// header, so that fields can be added at its end without breaking compiled programs.
#ifndef ATTNCL_BASE_STRUCT_H
#define ATTNCL_BASE_STRUCT_H

#include <stddef.h>

#include "attncl/status.h"

// Copies a caller's struct over the defaults in *to, which has `size` bytes.  A smaller struct leaves
// the rest at its defaults; a larger one must be zero beyond `size`.  ERR_ARGUMENT names the type and
// both sizes and leaves *to unchanged.
attncl_status attncl__struct_read(const char *type, void *to, size_t size, const void *from);
#define STRUCT_READ(type, to, from) attncl__struct_read(#type, (to), sizeof(type), (from))

// Checks the size of a caller's struct, before work that cannot be undone if it cannot be filled.
attncl_status attncl__struct_check(const char *type, const void *to, size_t size);
#define STRUCT_CHECK(type, to) attncl__struct_check(#type, (to), sizeof(type))

// Fills a caller's struct, cut to the caller's size or padded with zeros.  Its struct_size stays.
attncl_status attncl__struct_write(const char *type, void *to, const void *from, size_t size);
#define STRUCT_WRITE(type, to, from) attncl__struct_write(#type, (to), (from), sizeof(type))

#endif

// SPDX-License-Identifier: MIT
// Element types on the host: conversion between file types and device types.
#ifndef ATTNCL_BASE_DTYPE_H
#define ATTNCL_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/dtype.h"
#include "attncl/status.h"

// Float: F32, F16, BF16, F64.  Integer: all widths, and BOOL.  Other types in files are neither.
bool attncl__is_float(attncl_dtype dtype);
bool attncl__is_integer(attncl_dtype dtype);
static inline bool attncl__is_16_bit(attncl_dtype dtype) // a 16-bit float type
{
    return dtype == ATTNCL_F16 || dtype == ATTNCL_BF16;
}

size_t attncl__dtype_bits(attncl_dtype dtype);          // bits per element; 0 for an unknown type
attncl_dtype attncl__dtype_from_name(const char *text); // "F32"; ATTNCL_DTYPE_NONE for another text

// attncl_elements_convert() without its NULL check.  Allowed conversions:
//   float to float, rounded to nearest even;
//   integer or BOOL to I32 or I64;
//   integer or BOOL to U8 or BOOL, which are flags here (non-zero = 1);
//   any other type to itself.
// ERR_DTYPE for other pairs.  ERR_ARGUMENT names the index of a value that does not fit; the elements
// before it are written.  `from` may be unaligned; the two must not overlap.
attncl_status attncl__convert(attncl_dtype from_type, const void *from, attncl_dtype to_type,
                              void *to, size_t count);

float attncl__half_to_float(uint16_t half);

#endif

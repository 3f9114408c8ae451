// SPDX-License-Identifier: MIT
// Element types on the host: conversion between what files hold and what devices compute with.
#ifndef ATTNCL_BASE_DTYPE_H
#define ATTNCL_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/dtype.h"
#include "attncl/status.h"

// Converts `count` elements.  Allowed: any float to F32 or F64; any integer or BOOL to I32 or I64; BOOL or any integer
// to U8/BOOL (non-zero = 1); a type to itself.  An integer that does not fit fails with ERR_ARGUMENT and names its
// index; another pair of types fails with ERR_DTYPE.  `from` may be unaligned; the two must not overlap.
attncl_status attncl__convert(attncl_dtype from_type, const void *from, attncl_dtype to_type, void *to,
                              size_t count);

float attncl__half_to_float(uint16_t half);

#endif

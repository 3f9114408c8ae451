// SPDX-License-Identifier: MIT
// Files of trainings in the test's directory.
#ifndef ATTNCL_TEST_FILES_H
#define ATTNCL_TEST_FILES_H

#include <string.h>

#include "attncl/safetensors.h"
#include "support/directory.h"
#include "support/test.h"

// How many tensors of two files with the same names differ.
static inline int n_differing(const char *a, const char *b)
{
    attncl_safetensors *x = NULL, *y = NULL;
    int n = 0;
    ck_ok(attncl_safetensors_open(IN_DIRECTORY(a), &x));
    ck_ok(attncl_safetensors_open(IN_DIRECTORY(b), &y));
    ck_assert_uint_eq(attncl_safetensors_count(x), attncl_safetensors_count(y));
    for (size_t i = 0; i < attncl_safetensors_count(x); ++i) {
        const attncl_array *p = attncl_safetensors_at(x, i), *q = attncl_safetensors_at(y, i);
        ck_assert_str_eq(p->name, q->name);
        ck_assert_uint_eq(p->bytes, q->bytes);
        n += memcmp(p->data, q->data, p->bytes) != 0;
    }
    attncl_safetensors_close(x);
    attncl_safetensors_close(y);
    return n;
}

#endif

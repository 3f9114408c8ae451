// SPDX-License-Identifier: MIT
//
// The library's heap: libc's, with a count of live blocks.

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"

static atomic_size_t live;
static atomic_size_t countdown; // 0: requests do not fail
static atomic_int has_failed;

// Exactly one request fails, however many threads allocate.
static int must_fail(void)
{
    size_t left = atomic_load(&countdown);
    while (left > 0)
        if (atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
            if (left == 1)
                atomic_store(&has_failed, 1);
            return left == 1;
        }
    return 0;
}

static void *count_block(void *p)
{
    if (p)
        atomic_fetch_add(&live, 1);
    return p;
}

void *attncl__alloc(size_t bytes)
{
    return must_fail() ? NULL : count_block(malloc(bytes ? bytes : 1));
}

void *attncl__alloc_zero(size_t bytes)
{
    return must_fail() ? NULL : count_block(calloc(1, bytes ? bytes : 1));
}

void *attncl__alloc_for_driver(size_t bytes)
{
    return must_fail() ? NULL : calloc(1, bytes);
}

void attncl__free_for_driver(void *p)
{
    free(p);
}

void *attncl__alloc_array(size_t count, size_t bytes_each)
{
    size_t bytes;
    return ckd_mul_size(count, bytes_each, &bytes) ? attncl__alloc_zero(bytes) : NULL;
}

void *attncl__grow_array(void *old, size_t count, size_t bytes_each)
{
    size_t bytes;
    if (!ckd_mul_size(count, bytes_each, &bytes))
        return NULL;
    if (!old)
        return attncl__alloc(bytes);
    return must_fail() ? NULL : realloc(old, bytes ? bytes : 1);
}

bool attncl__grow_list(void *list_at, size_t n, size_t *capacity, size_t bytes_each)
{
    const size_t more = *capacity ? 2 * *capacity : 16;
    void *list;

    if (n < *capacity)
        return true;
    memcpy(&list, list_at, sizeof list); // list_at is a T **, whatever T is
    list = attncl__grow_array(list, more, bytes_each);
    if (!list)
        return false;
    memcpy(list_at, &list, sizeof list);
    *capacity = more;
    return true;
}

char *attncl__copy_bytes(const void *data, size_t bytes)
{
    size_t capacity;
    if (!ckd_add_size(bytes, 1, &capacity))
        return NULL;
    char *copy = attncl__alloc(capacity);
    if (copy) {
        if (bytes > 0)
            memcpy(copy, data, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

char *attncl__copy_text(const char *text)
{
    return attncl__copy_bytes(text, strlen(text));
}

void attncl__free(void *p)
{
    if (!p)
        return;
    atomic_fetch_sub(&live, 1);
    free(p);
}

size_t attncl__alloc_live(void)
{
    return atomic_load(&live);
}

void attncl__alloc_fail_at(size_t n)
{
    atomic_store(&has_failed, 0);
    atomic_store(&countdown, n);
}

int attncl__alloc_has_failed(void)
{
    return atomic_load(&has_failed);
}

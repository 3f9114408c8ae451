// SPDX-License-Identifier: MIT
// All heap memory of the library comes from here, so that tests can count blocks and make the n-th
// request fail.
#ifndef ATTNCL_BASE_ALLOC_H
#define ATTNCL_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

// Each returns NULL when memory is short or a size overflows.  Size 0 gives a valid pointer.
void *attncl__alloc(size_t bytes);
void *attncl__alloc_zero(size_t bytes);
void *attncl__alloc_array(size_t count, size_t bytes_each); // zeroed
void *attncl__grow_array(void *old, size_t count, size_t bytes_each);
// Makes space for one more element after the list's first n.  False when memory is short; the list is unchanged.
#define GROW_LIST(list, n, capacity)                                                               \
    attncl__grow_list(&(list), (size_t)(n), &(capacity), sizeof *(list))
bool attncl__grow_list(void *list_at, size_t n, size_t *capacity, size_t bytes_each);
char *attncl__copy_text(const char *text);
char *attncl__copy_bytes(const void *data, size_t bytes); // appends a terminating zero byte
void attncl__free(void *p);                               // accepts NULL

// Zeroed memory; untouched pages take no physical memory.  Not counted as live, because a driver may free it some time
// after the last wait for its queue.
void *attncl__alloc_for_driver(size_t bytes);
void attncl__free_for_driver(void *p);

// For tests.
size_t attncl__alloc_live(void);      // the number of live blocks
void attncl__alloc_fail_at(size_t n); // the n-th request from now fails (1: the next; 0: none)
int attncl__alloc_has_failed(void);   // whether it has

#endif

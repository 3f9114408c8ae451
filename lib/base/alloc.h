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
// Makes space for one more after n elements of a list; false: there is no memory, and the list stays.
#define GROW_LIST(list, n, capacity)                                                               \
    attncl__grow_list(&(list), (size_t)(n), &(capacity), sizeof *(list))
bool attncl__grow_list(void *list_at, size_t n, size_t *capacity, size_t bytes_each);
char *attncl__copy_text(const char *text);
char *attncl__copy_bytes(const void *data, size_t bytes); // and a terminating zero byte
void attncl__free(void *p);                               // accepts NULL

// Zeroed memory.  Pages that are never written take none.  It is not counted below, because a driver may free it some
// time after the last wait for its queue.
void *attncl__alloc_for_driver(size_t bytes);
void attncl__free_for_driver(void *p);

// For tests: blocks alive now; make the n-th request from now fail (1 = the next; 0 = none); did
// one fail since.
size_t attncl__alloc_live(void);
void attncl__alloc_fail_at(size_t n);
int attncl__alloc_has_failed(void);

#endif

// SPDX-License-Identifier: MIT
// A temporary directory for a test's files.
#ifndef ATTNCL_TEST_DIRECTORY_H
#define ATTNCL_TEST_DIRECTORY_H

#include <stddef.h>

enum { DIRECTORY_BYTES = 64, FILE_BYTES = 320 };

// Creates a new directory; its path is valid until directory_down(), which removes it and all that
// is in it.
const char *directory_up(void);
void directory_down(void);
// The same as a fixture; the end fails when the heap blocks are not as many as at the beginning.
void directory_begin(void);
void directory_end(void);

// directory/name into `path`; returns path.
const char *directory_path(const char *name, char path[FILE_BYTES]);
#define IN_DIRECTORY(name) directory_path((name), (char[FILE_BYTES]){0})

// Writes directory/name, making one level of subdirectory when the name has one.
void directory_write(const char *name, const char *text);
void directory_write_bytes(const char *name, const void *data, size_t bytes);

// Removes the files of directory/name.
void directory_empty(const char *name);

// How many regular files are below it; how many entries of any kind it has itself.
size_t directory_count(void);
size_t directory_entries(void);

#endif

// SPDX-License-Identifier: MIT
// A temporary folder for a test's files.
#ifndef ATTNCL_TEST_FOLDER_H
#define ATTNCL_TEST_FOLDER_H

#include <stddef.h>

enum { FOLDER_BYTES = 64, FILE_BYTES = 320 };

// Makes a new folder; its path is valid until folder_down(), which removes it and all that is in
// it.
const char *folder_up(void);
void folder_begin(void); // the same as a fixture
void folder_down(void);

// folder/name into `path`; returns path.
const char *folder_path(const char *name, char path[FILE_BYTES]);
#define IN_FOLDER(name) folder_path((name), (char[FILE_BYTES]){0})

// Writes folder/name, making one level of sub-folder when the name has one.
void folder_write(const char *name, const char *text);
void folder_write_bytes(const char *name, const void *data, size_t bytes);

// How many regular files are below it; how many entries of any kind it has itself.
size_t folder_count(void);
size_t folder_entries(void);

#endif

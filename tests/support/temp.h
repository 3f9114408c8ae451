// SPDX-License-Identifier: MIT
// A folder of the test's own, below TMPDIR or /tmp: temp_up and temp_down as a checked fixture.
#ifndef ATTNCL_TEST_TEMP_H
#define ATTNCL_TEST_TEMP_H

#include <stddef.h>

void temp_up(void);
void temp_down(void); // removes the folder with all that is in it, one level deep

const char *temp_path(const char *name); // "folder/name"; valid until temp_down
void temp_write(const char *name, const void *data, size_t bytes);
size_t temp_count(void); // entries in the folder

#endif

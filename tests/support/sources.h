// SPDX-License-Identifier: MIT
// Kernel sources with a mistake, for tests of what finds one.
#ifndef ATTNCL_TEST_SOURCES_H
#define ATTNCL_TEST_SOURCES_H

// Writes the sources of all kernels into the test's directory (support/directory.h), `to` in place of
// the first `from` of `file`, which must have it, and sets ATTNCL_CL_DIR to the directory.
void sources_write(const char *file, const char *from, const char *to);

#endif

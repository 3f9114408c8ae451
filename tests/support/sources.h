// SPDX-License-Identifier: MIT
// Kernel sources with a mistake, for tests of what finds one.
#ifndef ATTNCL_TEST_SOURCES_H
#define ATTNCL_TEST_SOURCES_H

#include "attncl/context.h"

// Writes the sources of all kernels into the test's directory (support/directory.h), `to` in place of
// the first `from` of `file`, which must have it, and sets ATTNCL_CL_DIR to the directory.
void sources_write(const char *file, const char *from, const char *to);

// A fixture: contexts that keep what they find about the device in the test's directory.
void findings_up(void);
void findings_down(void);
attncl_context *findings_context(void);

#endif

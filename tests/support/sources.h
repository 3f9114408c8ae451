// SPDX-License-Identifier: MIT
// Kernel sources that differ: with a mistake, for tests of what finds one; with local memory in the place of instructions
// that the device may lack.
#ifndef ATTNCL_TEST_SOURCES_H
#define ATTNCL_TEST_SOURCES_H

#include <stdbool.h>

#include "attncl/context.h"

// Writes the sources of all kernels into the test's directory (support/directory.h), `to` in place of
// the first `from` of `file`, which must have it, and sets ATTNCL_CL_DIR to the directory.
void sources_write(const char *file, const char *from, const char *to);

// Programs that are built from now on compute by local memory where they would by matrix instructions, by SHUFFLE_KHR or
// by SHUFFLE_AMD: NAME_instruction.clh is put in front of the file of this name in cl/common.
extern bool sources_emulate;

// A fixture: contexts that keep what they find about the device in the test's directory.
void findings_up(void);
void findings_down(void);
attncl_context *findings_context(void);

#endif

// SPDX-License-Identifier: MIT
// What the libFuzzer targets share.  Built with -DATTNCL_FUZZ=ON and clang; tests/fuzz/run runs them.
#ifndef ATTNCL_TEST_FUZZ_H
#define ATTNCL_TEST_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "attncl/context.h"
#include "io/safetensors.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #cond,               \
                    attncl_last_error());                                                          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

// True when all went well; else there must be a message, of one line.
bool fuzz_is_ok(attncl_status status);

// A device for the whole run.  Its program cache is off.
attncl_context *fuzz_context(void);

// A path at which the bytes are, until the next call.
const char *fuzz_path(const uint8_t *data, size_t size);

// The bytes with a zero at the end, to be freed.
char *fuzz_text(const uint8_t *data, size_t size);

// Mutates a safetensors file and keeps its frame: else almost every mutant dies at the header's
// length.
size_t fuzz_mutate_framed(uint8_t *data, size_t size, size_t max_size, unsigned seed);

// Replaces a number of a text by one that is a limit of something.
size_t fuzz_mutate_number(uint8_t *data, size_t size, size_t max_size, unsigned seed);

// That for a third of the seeds, else libFuzzer's own mutations.
size_t fuzz_mutate_text(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#endif

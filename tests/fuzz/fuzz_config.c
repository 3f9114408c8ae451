// SPDX-License-Identifier: MIT
// libFuzzer target: "ARCH CONFIGURATION" described as a model file's metadata would be, without a
// device; the whole graph is built for it.

#include <string.h>

#include "attncl/describe.h"
#include "base/alloc.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *arch = fuzz_text(data, size), *config = strchr(arch, ' ');
    attncl_description *d = NULL;

    if (config)
        *config++ = 0;
    for (int symbols = 0; symbols < 2; ++symbols) {
        if (fuzz_is_ok(attncl_description_create(arch, config, symbols, &d)))
            for (size_t i = 0; i < attncl_description_count(d); ++i)
                MUST(attncl_description_at(d, i)->name);
        attncl_description_destroy(d);
        d = NULL;
    }
    free(arch);
    MUST(attncl__alloc_live() == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return seed % 3 == 0 ? fuzz_mutate_number(data, size, max_size, seed)
                         : LLVMFuzzerMutate(data, size, max_size);
}

// SPDX-License-Identifier: MIT
// libFuzzer target: any text as a configuration of training.  What is accepted is written with its
// defaults, and that is accepted again.

#include <string.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "train/config.h"

static char *complete(const char *text)
{
    struct train_config config;
    char *full = NULL;
    if (!fuzz_is_ok(attncl__train_config_begin(&config, text, NULL, NULL)))
        return NULL;
    if (fuzz_is_ok(attncl__train_config_end(&config, 11, 7, -1)))
        MUST(attncl__json_write(config.root, JSON_ONE_LINE, &full) == ATTNCL_OK);
    attncl__train_config_free(&config);
    return full;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *full = complete(text);
    if (full) {
        char *again = complete(full);
        MUST(again && strcmp(again, full) == 0);
        attncl__free(again);
    }
    attncl__free(full);
    free(text);
    MUST(attncl__alloc_live() == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_text(data, size, max_size, seed);
}

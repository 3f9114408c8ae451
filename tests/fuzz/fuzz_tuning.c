// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a tuning file.  Every entry taken is one that its kernel takes; what
// is written has the same entries, and merging once more changes nothing.

#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "fuzz/fuzz.h"
#include "store/tuning_table.h"

static const char device[] = "pthread-cpu", driver[] = "3.1";

static void check(const struct tune_table *table)
{
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; c < TUNE_MAX_CLASSES; ++c) {
            const struct tune_entry *entry = &table->entries[k][c];
            for (int f = 0; entry->line && f < TUNE_MAX_FIELDS; ++f) {
                const struct tune_field *field = &attncl__tune_kernels[k].fields[f];
                MUST(!field->name || attncl__tune_takes(field, entry->value[f]));
            }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bool none[N_TUNABLES][TUNE_MAX_CLASSES];
    struct tune_table table = {.path = NULL}, again = {.path = NULL};
    struct strbuf text = STRBUF_EMPTY, twice = STRBUF_EMPTY;
    char *exact = malloc(size ? size : 1); // reads beyond it are seen
    if (size > 0)
        memcpy(exact, data, size);

    const int n = attncl__tuned_parse(exact, size, "tune.txt", device, driver, &table);
    check(&table);
    attncl__tuned_merge(exact, size, device, driver, &table, none, &text);
    MUST(attncl__tuned_parse(text.data, text.used, "tune.txt", device, driver, &again) == n);
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; c < TUNE_MAX_CLASSES; ++c)
            MUST(!memcmp(table.entries[k][c].value, again.entries[k][c].value,
                         sizeof again.entries[k][c].value));
    attncl__tuned_merge(text.data, text.used, device, driver, &table, none, &twice);
    MUST(twice.used == text.used && !memcmp(twice.data, text.data, text.used));
    attncl__strbuf_free(&text);
    attncl__strbuf_free(&twice);
    free(exact);
    MUST(attncl__alloc_live() == 0);
    return 0;
}

// SPDX-License-Identifier: MIT
// The same bits every time: each golden file's model, gradients and steps of training among them, run twice on one
// device.  With ATTNCL_DIGESTS each runs once and a line for it goes there, by which threads.py compares processes.

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/golden.h"

enum { MAX_FILES = 512, NAME_BYTES = 96 };

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static size_t list_golden(char (*names)[NAME_BYTES])
{
    static const char ending[] = ".safetensors";
    DIR *directory = opendir(ATTNCL_TEST_DATA);
    struct dirent *entry;
    size_t n = 0;

    ck_assert(directory != NULL);
    while ((entry = readdir(directory)) != NULL) {
        const size_t length = strlen(entry->d_name);
        if (length <= sizeof ending ||
            strcmp(entry->d_name + length - (sizeof ending - 1), ending) != 0)
            continue;
        ck_assert(n + 1 < MAX_FILES && length < NAME_BYTES);
        snprintf(names[n++], NAME_BYTES, "%.*s", (int)(length - (sizeof ending - 1)),
                 entry->d_name);
        const char *gradients = strstr(entry->d_name, "_grad.");
        if (gradients) // the case without them too
            snprintf(names[n++], NAME_BYTES, "%.*s", (int)(gradients - entry->d_name),
                     entry->d_name);
    }
    closedir(directory);
    qsort(names, n, NAME_BYTES, compare_names);
    return n;
}

// FNV-1a of all results.
static uint64_t digest(const attncl_results *results)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < attncl_results_count(results); ++i) {
        const attncl_array *a = attncl_results_at(results, i);
        for (size_t k = 0; k < a->bytes; ++k)
            hash = (hash ^ ((const unsigned char *)a->data)[k]) * 0x100000001b3u;
    }
    return hash;
}

// False for a file whose inputs are a loss's instead of the model's own, or without a model.
static bool run_once(const char *name, uint64_t *hash_ret)
{
    struct golden golden;
    attncl_results *results = NULL;
    attncl_model *model = NULL;

    golden_load(&golden, name);
    bool runs = attncl_safetensors_metadata(golden.file, "attncl.arch") != NULL;
    if (runs)
        ck_ok(attncl_model_open(test_context(), golden.path, NULL, &model));
    if (runs) {
        const attncl_status status =
            attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL);
        runs = status != ATTNCL_ERR_ARGUMENT;
        if (runs)
            ck_ok(status);
        *hash_ret = runs ? digest(results) : 0;
    }
    attncl_results_destroy(results);
    attncl_model_destroy(model);
    golden_free(&golden);
    return runs;
}

TEST(results_are_the_same_bits)
{
    static char names[MAX_FILES][NAME_BYTES];
    const char *path = getenv("ATTNCL_DIGESTS");
    FILE *file = path ? fopen(path, "w") : NULL;
    const size_t n = list_golden(names);
    size_t n_models = 0;

    ck_assert(!path || file);
    for (size_t i = 0; i < n; ++i) {
        uint64_t first, second;
        if (!run_once(names[i], &first))
            continue;
        ++n_models;
        second = first;
        ck_assert(file || run_once(names[i], &second));
        ck_assert_msg(first == second, "%s: results differ from one run to the next", names[i]);
        if (file)
            fprintf(file, "%s %016llx\n", names[i], (unsigned long long)first);
    }
    ck_assert_uint_ge(n_models, 100);
    if (file)
        fclose(file);
}

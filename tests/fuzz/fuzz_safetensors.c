// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a safetensors file and as a configuration.  What the reader
// accepts, the writer writes and the reader reads back the same.  Built with -DATTNCL_FUZZ=ON and
// clang; tests/fuzz/run runs it.

#define _POSIX_C_SOURCE 200809L // getpid
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "io/json.h"

static void compare(const attncl_safetensors *a, const attncl_safetensors *b)
{
    MUST(attncl_safetensors_count(a) == attncl_safetensors_count(b));
    for (size_t i = 0; i < attncl_safetensors_count(a); ++i) {
        const attncl_array *x = attncl_safetensors_at(a, i), *y = attncl_safetensors_at(b, i);
        MUST(strcmp(x->name, y->name) == 0 && x->dtype == y->dtype && x->rank == y->rank);
        MUST(memcmp(x->dim, y->dim, sizeof x->dim) == 0 && x->bytes == y->bytes);
        MUST(memcmp(x->data, y->data, x->bytes) == 0);
        MUST(attncl_safetensors_find(b, x->name) == y);
    }
    const char *key, *value, *other;
    for (size_t i = 0; (key = attncl_safetensors_metadata_at(a, i, &value)) != NULL; ++i)
        MUST((other = attncl_safetensors_metadata(b, key)) != NULL && strcmp(value, other) == 0);
}

static void try_file(const uint8_t *data, size_t size)
{
    attncl_safetensors *file = NULL, *again = NULL;
    char path[40];

    if (!fuzz_is_ok(attncl_safetensors_parse(data, size, &file))) {
        MUST(!file);
        return;
    }
    (void)attncl_safetensors_check_finite(file);

    const char **metadata = calloc(2 * file->n_metadata + 1, sizeof *metadata);
    for (size_t i = 0; i < file->n_metadata; ++i)
        metadata[2 * i] = attncl_safetensors_metadata_at(file, i, &metadata[2 * i + 1]);
    attncl_array *arrays = calloc(file->n_tensors + 1, sizeof *arrays);
    for (size_t i = 0; i < file->n_tensors; ++i)
        arrays[i] = file->tensor[i].array;
    snprintf(path, sizeof path, "/tmp/fuzz-safetensors-%d", (int)getpid());
    MUST(attncl_safetensors_write(path, arrays, file->n_tensors, metadata) == ATTNCL_OK);
    MUST(attncl_safetensors_open(path, &again) == ATTNCL_OK && unlink(path) == 0);
    compare(file, again);

    free(arrays);
    free(metadata);
    attncl_safetensors_close(again);
    attncl_safetensors_close(file);
}

static void try_config(const uint8_t *data, size_t size)
{
    struct json *config = NULL;
    size_t n_keys = 0;

    if (attncl__json_parse((const char *)data, size, JSON_CONFIG_LIMITS, &config) != ATTNCL_OK)
        return;
    for (const char *key = attncl__json_next(config, NULL); key; ++n_keys) {
        int64_t number, numbers[4];
        double real;
        bool present = false, flag;
        const char *text;
        const struct json *object;
        size_t n;
        (void)attncl__json_int(config, key, &present, &number);
        MUST(present);
        (void)attncl__json_double(config, key, NULL, &real);
        (void)attncl__json_bool(config, key, NULL, &flag);
        (void)attncl__json_text(config, key, NULL, &text);
        (void)attncl__json_ints(config, key, NULL, 4, numbers, &n);
        if (attncl__json_object(config, key, NULL, &object) == ATTNCL_OK)
            MUST(attncl__json_count(object) < size);
        key = attncl__json_next(config, key);
    }
    MUST(n_keys == attncl__json_count(config));
    attncl__json_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_file(data, size);
    try_config(data, size);
    MUST(attncl__alloc_live() == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_framed(data, size, max_size, seed);
}

// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a file of the program cache.  The driver executes what is returned, so
// it must be what was stored, and a file that is not must be gone.  The first byte says whether the
// others are the file, or flip bits of a good one.

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "store/cache_file.h"

static char directory_path[] = "/dev/shm/attncl-fuzz-XXXXXX";
static struct private_dir directory;
static char file[sizeof directory_path + CACHE_NAME_BYTES];
static const struct bytes key = {"device, options, source", 23};
static const char payload[] = "a program as the driver compiled it";
static uint8_t good[64 + 23 + sizeof payload];

static void clean_up(void)
{
    unlink(file);
    rmdir(directory_path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char name[CACHE_NAME_BYTES];
    const char *why = NULL;
    (void)argc;
    (void)argv;
    MUST(mkdtemp(directory_path));
    MUST(attncl__private_dir_open(directory_path, true, &directory, &why));
    attncl__cache_entry_name(key, name);
    snprintf(file, sizeof file, "%s/%s", directory_path, name);
    MUST(attncl__cache_entry_write(&directory, key, (struct bytes){payload, sizeof payload}));
    const int fd = open(file, O_RDONLY);
    MUST(read(fd, good, sizeof good) == (ssize_t)sizeof good);
    close(fd);
    atexit(clean_up);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[sizeof good];
    void *got = NULL;
    size_t n = 0;
    if (size == 0)
        return 0;
    const uint8_t *content = data + 1;
    size_t n_content = size - 1;
    if (data[0] & 1) {
        memcpy(bytes, good, sizeof good);
        for (size_t i = 0; i < n_content && i < sizeof bytes; ++i)
            bytes[i] ^= data[1 + i];
        content = bytes;
        n_content = sizeof bytes - (data[0] >> 1) % sizeof bytes;
    }
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && write(fd, content, n_content) == (ssize_t)n_content);
    close(fd);
    if (attncl__cache_entry_read(&directory, key, &got, &n)) {
        MUST(n == sizeof payload && memcmp(got, payload, n) == 0);
        MUST(n_content == sizeof good && memcmp(content, good, sizeof good) == 0);
    } else {
        MUST(!got && access(file, F_OK) != 0);
    }
    attncl__free(got);
    attncl__cache_evict(&directory, 64);
    MUST(attncl__alloc_live() == 0);
    return 0;
}

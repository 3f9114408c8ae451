// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // memfd_create
#include "fuzz/fuzz.h"

#include <ctype.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool fuzz_is_ok(attncl_status status)
{
    MUST(status == ATTNCL_OK || (*attncl_last_error() && !strchr(attncl_last_error(), '\n')));
    return status == ATTNCL_OK;
}

attncl_context *fuzz_context(void)
{
    static attncl_context *context;
    if (context)
        return context;
    MUST(setenv("ATTNCL_CACHE", "off", 1) == 0 && setenv("ATTNCL_TUNE", "off", 1) == 0);
    MUST(attncl_context_create(NULL, &context) == ATTNCL_OK);
    return context;
}

const char *fuzz_path(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[32];
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    MUST(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    MUST(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    return text;
}

size_t fuzz_mutate_number(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const char *const numbers[] = {
        "0",     "1",       "2",          "3",          "-1",         "0.5",         "1e-30",
        "64",    "255",     "1000",       "65535",      "65536",      "1000000",     "16777217",
        "1e308", "1048576", "2147483646", "2147483647", "2147483648", "99999999999", "33554432",
    };
    const char *number = numbers[seed / 64 % (sizeof numbers / sizeof numbers[0])];
    const size_t n = strlen(number);
    size_t begins = 0;
    for (size_t i = 0; i < size; ++i)
        begins += isdigit(data[i]) && (i == 0 || !isdigit(data[i - 1]));
    if (begins == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t chosen = seed % begins, at = 0;
    for (; at < size; ++at)
        if (isdigit(data[at]) && (at == 0 || !isdigit(data[at - 1])) && chosen-- == 0)
            break;
    size_t end = at;
    while (end < size && isdigit(data[end]))
        ++end;
    if (size - (end - at) + n > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    memmove(data + at + n, data + end, size - end);
    memcpy(data + at, number, n);
    return size - (end - at) + n;
}

size_t fuzz_mutate_text(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return seed % 3 == 0 ? fuzz_mutate_number(data, size, max_size, seed)
                         : LLVMFuzzerMutate(data, size, max_size);
}

static size_t header_length(const uint8_t *data, size_t size)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0 && size >= 8; --i)
        length = length << 8 | data[i];
    return size >= 8 && length <= size - 8 ? (size_t)length : 0;
}

size_t fuzz_mutate_framed(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const size_t header = header_length(data, size);
    if (seed % 16 == 1 || header == 0 || max_size < size + 64)
        return LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 == 2 && size > 8 + header)
        return 8 + header +
               LLVMFuzzerMutate(data + 8 + header, size - 8 - header, max_size - 8 - header);

    // Mutate the header alone, then set the length to what it became.
    const size_t rest = size - 8 - header;
    uint8_t *tail = malloc(rest ? rest : 1);
    memcpy(tail, data + 8 + header, rest);
    const size_t now = seed % 2 ? LLVMFuzzerMutate(data + 8, header, max_size - 8 - rest)
                                : fuzz_mutate_number(data + 8, header, max_size - 8 - rest, seed);
    memcpy(data + 8 + now, tail, rest);
    free(tail);
    for (int i = 0; i < 8; ++i)
        data[i] = (uint8_t)((uint64_t)now >> 8 * i);
    return 8 + now + rest;
}

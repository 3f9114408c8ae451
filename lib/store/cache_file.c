// SPDX-License-Identifier: MIT
//
// An entry of the program cache is one file:
//
//   header (64 bytes) | key | payload        the header's SHA-256 covers everything else
//
// Concurrent writers' entries are equally valid; the last one wins.  The hash detects a file that a power
// failure left incomplete.

#define _GNU_SOURCE                 // O_DIRECTORY and the *at functions together with C11
#define OPENSSL_SUPPRESS_DEPRECATED // since 3.0
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/ckd.h"
#include "base/log.h"
#include "store/private_dir.h"

enum { FORMAT = 1, BYTE_ORDER_MARK = 0x01020304, HASH_BYTES = 32 };
static const size_t max_entry_bytes = (size_t)64 << 20;

struct header {
    char magic[8];
    uint32_t format;
    uint32_t byte_order;
    uint64_t key_bytes;
    uint64_t payload_bytes;
    unsigned char hash[HASH_BYTES];
};
static_assert(sizeof(struct header) == 64, "the header is written as it is in memory");

static const char magic[8] = {'A', 'T', 'T', 'N', 'C', 'L', 'P', 'B'};

// Hashes the concatenated pieces.  OpenSSL's newer EVP functions allocate, and libcrypto 3.0 crashes when
// its initialisation runs out of memory.
static void sha256(const struct bytes *pieces, size_t n, unsigned char ret[HASH_BYTES])
{
    SHA256_CTX hash;

    SHA256_Init(&hash);
    for (size_t i = 0; i < n; ++i)
        SHA256_Update(&hash, pieces[i].data, pieces[i].n);
    SHA256_Final(ret, &hash);
}

static void hash_entry(const struct header *h, struct bytes key, struct bytes payload,
                       unsigned char ret[HASH_BYTES])
{
    const struct bytes pieces[] = {{h, offsetof(struct header, hash)}, key, payload};
    sha256(pieces, sizeof pieces / sizeof pieces[0], ret);
}

void attncl__cache_entry_make_name(struct bytes key, char name[CACHE_NAME_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[HASH_BYTES];

    sha256(&key, 1, hash);
    for (int i = 0; i < HASH_BYTES; ++i) {
        name[2 * i] = digits[hash[i] >> 4];
        name[2 * i + 1] = digits[hash[i] & 15];
    }
    memcpy(name + 2 * HASH_BYTES, ".program", sizeof ".program");
}

// Returns why the content is not a valid entry of this key, or NULL.
static const char *check_content(const char *data, size_t n, struct bytes key)
{
    unsigned char hash[HASH_BYTES];
    struct header h;

    memcpy(&h, data, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.format != FORMAT ||
        h.byte_order != BYTE_ORDER_MARK)
        return "of another format";
    if (h.key_bytes > n - sizeof h || h.payload_bytes != n - sizeof h - h.key_bytes)
        return "of inconsistent sizes";
    if (h.key_bytes != key.n || memcmp(data + sizeof h, key.data, key.n) != 0)
        return "of another key";
    const struct bytes payload = {data + sizeof h + key.n, (size_t)h.payload_bytes};
    hash_entry(&h, key, payload, hash);
    if (memcmp(hash, h.hash, sizeof hash) != 0)
        return "damaged";
    return NULL;
}

bool attncl__cache_entry_read(const struct private_dir *directory, struct bytes key,
                              void **payload_ret, size_t *n_ret)
{
    char name[CACHE_NAME_BYTES];
    const char *why = NULL;
    bool found = false;
    char *data = NULL;
    size_t n = 0;

    attncl__cache_entry_make_name(key, name);
    if (attncl__private_file_read(directory, name, sizeof(struct header), max_entry_bytes, &data,
                                  &n, &why))
        why = check_content(data, n, key);
    if (data && !why) {
        const size_t skip = sizeof(struct header) + key.n;
        memmove(data, data + skip, n - skip);
        *payload_ret = data;
        *n_ret = n - skip;
        data = NULL;
        found = true;
    }
    if (why) {
        attncl__log(ATTNCL_LOG_WARN, "program cache: entry %.16s is %s", name, why);
        attncl__cache_entry_remove(directory, key);
    }
    attncl__free(data);
    return found;
}

bool attncl__cache_entry_write(const struct private_dir *directory, struct bytes key,
                               struct bytes payload)
{
    struct header h = {.format = FORMAT,
                       .byte_order = BYTE_ORDER_MARK,
                       .key_bytes = key.n,
                       .payload_bytes = payload.n};
    char name[CACHE_NAME_BYTES];
    size_t total;

    if (!directory->writable || !ckd_add_size(key.n, payload.n, &total) ||
        !ckd_add_size(total, sizeof h, &total) || total > max_entry_bytes)
        return false;
    memcpy(h.magic, magic, sizeof magic);
    hash_entry(&h, key, payload, h.hash);
    attncl__cache_entry_make_name(key, name);
    const struct bytes pieces[] = {{&h, sizeof h}, key, payload};
    return attncl__private_file_replace(directory, name, pieces, sizeof pieces / sizeof pieces[0]);
}

void attncl__cache_entry_remove(const struct private_dir *directory, struct bytes key)
{
    char name[CACHE_NAME_BYTES];

    attncl__cache_entry_make_name(key, name);
    if (directory->writable)
        unlinkat(directory->fd, name, 0);
}

// -- eviction, least recently used first

enum { TEMP_LIFE_SECONDS = 3600 };

struct found_entry {
    char name[CACHE_NAME_BYTES];
    uint64_t bytes;
    struct timespec used;
};

static int compare_age(const void *a, const void *b)
{
    const struct found_entry *x = a, *y = b;

    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

// True for file names that this cache creates; others are never touched.
static bool is_ours(const char *name, size_t n_digits, const char *end)
{
    return strspn(name, "0123456789abcdef") >= n_digits && strcmp(name + n_digits, end) == 0;
}

// Lists the entries and removes abandoned temporary files.
static size_t list_entries(int fd, DIR *dir, struct found_entry **ret)
{
    const time_t now = time(NULL);
    const struct dirent *entry;
    struct found_entry *list = NULL;
    size_t n = 0, capacity = 0;
    struct stat st;

    while ((entry = readdir(dir))) {
        const bool temp = is_ours(entry->d_name, 32, ".tmp");

        if (!temp && !is_ours(entry->d_name, 64, ".program"))
            continue;
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (temp) {
            if (now - st.st_mtime > TEMP_LIFE_SECONDS)
                unlinkat(fd, entry->d_name, 0);
            continue;
        }
        if (!GROW_LIST(list, n, capacity))
            break;
        strcpy(list[n].name, entry->d_name);
        list[n].bytes = (uint64_t)st.st_size;
        list[n].used = st.st_mtim;
        ++n;
    }
    *ret = list;
    return n;
}

void attncl__cache_evict(const struct private_dir *directory, uint64_t max_bytes)
{
    struct found_entry *list = NULL;
    uint64_t total = 0;

    if (!directory->writable)
        return;
    const int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    const size_t n = list_entries(directory->fd, dir, &list);
    if (n > 0)
        qsort(list, n, sizeof *list, compare_age);
    for (size_t i = 0; i < n; ++i)
        total += list[i].bytes;
    for (size_t i = 0; i < n && total > max_bytes; ++i) {
        unlinkat(directory->fd, list[i].name, 0);
        total -= list[i].bytes;
    }
    attncl__free(list);
    closedir(dir);
}

// SPDX-License-Identifier: MIT
//
// One entry of the program cache:
//
//   header (64 bytes) | key | payload        the header's SHA-256 covers everything but itself
//
// There are no locks: an entry is written aside and renamed, the last writer wins and every
// writer's entry is right. Nothing is synced to the disk either: after a power cut the hash finds
// what is torn.

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/log.h"
#include "device/cache_file.h"

enum { FORMAT = 1, BYTE_ORDER_MARK = 0x01020304, HASH_BYTES = 32 };
static const size_t most_bytes = (size_t)64 << 20;

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

// SHA-256 of the pieces, one after the other.
static bool sha256(const struct cache_bytes *pieces, size_t n, unsigned char ret[HASH_BYTES])
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool good = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;

    for (size_t i = 0; good && i < n; ++i)
        good = EVP_DigestUpdate(md, pieces[i].data, pieces[i].n) == 1;
    good = good && EVP_DigestFinal_ex(md, ret, NULL) == 1;
    EVP_MD_CTX_free(md);
    return good;
}

static bool hash_entry(const struct header *h, struct cache_bytes key, struct cache_bytes payload,
                       unsigned char ret[HASH_BYTES])
{
    const struct cache_bytes pieces[] = {{h, offsetof(struct header, hash)}, key, payload};
    return sha256(pieces, sizeof pieces / sizeof pieces[0], ret);
}

bool attncl__cache_entry_name(struct cache_bytes key, char name[CACHE_NAME_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[HASH_BYTES];

    if (!sha256(&key, 1, hash))
        return false;
    for (int i = 0; i < HASH_BYTES; ++i) {
        name[2 * i] = digits[hash[i] >> 4];
        name[2 * i + 1] = digits[hash[i] & 15];
    }
    memcpy(name + 2 * HASH_BYTES, ".program", sizeof ".program");
    return true;
}

static bool read_all(int fd, void *data, size_t n)
{
    for (char *at = data; n > 0;) {
        const ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *data, size_t n)
{
    for (const char *at = data; n > 0;) {
        const ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        n -= (size_t)put;
    }
    return true;
}

// Why the file may not be read, or NULL.
static const char *refuse_file(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "no regular file";
    if (st->st_uid != geteuid())
        return "another user's";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "writable by others";
    if (st->st_size < (off_t)sizeof(struct header) || st->st_size > (off_t)most_bytes)
        return "of an impossible size";
    return NULL;
}

// Why the content is not an entry of this key, or NULL.
static const char *refuse_content(const char *data, size_t n, struct cache_bytes key)
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
    const struct cache_bytes payload = {data + sizeof h + key.n, (size_t)h.payload_bytes};
    if (!hash_entry(&h, key, payload, hash) || memcmp(hash, h.hash, sizeof hash) != 0)
        return "damaged";
    return NULL;
}

bool attncl__cache_entry_read(const struct cache_folder *folder, struct cache_bytes key,
                              void **payload_ret, size_t *n_ret)
{
    char name[CACHE_NAME_BYTES];
    const char *why = NULL;
    bool found = false;
    char *data = NULL;
    struct stat st;

    if (!attncl__cache_entry_name(key, name))
        return false;
    // Not blocking: somebody may have put a pipe there.
    const int fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return false;
    if (fd < 0 || fstat(fd, &st) != 0) {
        why = "unreadable";
        goto done;
    }
    why = refuse_file(&st);
    if (why)
        goto done;
    const size_t n = (size_t)st.st_size;
    data = attncl__alloc(n);
    if (!data)
        goto done;
    why = read_all(fd, data, n) ? refuse_content(data, n, key) : "unreadable";
    if (why)
        goto done;
    if (folder->writable)
        (void)futimens(fd, NULL); // used now; trimming goes by it, and it may fail

    const size_t skip = sizeof(struct header) + key.n;
    memmove(data, data + skip, n - skip);
    *payload_ret = data;
    *n_ret = n - skip;
    data = NULL;
    found = true;

done:
    if (why) {
        attncl__log(ATTNCL_LOG_WARN, "program cache: entry %.16s is %s", name, why);
        attncl__cache_entry_remove(folder, key);
    }
    if (fd >= 0)
        close(fd);
    attncl__free(data);
    return found;
}

// A name that no other writer has.
static bool random_name(char *name, size_t room)
{
    uint64_t x[2];

    if (getrandom(x, sizeof x, 0) != (ssize_t)sizeof x)
        return false;
    snprintf(name, room, "%016llx%016llx.tmp", (unsigned long long)x[0], (unsigned long long)x[1]);
    return true;
}

bool attncl__cache_entry_write(const struct cache_folder *folder, struct cache_bytes key,
                               struct cache_bytes payload)
{
    struct header h = {.format = FORMAT,
                       .byte_order = BYTE_ORDER_MARK,
                       .key_bytes = key.n,
                       .payload_bytes = payload.n};
    char name[CACHE_NAME_BYTES], temp[64];
    size_t total;

    if (!folder->writable || !ckd_add_size(key.n, payload.n, &total) ||
        !ckd_add_size(total, sizeof h, &total) || total > most_bytes)
        return false;
    memcpy(h.magic, magic, sizeof magic);
    if (!hash_entry(&h, key, payload, h.hash) || !attncl__cache_entry_name(key, name) ||
        !random_name(temp, sizeof temp))
        return false;
    const int fd =
        openat(folder->fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool good = write_all(fd, &h, sizeof h) && write_all(fd, key.data, key.n) &&
                write_all(fd, payload.data, payload.n);
    good = close(fd) == 0 && good;
    good = good && renameat(folder->fd, temp, folder->fd, name) == 0;
    if (!good)
        unlinkat(folder->fd, temp, 0);
    return good;
}

void attncl__cache_entry_remove(const struct cache_folder *folder, struct cache_bytes key)
{
    char name[CACHE_NAME_BYTES];

    if (folder->writable && attncl__cache_entry_name(key, name))
        unlinkat(folder->fd, name, 0);
}

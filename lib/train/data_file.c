// SPDX-License-Identifier: MIT
//
// Data files.  They are read, not mapped: a mapping faults if another process truncates the file.

#define _XOPEN_SOURCE 700 // st_mtim
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "train/dataset.h"

enum { CHUNK_BYTES = 1 << 16 };

// FNV-1a, 64 bits.
static const uint64_t hash_begin = UINT64_C(0xcbf29ce484222325),
                      hash_prime = UINT64_C(0x100000001b3);

uint64_t attncl__data_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    hash = hash ? hash : hash_begin;
    for (size_t i = 0; i < bytes; ++i)
        hash = (hash ^ at[i]) * hash_prime;
    return hash;
}

// Sets size, time and identity of the file that to->path names now.
static attncl_status read_info(struct data_file *to)
{
    struct stat info;

    REQUIRE(stat(to->path, &info) == 0, ATTNCL_ERR_IO, "%s: %s", to->path, strerror(errno));
    to->bytes = (uint64_t)info.st_size;
    to->modified = info.st_mtim;
    to->device = info.st_dev;
    to->inode = info.st_ino;
    return ATTNCL_OK;
}

// Opens and hashes the file that to->path names now.
static attncl_status open_and_hash(struct data_file *to)
{
    attncl_status status = ATTNCL_OK;
    unsigned char *chunk = attncl__alloc(CHUNK_BYTES);
    uint64_t bytes;

    REQUIRE(chunk, ATTNCL_ERR_NO_MEMORY, "%d bytes", CHUNK_BYTES);
    TRY_DONE(attncl__file_open(to->path, &to->fd, &bytes));
    TRY_DONE(read_info(to)); // first, so that later checks see a change while the file is read
    to->hash = attncl__data_hash(0, NULL, 0);
    for (uint64_t done = 0; done < to->bytes;) {
        const size_t n = to->bytes - done < CHUNK_BYTES ? (size_t)(to->bytes - done) : CHUNK_BYTES;
        TRY_DONE(attncl__data_file_read(to, done, chunk, n));
        to->hash = attncl__data_hash(to->hash, chunk, n);
        done += n;
    }

done:
    attncl__free(chunk);
    return status;
}

attncl_status attncl__data_file_open(const char *path, struct data_file *file)
{
    attncl_status status = ATTNCL_OK;
    struct data_file opened = DATA_FILE_EMPTY;

    opened.path = attncl__copy_text(path);
    REQUIRE(opened.path, ATTNCL_ERR_NO_MEMORY, "a path of %zu bytes", strlen(path));
    TRY_DONE(open_and_hash(&opened));
    *file = opened;
    opened = DATA_FILE_EMPTY;

done:
    attncl__data_file_close(&opened);
    return status;
}

void attncl__data_file_close(struct data_file *file)
{
    attncl__file_close(&file->fd);
    attncl__free(file->path);
    *file = DATA_FILE_EMPTY;
}

attncl_status attncl__data_file_read(const struct data_file *file, uint64_t offset, void *data,
                                     size_t bytes)
{
    return attncl__prefix_failure(attncl__file_read_at(file->fd, offset, data, bytes), "%s",
                                  file->path);
}

attncl_status attncl__data_file_check(struct data_file *file)
{
    attncl_status status = ATTNCL_OK;
    struct data_file now = DATA_FILE_EMPTY;

    now.path = file->path;
    TRY_DONE(read_info(&now));
    if (now.bytes == file->bytes && now.inode == file->inode && now.device == file->device &&
        now.modified.tv_sec == file->modified.tv_sec &&
        now.modified.tv_nsec == file->modified.tv_nsec)
        goto done;
    if (now.bytes != file->bytes)
        TRY_DONE(FAIL(ATTNCL_ERR_IO,
                      "%s: had %" PRIu64 " bytes and has %" PRIu64 " now: changed while in use",
                      file->path, file->bytes, now.bytes));
    TRY_DONE(open_and_hash(&now));
    if (now.hash != file->hash || now.bytes != file->bytes)
        TRY_DONE(
            FAIL(ATTNCL_ERR_IO, "%s: has another content now: changed while in use", file->path));
    const int old = file->fd; // the content is the same: the file was touched or replaced
    *file = now;
    now.fd = old;

done:
    attncl__file_close(&now.fd);
    return status;
}

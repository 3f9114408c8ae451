// SPDX-License-Identifier: MIT
//
// Whole files.

#define _GNU_SOURCE // O_CLOEXEC, getrandom
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/try.h"

// Linux transfers at most 2 GiB minus a page per call.
static const size_t max_transfer = (size_t)1 << 30;

attncl_status attncl__file_open(const char *path, int *fd_ret, uint64_t *bytes_ret)
{
    attncl_status status = ATTNCL_OK;
    struct stat info;

    // Without O_NONBLOCK the open itself would wait for a FIFO's writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    REQUIRE(fd >= 0, ATTNCL_ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0)
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s: %s", path, strerror(errno)));
    if (S_ISDIR(info.st_mode))
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s: is a directory", path));
    if (!S_ISREG(info.st_mode))
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s: is no regular file", path));

    *bytes_ret = (uint64_t)info.st_size;
    *fd_ret = fd;
    fd = -1;

done:
    attncl__file_close(&fd);
    return status;
}

attncl_status attncl__file_read(int fd, void *data, size_t bytes)
{
    unsigned char *to = data;

    while (bytes > 0) {
        const ssize_t got = read(fd, to, bytes < max_transfer ? bytes : max_transfer);
        if (got < 0 && errno == EINTR)
            continue;
        REQUIRE(got >= 0, ATTNCL_ERR_IO, "%s", strerror(errno));
        REQUIRE(got > 0, ATTNCL_ERR_IO, "the file ended %zu bytes early: changed while being read",
                bytes);
        to += got;
        bytes -= (size_t)got;
    }
    return ATTNCL_OK;
}

attncl_status attncl__file_read_at(int fd, uint64_t offset, void *data, size_t bytes)
{
    REQUIRE(lseek(fd, (off_t)offset, SEEK_SET) >= 0, ATTNCL_ERR_IO, "%s", strerror(errno));
    return attncl__file_read(fd, data, bytes);
}

attncl_status attncl__file_check_size(int fd, uint64_t bytes)
{
    struct stat info;

    REQUIRE(fstat(fd, &info) == 0, ATTNCL_ERR_IO, "%s", strerror(errno));
    REQUIRE((uint64_t)info.st_size == bytes, ATTNCL_ERR_IO,
            "had %" PRIu64 " bytes and has %" PRIu64 " now: changed while being read", bytes,
            (uint64_t)info.st_size);
    return ATTNCL_OK;
}

void attncl__file_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

attncl_status attncl__file_write(int fd, const void *data, size_t bytes)
{
    const unsigned char *from = data;

    while (bytes > 0) {
        const ssize_t put = write(fd, from, bytes < max_transfer ? bytes : max_transfer);
        if (put < 0 && errno == EINTR)
            continue;
        REQUIRE(put > 0, ATTNCL_ERR_IO, "%s", strerror(put < 0 ? errno : EIO));
        from += put;
        bytes -= (size_t)put;
    }
    return ATTNCL_OK;
}

enum { MAX_LINKS = 40 }; // Linux's own limit

// Replaces `path` by its target if it is a symbolic link.
static attncl_status follow_link(char path[PATH_MAX], bool *followed_ret)
{
    char text[PATH_MAX];
    struct stat info;

    *followed_ret = false;
    if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode))
        return ATTNCL_OK;
    const ssize_t n = readlink(path, text, sizeof text);
    REQUIRE(n >= 0, ATTNCL_ERR_IO, "%s", strerror(errno));
    const char *slash = text[0] == '/' ? NULL : strrchr(path, '/');
    const size_t directory = slash ? (size_t)(slash - path) + 1 : 0;
    REQUIRE((size_t)n < sizeof text - directory, ATTNCL_ERR_IO, "%s", strerror(ENAMETOOLONG));
    memcpy(path + directory, text, (size_t)n);
    path[directory + (size_t)n] = '\0';
    *followed_ret = true;
    return ATTNCL_OK;
}

// Finds the file to replace or create: follows symbolic links; refuses devices, FIFOs and directories.
static attncl_status resolve_target(const char *path, char target[PATH_MAX])
{
    bool followed = true;
    struct stat info;

    REQUIRE(strlen(path) > 0 && strlen(path) < PATH_MAX, ATTNCL_ERR_IO, "%s",
            strerror(*path ? ENAMETOOLONG : ENOENT));
    strcpy(target, path);
    for (int i = 0; followed; ++i) {
        REQUIRE(i <= MAX_LINKS, ATTNCL_ERR_IO, "%s", strerror(ELOOP));
        TRY(follow_link(target, &followed));
    }
    const bool exists = stat(target, &info) == 0;
    REQUIRE(exists || errno == ENOENT, ATTNCL_ERR_IO, "%s", strerror(errno));
    REQUIRE(!exists || !S_ISDIR(info.st_mode), ATTNCL_ERR_IO, "is a directory");
    REQUIRE(!exists || S_ISREG(info.st_mode), ATTNCL_ERR_IO, "is no regular file");
    return ATTNCL_OK;
}

// Creates "name.tmp-0123456789abcdef" beside `target`.  A long name is cut to stay below NAME_MAX.
static attncl_status create_beside(const char *target, char temporary[PATH_MAX], int *fd_ret)
{
    const char *slash = strrchr(target, '/');
    const int directory = slash ? (int)(slash + 1 - target) : 0;
    uint64_t random;

    REQUIRE(getrandom(&random, sizeof random, 0) == sizeof random, ATTNCL_ERR_IO, "%s",
            strerror(errno));
    const int used = snprintf(temporary, PATH_MAX, "%.*s%.200s.tmp-%016" PRIx64, directory, target,
                              target + directory, random);
    REQUIRE(used > 0 && used < PATH_MAX, ATTNCL_ERR_IO, "%s", strerror(ENAMETOOLONG));
    *fd_ret = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    REQUIRE(*fd_ret >= 0, ATTNCL_ERR_IO, "%s", strerror(errno));
    return ATTNCL_OK;
}

// Writes the file's directory entry to disk.
static attncl_status sync_directory(const char *file)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(file, '/');
    const size_t length = slash ? (size_t)(slash - file) + 1 : 0;
    memcpy(directory, slash ? file : ".", slash ? length : 1);
    directory[slash ? length : 1] = '\0';
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(fd >= 0, ATTNCL_ERR_IO, "%s: %s", directory, strerror(errno));
    const bool synced = fsync(fd) == 0 || errno == EINVAL; // some file systems do not support it
    const int reason = errno;
    close(fd);
    REQUIRE(synced, ATTNCL_ERR_IO, "%s: %s", directory, strerror(reason));
    return ATTNCL_OK;
}

attncl_status attncl__file_replace_from(const char *path, file_part_source source, void *user,
                                        size_t n, bool durably)
{
    attncl_status status = ATTNCL_OK;
    struct bytes part;
    char target[PATH_MAX], temporary[PATH_MAX];
    bool has_temporary = false;
    int fd = -1;

    TRY_DONE(resolve_target(path, target));
    TRY_DONE(create_beside(target, temporary, &fd));
    has_temporary = true;
    for (size_t i = 0; i < n; ++i) {
        TRY_DONE(source(user, i, &part));
        TRY_DONE(attncl__file_write(fd, part.data, part.n));
    }
    if (durably && fsync(fd) != 0)
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s", strerror(errno)));

    const int closed = close(fd); // a network file system reports a full disk here
    fd = -1;
    if (closed != 0 || rename(temporary, target) != 0)
        TRY_DONE(FAIL(ATTNCL_ERR_IO, "%s", strerror(errno)));
    has_temporary = false;
    if (durably)
        TRY_DONE(sync_directory(target));

done:
    attncl__file_close(&fd);
    if (has_temporary)
        unlink(temporary);
    return attncl__prefix_failure(status, "%s", path);
}

static attncl_status get_given_part(void *parts, size_t i, struct bytes *part_ret)
{
    *part_ret = ((const struct bytes *)parts)[i];
    return ATTNCL_OK;
}

attncl_status attncl__file_replace(const char *path, const struct bytes *parts, size_t n,
                                   bool durably)
{
    return attncl__file_replace_from(path, get_given_part, (void *)(uintptr_t)parts, n, durably);
}

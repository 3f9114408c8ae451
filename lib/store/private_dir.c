// SPDX-License-Identifier: MIT
//
// There are no locks: a file is written under a temporary name and renamed, and the last writer wins.
// Nothing is synced to disk, so readers must detect incomplete files.

#define _GNU_SOURCE // O_DIRECTORY and the *at functions together with C11
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "store/private_dir.h"

void attncl__add_user_path(enum env_var xdg, const char *in_home, const char *name,
                           struct strbuf *ret)
{
    const char *directory = attncl__env_get(xdg), *home = attncl__env_get(ENV_HOME);

    if (directory && directory[0] == '/')
        attncl__strbuf_add(ret, "%s/%s", directory, name);
    else if (home && home[0] == '/')
        attncl__strbuf_add(ret, "%s/%s/%s", home, in_home, name);
}

// Creates the directory and its parents, accessible to this user only.
static bool make_directories(const char *path)
{
    char *part = attncl__copy_text(path);
    bool good = part != NULL;

    for (char *end = part; good && *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        const char next = *end;
        *end = '\0';
        good = mkdir(part, 0700) == 0 || errno == EEXIST;
        *end = next;
    }
    attncl__free(part);
    return good;
}

bool attncl__private_dir_open(const char *path, bool writable, struct private_dir *ret,
                              const char **why_ret)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;

    *ret = (struct private_dir){.fd = -1};
    int fd = open(path, flags);
    if (fd < 0 && errno == ENOENT && writable && make_directories(path))
        fd = open(path, flags);
    if (fd < 0) {
        *why_ret =
            errno == ELOOP || errno == ENOTDIR ? "it is no directory" : "it cannot be opened";
        return false;
    }
    *why_ret = NULL;
    if (fstat(fd, &st) != 0)
        *why_ret = "it cannot be examined";
    else if (st.st_uid != geteuid())
        *why_ret = "it is another user's";
    else if (st.st_mode & (S_IWGRP | S_IWOTH))
        *why_ret = "others can write to it";
    if (*why_ret) {
        close(fd);
        return false;
    }
    *ret = (struct private_dir){.fd = fd, .writable = writable};
    return true;
}

void attncl__private_dir_close(struct private_dir *directory)
{
    if (directory->fd >= 0)
        close(directory->fd);
    *directory = (struct private_dir){.fd = -1};
}

// Returns why the file may not be read, or NULL.
static const char *check_file(const struct stat *st, size_t min_bytes, size_t max_bytes)
{
    if (!S_ISREG(st->st_mode))
        return "no regular file";
    if (st->st_uid != geteuid())
        return "another user's";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "writable by others";
    if (st->st_size < (off_t)min_bytes || st->st_size > (off_t)max_bytes)
        return "of an impossible size";
    return NULL;
}

bool attncl__private_file_read(const struct private_dir *directory, const char *name,
                               size_t min_bytes, size_t max_bytes, char **data_ret, size_t *n_ret,
                               const char **why_ret)
{
    char *data = NULL;
    bool found = false;
    struct stat st;

    *why_ret = NULL;
    // Non-blocking, because the file may be a FIFO.
    const int fd = openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return false;
    if (fd < 0 || fstat(fd, &st) != 0) {
        *why_ret = "unreadable";
        goto done;
    }
    *why_ret = check_file(&st, min_bytes, max_bytes);
    if (*why_ret)
        goto done;
    data = attncl__alloc((size_t)st.st_size);
    if (!data)
        goto done;
    if (attncl__file_read(fd, data, (size_t)st.st_size) != ATTNCL_OK) {
        *why_ret = "unreadable";
        goto done;
    }
    if (directory->writable)
        (void)futimens(fd, NULL); // for eviction; a failure is harmless
    *data_ret = data;
    *n_ret = (size_t)st.st_size;
    data = NULL;
    found = true;

done:
    if (fd >= 0)
        close(fd);
    attncl__free(data);
    return found;
}

bool attncl__private_file_replace(const struct private_dir *directory, const char *name,
                                  const struct bytes *pieces, size_t n)
{
    unsigned long long random[2];
    char temp[64]; // unique among writers

    if (!directory->writable || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    snprintf(temp, sizeof temp, "%016llx%016llx.tmp", random[0], random[1]);
    const int fd =
        openat(directory->fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool good = true;
    for (size_t i = 0; good && i < n; ++i)
        good = attncl__file_write(fd, pieces[i].data, pieces[i].n) == ATTNCL_OK;
    good = close(fd) == 0 && good;
    good = good && renameat(directory->fd, temp, directory->fd, name) == 0;
    if (!good)
        unlinkat(directory->fd, temp, 0);
    return good;
}

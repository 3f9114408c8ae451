// SPDX-License-Identifier: MIT
// A directory private to this user and whole files in it, for the program cache and the tuning
// table.  Knows no OpenCL.
#ifndef ATTNCL_STORE_PRIVATE_DIR_H
#define ATTNCL_STORE_PRIVATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/env.h"

// An open directory; fd -1: none.
struct private_dir {
    int fd;
    bool writable;
};

struct bytes {
    const void *data;
    size_t n;
};

struct strbuf;

// Appends the path of this user's file or directory `name`: in the directory of variable `xdg`,
// else in HOME/`in_home`.  A relative directory is ignored, as the XDG specification demands.
// Appends nothing when neither is set: never a directory shared by users.
void attncl__user_path(enum env_var xdg, const char *in_home, const char *name, struct strbuf *ret);

// Opens the directory; creates it when it is missing and `writable`.  False, with the reason in
// *why_ret (static text), when it is missing, a link, another user's, or writable by others.
bool attncl__private_dir_open(const char *path, bool writable, struct private_dir *ret,
                              const char **why_ret);
void attncl__private_dir_close(struct private_dir *directory);

// Reads a whole file of `min_bytes` to `max_bytes`, owned by the caller (attncl__free), and updates
// its time.  False, with *why_ret NULL, when there is none.  False, with the reason (static text),
// when it is no regular file, another user's, writable by others, of another size, or unreadable.
bool attncl__private_file_read(const struct private_dir *directory, const char *name,
                               size_t min_bytes, size_t max_bytes, char **data_ret, size_t *n_ret,
                               const char **why_ret);

// Writes the concatenated pieces atomically: readers see the old file or the new one.  False,
// without side effects, when it cannot be written.
bool attncl__private_file_replace(const struct private_dir *directory, const char *name,
                                  const struct bytes *pieces, size_t n);

#endif

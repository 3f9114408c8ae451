// SPDX-License-Identifier: MIT
// A directory private to this user, and whole files in it: the program cache, the tuning table, verdicts.
#ifndef ATTNCL_STORE_PRIVATE_DIR_H
#define ATTNCL_STORE_PRIVATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"

// An open directory; fd -1: not open.
struct private_dir {
    int fd;
    bool writable;
};

struct strbuf;

// Appends the path of this user's file or directory `name`: in the directory that variable `xdg` names,
// else in HOME/`in_home`.  Ignores a relative directory, as the XDG specification demands.  Appends
// nothing when neither is set, so that the path is never in a shared directory.
void attncl__add_user_path(enum env_var xdg, const char *in_home, const char *name,
                           struct strbuf *ret);

// Opens the directory, and creates it first if it is missing and `writable`.  False, with the reason in
// *why_ret (static text), when it is missing, a link, another user's, or writable by others.
bool attncl__private_dir_open(const char *path, bool writable, struct private_dir *ret,
                              const char **why_ret);
void attncl__private_dir_close(struct private_dir *directory);

// Reads a whole file of `min_bytes` to `max_bytes` and updates its time; the caller frees *data_ret.
// False with *why_ret NULL when it does not exist.  False with a reason (static text) when it is no
// regular file, another user's, writable by others, of another size, or unreadable.
bool attncl__private_file_read(const struct private_dir *directory, const char *name,
                               size_t min_bytes, size_t max_bytes, char **data_ret, size_t *n_ret,
                               const char **why_ret);

// Writes the concatenated pieces atomically: readers see the old file or the new one.  False,
// without side effects, when it cannot be written.
bool attncl__private_file_replace(const struct private_dir *directory, const char *name,
                                  const struct bytes *pieces, size_t n);

// -- cache_file.c: the files of the program cache
//
// A program binary is code that the driver will execute.  So an entry is returned only when directory and file belong
// to this user alone, the stored key equals the whole key, and the SHA-256 is right.

// An entry's file name: SHA-256 of its key in hexadecimal digits, and ".program".
enum { CACHE_NAME_BYTES = 64 + 8 + 1 };

// Removes the least recently used entries until at most `max_bytes` are left, and abandoned temporary
// files.
void attncl__cache_evict(const struct private_dir *directory, uint64_t max_bytes);

// Reads the payload stored under `key`, which the caller frees, and marks the entry as used.  False when
// there is no valid entry; an invalid one is removed.
bool attncl__cache_entry_read(const struct private_dir *directory, struct bytes key,
                              void **payload_ret, size_t *n_ret);
// As attncl__private_file_replace().
bool attncl__cache_entry_write(const struct private_dir *directory, struct bytes key,
                               struct bytes payload);
void attncl__cache_entry_remove(const struct private_dir *directory, struct bytes key);

void attncl__cache_entry_make_name(struct bytes key, char name[CACHE_NAME_BYTES]);

// -- verdict_file.c: probes' verdicts, in verdicts.txt in the program cache's directory

enum { VERDICTS_MAX_BYTES = 65536, VERDICT_WHY_BYTES = 512 };

struct verdict_key {
    const char *sources, *device, *driver; // sources: digest of the kernel sources
};

// name: the probe's; why: what is wrong, "" if it passed.
typedef void (*attncl__verdict_fn)(const char *name, const char *why, void *user);

// Calls fn for each verdict of the key; not at all if the file is missing or not trustworthy.
void attncl__verdicts_read(const struct private_dir *directory, const struct verdict_key *key,
                           attncl__verdict_fn fn, void *user);

// Replaces the probe's verdict.  False when the file cannot be written.
bool attncl__verdict_write(const struct private_dir *directory, const struct verdict_key *key,
                           const char *name, const char *why);

#endif

// SPDX-License-Identifier: MIT
// Reading and atomically replacing regular files.
#ifndef ATTNCL_BASE_FILE_H
#define ATTNCL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/status.h"

struct bytes {
    const void *data;
    size_t n;
};

// Opens a regular file for reading and returns its size.  ERR_IO for anything else; never waits for a
// FIFO's writer.  Close *fd_ret with attncl__file_close().
attncl_status attncl__file_open(const char *path, int *fd_ret, uint64_t *bytes_ret);

// Read exactly `bytes`, from the current position or from `offset` on; ERR_IO when the file has fewer.
attncl_status attncl__file_read(int fd, void *data, size_t bytes);
attncl_status attncl__file_read_at(int fd, uint64_t offset, void *data, size_t bytes);

// ERR_IO when the file's size has changed from `bytes` while it was read.
attncl_status attncl__file_check_size(int fd, uint64_t bytes);

attncl_status attncl__file_write(int fd, const void *data, size_t bytes); // all of them
void attncl__file_close(int *fd);                                         // accepts -1; sets -1

// Writes the parts one after another into a new file beside `path` and renames it to `path`, which
// keeps its old content until then.  A symbolic link stays; its target is replaced.  ERR_IO,
// without a temporary file left, on failure or when `path` is no regular file.
// `durably`: the new file is on disk under its name when the call returns.
attncl_status attncl__file_replace(const char *path, const struct bytes *parts, size_t n,
                                   bool durably);

// Returns part `i`, whose data is valid until the next call.
typedef attncl_status (*file_part_source)(void *user, size_t i, struct bytes *part_ret);

// As attncl__file_replace(), with `n` parts that `source` produces one at a time.
attncl_status attncl__file_replace_from(const char *path, file_part_source source, void *user,
                                        size_t n, bool durably);

#endif

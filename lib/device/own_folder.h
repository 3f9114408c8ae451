// SPDX-License-Identifier: MIT
// A folder that belongs to this user alone, and whole files in it: what the program cache and tuned
// rows are kept in.  Knows no OpenCL.
#ifndef ATTNCL_DEVICE_OWN_FOLDER_H
#define ATTNCL_DEVICE_OWN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

// An open folder; fd -1: none.
struct own_folder {
    int fd;
    bool writable;
};

struct bytes {
    const void *data;
    size_t n;
};

// Makes the folder when it is missing and `writable`.  False, and the reason in *why_ret (static
// text), when the folder cannot be used: missing, a link, another user's, writable by others.
bool attncl__own_folder_open(const char *path, bool writable, struct own_folder *ret,
                             const char **why_ret);
void attncl__own_folder_close(struct own_folder *folder);

// A whole file of `least` to `most` bytes, owned by the caller (attncl__free), and it counts as
// used now.  False, and *why_ret NULL, when there is none; false, and the reason (static text),
// when it is no regular file, another user's, writable by others, of another size or unreadable.
bool attncl__own_file_read(const struct own_folder *folder, const char *name, size_t least,
                           size_t most, char **data_ret, size_t *n_ret, const char **why_ret);

// Writes the pieces one after another, in one step: readers see the old file or the new one.
// False, and no trace, when it cannot be written.
bool attncl__own_file_replace(const struct own_folder *folder, const char *name,
                              const struct bytes *pieces, size_t n);

#endif

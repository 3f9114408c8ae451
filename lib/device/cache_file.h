// SPDX-License-Identifier: MIT
// The program cache as files: knows no OpenCL.
//
// A program binary is code that the driver will execute, so nothing leaves an entry unless folder
// and file belong to this user alone, the key is the whole key that was asked for, and the SHA-256
// over everything is right.
#ifndef ATTNCL_DEVICE_CACHE_FILE_H
#define ATTNCL_DEVICE_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An open folder of entries; fd -1: none.
struct cache_folder {
    int fd;
    bool writable;
};

// An entry's name: SHA-256 of its key in hex, and ".program".
enum { CACHE_NAME_BYTES = 64 + 8 + 1 };

struct cache_bytes {
    const void *data;
    size_t n;
};

// Makes the folder when it is missing and `writable`.  False, and the reason in *why_ret (static
// text), when the folder cannot be used: missing, a link, another user's, writable by others.
bool attncl__cache_folder_open(const char *path, bool writable, struct cache_folder *ret,
                               const char **why_ret);
void attncl__cache_folder_close(struct cache_folder *folder);
// Removes the entries used longest ago until `cap_bytes` are left at most, and temporary files that
// nobody finished.
void attncl__cache_folder_trim(const struct cache_folder *folder, uint64_t cap_bytes);

// The payload stored under `key`, owned by the caller (attncl__free), and the entry counts as used
// now.  False when there is none or it is not to be trusted; that one is removed.
bool attncl__cache_entry_read(const struct cache_folder *folder, struct cache_bytes key,
                              void **payload_ret, size_t *n_ret);
// In one step: readers see the old entry or the new one.  False, and no trace, when it cannot be
// written.
bool attncl__cache_entry_write(const struct cache_folder *folder, struct cache_bytes key,
                               struct cache_bytes payload);
void attncl__cache_entry_remove(const struct cache_folder *folder, struct cache_bytes key);

// False when the hash cannot be computed.
bool attncl__cache_entry_name(struct cache_bytes key, char name[CACHE_NAME_BYTES]);

#endif

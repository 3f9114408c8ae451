// SPDX-License-Identifier: MIT
// The program cache as files: knows no OpenCL.
//
// A program binary is code that the driver will execute, so nothing leaves an entry unless
// directory and file belong to this user alone, the key is the whole key that was asked for, and
// the SHA-256 over everything is right.
#ifndef ATTNCL_STORE_CACHE_FILE_H
#define ATTNCL_STORE_CACHE_FILE_H

#include <stdint.h>

#include "store/private_dir.h"

// An entry's name: SHA-256 of its key in hex, and ".program".
enum { CACHE_NAME_BYTES = 64 + 8 + 1 };

// Removes the entries used longest ago until `cap_bytes` are left at most, and temporary files that
// that was not finished.
void attncl__cache_evict(const struct private_dir *directory, uint64_t cap_bytes);

// The payload stored under `key`, owned by the caller (attncl__free), and the entry counts as used
// now.  False when there is none or it is not to be trusted; that one is removed.
bool attncl__cache_entry_read(const struct private_dir *directory, struct bytes key,
                              void **payload_ret, size_t *n_ret);
// In one step: readers see the old entry or the new one.  False, and no trace, when it cannot be
// written.
bool attncl__cache_entry_write(const struct private_dir *directory, struct bytes key,
                               struct bytes payload);
void attncl__cache_entry_remove(const struct private_dir *directory, struct bytes key);

// False when the hash cannot be computed.
bool attncl__cache_entry_name(struct bytes key, char name[CACHE_NAME_BYTES]);

#endif

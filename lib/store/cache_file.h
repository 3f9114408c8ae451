// SPDX-License-Identifier: MIT
// The files of the program cache.  Knows no OpenCL; device/program_cache.h stores binaries in them.
//
// A program binary is code that the driver will execute.  So an entry is returned only when
// directory and file belong to this user alone, the stored key equals the whole key, and the
// SHA-256 is right.
#ifndef ATTNCL_STORE_CACHE_FILE_H
#define ATTNCL_STORE_CACHE_FILE_H

#include <stdint.h>

#include "store/private_dir.h"

// An entry's name: SHA-256 of its key in hex, and ".program".
enum { CACHE_NAME_BYTES = 64 + 8 + 1 };

// Removes the least recently used entries until at most `cap_bytes` are left, and abandoned
// temporary files.
void attncl__cache_evict(const struct private_dir *directory, uint64_t cap_bytes);

// The payload stored under `key`, owned by the caller (attncl__free); marks the entry as used.
// False when there is no valid entry; an invalid one is removed.
bool attncl__cache_entry_read(const struct private_dir *directory, struct bytes key,
                              void **payload_ret, size_t *n_ret);
// Atomic: readers see the old entry or the new one.  False, without side effects, when it cannot be
// written.
bool attncl__cache_entry_write(const struct private_dir *directory, struct bytes key,
                               struct bytes payload);
void attncl__cache_entry_remove(const struct private_dir *directory, struct bytes key);

void attncl__cache_entry_name(struct bytes key, char name[CACHE_NAME_BYTES]);

#endif

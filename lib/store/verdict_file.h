// SPDX-License-Identifier: MIT
// What was found of kernels on a device: verdicts.txt in the directory of the program cache, a line for each digest of the
// kernel sources, device, driver and name of a comparison.
#ifndef ATTNCL_STORE_VERDICT_FILE_H
#define ATTNCL_STORE_VERDICT_FILE_H

#include "store/private_dir.h"

enum { VERDICTS_MAX_BYTES = 65536, VERDICT_WHY_BYTES = 512 };

// Whose verdicts.
struct verdict_key {
    const char *sources, *device, *driver;
};

// why: what is wrong, "" where nothing is.
typedef void (*attncl__verdict_fn)(const char *name, const char *why, void *user);

// Each verdict of the key.  None is known, or the file may not be trusted: no call.
void attncl__verdicts_read(const struct private_dir *directory, const struct verdict_key *key,
                           attncl__verdict_fn fn, void *user);

// Replaces what is known of the name.  False when it cannot be written.
bool attncl__verdict_write(const struct private_dir *directory, const struct verdict_key *key,
                           const char *name, const char *verdict);

#endif

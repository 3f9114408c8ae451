// SPDX-License-Identifier: MIT
// What attncl selftest found: selftest.txt in the directory of the program cache, a line for each
// version of the library, device, driver and kernel variant.
#ifndef ATTNCL_STORE_SELFTEST_FILE_H
#define ATTNCL_STORE_SELFTEST_FILE_H

#include "store/private_dir.h"

enum { SELFTEST_MAX_BYTES = 65536, SELFTEST_FAILED_BYTES = 512 };

struct selftest_key {
    const char *device, *driver, *variant;
};

// The ops that failed, "" where none did.  False: nothing is known, or the file may not be trusted.
bool attncl__selftest_read(const struct private_dir *directory, const struct selftest_key *key,
                           char failed[SELFTEST_FAILED_BYTES]);

// Replaces what is known for the key.  False when it cannot be written.
bool attncl__selftest_write(const struct private_dir *directory, const struct selftest_key *key,
                            const char *failed);

#endif

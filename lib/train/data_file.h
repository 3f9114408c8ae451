// SPDX-License-Identifier: MIT
// A file that training reads from again and again: at any place, noticing when it changes.
#ifndef ATTNCL_TRAIN_DATA_FILE_H
#define ATTNCL_TRAIN_DATA_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "attncl/status.h"

struct data_file { // starts as DATA_FILE_EMPTY
    char *path;
    int fd;
    uint64_t bytes;
    uint64_t hash; // of all bytes
    // How the file looked when its hash was taken.
    struct timespec modified;
    dev_t device;
    ino_t inode;
};
#define DATA_FILE_EMPTY ((struct data_file){.fd = -1})

// Opens the file and hashes it.  Messages start with the path.
attncl_status attncl__data_file_open(const char *path, struct data_file *file);
void attncl__data_file_close(struct data_file *file);

// Reads `bytes` from `offset` on; ERR_IO when the file is shorter.
attncl_status attncl__data_file_read(const struct data_file *file, uint64_t offset, void *data,
                                     size_t bytes);

// ERR_IO when there is another content under the path than when it was opened.  Costs one look at the
// file's time, and a hash where that is another one.
attncl_status attncl__data_file_check(struct data_file *file);

#endif

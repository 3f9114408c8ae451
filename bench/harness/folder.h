// SPDX-License-Identifier: MIT
// A folder of this run's own for programs: the library's cache and the drivers', empty at the
// start, gone at the end.
#ifndef BENCH_FOLDER_H
#define BENCH_FOLDER_H

#include <stdbool.h>

struct folder {
    char path[256]; // "": none
};

// Before the first OpenCL call.  False, with a message printed, when there can be none.
bool folder_make(struct folder *f);
// Also once there is none.
void folder_remove(struct folder *f);

#endif

// SPDX-License-Identifier: MIT
// A directory of this run's own for programs: the library's cache and the drivers', empty at the
// start, gone at the end.
#ifndef BENCH_DIRECTORY_H
#define BENCH_DIRECTORY_H

#include <stdbool.h>

struct directory {
    char path[256]; // "": none
};

// Before the first OpenCL call.  False, with a message printed, when there can be none.
bool directory_make(struct directory *f);
// Also once there is none.
void directory_remove(struct directory *f);

#endif

// SPDX-License-Identifier: MIT
// A bar on standard error while cases run; nothing when that is no terminal.
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stddef.h>

// `done` of `total` steps are done; now comes `what`.
void progress_show(size_t done, size_t total, const char *what);
void progress_clear(void);

#endif

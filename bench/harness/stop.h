// SPDX-License-Identifier: MIT
// Ctrl-C ends a run after the present round, with what was measured reported; twice, at once.
#ifndef BENCH_STOP_H
#define BENCH_STOP_H

#include <stdbool.h>

void stop_on_signals(void);
bool stop_wanted(void);

#endif

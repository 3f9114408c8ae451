// SPDX-License-Identifier: MIT
// Monotonic clocks.
#ifndef ATTNCL_BASE_CLOCK_H
#define ATTNCL_BASE_CLOCK_H

double attncl__clock_seconds(void);
// CPU time of the calling thread.
double attncl__clock_thread_seconds(void);

#endif

// SPDX-License-Identifier: MIT
// A clock that only goes forward.
#ifndef ATTNCL_BASE_CLOCK_H
#define ATTNCL_BASE_CLOCK_H

double attncl__seconds(void);
// Of the calling thread on a processor: what other processes do does not count.
double attncl__thread_seconds(void);

#endif

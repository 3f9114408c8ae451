// SPDX-License-Identifier: MIT
// Clocks that only go forward.
#ifndef ATTNCL_BASE_CLOCK_H
#define ATTNCL_BASE_CLOCK_H

double attncl__seconds(void);
// Processor time of the calling thread, whatever else the machine does.
double attncl__thread_seconds(void);

#endif

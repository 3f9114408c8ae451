// SPDX-License-Identifier: MIT

#define _POSIX_C_SOURCE 200809L // clock_gettime
#include <time.h>

#include "base/clock.h"

static double read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double attncl__clock_seconds(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double attncl__clock_thread_seconds(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

// SPDX-License-Identifier: MIT
//
// A progress bar for people: only where stderr is a terminal.

#define _POSIX_C_SOURCE 200809L // clock_gettime, isatty
#include <time.h>
#include <unistd.h>

#include "tool.h"

enum { BAR_WIDTH = 40 };
static const double BAR_SECONDS = 0.1; // between two drawings

double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_bar(const char *what, int64_t done, int64_t total)
{
    static double drawn = 0;
    const double now = seconds_now();
    const int filled = total > 0 ? (int)(done * BAR_WIDTH / total) : 0;

    if (!isatty(STDERR_FILENO))
        return;
    if (done >= total) {
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 32, "");
        return;
    }
    if (now - drawn < BAR_SECONDS)
        return;
    drawn = now;
    fprintf(stderr, "\r%s [", what);
    for (int i = 0; i < BAR_WIDTH; i++)
        fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %3d %%", total > 0 ? (int)(done * 100 / total) : 0);
    fflush(stderr);
}

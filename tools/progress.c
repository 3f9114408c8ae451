// SPDX-License-Identifier: MIT
//
// A line of progress, drawn only if stderr is a terminal.

#define _POSIX_C_SOURCE 200809L // clock_gettime, isatty
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

enum { BAR_WIDTH = 30, LINE_WIDTH = 79 };
static const double DRAW_SECONDS = 0.1; // between two drawings
static const double QUIET_SECONDS = 1;  // of building kernels before the line appears

static bool drawn = false;

double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void draw_line(const char *text)
{
    fprintf(stderr, "\r%-*.*s", LINE_WIDTH, LINE_WIDTH, text);
    fflush(stderr);
    drawn = true;
}

void progress_clear(void)
{
    if (!drawn)
        return;
    fprintf(stderr, "\r%*s\r", LINE_WIDTH, "");
    fflush(stderr);
    drawn = false;
}

void progress_bar(const char *what, const char *unit, int64_t done, int64_t total)
{
    static double start = 0, last = 0;
    const double now = seconds_now();
    char text[160], bar[BAR_WIDTH + 1];
    int used;

    if (done <= 0)
        start = now;
    if (done <= 0 || done >= total || now - last < DRAW_SECONDS || !isatty(STDERR_FILENO))
        return;
    last = now;
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < done * BAR_WIDTH / total ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    used = snprintf(text, sizeof text, "%s [%s] %3d %%", what, bar, (int)(done * 100 / total));
    if (unit)
        used += snprintf(text + used, sizeof text - (size_t)used, "  %.0f %s/s",
                         (double)done / (now - start), unit);
    snprintf(text + used, sizeof text - (size_t)used, "  %.0f s left",
             (now - start) * (double)(total - done) / (double)done);
    draw_line(text);
}

void progress_text(const char *text)
{
    static double last = 0;
    const double now = seconds_now();

    if (now - last < DRAW_SECONDS || !isatty(STDERR_FILENO))
        return;
    last = now;
    draw_line(text);
}

// The line stays until something else is printed, since some drivers go on building in the first run.
void progress_building(size_t done, size_t total)
{
    static double start = 0;
    char text[80];

    if (done == 0)
        start = seconds_now();
    if (seconds_now() - start < QUIET_SECONDS || !isatty(STDERR_FILENO))
        return;
    snprintf(text, sizeof text, "building kernels (first run) %zu/%zu", done, total);
    draw_line(text);
}

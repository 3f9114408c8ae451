// SPDX-License-Identifier: MIT

#include "harness/progress.h"

#include <stdio.h>
#include <unistd.h>

void progress_show(size_t done, size_t total, const char *what)
{
    static const char full[] = "##############################";
    const int width = (int)sizeof full - 1;
    const int n = total ? (int)((size_t)width * done / total) : width;

    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K[%.*s%*s] %3zu %%  %s\r", n, full, width - n, "",
                total ? 100 * done / total : 100, what);
}

void progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

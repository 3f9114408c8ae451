// SPDX-License-Identifier: MIT
//
// Test programs that start themselves by mpirun.

#define _GNU_SOURCE // readlink
#include "support/ranks_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/test.h"

const char *ranks_task(void)
{
    return getenv("RANKS_TASK");
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double ranks_launch(int n, const char *variables, bool expects_success)
{
    const char *mpirun = getenv("RANKS_MPIRUN");
    char self[1024] = "", command[4096];

    if (!mpirun || !*mpirun || !getenv("ATTNCL_MPI_PLUGIN")) {
        test_skip("no mpirun, or the library is built without MPI");
        return -1;
    }
    ck_assert(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "%s %s -n %d '%s' %s %s", variables, mpirun, n, self,
             test_name(), expects_success ? "1>&2" : ">/dev/null 2>&1");
    const double start = seconds_now();
    const int status = system(command);
    ck_assert_msg((status == 0) == expects_success, "%s: status %d", command,
                  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return seconds_now() - start;
}

// SPDX-License-Identifier: MIT
// Test programs that start themselves by mpirun.
#ifndef ATTNCL_TEST_RANKS_LAUNCH_H
#define ATTNCL_TEST_RANKS_LAUNCH_H

#include <stdbool.h>

// What a started process is to do, RANKS_TASK; NULL: this process is the test.
const char *ranks_task(void);

// Starts this program on n ranks, by the command RANKS_MPIRUN, in an environment with `variables` too:
// "RANKS_TASK=work X=1".  Fails the test unless they end as `expects_success` says.  The seconds that
// took; negative: there is no mpirun or no plugin, and nothing was tested.
double ranks_launch(int n, const char *variables, bool expects_success);

#endif

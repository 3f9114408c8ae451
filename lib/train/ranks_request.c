// SPDX-License-Identifier: MIT
//
// Waiting for what MPI was asked to do.

#define _POSIX_C_SOURCE 200809L // nanosleep
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/try.h"
#include "train/ranks.h"

enum { PAUSE_US = 50 };

bool attncl__ranks_are_many(const attncl_ranks *ranks)
{
    return ranks && ranks->place.size > 1;
}

attncl_status attncl__ranks_check(attncl_ranks *ranks, const char *failure)
{
    if (!failure)
        return ATTNCL_OK;
    ranks->has_failed = true;
    return FAIL(ATTNCL_ERR_IO, "MPI, rank %d of %d: %s", ranks->place.rank, ranks->place.size,
                failure);
}

void attncl__ranks_pause(int *us)
{
    *us = *us == 0 ? PAUSE_US : *us < 16 * PAUSE_US ? 2 * *us : *us;
    const struct timespec pause = {.tv_nsec = 1000L * *us};
    nanosleep(&pause, NULL);
}

attncl_status attncl__ranks_wait(attncl_ranks *ranks, struct rank_wait *wait)
{
    enum { BUSY_TURNS = 1000 };

    if (wait->turn < BUSY_TURNS) {
        ++wait->turn;
        sched_yield();
        return ATTNCL_OK;
    }
    attncl__ranks_pause(&(int){0});
    const double now = attncl__seconds();
    if (wait->began_s == 0)
        wait->began_s = now;
    if (ranks->timeout_s == 0 || now - wait->began_s < ranks->timeout_s)
        return ATTNCL_OK;
    ranks->has_failed = true;
    return FAIL(
        ATTNCL_ERR_IO,
        "rank %d of %d has waited %d s for the others, ATTNCL_RANKS_TIMEOUT: one of them hangs",
        ranks->place.rank, ranks->place.size, ranks->timeout_s);
}

attncl_status attncl__ranks_wait_for(attncl_ranks *ranks, struct ranks_request *request)
{
    struct rank_wait wait = {0};
    int done = 0;
    while (!done) {
        TRY(attncl__ranks_check(ranks, ranks->plugin->test(request, &done)));
        if (!done)
            TRY(attncl__ranks_wait(ranks, &wait));
    }
    return ATTNCL_OK;
}

// SPDX-License-Identifier: MIT
//
// Waiting for what MPI was asked to do.

#include <sched.h>
#include <time.h>

#include "base/try.h"
#include "train/ranks.h"

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

void attncl__ranks_idle(int turn)
{
    enum { BUSY_TURNS = 1000, SLEEP_NS = 50000 };
    const struct timespec pause = {.tv_nsec = SLEEP_NS};

    if (turn < BUSY_TURNS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

attncl_status attncl__ranks_wait_for(attncl_ranks *ranks, struct ranks_request *request)
{
    int done = 0;
    for (int turn = 0; !done; ++turn) {
        TRY(attncl__ranks_check(ranks, ranks->plugin->test(request, &done)));
        if (!done)
            attncl__ranks_idle(turn);
    }
    return ATTNCL_OK;
}

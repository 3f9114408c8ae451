// SPDX-License-Identifier: MIT
//
// What all ranks do at once: broadcast, sum of a few doubles, comparison.

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "train/ranks.h"

enum { BROADCAST_PART = 1 << 28, DOUBLES_PART = 4096 };

attncl_status attncl_ranks_broadcast(attncl_ranks *ranks, void *data, size_t bytes)
{
    REQUIRE(data || bytes == 0, ATTNCL_ERR_ARGUMENT, "data of the broadcast is NULL");
    if (!attncl__ranks_are_many(ranks))
        return ATTNCL_OK;
    for (size_t at = 0; at < bytes; at += BROADCAST_PART) {
        const size_t part = bytes - at < BROADCAST_PART ? bytes - at : BROADCAST_PART;
        struct ranks_request request;
        TRY(attncl__ranks_check(ranks,
                                ranks->plugin->broadcast((char *)data + at, (int)part, &request)));
        TRY(attncl__ranks_wait_for(ranks, &request));
    }
    return ATTNCL_OK;
}

// *all_ret: the bytes of each rank, in the ranks' order, the caller's to free.  Sums end first, as
// gathers begin in the same order everywhere.
static attncl_status gather_rows(attncl_ranks *ranks, const void *own, size_t bytes, void **all_ret)
{
    const size_t size = (size_t)ranks->place.size;
    attncl_status status = ATTNCL_OK;
    struct ranks_request request;
    int *blocks = attncl__alloc_array(size, 2 * sizeof *blocks);
    char *all = attncl__alloc_array(size, bytes);

    if (!blocks || !all)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu bytes of %zu ranks", bytes, size));
    for (size_t r = 0; r < size; ++r) {
        blocks[r] = (int)(r * bytes);
        blocks[size + r] = (int)bytes;
    }
    memcpy(all + (size_t)ranks->place.rank * bytes, own, bytes);
    TRY_DONE(attncl_ranks_sum_wait(ranks, 0));
    TRY_DONE(attncl__ranks_check(
        ranks, ranks->plugin->gather(
                   all, (struct ranks_blocks){.at = blocks, .bytes = blocks + size}, &request)));
    TRY_DONE(attncl__ranks_wait_for(ranks, &request));
    *all_ret = all;
    all = NULL;
done:
    attncl__free(blocks);
    attncl__free(all);
    return status;
}

static attncl_status sum_doubles(attncl_ranks *ranks, double *data, size_t n)
{
    const size_t size = (size_t)ranks->place.size;
    void *rows;

    TRY(gather_rows(ranks, data, n * sizeof *data, &rows));
    const double *all = rows;
    memcpy(data, all, n * sizeof *all);
    for (size_t r = 1; r < size; ++r)
        for (size_t i = 0; i < n; ++i)
            data[i] += all[r * n + i];
    attncl__free(rows);
    return ATTNCL_OK;
}

attncl_status attncl_ranks_sum_double(attncl_ranks *ranks, double *data, size_t n)
{
    REQUIRE(data || n == 0, ATTNCL_ERR_ARGUMENT, "data of the sum is NULL");
    for (size_t at = 0; attncl__ranks_are_many(ranks) && at < n; at += DOUBLES_PART)
        TRY(sum_doubles(ranks, data + at, n - at < DOUBLES_PART ? n - at : DOUBLES_PART));
    return ATTNCL_OK;
}

attncl_status attncl_ranks_barrier(attncl_ranks *ranks)
{
    double nothing = 0;
    return attncl_ranks_sum_double(ranks, &nothing, 1);
}

attncl_status attncl_ranks_compare(attncl_ranks *ranks, const char *what, uint64_t value)
{
    REQUIRE(what, ATTNCL_ERR_ARGUMENT, "what is NULL");
    if (!attncl__ranks_are_many(ranks))
        return ATTNCL_OK;

    attncl_status status = ATTNCL_OK;
    const size_t size = (size_t)ranks->place.size;
    void *rows;
    TRY(gather_rows(ranks, &value, sizeof value, &rows));
    const uint64_t *all = rows;
    for (size_t r = 1; r < size && status == ATTNCL_OK; ++r)
        if (all[r] != all[0])
            status = FAIL(ATTNCL_ERR_STATE, "%s: rank %zu has %016llx, rank 0 has %016llx", what, r,
                          (unsigned long long)all[r], (unsigned long long)all[0]);
    attncl__free(rows);
    return status;
}

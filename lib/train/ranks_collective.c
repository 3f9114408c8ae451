// SPDX-License-Identifier: MIT
//
// Collective operations: sums, broadcasts, comparisons.  The order of a sum does not depend on the order
// of messages:
//
//   data [n] is split into one block per rank
//   exchange   rank r receives block r of every rank
//   add        in double, in the order of the ranks, rounded once
//   gather     every rank receives every block's sum
//
// A rank sends and receives 2 (N - 1) / N n floats, the minimum for any sum, and adds n of them.

#define _POSIX_C_SOURCE 200809L // nanosleep
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "train/ranks.h"

// Bytes of a sum fit MPI's int; attncl_ranks_sum() splits longer ones into parts that run concurrently.
enum { MAX_BEGIN = 1 << 28, SUM_PART = 1 << 20 };

// Doubles added at a time, few enough for the cache.
enum { ADD_WIDTH = 512 };

enum { BROADCAST_PART = 1 << 28, DOUBLES_PART = 4096 };

enum { PAUSE_US = 50, BUSY_TURNS = 1000 };

// -- waiting

// Turns a plugin's result into a status.
static attncl_status check_plugin(attncl_ranks *ranks, const char *failure)
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

// A loop that polls for messages; starts as {0}.
struct rank_wait {
    int turn;
    double began_s; // 0 until BUSY_TURNS have passed
};

// First yields the core, since ranks may outnumber cores; later sleeps some microseconds.  ERR_IO after
// timeout_s.
static attncl_status wait_a_moment(attncl_ranks *ranks, struct rank_wait *wait)
{
    if (wait->turn < BUSY_TURNS) {
        ++wait->turn;
        sched_yield();
        return ATTNCL_OK;
    }
    attncl__ranks_pause(&(int){0});
    const double now = attncl__clock_seconds();
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

static attncl_status wait_for_request(attncl_ranks *ranks, struct ranks_request *request)
{
    struct rank_wait wait = {0};
    int done = 0;
    while (!done) {
        TRY(check_plugin(ranks, ranks->plugin->test(request, &done)));
        if (!done)
            TRY(wait_a_moment(ranks, &wait));
    }
    return ATTNCL_OK;
}

// -- sums

// The first element of block `rank`; the first n % size blocks have one more element.
static size_t block_begin(size_t n, int size, int rank)
{
    const size_t long_blocks = n % (size_t)size, r = (size_t)rank;
    return n / (size_t)size * r + (r < long_blocks ? r : long_blocks);
}

static attncl_status prepare_sum(const attncl_ranks *ranks, struct rank_sum *s, float *data,
                                 size_t n)
{
    const int size = ranks->place.size, rank = ranks->place.rank;
    const size_t own = block_begin(n, size, rank + 1) - block_begin(n, size, rank);
    const size_t n_pieces = own * (size_t)size; // less than n + size

    if (s->capacity < n_pieces) {
        attncl__free(s->pieces);
        s->capacity = 0;
        s->pieces = attncl__alloc_array(n_pieces, sizeof *s->pieces);
        REQUIRE(s->pieces, ATTNCL_ERR_NO_MEMORY, "a sum of %zu floats over %d ranks", n, size);
        s->capacity = n_pieces;
    }
    if (!s->blocks)
        s->blocks = attncl__alloc_array((size_t)size, 4 * sizeof *s->blocks);
    REQUIRE(s->blocks, ATTNCL_ERR_NO_MEMORY, "a sum over %d ranks", size);
    for (int r = 0; r < size; ++r) {
        const size_t begin = block_begin(n, size, r), end = block_begin(n, size, r + 1);
        s->blocks[r] = (int)(begin * sizeof *data);
        s->blocks[size + r] = (int)((end - begin) * sizeof *data);
        s->blocks[2 * size + r] = (int)(own * (size_t)r * sizeof *data);
        s->blocks[3 * size + r] = (int)(own * sizeof *data);
    }
    s->data = data;
    s->n = n;
    s->state = SUM_EXCHANGE;
    return ATTNCL_OK;
}

// Adds the pieces of all ranks to this rank's block.
static void add_pieces(const attncl_ranks *ranks, struct rank_sum *s)
{
    const int size = ranks->place.size, rank = ranks->place.rank;
    const size_t begin = block_begin(s->n, size, rank), end = block_begin(s->n, size, rank + 1);
    const size_t own = end - begin;
    float *out = s->data + begin;

    for (size_t at = 0; at < own; at += ADD_WIDTH) {
        const size_t width = own - at < ADD_WIDTH ? own - at : ADD_WIDTH;
        double total[ADD_WIDTH];
        for (size_t i = 0; i < width; ++i)
            total[i] = s->pieces[at + i];
        for (int r = 1; r < size; ++r) {
            const float *piece = s->pieces + (size_t)r * own + at;
            for (size_t i = 0; i < width; ++i)
                total[i] += piece[i];
        }
        for (size_t i = 0; i < width; ++i)
            out[at + i] = (float)total[i];
    }
}

static struct ranks_blocks blocks_of(const attncl_ranks *ranks, const struct rank_sum *s, int which)
{
    const int *first = s->blocks + (ptrdiff_t)2 * which * ranks->place.size;
    return (struct ranks_blocks){.at = first, .bytes = first + ranks->place.size};
}

// Advances a sum by a step, if that needs no waiting.  Gathers must begin in the order of the sums, by
// which MPI matches them, so a gather begins only after that of the previous sum.
static attncl_status advance_sum(attncl_ranks *ranks, struct rank_sum *s, bool may_gather)
{
    int done = 0;

    if (s->state == SUM_DONE) // finished before an older sum
        return ATTNCL_OK;
    TRY(check_plugin(ranks, ranks->plugin->test(&s->request, &done)));
    if (!done || (s->state == SUM_EXCHANGE && !may_gather))
        return ATTNCL_OK;
    if (s->state == SUM_EXCHANGE) {
        add_pieces(ranks, s);
        TRY(check_plugin(ranks,
                         ranks->plugin->gather(s->data, blocks_of(ranks, s, 0), &s->request)));
    }
    s->state += 1;
    return ATTNCL_OK;
}

static attncl_status poll_sums(attncl_ranks *ranks)
{
    bool may_gather = true;

    for (size_t i = 0; i < ranks->n_sums; ++i) {
        struct rank_sum *s = &ranks->sum[(ranks->first_sum + i) % MAX_SUMS];
        TRY(advance_sum(ranks, s, may_gather));
        may_gather = s->state != SUM_EXCHANGE;
    }
    for (; ranks->n_sums > 0 && ranks->sum[ranks->first_sum].state == SUM_DONE; --ranks->n_sums)
        ranks->first_sum = (ranks->first_sum + 1) % MAX_SUMS;
    return ATTNCL_OK;
}

attncl_status attncl_ranks_sum_wait(attncl_ranks *ranks, size_t n_left)
{
    if (!attncl__ranks_are_many(ranks))
        return ATTNCL_OK;
    struct rank_wait wait = {0};
    while (ranks->n_sums > n_left) {
        TRY(poll_sums(ranks));
        if (ranks->n_sums > n_left)
            TRY(wait_a_moment(ranks, &wait));
    }
    return ATTNCL_OK;
}

attncl_status attncl_ranks_sum_poll(attncl_ranks *ranks, size_t *n_left_ret)
{
    REQUIRE(n_left_ret, ATTNCL_ERR_ARGUMENT, "n_left_ret is NULL");
    if (attncl__ranks_are_many(ranks))
        TRY(poll_sums(ranks));
    *n_left_ret = ranks ? ranks->n_sums : 0;
    return ATTNCL_OK;
}

attncl_status attncl_ranks_sum_begin(attncl_ranks *ranks, float *data, size_t n)
{
    REQUIRE(data || n == 0, ATTNCL_ERR_ARGUMENT, "data of the sum is NULL");
    REQUIRE(n <= MAX_BEGIN, ATTNCL_ERR_ARGUMENT,
            "a sum of %zu floats, at most %d are begun at once", n, MAX_BEGIN);
    if (!attncl__ranks_are_many(ranks) || n == 0)
        return ATTNCL_OK;
    TRY(attncl_ranks_sum_wait(ranks, MAX_SUMS - 1));
    struct rank_sum *s = &ranks->sum[(ranks->first_sum + ranks->n_sums) % MAX_SUMS];
    TRY(prepare_sum(ranks, s, data, n));
    TRY(check_plugin(ranks, ranks->plugin->exchange(data, blocks_of(ranks, s, 0), s->pieces,
                                                    blocks_of(ranks, s, 1), &s->request)));
    ranks->n_sums += 1;
    return ATTNCL_OK;
}

attncl_status attncl_ranks_sum(attncl_ranks *ranks, float *data, size_t n)
{
    REQUIRE(data || n == 0, ATTNCL_ERR_ARGUMENT, "data of the sum is NULL");
    TRY(attncl_ranks_sum_wait(ranks, 0));
    for (size_t at = 0; at < n; at += SUM_PART)
        TRY(attncl_ranks_sum_begin(ranks, data + at, n - at < SUM_PART ? n - at : SUM_PART));
    return attncl_ranks_sum_wait(ranks, 0);
}

// -- broadcasts, sums of a few doubles, comparisons

attncl_status attncl_ranks_broadcast(attncl_ranks *ranks, void *data, size_t bytes)
{
    REQUIRE(data || bytes == 0, ATTNCL_ERR_ARGUMENT, "data of the broadcast is NULL");
    if (!attncl__ranks_are_many(ranks))
        return ATTNCL_OK;
    for (size_t at = 0; at < bytes; at += BROADCAST_PART) {
        const size_t part = bytes - at < BROADCAST_PART ? bytes - at : BROADCAST_PART;
        struct ranks_request request;
        TRY(check_plugin(ranks, ranks->plugin->broadcast((char *)data + at, (int)part, &request)));
        TRY(wait_for_request(ranks, &request));
    }
    return ATTNCL_OK;
}

// *all_ret: the bytes of all ranks in order, for the caller to free.  Waits for sums first, so that all
// ranks begin gathers in the same order.
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
    TRY_DONE(check_plugin(
        ranks, ranks->plugin->gather(
                   all, (struct ranks_blocks){.at = blocks, .bytes = blocks + size}, &request)));
    TRY_DONE(wait_for_request(ranks, &request));
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

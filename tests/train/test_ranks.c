// SPDX-License-Identifier: MIT
//
// Ranks: alone, and this same program started by mpirun, where each process is a worker.

#define _GNU_SOURCE // setenv, usleep
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attncl/ranks.h"
#include "base/alloc.h"
#include "support/ranks_launch.h"
#include "support/test.h"

NO_DEVICE;

// -- a worker

// Element i of what rank r gives to sum `which`: from 1e-6 to 1e6, both signs, so that order matters.
static float value(int r, size_t i, unsigned which)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + (unsigned)r * 0xbf58476d1ce4e5b9u + which;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    static const float scale[] = {1e-6f, 1.0f, 1e3f, 1e6f};
    return scale[x & 3] * ((float)(int32_t)(x >> 32) / 2147483648.0f);
}

static void fill(attncl_ranks *ranks, float *data, size_t n, unsigned which)
{
    for (size_t i = 0; i < n; ++i)
        data[i] = value(attncl_ranks_rank(ranks), i, which);
}

// The very bits of the sum in the order of the ranks.
static void check_sum(attncl_ranks *ranks, const float *data, size_t n, unsigned which)
{
    for (size_t i = 0; i < n; ++i) {
        double want = value(0, i, which);
        for (int r = 1; r < attncl_ranks_size(ranks); ++r)
            want += value(r, i, which);
        const float rounded = (float)want;
        ck_assert_msg(memcmp(&data[i], &rounded, sizeof rounded) == 0,
                      "sum %u of %zu, element %zu: %a, expected %a", which, n, i, data[i], rounded);
    }
}

static void sum_sizes(attncl_ranks *ranks)
{
    static const size_t sizes[] = {0, 1, 2, 3, 511, 4096, 100003, (1u << 20) + 77};
    float *data = attncl__alloc_array(sizes[COUNT_OF(sizes) - 1], sizeof *data);
    for (unsigned k = 0; k < COUNT_OF(sizes); ++k) {
        fill(ranks, data, sizes[k], k);
        ck_ok(attncl_ranks_sum(ranks, data, sizes[k]));
        check_sum(ranks, data, sizes[k], k);
    }
    attncl__free(data);
}

// Buckets begun while others are under way, on ranks that come at different times.
static void sum_buckets(attncl_ranks *ranks)
{
    enum { BUCKETS = 20, LENGTH = 5000 };
    float *data = attncl__alloc_array((size_t)BUCKETS * LENGTH, sizeof *data);
    size_t n_left = 1;

    for (unsigned k = 0; k < BUCKETS; ++k) {
        float *bucket = data + (size_t)k * LENGTH;
        fill(ranks, bucket, LENGTH - k, k);
        usleep((unsigned)((attncl_ranks_rank(ranks) * 7 + (int)k * 3) % 5) * 300);
        ck_ok(attncl_ranks_sum_begin(ranks, bucket, LENGTH - k));
        ck_ok(attncl_ranks_sum_poll(ranks, &n_left));
        ck_assert_uint_le(n_left, k + 1);
    }
    ck_ok(attncl_ranks_sum_wait(ranks, 2));
    ck_ok(attncl_ranks_sum_poll(ranks, &n_left));
    ck_assert_uint_le(n_left, 2);
    ck_ok(attncl_ranks_sum_wait(ranks, 0));
    for (unsigned k = 0; k < BUCKETS; ++k)
        check_sum(ranks, data + (size_t)k * LENGTH, LENGTH - k, k);
    attncl__free(data);
}

static void sum_doubles(attncl_ranks *ranks)
{
    enum { LENGTH = 5000 };
    static double data[LENGTH];
    const int size = attncl_ranks_size(ranks);
    for (size_t i = 0; i < LENGTH; ++i)
        data[i] = value(attncl_ranks_rank(ranks), i, 9);
    ck_ok(attncl_ranks_sum_double(ranks, data, LENGTH));
    for (size_t i = 0; i < LENGTH; ++i) {
        double want = value(0, i, 9);
        for (int r = 1; r < size; ++r)
            want += value(r, i, 9);
        ck_assert(data[i] == want);
    }
}

static void share(attncl_ranks *ranks)
{
    const int rank = attncl_ranks_rank(ranks), size = attncl_ranks_size(ranks);
    char text[64] = "";

    if (rank == 0)
        strcpy(text, "of rank 0");
    ck_ok(attncl_ranks_broadcast(ranks, text, sizeof text));
    ck_assert_str_eq(text, "of rank 0");
    ck_ok(attncl_ranks_barrier(ranks));
    ck_ok(attncl_ranks_compare(ranks, "weights", 0xfedcba9876543210u));
    ck_fails(attncl_ranks_compare(ranks, "weights", rank == size - 1 ? 5 : 4), ATTNCL_ERR_STATE,
             "weights: rank");
    ck_assert_ptr_nonnull(strstr(attncl_last_error(), "has 0000000000000005, rank 0 has"));
    ck_fails(attncl_ranks_compare(ranks, "weights", rank == size - 1 ? 3 : 4), ATTNCL_ERR_STATE,
             "has 0000000000000003, rank 0 has");
}

// Only where a launcher started it; in the test itself there is nothing to do.
TEST(worker)
{
    attncl_ranks *ranks = NULL;

    if (!ranks_task())
        return;
    alarm(120);
    ck_ok(attncl_ranks_open(&ranks));
    ck_assert_int_eq(attncl_ranks_size(ranks), atoi(getenv("RANKS_EXPECTED")));
    ck_assert_int_eq(attncl_ranks_local_rank(ranks), attncl_ranks_rank(ranks)); // one machine
    ck_assert_int_eq(attncl_ranks_local_size(ranks), attncl_ranks_size(ranks));
    ck_ok(attncl_ranks_barrier(ranks));
    if (strcmp(ranks_task(), "work") != 0 && attncl_ranks_rank(ranks) == 1) {
        if (strcmp(ranks_task(), "abort") == 0)
            attncl_ranks_abort(ranks);
        kill(getpid(), strcmp(ranks_task(), "kill") == 0 ? SIGKILL : SIGSTOP);
    }
    if (strcmp(ranks_task(), "stop") == 0) {
        ck_fails(attncl_ranks_barrier(ranks), ATTNCL_ERR_IO, "has waited 2 s for the others");
        attncl_ranks_abort(ranks);
    }
    sum_sizes(ranks);
    sum_buckets(ranks);
    sum_doubles(ranks);
    share(ranks);
    attncl_ranks_close(ranks);
    ranks = NULL;
    ck_fails(attncl_ranks_open(&ranks), ATTNCL_ERR_STATE, "opens once");
}
END_TEST

// -- the test

TEST(without_a_launcher_there_is_one_rank)
{
    const size_t heap = attncl__alloc_live();
    attncl_ranks *all[] = {NULL, NULL};
    if (ranks_task())
        return;
    ck_ok(attncl_ranks_open(&all[1]));
    for (int i = 0; i < 2; ++i) {
        float x[] = {1.5f, -2.0f};
        double y = 3;
        size_t n_left = 1;
        ck_assert_int_eq(attncl_ranks_rank(all[i]), 0);
        ck_assert_int_eq(attncl_ranks_size(all[i]), 1);
        ck_assert_int_eq(attncl_ranks_local_rank(all[i]), 0);
        ck_assert_int_eq(attncl_ranks_local_size(all[i]), 1);
        ck_ok(attncl_ranks_sum(all[i], x, 2));
        ck_ok(attncl_ranks_sum_begin(all[i], x, 2));
        ck_ok(attncl_ranks_sum_poll(all[i], &n_left));
        ck_ok(attncl_ranks_sum_wait(all[i], 0));
        ck_ok(attncl_ranks_sum_double(all[i], &y, 1));
        ck_ok(attncl_ranks_broadcast(all[i], x, sizeof x));
        ck_ok(attncl_ranks_barrier(all[i]));
        ck_ok(attncl_ranks_compare(all[i], "x", 1));
        attncl_ranks_abort(all[i]);
        ck_assert(x[0] == 1.5f && x[1] == -2.0f && y == 3 && n_left == 0);
    }
    attncl_ranks_close(all[1]);
    attncl_ranks_close(NULL);
    ck_assert_uint_eq(attncl__alloc_live(), heap);
}
END_TEST

TEST(a_missing_plugin_is_named)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    attncl_ranks *ranks = NULL;
    if (ranks_task())
        return;
    char *kept = getenv("ATTNCL_MPI_PLUGIN");
    kept = kept ? strdup(kept) : NULL;
    setenv("ATTNCL_MPI_PLUGIN", "/nowhere/libattncl_mpi.so", 1);
    for (size_t i = 0; i < COUNT_OF(variables); ++i) {
        setenv(variables[i], "4", 1);
        ck_fails(attncl_ranks_open(&ranks), ATTNCL_ERR_UNSUPPORTED, "/nowhere/libattncl_mpi.so");
        ck_assert_ptr_nonnull(strstr(attncl_last_error(), variables[i]));
        if (i < 2) { // one rank needs none
            setenv(variables[i], "1", 1);
            ck_ok(attncl_ranks_open(&ranks));
            attncl_ranks_close(ranks);
            ranks = NULL;
        }
        unsetenv(variables[i]);
    }
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("ATTNCL_MPI_PLUGIN", "libc.so.6", 1);
    ck_fails(attncl_ranks_open(&ranks), ATTNCL_ERR_UNSUPPORTED, "is no MPI plugin");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("ATTNCL_MPI_PLUGIN");
    if (kept)
        setenv("ATTNCL_MPI_PLUGIN", kept, 1);
    free(kept);
}
END_TEST

TEST(wrong_arguments_are_refused)
{
    float x = 0;
    if (ranks_task())
        return;
    ck_fails(attncl_ranks_open(NULL), ATTNCL_ERR_ARGUMENT, "ranks_ret is NULL");
    ck_fails(attncl_ranks_sum(NULL, NULL, 1), ATTNCL_ERR_ARGUMENT, "data of the sum is NULL");
    ck_fails(attncl_ranks_sum_begin(NULL, NULL, 1), ATTNCL_ERR_ARGUMENT, "is NULL");
    ck_fails(attncl_ranks_sum_begin(NULL, &x, (size_t)1 << 40), ATTNCL_ERR_ARGUMENT, "at most");
    ck_fails(attncl_ranks_sum_poll(NULL, NULL), ATTNCL_ERR_ARGUMENT, "n_left_ret is NULL");
    ck_fails(attncl_ranks_sum_double(NULL, NULL, 1), ATTNCL_ERR_ARGUMENT, "is NULL");
    ck_fails(attncl_ranks_broadcast(NULL, NULL, 1), ATTNCL_ERR_ARGUMENT, "is NULL");
    ck_fails(attncl_ranks_compare(NULL, NULL, 1), ATTNCL_ERR_ARGUMENT, "what is NULL");
}
END_TEST

static const int sizes[] = {2, 3};

TABLE_TEST(launched_ranks_agree, sizes)
{
    char variables[64];
    if (ranks_task())
        return;
    snprintf(variables, sizeof variables, "RANKS_TASK=work RANKS_EXPECTED=%d", sizes[_i]);
    ranks_launch(sizes[_i], variables, true);
}
END_TEST

static const char *const ends[] = {"RANKS_TASK=abort RANKS_EXPECTED=3",
                                   "RANKS_TASK=kill RANKS_EXPECTED=3",
                                   "RANKS_TASK=stop RANKS_EXPECTED=3 ATTNCL_RANKS_TIMEOUT=2"};

TABLE_TEST(a_rank_that_ends_ends_all, ends)
{
    if (ranks_task())
        return;
    const double seconds = ranks_launch(3, ends[_i], false);
    ck_assert_double_lt(seconds, 10 + 10); // and the start of mpirun on a machine under load
}
END_TEST

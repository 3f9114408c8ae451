// SPDX-License-Identifier: MIT
//
// Several processes: sums of arrays over the ranks that mpirun started, and how long they take.
//
//     mpirun -n 4 ranks

#include <attncl/attncl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MIN_FLOATS = 1 << 8, MAX_FLOATS = 1 << 22, RUNS = 30 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != ATTNCL_OK) {                                                                 \
            fprintf(stderr, "%s\n", attncl_last_error());                                          \
            exit(1); /* the launcher ends the others */                                            \
        }                                                                                          \
    } while (0)

static double seconds_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// The least of some runs, in seconds.  Each begins when all ranks are there.
static double time_sum(attncl_ranks *ranks, float *data, size_t n)
{
    double best = INFINITY;

    for (int run = 0; run < RUNS; run++) {
        for (size_t i = 0; i < n; i++)
            data[i] = (float)(attncl_ranks_rank(ranks) + 1);
        CHECK(attncl_ranks_barrier(ranks));
        const double start = seconds_now();
        CHECK(attncl_ranks_sum(ranks, data, n));
        const double seconds = seconds_now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

int main(void)
{
    attncl_ranks *ranks = NULL;
    float *data = (float *)malloc(MAX_FLOATS * sizeof *data);

    CHECK(attncl_ranks_open(&ranks));
    const int size = attncl_ranks_size(ranks);
    for (size_t n = MIN_FLOATS; data && n <= MAX_FLOATS; n *= 4) {
        const double seconds = time_sum(ranks, data, n);
        if (attncl_ranks_rank(ranks) == 0)
            printf("%d ranks, %8zu KiB: %10.1f us, %6.2f GB/s\n", size, n * sizeof *data / 1024,
                   1e6 * seconds, 1e-9 * (double)(n * sizeof *data) / seconds);
    }
    if (attncl_ranks_rank(ranks) == 0 && data)
        printf("every element is %g\n", (double)data[MAX_FLOATS - 1]);
    free(data);
    attncl_ranks_close(ranks);
    return 0;
}

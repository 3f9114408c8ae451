// SPDX-License-Identifier: MIT
// Repeats runs, decoding, training, tuning, opening and closing, and prints how heap, memory, OpenCL
// objects and descriptors grow: none beyond its bound, and the results are those of the first time.
//
// ATTNCL_SOAK_SECONDS: for how long (10).  `tests/run --soak SECONDS` sets it and shows the slopes.

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attncl/tune.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "device/context.h"
#include "stress/work.h"
#include "support/directory.h"

enum { DEFAULT_SECONDS = 10, REOPEN_EVERY = 16, MIN_CYCLES = 48 };

// What is measured after each cycle, and how much it may grow in one; pages and arenas that come into
// use now and then are no growth.
enum measure { BLOCKS, HEAP, RSS, OBJECTS, DESCRIPTORS, N_MEASURES };
static const struct {
    const char *name;
    double bound; // of a cycle
    double slack; // of all cycles
} measures[N_MEASURES] = {
    [BLOCKS] = {"heap blocks of the library", 0},
    [HEAP] = {"heap bytes of the process", 2 << 10, 256 << 10},
    [RSS] = {"resident bytes", 16 << 10, 16 << 20},
    [OBJECTS] = {"OpenCL objects", 0},
    [DESCRIPTORS] = {"descriptors", 0},
};

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double descriptors(void)
{
    double n = 0;
    DIR *list = opendir("/dev/fd");
    while (list && readdir(list))
        ++n;
    if (list)
        closedir(list);
    return n;
}

static double resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void measure(double ret[N_MEASURES])
{
    struct object_counts counts;
    attncl__objects_count(&counts);
    ret[OBJECTS] = 0;
    for (int i = 0; i < N_OBJECT_KINDS; ++i)
        ret[OBJECTS] += (double)counts.live[i];
    ret[BLOCKS] = (double)attncl__alloc_live();
    const struct mallinfo2 heap = mallinfo2();
    ret[HEAP] = (double)(heap.uordblks + heap.hblkhd);
    ret[RSS] = resident();
    ret[DESCRIPTORS] = descriptors();
}

static attncl_status tune(void)
{
    attncl_tune_options options = ATTNCL_TUNE_OPTIONS_INIT;
    options.seconds = 0.1;
    options.check = 1;
    options.kernel = "rows_cpu";
    const attncl_status status = attncl_device_tune(NULL, &options, NULL);
    return status == ATTNCL_ERR_ARGUMENT ? ATTNCL_OK : status; // a GPU has no such kernel
}

// All work; the first cycle's results are what later ones must have.
static attncl_status run_all(attncl_context *ctx, const struct stress_inputs *inputs,
                             struct strbuf expected[STRESS_KINDS])
{
    for (int i = 0; i < STRESS_KINDS; ++i) {
        struct strbuf got = STRBUF_EMPTY;
        TRY(stress_work(ctx, inputs, i, &got));
        if (!expected[i].data) {
            expected[i] = got;
            continue;
        }
        const bool same = !got.failed && got.used == expected[i].used &&
                          memcmp(got.data, expected[i].data, got.used) == 0;
        attncl__strbuf_free(&got);
        REQUIRE(same, ATTNCL_ERR_STATE, "work %d: other results than the first time", i);
    }
    return ATTNCL_OK;
}

// What builds programs once more: drivers keep something of each until the process ends, PoCL 3.1
// hundreds of kilobytes for a context.
static attncl_status reopen(const struct stress_inputs *inputs,
                            struct strbuf expected[STRESS_KINDS])
{
    attncl_context *ctx = NULL;
    TRY(attncl_context_create(NULL, &ctx));
    const attncl_status status = run_all(ctx, inputs, expected),
                        closed = attncl_context_destroy(ctx);
    TRY(status);
    TRY(closed);
    return tune();
}

// Opening and closing without programs.
static attncl_status open_and_close(void)
{
    attncl_context *ctx = NULL;
    TRY(attncl_context_create(NULL, &ctx));
    return attncl_context_destroy(ctx);
}

// What was measured at first and at last, n cycles later, but for what was kept.
static void check_growth(const double first[N_MEASURES], const double last[N_MEASURES],
                         const double kept[N_MEASURES], int n)
{
    int n_failed = 0;
    for (int m = 0; m < N_MEASURES; ++m) {
        const double grown = last[m] - first[m] - kept[m];
        const bool good = grown <= n * measures[m].bound || grown <= measures[m].slack;
        printf("%-4s %-28s grew by %.1f in a cycle, at most %.0f\n", good ? "ok" : "FAIL",
               measures[m].name, grown / n, measures[m].bound);
        n_failed += !good;
    }
    fflush(stdout);
    ck_assert_int_eq(n_failed, 0);
}

static bool is_the_drivers(int measure)
{
    return measure == HEAP || measure == RSS;
}

// What was kept beyond `begin`, added up.
static void add_kept(const double begin[N_MEASURES], double kept[N_MEASURES])
{
    double now[N_MEASURES];
    measure(now);
    for (int m = 0; m < N_MEASURES; ++m)
        kept[m] += is_the_drivers(m) ? now[m] - begin[m] : 0;
}

static void print_kept(const double kept[N_MEASURES], int n)
{
    for (int m = 0; m < N_MEASURES; ++m)
        if (is_the_drivers(m))
            printf("     %-28s left by %d new contexts with programs: %.0f each\n",
                   measures[m].name, n, kept[m] / n);
}

// The first third of the time fills caches, and is not measured.
TEST(soak)
{
    const char *text = getenv("ATTNCL_SOAK_SECONDS");
    const double seconds = text ? atof(text) : DEFAULT_SECONDS, start = seconds_now();
    struct strbuf expected[STRESS_KINDS] = {STRBUF_EMPTY};
    struct stress_inputs inputs;
    double first[N_MEASURES], now[N_MEASURES], kept[N_MEASURES] = {0};
    int n = 0, n_warm = 0, n_reopened = 0;
    directory_up();
    stress_inputs_load(&inputs, IN_DIRECTORY("text"));
    for (; n < MIN_CYCLES || seconds_now() - start < seconds; ++n) {
        ck_ok(run_all(test_context(), &inputs, expected));
        ck_ok(open_and_close());
        measure(now);
        if (n % REOPEN_EVERY == 0) {
            ck_ok(reopen(&inputs, expected));
            add_kept(now, kept);
            ++n_reopened;
            measure(now);
        }
        if (!n_warm && n >= MIN_CYCLES / 3 && seconds_now() - start > seconds / 3) {
            n_warm = n;
            memcpy(first, now, sizeof first);
            memset(kept, 0, sizeof kept);
            n_reopened = 0;
        }
    }
    printf("%d cycles in %.0f s\n", n, seconds_now() - start);
    print_kept(kept, n_reopened);
    for (int i = 0; i < STRESS_KINDS; ++i)
        attncl__strbuf_free(&expected[i]);
    stress_inputs_free(&inputs);
    directory_down();
    ck_assert_int_gt(n_warm, 0);
    check_growth(first, now, kept, n - 1 - n_warm);
}

// SPDX-License-Identifier: MIT
//
// Every test program's main(), and the device fixture.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/context.h"
#include "support/host.h"
#include "support/test.h"

enum {
    EXIT_SKIPPED = 77, // CTest's SKIP_RETURN_CODE
    MAX_ENTRIES = 64,  // cases and fixtures of a file
};

// Host tensors are linked only into the programs that use them.
#pragma weak host_reset

static attncl_context *context;
static size_t heap_before;
static bool leaked;

static const char *const kind_names[N_OBJECT_KINDS] = {
    [OBJECT_CONTEXT] = "contexts",
    [OBJECT_QUEUE] = "queues",
    [OBJECT_BUFFER] = "buffers",
    [OBJECT_PROGRAM] = "programs",
    [OBJECT_KERNEL] = "kernels",
    [OBJECT_EVENT] = "events",
    [OBJECT_COMMAND_BUFFER] = "command buffers",
};

void device_up(void)
{
    heap_before = attncl__alloc_live();
    const attncl_status status = attncl_context_create(NULL, &context);
    if (status == ATTNCL_ERR_NO_DEVICE) {
        fprintf(stderr, "skipped: %s\n", attncl_last_error());
        exit(EXIT_SKIPPED);
    }
    if (status != ATTNCL_OK) {
        fprintf(stderr, "no context: %s\n", attncl_last_error());
        exit(EXIT_FAILURE);
    }
}

void device_down(void)
{
    struct object_counts counts;

    if (host_reset)
        host_reset();
    if (attncl_context_destroy(context) != ATTNCL_OK) {
        fprintf(stderr, "context not destroyed: %s\n", attncl_last_error());
        leaked = true;
    }
    context = NULL;
    attncl__objects_count(&counts);
    for (int i = 0; i < N_OBJECT_KINDS; ++i)
        if (counts.live[i] != 0) {
            fprintf(stderr, "leak: %ld %s alive\n", counts.live[i], kind_names[i]);
            leaked = true;
        }
    if (attncl__alloc_live() != heap_before) {
        fprintf(stderr, "leak: %zu heap blocks alive, %zu before\n", attncl__alloc_live(),
                heap_before);
        leaked = true;
    }
}

attncl_context *test_context(void)
{
    return context;
}

attncl_graph *test_graph(void)
{
    attncl_graph *g = NULL;
    ck_ok(attncl_graph_create(context, &g));
    return g;
}

// A case, or a fixture when `test` is NULL.
static struct entry {
    int line;
    const TTest *test;
    int first, end;
    SFun up, down;
    bool each;
} entries[MAX_ENTRIES];
static int n_entries;

// Sorts by line, because constructors run in any order.
static void insert(const struct entry *entry)
{
    int i = n_entries++;

    if (n_entries > MAX_ENTRIES)
        abort();
    for (; i > 0 && entries[i - 1].line > entry->line; --i)
        entries[i] = entries[i - 1];
    entries[i] = *entry;
}

void test_add(const TTest *test, int first, int end)
{
    insert(&(struct entry){.line = test->line, .test = test, .first = first, .end = end});
}

void test_add_fixture(int line, SFun up, SFun down, bool each)
{
    insert(&(struct entry){.line = line, .up = up, .down = down, .each = each});
}

static Suite *collect(const char *name)
{
    Suite *suite = suite_create(name);
    TCase *tcase = NULL;

    if (n_entries == 0)
        abort();
    if (entries[0].test || entries[0].up)
        test_add_fixture(0, device_up, device_down, false);
    for (int i = 0; i < n_entries; ++i) {
        const struct entry *entry = &entries[i];
        if (!tcase || (!entry->test && entries[i - 1].test)) {
            tcase = tcase_create(name);
            suite_add_tcase(suite, tcase);
        }
        if (entry->test)
            tcase_add_loop_test(tcase, entry->test, entry->first, entry->end);
        else if (entry->each)
            tcase_add_checked_fixture(tcase, entry->up, entry->down);
        else
            tcase_add_unchecked_fixture(tcase, entry->up, entry->down);
    }
    return suite;
}

// PoCL takes minutes to optimise the GPU variant's kernels for some tests, which CTest says; POCL_EXTRA_BUILD_FLAGS of the
// caller's own, " " say, has them optimised.
static void choose_optimization(void)
{
    const char *const unoptimized = getenv("TEST_UNOPTIMIZED_VARIANT");
    const char *const variant = getenv("ATTNCL_VARIANT");

    if (unoptimized && variant && strcmp(unoptimized, variant) == 0)
        setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
}

int main(int argc, char **argv)
{
    choose_optimization();
    SRunner *runner = srunner_create(collect(argc > 0 ? argv[0] : "tests"));

    srunner_set_fork_status(runner, CK_NOFORK); // OpenCL does not survive fork
    srunner_run_all(runner, CK_ENV);
    const int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 && !leaked ? EXIT_SUCCESS : EXIT_FAILURE;
}

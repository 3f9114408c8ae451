// SPDX-License-Identifier: MIT
//
// attncl-tests: main() and the device fixture.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/context.h"
#include "support/host.h"
#include "support/test.h"

enum {
    EXIT_SKIPPED = 77,  // CTest's SKIP_RETURN_CODE
    MAX_ENTRIES = 4096, // cases and fixtures of all files
    MAX_NAME = 64,
};

static attncl_context *context;
static size_t heap_before;
static bool leaked;

static const char *const kind_names[N_OBJECT_KINDS] = {
    [OBJECT_CONTEXT] = "contexts", [OBJECT_QUEUE] = "queues",   [OBJECT_BUFFER] = "buffers",
    [OBJECT_PROGRAM] = "programs", [OBJECT_KERNEL] = "kernels", [OBJECT_EVENT] = "events",
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
struct entry {
    const char *file;
    int line, order;
    const TTest *test;
    int first, end;
    SFun up, down;
    bool each;
};
static struct entry entries[MAX_ENTRIES];
static int n_entries;

static void insert(const struct entry *entry)
{
    if (n_entries == MAX_ENTRIES)
        abort();
    entries[n_entries] = *entry;
    entries[n_entries].order = n_entries;
    ++n_entries;
}

void test_add_at(const char *file, int line, const TTest *test, int first, int end)
{
    insert(&(struct entry){.file = file, .line = line, .test = test, .first = first, .end = end});
}

void test_add(const TTest *test, int first, int end)
{
    test_add_at(test->file, test->line, test, first, end);
}

void test_add_fixture(const char *file, int line, SFun up, SFun down, bool each)
{
    insert(&(struct entry){.file = file, .line = line, .up = up, .down = down, .each = each});
}

// Constructors of files run in any order; the tests of a spec have one line.
static int by_file_and_line(const void *a, const void *b)
{
    const struct entry *const x = a, *const y = b;
    const int files = strcmp(x->file, y->file);

    return files                ? files
           : x->line != y->line ? (x->line > y->line ? 1 : -1)
                                : (x->order > y->order) - (x->order < y->order);
}

// "op.softmax" of ".../tests/op/norm/test_softmax.c".
static void name_of(const char *file, char name[MAX_NAME])
{
    const char *family = file, *const prefix = strstr(file, "/test_");

    for (const char *at = file; (at = strstr(at, "tests/")); at += strlen("tests/"))
        family = at + strlen("tests/");
    if (!prefix)
        abort();
    const char *const base = strrchr(file, '/') + strlen("/test_");
    snprintf(name, MAX_NAME, "%.*s.%.*s", (int)strcspn(family, "/"), family,
             (int)strcspn(base, "."), base);
}

static Suite *collect(const char *wanted)
{
    Suite *suite = suite_create(wanted);
    TCase *tcase = NULL;
    bool had_test = false;

    for (int i = 0; i < n_entries; ++i) {
        const struct entry *entry = &entries[i];
        char name[MAX_NAME];
        name_of(entry->file, name);
        if (strcmp(name, wanted) != 0)
            continue;
        if (!tcase || (!entry->test && had_test)) {
            const bool opens = !tcase && (entry->test || entry->up);
            tcase = tcase_create(wanted);
            suite_add_tcase(suite, tcase);
            if (opens)
                tcase_add_unchecked_fixture(tcase, device_up, device_down);
        }
        had_test = entry->test != NULL;
        if (entry->test)
            tcase_add_loop_test(tcase, entry->test, entry->first, entry->end);
        else if (entry->each)
            tcase_add_checked_fixture(tcase, entry->up, entry->down);
        else
            tcase_add_unchecked_fixture(tcase, entry->up, entry->down);
    }
    return tcase ? suite : NULL;
}

static const char *running;

const char *test_name(void)
{
    return running;
}

static void list_names(void)
{
    char name[MAX_NAME], last[MAX_NAME] = "";

    for (int i = 0; i < n_entries; ++i) {
        name_of(entries[i].file, name);
        if (strcmp(name, last) != 0)
            puts(name);
        memcpy(last, name, sizeof last);
    }
}

int main(int argc, char **argv)
{
    qsort(entries, (size_t)n_entries, sizeof entries[0], by_file_and_line);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_names();
        return EXIT_SUCCESS;
    }
    Suite *const suite = argc == 2 ? collect(argv[1]) : NULL;
    if (!suite) {
        fprintf(stderr,
                argc == 2 ? "attncl-tests: there is no test %s; --list names all\n"
                          : "usage: attncl-tests FAMILY.CASE | --list\n",
                argc == 2 ? argv[1] : "");
        return 2;
    }
    running = argv[1];
    SRunner *runner = srunner_create(suite);

    srunner_set_fork_status(runner, CK_NOFORK); // OpenCL does not survive fork
    srunner_run_all(runner, CK_ENV);
    const int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 && !leaked ? EXIT_SUCCESS : EXIT_FAILURE;
}

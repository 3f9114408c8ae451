// SPDX-License-Identifier: MIT
//
// attncl-tests: main(), the device fixture, and skipping.

#include <stdarg.h>
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
static bool of_gpus; // the test has kernels that no user of PoCL gets

static const char *const kind_names[N_OBJECT_KINDS] = {
    [OBJECT_CONTEXT] = "contexts", [OBJECT_QUEUE] = "queues",   [OBJECT_BUFFER] = "buffers",
    [OBJECT_PROGRAM] = "programs", [OBJECT_KERNEL] = "kernels", [OBJECT_EVENT] = "events",
};

void test_exit_skipped(const char *fmt, ...)
{
    va_list args;

    fputs("skipped: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputs("\n", stderr);
    exit(EXIT_SKIPPED);
}

// PoCL's major version; 0: it is not there.
static int find_pocl(void)
{
    cl_platform_id platforms[16];
    cl_uint n = 0;
    char version[256];
    int major = 0;

    if (clGetPlatformIDs(16, platforms, &n) != CL_SUCCESS)
        return 0;
    for (cl_uint i = 0; i < n && i < 16 && major == 0; ++i)
        if (clGetPlatformInfo(platforms[i], CL_PLATFORM_VERSION, sizeof version, version, NULL) ==
            CL_SUCCESS)
            (void)sscanf(version, "OpenCL %*d.%*d PoCL %d", &major);
    return major;
}

// From PoCL 6 and LLVM 18 on, kernels that are not optimised end the process ("Instruction Combining did not reach a
// fixpoint", PoCL's issue 1608), and optimised ones for GPUs fail an assertion of its loops over work-items.
static bool needs_optimiser(void)
{
    return find_pocl() >= 6;
}

void device_up(void)
{
    heap_before = attncl__alloc_live();
    const attncl_status status = attncl_context_create(NULL, &context);
    if (status == ATTNCL_ERR_NO_DEVICE)
        test_exit_skipped("%s", attncl_last_error());
    if (status != ATTNCL_OK) {
        fprintf(stderr, "no context: %s\n", attncl_last_error());
        exit(EXIT_FAILURE);
    }
    if (of_gpus && context->caps.vendor == VENDOR_POCL && needs_optimiser())
        test_exit_skipped("PoCL %d does not compile all kernels for GPUs", find_pocl());
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

attncl_decoder *test_decoder(attncl_model *model, int64_t batch, attncl_dtype state_dtype)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_decoder *decoder = NULL;

    options.state_dtype = state_dtype;
    ck_ok(attncl_decoder_create(model, batch, &options, &decoder));
    return decoder;
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

// "op.softmax" of ".../tests/op/norm/test_softmax.c" and of ".../tests/ref/softmax.c".
static void name_of(const char *file, char name[MAX_NAME])
{
    const char *family = file, *const prefix = strstr(file, "/test_"),
               *const ref = strstr(file, "tests/ref/");

    for (const char *at = file; (at = strstr(at, "tests/")); at += strlen("tests/"))
        family = at + strlen("tests/");
    if (ref) {
        const char *const base = ref + strlen("tests/ref/");
        snprintf(name, MAX_NAME, "op.%.*s", (int)strcspn(base, "."), base);
        return;
    }
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

static bool has_sizes(const char *word)
{
    const char *const sizes = getenv("TEST_SIZES");

    return sizes && strcmp(sizes, word) == 0;
}

bool test_has_full_sizes(void)
{
    return has_sizes("full");
}

bool test_has_few_sizes(void)
{
    const struct device_caps *const caps = &test_context()->caps;

    return has_sizes("few") && caps->is_cpu != (caps->variant == VARIANT_CPU);
}

static int n_skipped;
static char skip_reason[256];

void test_skip(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (n_skipped++ == 0)
        vsnprintf(skip_reason, sizeof skip_reason, fmt, args);
    va_end(args);
}

// The environment of every test; what the caller sets stays.  "op.softmax@gpu": the
// kernels that GPUs get.  No user of PoCL gets those, and its optimiser takes minutes for them.
static void set_environment(char *name)
{
    char *const variant = strchr(name, '@');

    setenv("CK_FORK", "no", 1); // OpenCL does not survive fork
    setenv("ATTNCL_GUARD", "1", 0);
    setenv("ATTNCL_CACHE", "off", 0);
    setenv("ATTNCL_TUNE", "off", 0);
    of_gpus = getenv("ATTNCL_TEST_OF_GPUS") || (variant && strcmp(variant, "@gpu") == 0);
    if (of_gpus && !needs_optimiser())
        setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
    if (!variant)
        return;
    setenv("ATTNCL_VARIANT", variant + 1, 1);
    *variant = '\0';
}

static int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    const int n_failed = srunner_ntests_failed(runner), n_run = srunner_ntests_run(runner);
    srunner_free(runner);
    if (n_failed > 0 || leaked)
        return EXIT_FAILURE;
    if (n_skipped == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "skipped: %d of %d cases: %s\n", n_skipped, n_run, skip_reason);
    return EXIT_SKIPPED;
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
    test_add_specs();
    qsort(entries, (size_t)n_entries, sizeof entries[0], by_file_and_line);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_names();
        return EXIT_SUCCESS;
    }
    if (argc == 2 && strcmp(argv[1], "--pocl-flags") == 0) {
        puts(needs_optimiser() ? "" : "-cl-opt-disable");
        return EXIT_SUCCESS;
    }
    if (argc != 2) {
        fprintf(stderr, "usage: attncl-tests FAMILY.CASE[@cpu|@gpu] | --list | --pocl-flags\n");
        return 2;
    }
    running = argv[1];
    set_environment(argv[1]);
    Suite *const suite = collect(argv[1]);
    if (!suite) {
        fprintf(stderr, "attncl-tests: there is no test %s; --list names all\n", argv[1]);
        return 2;
    }
    return run_suite(suite);
}

// SPDX-License-Identifier: MIT
// Pieces of work, and in each, calls of OpenCL and requests for memory that fail: an error that names
// the call, everything released, and the same work again in the same context gives the same bits.
//
// ATTNCL_FAULTS_SAMPLES: how many faults of each kind a piece of work meets; all when it makes no
// more calls.

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/directory.h"
#include "support/faults.h"
#include "support/golden.h"
#include "support/work.h"

enum { DEFAULT_SAMPLES = 2, SMALL = 300 };

static const struct piece {
    work_fn *run;
    const char *what;
} pieces[] = {
    {work_decoder, "lm_aft_local"},
    {work_decoder, "lm_gmlp"},
    {work_decoder, "lm_transformer"},
    {work_decoder, "lm_feedback_kv"},
    {work_trainer, "\"optimizer\": {\"kind\": \"adam\"}"},
    {work_trainer, "\"optimizer\": {\"kind\": \"sgd\", \"momentum\": 0.9}, \"accumulate\": 2"},
    {work_trainer, "\"ema\": 0.5, \"grad_norm_clip\": 0.1"},
    {work_bound, "0"},
    {work_bound, "32"},
    {work_bound, "7"},
    {work_events, "events"},
    {work_profile, "profile"},
    {work_adopted, "adopted"},
    {work_cache, "cache"},
    {work_cold, "cold"},
    {work_slots, "lm_transformer"},
};

// Calls whose failure need not be one of the work, and why.
static const struct {
    work_fn *run; // NULL: of any work
    const char *function;
} tolerated[] = {
    {NULL, "clFinish"},                    // at the end of a graph, when its results have been read
    {work_bound, "clCreateSubBuffer"},     // then the buffer is copied
    {work_trainer, "clEnqueueWriteBuffer"} // of a batch ahead, which is written again
};

static const struct kind {
    const char *name;
    cl_int code;
    bool all, heap;
} kinds[] = {
    {"one call fails", CL_OUT_OF_RESOURCES, false, false},
    {"one call lacks memory", CL_OUT_OF_HOST_MEMORY, false, false},
    {"all calls from one on fail", CL_INVALID_COMMAND_QUEUE, true, false},
    {"the device is lost", CL_OUT_OF_RESOURCES, true, false},
    {"one request for memory fails", 0, false, true},
};

// Functions that are called a few times among very many calls.
static const char *const rare[] = {
    "clEnqueueMapBuffer",
    "clEnqueueUnmapMemObject",
    "clSetMemObjectDestructorCallback",
    "clGetPlatformIDs",
    "clGetPlatformInfo",
    "clGetDeviceIDs",
    "clGetCommandQueueInfo",
    "clCreateContext",
    "clCreateCommandQueue",
    "clRetainContext",
    "clRetainCommandQueue",
    "clRetainMemObject",
    "clGetMemObjectInfo",
    "clCreateProgramWithSource",
    "clCreateProgramWithBinary",
    "clBuildProgram",
    "clGetProgramInfo",
    "clFlush",
    "clFinish",
    "clWaitForEvents",
    "clEnqueueCopyBuffer",
    "clEnqueueCopyBufferRect",
    "clEnqueueMarkerWithWaitList",
    "clGetEventInfo",
    "clGetEventProfilingInfo",
};

static size_t n_injected; // faults that fired

static size_t n_samples(void)
{
    const char *text = getenv("ATTNCL_FAULTS_SAMPLES");
    return text ? (size_t)atoi(text) : DEFAULT_SAMPLES;
}

static bool is_tolerated(const struct piece *piece, const char *function)
{
    if (piece->run == work_cache || piece->run == work_cold) // the cache never fails a caller
        return true;
    for (size_t i = 0; i < COUNT_OF(tolerated); ++i)
        if ((!tolerated[i].run || tolerated[i].run == piece->run) &&
            strcmp(tolerated[i].function, function) == 0)
            return true;
    return false;
}

static void check_same(const struct piece *piece, const char *when, const struct strbuf *want,
                       const struct strbuf *got)
{
    ck_assert_msg(got->used == want->used && memcmp(got->data, want->data, want->used) == 0,
                  "%s: other results %s", piece->what, when);
}

static void run_well(const struct piece *piece, const char *when, const struct strbuf *want)
{
    struct strbuf got = STRBUF_EMPTY;
    const attncl_status status = piece->run(piece->what, &got);
    ck_assert_msg(status == ATTNCL_OK, "%s: %s: %s", piece->what, when, attncl_last_error());
    ck_assert(!got.failed);
    check_same(piece, when, want, &got);
    attncl__strbuf_free(&got);
}

// What a fault has to leave.
static void check_fault(const struct piece *piece, const struct kind *kind, size_t n,
                        attncl_status status, const char *function, const struct strbuf *want,
                        const struct strbuf *got)
{
    if (status == ATTNCL_OK) {
        ck_assert_msg(is_tolerated(piece, function), "%s: %s, number %zu, %s: unnoticed",
                      piece->what, kind->name, n, function);
        check_same(piece, function, want, got);
    } else {
        ck_assert_msg(strstr(attncl_last_error(), function) != NULL ||
                          (kind->all && is_tolerated(piece, function)),
                      "%s: %s, number %zu, %s: \"%s\"", piece->what, kind->name, n, function,
                      attncl_last_error());
    }
}

// A fault of a kind, number n of `only`'s calls or of all; false when the work does not get so far.
static bool inject(const struct piece *piece, const struct kind *kind, const char *only, size_t n,
                   const struct strbuf *want)
{
    const size_t live = faults_report().live, heap = attncl__alloc_live(),
                 files = directory_count(), descriptors = faults_descriptors();
    struct strbuf got = STRBUF_EMPTY;

    if (kind->heap)
        attncl__alloc_fail_at(n);
    else
        faults_plan((struct fault_plan){
            .at = n, .all = kind->all, .code = kind->code, .only = only, .queries = true});
    const attncl_status status = piece->run(piece->what, &got);
    const struct fault_report report = faults_report();
    const bool fired = kind->heap ? attncl__alloc_has_failed() : report.n_failed > 0;
    attncl__alloc_fail_at(0);
    faults_none();
    if (fired && kind->heap)
        ck_assert_msg(got.failed || status == ATTNCL_ERR_NO_MEMORY || is_tolerated(piece, ""),
                      "%s: request %zu: %s (%s)", piece->what, n, attncl_status_name(status),
                      attncl_last_error());
    else if (fired)
        check_fault(piece, kind, n, status, report.first, want, &got);
    attncl__strbuf_free(&got);
    ck_assert_msg(faults_report().live == live, "%s: %s, number %zu, %s: objects leak", piece->what,
                  kind->name, n, report.first);
    ck_assert_msg(attncl__alloc_live() == heap, "%s: %s, number %zu, %s: memory leaks", piece->what,
                  kind->name, n, report.first);
    ck_assert_msg(directory_count() == files, "%s: %s, number %zu, %s: other files", piece->what,
                  kind->name, n, report.first);
    ck_assert_msg(faults_descriptors() == descriptors, "%s: %s, number %zu, %s: descriptors leak",
                  piece->what, kind->name, n, report.first);
    n_injected += fired;
    if (fired)
        run_well(piece, kind->name, want);
    return fired;
}

FIXTURE_ONCE(work_begin, work_end);
FIXTURE(faults_begin, faults_end);

// `number`: each kind and work begins elsewhere, so that together they meet more calls.
static void sweep(const struct piece *piece, size_t number)
{
    const size_t samples = n_samples();
    struct strbuf want = STRBUF_EMPTY;

    ck_ok(piece->run(piece->what, &want)); // programs are built and stay
    ck_assert_uint_gt(want.used, 0);
    faults_none();
    run_well(piece, "a second time", &want);
    const size_t n_calls = faults_report().n_calls;
    for (size_t k = 0; k < COUNT_OF(kinds); ++k) {
        const size_t n_all = kinds[k].heap ? 400 : n_calls;
        // Small work of its own kind meets a fault at each of its calls and, where more samples are wanted, at
        // each request for memory.
        const bool each = (k == 0 || (kinds[k].heap && samples > DEFAULT_SAMPLES)) &&
                          n_calls <= SMALL && piece->run != work_model;
        const size_t wanted = each ? n_all : samples;
        const size_t step = n_all > wanted ? n_all / wanted : 1;
        for (size_t n = 1 + (number * 7 + k * 3) % step; n <= n_all; n += step)
            if (!inject(piece, &kinds[k], NULL, n, &want))
                break;
    }
    for (size_t i = 0; i < COUNT_OF(rare); ++i)
        for (size_t n = 1; inject(piece, &kinds[i % 2], rare[i], n, &want);)
            n += 1 + n / 2;
    attncl__strbuf_free(&want);
}

TABLE_TEST(work_with_faults, pieces)
{
    sweep(&pieces[_i], (size_t)_i);
}

static void sweep_model(const char *name, void *user)
{
    size_t *const n = user;

    if (strncmp(name, "dropout_", strlen("dropout_")) != 0 && (*n)++ % 2 == 0)
        sweep(&(struct piece){work_model, name}, *n);
}

// Every second one.
TEST(models_with_faults)
{
    golden_each(sweep_model, &(size_t){0});
}

static void check_function(const char *function, size_t n_calls, size_t n_failed, void *user)
{
    (void)user;
    printf("%-32s %8zu calls, %6zu failed\n", function, n_calls, n_failed);
    ck_assert_msg(n_failed > 0, "%s never failed", function);
}

TEST(every_function_has_failed)
{
    faults_each(check_function, NULL);
    printf("%zu faults\n", n_injected);
}

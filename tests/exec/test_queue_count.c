// SPDX-License-Identifier: MIT
// How many queues a graph goes to where no number is asked for: on a device that overlaps kernels of two queues as many as it
// gains by, on one that does not, and on a CPU, one.  The calls below stand in for OpenCL's: PoCL computes, and time passes
// as on a GPU that does or does not overlap.

#define _GNU_SOURCE // RTLD_NEXT

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attncl/log.h"
#include "attncl/ops.h"
#include "attncl/profile.h"
#include "compile/program.h"
#include "graph/nodes.h"
#include "launch/queue_gain.h"
#include "support/directory.h"
#include "support/played_gpu.h"
#include "support/test.h"

// -- the device

#define LONG_S    2e-4
#define SHORT_S   1e-5
#define WAIT_S    2e-6
#define ENQUEUE_S 1e-6

enum { MAX_HANDLES = 4096, COUNT_ARG = 2 };

static bool is_played, overlaps;
static double device_free; // when the last kernel of any queue ends
static int n_kernels;      // enqueued
static size_t fail_at;     // the kernel that is refused; 0: none

// By handle: when what is in the queue ends, how long the kernel takes, when the event's command began and ended.
static struct timed {
    const void *handle;
    double begin, end;
} timed[MAX_HANDLES];
static size_t n_timed;

static struct timed *timed_of(const void *handle)
{
    size_t i = 0;

    while (i < n_timed && timed[i].handle != handle)
        ++i;
    ck_assert_uint_lt(i, MAX_HANDLES);
    if (i == n_timed)
        timed[n_timed++] = (struct timed){.handle = handle};
    return &timed[i];
}

// The linker's --wrap sends the library's calls here: the host's time is the device's, whatever else runs.
static double host_time;
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    t->tv_sec = (time_t)host_time;
    t->tv_nsec = (long)(1e9 * (host_time - (double)t->tv_sec));
    return 0;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

#define REAL(name, ...)                                                                            \
    cl_int (*real)(__VA_ARGS__) = NULL;                                                            \
    *(void **)&real = dlsym(RTLD_NEXT, name)

// The argument by which the measurement's kernels are long or short.
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    REAL("clSetKernelArg", cl_kernel, cl_uint, size_t, const void *);
    int64_t count = 0;

    if (is_played && index == COUNT_ARG && bytes == sizeof count) {
        memcpy(&count, value, sizeof count);
        timed_of(kernel)->end = count > 1000 ? LONG_S : SHORT_S;
    }
    return real(kernel, index, bytes, value);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint n_axes,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint n_wait, const cl_event *wait, cl_event *event)
{
    REAL("clEnqueueNDRangeKernel", cl_command_queue, cl_kernel, cl_uint, const size_t *,
         const size_t *, const size_t *, cl_uint, const cl_event *, cl_event *);
    if (++n_kernels == (int)fail_at)
        return CL_OUT_OF_RESOURCES;
    host_time += ENQUEUE_S;
    const cl_int code = real(queue, kernel, n_axes, offset, global, local, n_wait, wait, event);
    if (!is_played)
        return code;
    const double takes = timed_of(kernel)->end;
    struct timed *q = timed_of(queue);
    const double begin = later(later(q->end, host_time), overlaps ? 0 : device_free);
    q->end = begin + (takes > 0 ? takes : SHORT_S);
    device_free = later(device_free, q->end);
    if (event)
        *timed_of(*event) = (struct timed){*event, begin, q->end};
    return code;
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint n_wait, const cl_event *wait,
                                   cl_event *event)
{
    REAL("clEnqueueMarkerWithWaitList", cl_command_queue, cl_uint, const cl_event *, cl_event *);
    const cl_int code = real(queue, n_wait, wait, event);

    if (is_played && event) {
        const double end = later(timed_of(queue)->end, host_time);
        *timed_of(*event) = (struct timed){*event, end, end};
    }
    return code;
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint n_wait, const cl_event *wait,
                                    cl_event *event)
{
    REAL("clEnqueueBarrierWithWaitList", cl_command_queue, cl_uint, const cl_event *, cl_event *);

    for (cl_uint i = 0; is_played && i < n_wait; ++i) {
        const double end = timed_of(wait[i])->end;
        timed_of(queue)->end = later(timed_of(queue)->end, end + WAIT_S);
    }
    return real(queue, n_wait, wait, event);
}

cl_int clFinish(cl_command_queue queue)
{
    REAL("clFinish", cl_command_queue);
    const cl_int code = real(queue);

    if (is_played)
        host_time = later(host_time, timed_of(queue)->end);
    return code;
}

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t bytes, void *value,
                               size_t *bytes_ret)
{
    REAL("clGetEventProfilingInfo", cl_event, cl_profiling_info, size_t, void *, size_t *);
    const cl_int code = real(event, what, bytes, value, bytes_ret);

    if (is_played && code == CL_SUCCESS && bytes == sizeof(cl_ulong)) {
        const struct timed *t = timed_of(event);
        *(cl_ulong *)value =
            (cl_ulong)(1e9 * (what == CL_PROFILING_COMMAND_START ? t->begin : t->end));
    }
    return code;
}

// -- contexts on it

static attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
static char log_text[4096], queues[16]; // ATTNCL_QUEUES, as it was

static void listen(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level <= ATTNCL_LOG_INFO && strlen(log_text) + strlen(text) + 2 < sizeof log_text)
        strcat(strcat(log_text, text), "\n");
}

static void up(void)
{
    static char path[FILE_BYTES];
    directory_begin();
    options = (attncl_context_options)ATTNCL_CONTEXT_OPTIONS_INIT;
    options.cache_dir = directory_path("cache", path);
    unsetenv("ATTNCL_CACHE"); // findings are kept; programs not where that compiles them again
    const char *const text = getenv("ATTNCL_QUEUES");
    snprintf(queues, sizeof queues, "%s", text ? text : "");
    unsetenv("ATTNCL_QUEUES");
    setenv("ATTNCL_COMMAND_BUFFERS", "off", 1); // measured too, at the first graph for one queue
    attncl_log_set(listen, NULL, ATTNCL_LOG_INFO);
    log_text[0] = '\0';
    fail_at = 0;
}

static void down(void)
{
    is_played = false;
    n_timed = 0;
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    if (queues[0])
        setenv("ATTNCL_QUEUES", queues, 1);
    unsetenv("ATTNCL_COMMAND_BUFFERS");
    setenv("ATTNCL_CACHE", "off", 1);
    directory_end();
}

FIXTURE(up, down);

// A GPU, for all that the library asks it.
static attncl_context *open_gpu(bool overlapping)
{
    attncl_context *ctx = NULL;

    ck_ok(attncl_context_create(&options, &ctx));
    play_gpu(ctx);
    is_played = true;
    host_time = 1;
    overlaps = overlapping;
    device_free = 0;
    n_kernels = 0;
    return ctx;
}

static void close_gpu(attncl_context *ctx)
{
    ck_ok(attncl_context_destroy(ctx));
    is_played = false;
}

enum { N = 64, DEPTH = 12 };

// Branches of small nodes, which one sum joins.
static attncl_graph *branches(attncl_context *ctx, int n, int64_t width)
{
    attncl_graph *g = NULL;

    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, &width);
    attncl_value sum = x;
    for (int b = 0; b < n; ++b) {
        attncl_value y = x;
        for (int i = 0; i < DEPTH; ++i)
            y = attncl_softmax(g, y, -1);
        sum = attncl_add(g, sum, y);
    }
    attncl_graph_output(g, "y", sum);
    return g;
}

static int n_queues(const attncl_graph *g)
{
    const int n = attncl__graph_program(g)->command_list.n_queues;
    return n ? n : 1;
}

// Of `branches` on a device; y: what it computes.
static int counted(attncl_context *ctx, int n, float y[N])
{
    attncl_compile_options how = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_graph *g = branches(ctx, n, N);
    float x[N];

    for (int i = 0; i < N; ++i)
        x[i] = (float)(i % 7) - 3;
    ck_ok(attncl_graph_compile(g, &how));
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, sizeof x));
    const int found = n_queues(g);
    attncl_graph_destroy(g);
    return found;
}

LOOP_TEST(a_device_is_measured, 0, 2)
{
    attncl_context *ctx = open_gpu(_i == 1);
    struct queue_gain gain;
    const double start = host_time;

    ck_ok(attncl__queues_measure(ctx, &ctx->caps, &gain));
    ck_assert_double_lt(host_time - start, 0.1);
    ck_assert_double_eq_tol(gain.speed, _i == 1 ? 2 : 1, 0.05);
    ck_assert_double_eq_tol(gain.launch_seconds, SHORT_S, 0.05 * SHORT_S);
    ck_assert_double_eq_tol(gain.two_seconds, _i == 1 ? SHORT_S / 2 : SHORT_S, 0.1 * SHORT_S);
    ck_assert_double_eq_tol(gain.wait_seconds, WAIT_S, 0.1 * WAIT_S);
    close_gpu(ctx);
}

LOOP_TEST(graphs_go_to_several_queues_where_kernels_overlap, 0, 2)
{
    float want[N], got[N];
    attncl_context *ctx = open_gpu(_i == 1);
    const struct queue_gain *gain = &ctx->queue_gain;

    const int found = counted(ctx, 2, got);
    ck_assert_msg(found == (_i == 1 ? 2 : 1), "%d queues: %g, %g us, %g, %g\n%s", found,
                  gain->speed, 1e6 * gain->launch_seconds, 1e6 * gain->two_seconds,
                  1e6 * gain->wait_seconds, log_text);
    ck_assert_ptr_nonnull(
        strstr(log_text, _i == 1 ? "graphs go to several queues" : "graphs go to one queue"));
    setenv("ATTNCL_QUEUES", "1", 1);
    ck_assert_int_eq(counted(ctx, 2, want), 1);
    unsetenv("ATTNCL_QUEUES");
    ck_assert_mem_eq(got, want, sizeof want);
    ck_assert_int_eq(counted(ctx, 1, got), 1);
    close_gpu(ctx);
}

// In another context too, which then enqueues nothing to find out.
TEST(what_was_measured_is_kept)
{
    float y[N];
    char text[FINDING_BYTES];
    attncl_context *ctx = open_gpu(true);

    ck_assert(!attncl__finding_read(ctx, "queues", text));
    ck_assert_int_eq(counted(ctx, 2, y), 2);
    const struct queue_gain first = ctx->queue_gain;
    close_gpu(ctx);
    ctx = open_gpu(false);
    attncl_graph *g = branches(ctx, 2, N);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(n_kernels, 0);
    ck_assert_int_eq(n_queues(g), 2);
    ck_assert_mem_eq(&ctx->queue_gain, &first, sizeof first);
    attncl_graph_destroy(g);
    ck_assert(attncl__finding_read(ctx, "queues", text));
    ck_assert_ptr_nonnull(strstr(text, "times as fast on two queues"));
    ck_ok(attncl__finding_keep(ctx, "queues", "of another form"));
    close_gpu(ctx);
    ctx = open_gpu(false);
    ck_assert_int_eq(counted(ctx, 2, y), 1); // measured again
    close_gpu(ctx);
}

// A CPU, another's queue, a graph without branches, and where a number was asked for.
TEST(what_does_not_need_it_is_not_measured)
{
    attncl_compile_options how = ATTNCL_COMPILE_OPTIONS_INIT;
    float y[N];
    attncl_context *ctx = open_gpu(true);
    attncl_graph *g = branches(ctx, 2, N);

    how.n_queues = 3;
    ck_ok(attncl_graph_compile(g, &how));
    attncl_graph_destroy(g);
    g = branches(ctx, 1, N);
    ck_ok(attncl_graph_compile(g, NULL));
    attncl_graph_destroy(g);
    ctx->adopted = true;
    g = branches(ctx, 2, N);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(n_queues(g), 1);
    attncl_graph_destroy(g);
    ck_assert_int_eq(n_kernels, 0);
    ck_assert(!ctx->queue_gain_known);
    close_gpu(ctx);

    ck_ok(attncl_context_create(&options, &ctx));
    if (ctx->caps.is_cpu) {
        ck_assert_int_eq(counted(ctx, 2, y), 1);
        ck_assert(!ctx->queue_gain_known);
        ck_assert_int_eq(atomic_load(&ctx->n_side_queues), 0);
    }
    ck_ok(attncl_context_destroy(ctx));
}

// Long nodes are taken for what fills the device.
TEST(work_does_not_overlap)
{
    enum { WIDTH = 1 << 22 };
    attncl_context *ctx = open_gpu(true);
    ctx->queue_gain_known = true;
    ctx->queue_gain = (struct queue_gain){2, 1e-6, 0.5e-6, 1e-6};
    attncl_graph *g = branches(ctx, 2, N);

    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(n_queues(g), 2);
    attncl_graph_destroy(g);
    g = branches(ctx, 2, WIDTH);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(n_queues(g), 1);
    attncl_graph_destroy(g);
    ctx->queue_gain.wait_seconds = 1e-3; // waits that eat it up
    g = branches(ctx, 2, N);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(n_queues(g), 1);
    attncl_graph_destroy(g);
    ctx->queue_gain = (struct queue_gain){2, 1e-6, 1e-6, 0}; // launches that do not overlap
    g = branches(ctx, 2, N);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(n_queues(g), 1);
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

// What several queues may not share is no reason to refuse a graph that fits on one.
TEST(memory_that_is_missing_makes_it_one_queue)
{
    attncl_compile_options how = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_memory_report one = ATTNCL_MEMORY_REPORT_INIT, several = one;
    attncl_context *ctx = open_gpu(true);
    ctx->queue_gain_known = true;
    ctx->queue_gain = (struct queue_gain){2, 1e-6, 0.5e-6, 1e-6};
    attncl_graph *g = branches(ctx, 4, N);

    g->canaries = false;
    ck_ok(attncl_graph_memory(g, &several));
    setenv("ATTNCL_QUEUES", "1", 1);
    ck_ok(attncl_graph_memory(g, &one));
    unsetenv("ATTNCL_QUEUES");
    ck_assert_uint_lt(one.arena_bytes, several.arena_bytes);
    how.memory_limit =
        several.weights_bytes + several.state_bytes + several.io_bytes + one.arena_bytes;
    ck_ok(attncl_graph_compile(g, &how));
    ck_assert_int_eq(n_queues(g), 1);
    attncl_graph_destroy(g);
    g = branches(ctx, 4, N);
    how.n_queues = 2; // which was asked for
    ck_fails(attncl_graph_compile(g, &how), ATTNCL_ERR_DEVICE_MEMORY, "the limit is");
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

TEST(a_measurement_that_fails_makes_it_one_queue)
{
    attncl_context *ctx = open_gpu(true);
    attncl_graph *g = branches(ctx, 2, N);
    char text[FINDING_BYTES];

    fail_at = 20;
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(n_queues(g), 1);
    ck_assert_ptr_nonnull(strstr(log_text, "several queues are not used: clEnqueueNDRangeKernel"));
    ck_assert(!attncl__finding_read(ctx, "queues", text));
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

// Microseconds at which commands of the trace's rows 1 and 2 ran at once.
static double overlap(const char *trace)
{
    struct interval {
        int row;
        double begin, end;
    } all[64];
    int n = 0;
    double sum = 0;

    for (const char *at = trace; (at = strstr(at, "\"tid\":")) && n < 64; ++at) {
        double begin, takes;
        ck_assert_int_eq(
            sscanf(at, "\"tid\":%d,\"ts\":%lf,\"dur\":%lf", &all[n].row, &begin, &takes), 3);
        all[n].begin = begin;
        all[n++].end = begin + takes;
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            const double begin = later(all[i].begin, all[j].begin);
            const double end = all[i].end < all[j].end ? all[i].end : all[j].end;
            if (all[i].row == 1 && all[j].row == 2 && end > begin)
                sum += end - begin;
        }
    return sum;
}

LOOP_TEST(a_trace_shows_the_overlap, 0, 2)
{
    static char text[1 << 16];
    char path[FILE_BYTES];

    options.profile = 1;
    attncl_context *ctx = open_gpu(_i == 1);
    ctx->queue_gain_known = true;
    ctx->queue_gain = (struct queue_gain){2, 1e-6, 0.5e-6, 1e-6};
    attncl_graph *g = branches(ctx, 2, N);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_run_profiled(g));
    ck_ok(attncl_graph_write_trace(g, directory_path("trace.json", path)));
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    if (_i == 1)
        ck_assert_double_gt(overlap(text), 1e6 * DEPTH * SHORT_S / 2);
    else
        ck_assert_double_lt(overlap(text), 1);
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

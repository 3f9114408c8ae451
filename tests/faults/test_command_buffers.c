// SPDX-License-Identifier: MIT
// A call of OpenCL fails while kernels are recorded or replayed: a graph compiles all the same or says what failed, a run
// fails as one that enqueues kernel by kernel, nothing is left over, and the next run is right.

#include <stdio.h>
#include <string.h>

#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "compile/program.h"
#include "support/faults.h"
#include "support/played_gpu.h"

enum { N = 64, MAX_CALLS = 400, N_KERNELS = 6, EXIT_SKIPPED = 77 };

static const cl_int codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
                               CL_INVALID_COMMAND_QUEUE};

static void begin(void)
{
    struct command_buffer_calls calls;
    const char *missing = NULL;

    ck_ok(attncl__command_buffers_find(test_context(), &calls, &missing));
    if (missing) {
        fprintf(stderr, "skipped: the device lacks %s\n", missing);
        exit(EXIT_SKIPPED);
    }
    setenv("ATTNCL_COMMAND_BUFFERS", "on", 1);
    faults_begin();
}

static void end(void)
{
    unsetenv("ATTNCL_COMMAND_BUFFERS");
    faults_end();
}

FIXTURE(begin, end);

// y = softmax(softmax(... x))
static attncl_status create(attncl_context *ctx, attncl_graph **ret)
{
    attncl_graph *g = NULL;

    attncl_status status = attncl_graph_create(ctx, &g);
    if (status != ATTNCL_OK)
        return status;
    attncl_value y = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    for (int i = 0; i < N_KERNELS; ++i)
        y = attncl_softmax(g, y, -1);
    attncl_graph_output(g, "y", y);
    status = attncl_graph_compile(g, NULL);
    if (status == ATTNCL_OK)
        *ret = g;
    else
        attncl_graph_destroy(g);
    return status;
}

static bool is_replayed(const attncl_graph *g)
{
    return attncl__graph_program(g)->command_list.replays;
}

static void run(attncl_graph *g, float y[N])
{
    float x[N];

    for (int i = 0; i < N; ++i)
        x[i] = (float)i / N;
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, sizeof x));
}

static void expect(float want[N])
{
    attncl_graph *g = NULL;

    ck_ok(create(test_context(), &g));
    ck_assert(is_replayed(g));
    run(g, want);
    attncl_graph_destroy(g);
}

LOOP_TEST(each_call_of_a_run, 0, 2 * COUNT_OF(codes))
{
    float want[N], got[N];
    attncl_graph *g = NULL;
    size_t n = 1;
    int n_replays = 0; // that failed

    ck_ok(create(test_context(), &g));
    run(g, want);
    for (; n < MAX_CALLS; ++n) {
        faults_plan((struct fault_plan){.at = n,
                                        .all = _i >= (int)COUNT_OF(codes),
                                        .code = codes[_i % (int)COUNT_OF(codes)],
                                        .queries = true});
        const attncl_status status = attncl_graph_run(g);
        const struct fault_report report = faults_report();
        faults_none();
        if (!report.n_failed)
            break;
        n_replays += strcmp(report.first, "clEnqueueCommandBufferKHR") == 0;
        ck_assert_msg(status != ATTNCL_OK, "call %zu, %s: unnoticed", n, report.first);
        ck_assert_msg(strstr(attncl_last_error(), report.first) != NULL, "call %zu, %s: \"%s\"", n,
                      report.first, attncl_last_error());
        ck_fails(attncl_graph_read(g, "y", got, sizeof got), ATTNCL_ERR_STATE, "failed");
        run(g, got);
        ck_assert_mem_eq(got, want, sizeof want);
    }
    ck_assert_int_eq(n_replays, 1);
    ck_assert_uint_lt(n, MAX_CALLS);
    attncl_graph_destroy(g);
}

// In a new context each time, which looks for the extension.
LOOP_TEST(each_call_of_compiling, 0, 2)
{
    float want[N], got[N];
    size_t n = 1;
    int n_plain = 0;

    expect(want);
    for (; n < MAX_CALLS; ++n) {
        attncl_graph *g = NULL;
        attncl_context *ctx = NULL;
        ck_ok(attncl_context_create(NULL, &ctx));
        faults_plan((struct fault_plan){
            .at = n, .all = _i == 1, .code = CL_OUT_OF_RESOURCES, .queries = true});
        const attncl_status status = create(ctx, &g);
        const struct fault_report report = faults_report();
        faults_none();
        if (status == ATTNCL_OK) {
            n_plain += !is_replayed(g);
            ck_assert(is_replayed(g) || report.n_failed);
            run(g, got);
            ck_assert_mem_eq(got, want, sizeof want);
            attncl_graph_destroy(g);
        } else {
            ck_assert_msg(strstr(attncl_last_error(), report.first) != NULL, "%s: \"%s\"",
                          report.first, attncl_last_error());
        }
        ck_ok(attncl_context_destroy(ctx));
        if (!report.n_failed)
            break;
    }
    // Four queries, five functions, a command buffer, its kernels and its end.
    ck_assert_int_ge(n_plain, 4 + 5 + 1 + N_KERNELS + 1);
    ck_assert_uint_lt(n, MAX_CALLS);
}

// Exchanged buffers are recorded anew, or their graph is enqueued kernel by kernel.
TEST(each_call_of_binding)
{
    float want[N], got[N], x[N];
    cl_int code = CL_SUCCESS;
    size_t n = 1;
    int n_plain = 0;

    expect(want);
    for (int i = 0; i < N; ++i)
        x[i] = (float)i / N;
    cl_mem mem = clCreateBuffer(test_context()->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                sizeof x, x, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    for (; n < MAX_CALLS; ++n) {
        attncl_graph *g = NULL;
        ck_ok(create(test_context(), &g));
        run(g, got);
        faults_plan((struct fault_plan){.at = n, .code = CL_OUT_OF_RESOURCES, .queries = true});
        const attncl_status status = attncl_graph_bind(g, "x", mem, 0);
        const struct fault_report report = faults_report();
        faults_none();
        if (status == ATTNCL_OK) {
            n_plain += !is_replayed(g);
            ck_ok(attncl_graph_run(g));
            ck_ok(attncl_graph_read(g, "y", got, sizeof got));
        } else {
            run(g, got);
        }
        ck_assert_mem_eq(got, want, sizeof want);
        attncl_graph_destroy(g);
        if (!report.n_failed)
            break;
    }
    clReleaseMemObject(mem);
    ck_assert_int_eq(n_plain, 1 + N_KERNELS + 1);
    ck_assert_uint_lt(n, MAX_CALLS);
}

// Calls fail while a GPU measures, at its first graph: it compiles all the same, or says what failed.
TEST(calls_of_the_measurement)
{
    float y[N];
    bool failed = true;

    unsetenv("ATTNCL_COMMAND_BUFFERS");
    for (size_t n = 1; failed; n += n) { // there are thousands
        attncl_graph *g = NULL;
        attncl_context *ctx = NULL;
        ck_ok(attncl_context_create(NULL, &ctx));
        play_gpu(ctx);
        faults_plan((struct fault_plan){.at = n, .code = CL_OUT_OF_RESOURCES, .queries = true});
        const attncl_status status = create(ctx, &g);
        const struct fault_report report = faults_report();
        faults_none();
        failed = report.n_failed > 0;
        ck_assert(ctx->command_buffers.known || status != ATTNCL_OK);
        if (status == ATTNCL_OK) {
            run(g, y);
            attncl_graph_destroy(g);
        } else {
            ck_assert_msg(strstr(attncl_last_error(), report.first) != NULL, "%s: \"%s\"",
                          report.first, attncl_last_error());
        }
        ck_ok(attncl_context_destroy(ctx));
    }
}

// SPDX-License-Identifier: MIT
// A call of OpenCL fails in a run whose branches go to several queues: nothing is left running, no event
// is left over, there are no outputs, and the next run is right.

#include <string.h>

#include "attncl/ops.h"
#include "attncl/optim.h"
#include "attncl/tensor.h"
#include "device/context.h"
#include "support/faults.h"

// The queues stay with the context.
static void queues_up(void)
{
    ck_ok(attncl__queues_open(test_context(), 2));
    faults_begin();
}

FIXTURE(queues_up, faults_end);

enum { N = 64, MAX_CALLS = 200 };

static const cl_int codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
                               CL_INVALID_COMMAND_QUEUE};

// y = softmax(x) + (x + x) * x
static attncl_status create(attncl_context *ctx, int n_queues, attncl_graph **ret)
{
    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_graph *g = NULL;

    attncl_status status = attncl_graph_create(ctx, &g);
    if (status != ATTNCL_OK)
        return status;
    options.n_queues = n_queues;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value a = attncl_softmax(g, x, -1);
    const attncl_value b = attncl_mul(g, attncl_add(g, x, x), x);
    attncl_graph_output(g, "y", attncl_add(g, a, b));
    status = attncl_graph_compile(g, &options);
    if (status == ATTNCL_OK)
        *ret = g;
    else
        attncl_graph_destroy(g);
    return status;
}

static void write(attncl_graph *g)
{
    float x[N];

    for (int i = 0; i < N; ++i)
        x[i] = (float)i / N;
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
}

LOOP_TEST(each_call_of_a_run, 0, 2 * COUNT_OF(codes))
{
    float want[N], got[N];
    attncl_graph *g = NULL;
    struct object_counts before, after;
    size_t n = 1;

    ck_ok(create(test_context(), 2, &g));
    write(g);
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", want, sizeof want));
    attncl__objects_count(&before);
    for (; n < MAX_CALLS; ++n) {
        faults_plan((struct fault_plan){.at = n,
                                        .all = _i >= (int)COUNT_OF(codes),
                                        .code = codes[_i % (int)COUNT_OF(codes)],
                                        .queries = true});
        const attncl_status status = attncl_graph_run(g);
        const struct fault_report report = faults_taken();
        attncl__objects_count(&after);
        ck_assert_mem_eq(after.live, before.live, sizeof after.live);
        if (!report.n_failed)
            break;
        check_failure(n, &report, status);
        ck_fails(attncl_graph_read(g, "y", got, sizeof got), ATTNCL_ERR_STATE, "failed");
        ck_ok(attncl_graph_run(g));
        ck_ok(attncl_graph_read(g, "y", got, sizeof got));
        ck_assert_mem_eq(got, want, sizeof want);
    }
    ck_assert_uint_gt(n, 8); // kernels, markers, barriers and flushes
    ck_assert_uint_lt(n, MAX_CALLS);
    attncl_graph_destroy(g);
}

// A fault of a side queue that only a wait for it tells.
TEST(a_read_waits_for_all_queues)
{
    float y[N];
    attncl_graph *g = NULL;

    ck_ok(create(test_context(), 2, &g));
    write(g);
    ck_ok(attncl_graph_run(g));
    FAIL_CALL("clFinish", 1, CL_OUT_OF_RESOURCES);
    ck_fails(attncl_graph_read(g, "y", y, sizeof y), ATTNCL_ERR_OPENCL, "clFinish");
    faults_none();
    ck_fails(attncl_graph_read(g, "y", y, sizeof y), ATTNCL_ERR_STATE, "failed");
    attncl_graph_destroy(g);
}

// w += (x + x) x in one queue, y = softmax(x) in the other.
static attncl_status create_update(attncl_tensor *w, attncl_graph **ret)
{
    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;

    ck_ok(attncl_graph_create(test_context(), ret));
    options.n_queues = 2;
    const attncl_value x = attncl_graph_input(*ret, "x", ATTNCL_F32, 1, (int64_t[]){N});
    attncl_graph_output(*ret, "y", attncl_softmax(*ret, x, -1));
    attncl_accumulate(*ret, attncl_graph_tensor(*ret, w),
                      attncl_mul(*ret, attncl_add(*ret, x, x), x));
    return attncl_graph_compile(*ret, &options);
}

// Of a side queue too, where nothing but a weight is read: the graph says no more what it keeps.
TEST(a_read_of_a_weight_waits_for_all_queues)
{
    float zero[N] = {0}, got[N];
    attncl_graph *g = NULL;
    attncl_tensor *w = NULL;

    ck_ok(
        attncl_tensor_create(test_context(), ATTNCL_F32, 1, (int64_t[]){N}, ATTNCL_F32, zero, &w));
    ck_ok(create_update(w, &g));
    write(g);
    ck_ok(attncl_graph_run(g));
    FAIL_CALL("clFinish", 1, CL_OUT_OF_RESOURCES);
    ck_fails(attncl_tensor_read(w, got, sizeof got), ATTNCL_ERR_OPENCL, "clFinish");
    faults_none();
    ck_fails(attncl_graph_run(g), ATTNCL_ERR_STATE, "reset it");
    ck_ok(attncl_graph_reset(g));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_tensor_read(w, got, sizeof got));
    ck_assert_float_eq(got[N - 1], 4.0f * (N - 1) / N * (N - 1) / N); // of two runs
    attncl_graph_destroy(g);
    attncl_tensor_destroy(w);
}

// Compiling fails at each call, that which creates a queue too: nothing is left.
TEST(each_call_of_compiling)
{
    float y[N];
    size_t n = 1;

    for (; n < MAX_CALLS; ++n) {
        attncl_graph *g = NULL;
        attncl_context *ctx = NULL;
        ck_ok(attncl_context_create(NULL, &ctx));
        faults_plan((struct fault_plan){.at = n, .code = CL_OUT_OF_RESOURCES});
        const attncl_status status = create(ctx, 2, &g);
        const struct fault_report report = faults_taken();
        if (status == ATTNCL_OK) {
            write(g);
            ck_ok(attncl_graph_run(g));
            ck_ok(attncl_graph_read(g, "y", y, sizeof y));
            attncl_graph_destroy(g);
        }
        ck_ok(attncl_context_destroy(ctx));
        if (!report.n_failed)
            break;
    }
    ck_assert_uint_gt(n, 8);
    ck_assert_uint_lt(n, MAX_CALLS);
}

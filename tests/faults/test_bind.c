// SPDX-License-Identifier: MIT
// A call of OpenCL fails while a graph is compiled or a caller's buffer is bound: nothing leaks,
// nothing is released twice, and bindings are as they were.

#include <string.h>

#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "device/context.h"
#include "support/faults.h"

FAULTS_FIXTURE;

enum { N = 64, N_BUFFER = 512, MAX_CALLS = 400 };

// y = x + x, and z = y + x, so that x is the argument of two kernels.
static attncl_status create(attncl_graph **ret)
{
    attncl_graph *g = NULL;
    attncl_status status = attncl_graph_create(test_context(), &g);
    if (status != ATTNCL_OK)
        return status;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value none = attncl_graph_input(g, "none", ATTNCL_F32, 1, (int64_t[]){0});
    const attncl_value y = attncl_add(g, x, x);
    attncl_graph_output(g, "y", y);
    attncl_graph_output(g, "z", attncl_mul(g, attncl_add(g, y, x), x));
    attncl_graph_output(g, "nothing", attncl_add(g, attncl_add(g, none, none), none));
    status = attncl_graph_compile(g, NULL);
    if (status == ATTNCL_OK)
        *ret = g;
    else
        attncl_graph_destroy(g);
    return status;
}

static cl_mem buffer_of(float first)
{
    cl_int code;
    float data[N_BUFFER];
    for (size_t i = 0; i < N_BUFFER; ++i)
        data[i] = first + (float)i;
    cl_mem mem = clCreateBuffer(test_context()->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                sizeof data, data, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return mem;
}

// Runs, and checks y and z of x[i] = first + i.
static void check_run(attncl_graph *g, float first)
{
    float y[N], z[N];
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, sizeof y));
    ck_ok(attncl_graph_read(g, "z", z, sizeof z));
    for (int i = 0; i < N; ++i) {
        const float x = first + (float)i;
        ck_assert_msg(y[i] == 2 * x && z[i] == 3 * x * x, "of %g: y = %g, z = %g", (double)x,
                      (double)y[i], (double)z[i]);
    }
}

TEST(compiling)
{
    attncl_graph *g = NULL;
    ck_ok(create(&g)); // programs are built and stay
    attncl_graph_destroy(g);
    g = NULL;
    const size_t live = faults_report().live;
    size_t n = 1;
    for (; n < MAX_CALLS; ++n) {
        faults_plan((struct fault_plan){.at = n, .code = CL_OUT_OF_HOST_MEMORY, .queries = true});
        const attncl_status status = create(&g);
        const struct fault_report report = faults_taken();
        attncl_graph_destroy(g);
        g = NULL;
        ck_assert_msg(report.over_released == 0, "call %zu, %s: an object was released twice", n,
                      report.first);
        ck_assert_msg(faults_report().live == live, "call %zu, %s: objects leak", n, report.first);
        if (!report.n_failed)
            break;
        check_failure(n, &report, status);
    }
    ck_assert_uint_lt(n, MAX_CALLS);
}

// In place from the start, as a part, and copied.
static const int64_t offsets[] = {0, 256, 7};

TABLE_TEST(binding, offsets)
{
    attncl_graph *g = NULL;
    cl_mem first = buffer_of(1000), second = buffer_of(1);
    float x[N];

    ck_ok(create(&g));
    for (int was_bound = 0; was_bound < 2; ++was_bound) {
        size_t n = 1;
        for (; n < MAX_CALLS; ++n) {
            ck_ok(attncl_graph_bind(g, "x", was_bound ? first : NULL, 0));
            for (int i = 0; !was_bound && i < N; ++i)
                x[i] = 1000 + (float)i;
            if (!was_bound)
                ck_ok(attncl_graph_write(g, "x", x, sizeof x));
            const size_t live = faults_report().live;
            faults_plan(
                (struct fault_plan){.at = n, .code = CL_OUT_OF_HOST_MEMORY, .queries = true});
            const attncl_status status = attncl_graph_bind(g, "x", second, offsets[_i]);
            const struct fault_report report = faults_taken();
            if (!report.n_failed)
                break;
            // A part that cannot be made is copied instead.
            if (status == ATTNCL_OK) {
                ck_assert_str_eq(report.first, "clCreateSubBuffer");
                check_run(g, 1 + (float)offsets[_i]);
                continue;
            }
            check_failure(n, &report, status);
            ck_assert_msg(faults_report().live == live, "call %zu, %s: objects leak", n,
                          report.first);
            check_run(g, 1000);
        }
        ck_assert_uint_lt(n, MAX_CALLS);
        check_run(g, 1 + (float)offsets[_i]);
    }
    clReleaseMemObject(first);
    clReleaseMemObject(second);
    attncl_graph_destroy(g);
}

// When kernels cannot be given their former buffer either, the next run does it.
TEST(binding_that_cannot_be_taken_back)
{
    attncl_graph *g = NULL;
    cl_mem first = buffer_of(1000), second = buffer_of(1);

    ck_ok(create(&g));
    ck_ok(attncl_graph_bind(g, "x", first, 0));
    faults_plan((struct fault_plan){
        .at = 2, .all = true, .code = CL_OUT_OF_RESOURCES, .only = "clSetKernelArg"});
    ck_fails(attncl_graph_bind(g, "x", second, 0), ATTNCL_ERR_OPENCL, "clSetKernelArg");
    ck_fails(attncl_graph_run(g), ATTNCL_ERR_OPENCL, "clSetKernelArg");
    faults_none();
    check_run(g, 1000);
    ck_ok(attncl_graph_bind(g, "x", second, 0));
    check_run(g, 1);
    clReleaseMemObject(first);
    clReleaseMemObject(second);
    attncl_graph_destroy(g);
}

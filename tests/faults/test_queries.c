// SPDX-License-Identifier: MIT
// A query of platforms, devices or limits fails: an error with the call's name, never another device,
// kernel variant or limit.

#include <stdio.h>
#include <string.h>

#include "attncl/log.h"
#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "base/alloc.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/faults.h"

FAULTS_FIXTURE;

enum { MAX_CALLS = 1000, MAX_TEXT = 512 };

static const cl_int codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY};

static bool same_caps(const attncl_context *a, const attncl_context *b)
{
    struct device_caps caps = a->caps, other = b->caps;
    caps.tuned = other.tuned = NULL;
    return memcmp(&caps, &other, sizeof caps) == 0 &&
           memcmp(&a->info, &b->info, sizeof a->info) == 0;
}

TABLE_TEST(counting_devices, codes)
{
    size_t count, n = 1;
    ck_ok(attncl_device_count(&count));
    const size_t want = count;
    for (; n < MAX_CALLS; ++n) {
        count = 99;
        faults_plan((struct fault_plan){.at = n, .code = codes[_i], .queries = true});
        const attncl_status status = attncl_device_count(&count);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        check_failure(n, &report, status);
        ck_assert_uint_eq(count, 99);
    }
    ck_assert_uint_eq(count, want);
    ck_assert_uint_gt(n, 4);
}

// Launches ask for it only where a kernel takes more than every device allows.
TABLE_TEST(bytes_of_arguments, codes)
{
    size_t bytes = 99;
    faults_plan((struct fault_plan){.at = 1, .code = codes[_i], .queries = true});
    const attncl_status status = attncl__device_max_argument_bytes(test_context(), &bytes);
    const struct fault_report report = faults_taken();
    ck_assert_uint_eq(report.n_failed, 1);
    check_failure(1, &report, status);
    ck_ok(attncl__device_max_argument_bytes(test_context(), &bytes));
    ck_assert_uint_ge(bytes, 256);
}

TABLE_TEST(creating_a_context, codes)
{
    attncl_context *ctx = NULL;
    size_t n = 1;
    const size_t heap = attncl__alloc_live();
    const size_t live = faults_report().live;
    for (; n < MAX_CALLS; ++n) {
        faults_plan((struct fault_plan){.at = n, .code = codes[_i], .queries = true});
        const attncl_status status = attncl_context_create(NULL, &ctx);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        check_failure(n, &report, status);
        ck_assert_ptr_null(ctx);
        ck_assert_uint_eq(attncl__alloc_live(), heap);
        ck_assert_uint_eq(faults_report().live, live);
    }
    ck_assert_uint_gt(n, 20);
    ck_assert_uint_lt(n, MAX_CALLS);
    ck_assert(same_caps(ctx, test_context()));
    ck_ok(attncl_context_destroy(ctx));
}

TABLE_TEST(adopting_a_context, codes)
{
    attncl_context *own = test_context(), *ctx = NULL;
    size_t n = 1;
    for (; n < MAX_CALLS; ++n) {
        faults_plan((struct fault_plan){.at = n, .code = codes[_i], .queries = true});
        const attncl_status status =
            attncl_context_adopt(own->cl, own->device, own->queue, NULL, &ctx);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        check_failure(n, &report, status);
        ck_assert_ptr_null(ctx);
    }
    ck_assert_uint_gt(n, 20);
    ck_assert(same_caps(ctx, own));
    ck_ok(attncl_context_destroy(ctx));
}

static void keep_warning(attncl_log_level level, const char *text, void *user)
{
    if (level == ATTNCL_LOG_WARN)
        snprintf(user, MAX_TEXT, "%s", text);
}

// The context is destroyed, and the log is what tells it.
TABLE_TEST(a_wait_at_the_end_of_a_context, codes)
{
    char warning[MAX_TEXT] = "";
    attncl_context *ctx = NULL;
    ck_ok(attncl_context_create(NULL, &ctx));
    attncl_log_set(keep_warning, warning, ATTNCL_LOG_WARN);
    FAIL_CALL("clFinish", 1, codes[_i]);
    ck_ok(attncl_context_destroy(ctx));
    attncl_log_set(NULL, NULL, ATTNCL_LOG_ERROR);
    ck_assert_uint_eq(faults_report().n_failed, 1);
    ck_assert_msg(strstr(warning, "clFinish: CL_") != NULL, "\"%s\"", warning);
}

// Without its log a program that does not compile gives the call's code.  A failed build is remembered:
// each has macros of its own.
TEST(log_of_a_failed_build)
{
    attncl_context *ctx = NULL;
    struct kernel_program *program = NULL;

    directory_begin();
    directory_write("broken.cl", "#error on purpose\n");
    setenv("ATTNCL_CL_DIR", IN_DIRECTORY(""), 1);
    ck_ok(attncl_context_create(NULL, &ctx));
    for (size_t n = 1; n <= 2; ++n) {
        FAIL_CALL("clGetProgramBuildInfo", n, CL_OUT_OF_HOST_MEMORY);
        const attncl_status status = attncl__program_get(
            ctx, "broken.cl", n == 1 ? "#define N 1\n" : "#define N 2\n", &program);
        const size_t n_failed = faults_report().n_failed;
        faults_none();
        ck_assert_msg(status == ATTNCL_ERR_COMPILE && n_failed == 1, "%zu: %zu failed, %s", n,
                      n_failed, attncl_last_error());
        ck_assert_msg(strstr(attncl_last_error(), "clBuildProgram: CL_BUILD_PROGRAM_FAILURE") !=
                          NULL,
                      "\"%s\"", attncl_last_error());
    }
    ck_assert_int_eq(attncl__program_get(ctx, "broken.cl", "", &program), ATTNCL_ERR_COMPILE);
    ck_assert_msg(strstr(attncl_last_error(), "on purpose") != NULL, "\"%s\"", attncl_last_error());
    ck_ok(attncl_context_destroy(ctx));
    unsetenv("ATTNCL_CL_DIR");
    directory_end();
}

static attncl_status compile_softmax(attncl_context *ctx)
{
    const int64_t dim[] = {3, 4};
    attncl_graph *g = NULL;

    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, dim);
    attncl_graph_output(g, "y", attncl_softmax(g, x, -1));
    const attncl_status status = attncl_graph_compile(g, NULL);
    attncl_graph_destroy(g);
    return status;
}

// The next graph tries it again.
TEST(a_build_that_fails_once)
{
    attncl_context *ctx = NULL;

    setenv("ATTNCL_CACHE", "off", 1);
    ck_ok(attncl_context_create(NULL, &ctx));
    for (int fails = 1; fails >= 0; --fails) {
        faults_plan((struct fault_plan){
            .at = (size_t)fails, .code = CL_BUILD_PROGRAM_FAILURE, .only = "clBuildProgram"});
        const attncl_status status = compile_softmax(ctx);
        const struct fault_report report = faults_taken();
        if (fails && ctx->caps.variant == VARIANT_CPU)
            check_failure(1, &report, status);
        else
            ck_ok(status); // of the CPU variant
        ck_assert_uint_eq(report.n_calls, fails && ctx->caps.variant == VARIANT_GPU ? 2 : 1);
    }
    ck_ok(attncl_context_destroy(ctx));
}

// The call that fails first is named, and none that fails since then.
TEST(a_device_lost_while_a_graph_is_compiled)
{
    attncl_status status = ATTNCL_ERR_OPENCL;
    size_t n = 0;
    while (status != ATTNCL_OK && ++n < MAX_CALLS) {
        attncl_context *ctx = NULL;
        ck_ok(attncl_context_create(NULL, &ctx)); // without programs
        faults_plan((struct fault_plan){.at = n, .all = true, .code = CL_OUT_OF_RESOURCES});
        status = compile_softmax(ctx);
        const struct fault_report report = faults_taken();
        ck_ok(attncl_context_destroy(ctx));
        if (strcmp(report.first, "clFinish") != 0) // of a graph that is destroyed
            check_failure(n, &report, status);
    }
    ck_assert_uint_gt(n, 10);
    ck_assert_uint_lt(n, MAX_CALLS);
}

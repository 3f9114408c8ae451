// SPDX-License-Identifier: MIT
// Status codes from public calls, with their messages: those that graphs, decoders and model files give without a fault are
// in their own tests.

#include <stdlib.h>
#include <string.h>

#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "base/alloc.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/launch_mock.h"
#include "support/test.h"

static const int64_t square[] = {64, 64};

static attncl_graph *new_graph(attncl_context *ctx)
{
    attncl_graph *g = NULL;
    ck_ok(attncl_graph_create(ctx, &g));
    return g;
}

static attncl_context *new_context(void)
{
    attncl_context *ctx = NULL;
    ck_ok(attncl_context_create(NULL, &ctx));
    return ctx;
}

// The status of a softmax, compiled, and run unless compiling fails.
static attncl_status softmax(attncl_context *ctx)
{
    attncl_graph *g = new_graph(ctx);
    attncl_graph_output(g, "y",
                        attncl_softmax(g, attncl_graph_input(g, "x", ATTNCL_F32, 2, square), -1));
    attncl_status status = attncl_graph_compile(g, NULL);
    if (status == ATTNCL_OK)
        status = attncl_graph_run(g);
    attncl_graph_destroy(g);
    return status;
}

TEST(ok)
{
    ck_ok(softmax(test_context()));
    ck_assert_str_eq(attncl_status_name(ATTNCL_OK), "ATTNCL_OK");
}

TEST(err_argument)
{
    attncl_graph *g = NULL;
    ck_fails(attncl_graph_create(NULL, &g), ATTNCL_ERR_ARGUMENT, "context or graph_ret is NULL");
}

TEST(err_no_device)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    options.device = "no device is called so";
    ck_fails(attncl_context_create(&options, &ctx), ATTNCL_ERR_NO_DEVICE, "no device is called so");
}

TEST(err_no_memory)
{
    attncl_graph *g = NULL;
    attncl__alloc_fail_at(1);
    const attncl_status status = attncl_graph_create(test_context(), &g);
    attncl__alloc_fail_at(0);
    ck_fails(status, ATTNCL_ERR_NO_MEMORY, "out of memory: graph");
}

TEST(err_compile)
{
    if (test_context()->caps.vendor == VENDOR_OCLGRIND) // reports the failed build as a finding
        return;
    directory_up();
    directory_write("norm/softmax.cl", "#error broken on purpose\n");
    setenv("ATTNCL_CL_DIR", IN_DIRECTORY(""), 1);
    attncl_context *ctx = new_context();
    ck_fails(softmax(ctx), ATTNCL_ERR_COMPILE, "norm/softmax.cl");
    ck_ok(attncl_context_destroy(ctx));
    unsetenv("ATTNCL_CL_DIR");
    directory_down();
}

// Whatever waits flushes too.
static cl_int fail_flush(cl_command_queue queue)
{
    (void)queue;
    return CL_INVALID_COMMAND_QUEUE;
}

TEST(err_opencl)
{
    launch_mock_flush = fail_flush;
    const attncl_status status = softmax(test_context());
    launch_mock_flush = NULL;
    ck_fails(status, ATTNCL_ERR_OPENCL, "clFlush: CL_INVALID_COMMAND_QUEUE");
}

TEST(err_blas)
{
    setenv("ATTNCL_GEMM", "clblast", 1);
    launch_mock_clblast.fails = true;
    attncl_context *ctx = new_context();
    attncl_graph *g = new_graph(ctx);
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, square);
    attncl_graph_output(g, "y", attncl_linear(g, x, x, ATTNCL_NONE_VALUE));
    attncl_status status = attncl_graph_compile(g, NULL);
    if (status == ATTNCL_OK)
        status = attncl_graph_run(g);
    ck_fails(status, ATTNCL_ERR_BLAS, "CLBlast: ");
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
    launch_mock_clblast.fails = false;
    unsetenv("ATTNCL_GEMM");
}

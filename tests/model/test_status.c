// SPDX-License-Identifier: MIT
// Each status code, from a public call, with its message.

#include <stdlib.h>
#include <string.h>

#include "attncl/gradient.h"
#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "base/alloc.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/golden.h"
#include "support/launch_mock.h"

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
static attncl_status softmax(attncl_context *ctx, const attncl_compile_options *options)
{
    attncl_graph *g = new_graph(ctx);
    attncl_graph_output(g, "y",
                        attncl_softmax(g, attncl_graph_input(g, "x", ATTNCL_F32, 2, square), -1));
    attncl_status status = attncl_graph_compile(g, options);
    if (status == ATTNCL_OK)
        status = attncl_graph_run(g);
    attncl_graph_destroy(g);
    return status;
}

TEST(ok)
{
    ck_ok(softmax(test_context(), NULL));
    ck_assert_str_eq(attncl_status_name(ATTNCL_OK), "ATTNCL_OK");
}

TEST(err_argument)
{
    attncl_graph *g = NULL;
    ck_fails(attncl_graph_create(NULL, &g), ATTNCL_ERR_ARGUMENT, "context or graph_ret is NULL");
}

TEST(err_shape_and_err_dtype)
{
    attncl_graph *g = new_graph(test_context());
    attncl_softmax(g, attncl_graph_input(g, "x", ATTNCL_F32, 2, square), 2);
    ck_fails(attncl_graph_status(g), ATTNCL_ERR_SHAPE, "axis 2 of a value of rank 2");
    attncl_graph_destroy(g);

    g = new_graph(test_context());
    attncl_graph_input(g, "x", ATTNCL_F64, 2, square);
    ck_fails(attncl_graph_status(g), ATTNCL_ERR_DTYPE, "x: a value is F32, I32 or U8, not F64");
    attncl_graph_destroy(g);
}

TEST(err_state)
{
    attncl_graph *g = new_graph(test_context());
    ck_fails(attncl_graph_run(g), ATTNCL_ERR_STATE, "not compiled");
    attncl_graph_destroy(g);
}

TEST(err_unsupported)
{
    struct golden golden;
    attncl_decoder *decoder = NULL;
    attncl_model *model = golden_open(&golden, "softmax");
    ck_fails(attncl_decoder_create(model, 1, NULL, &decoder), ATTNCL_ERR_UNSUPPORTED, "softmax");
    golden_close(&golden, model);
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

TEST(err_device_memory)
{
    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;
    options.memory_limit = 1000;
    ck_fails(softmax(test_context(), &options), ATTNCL_ERR_DEVICE_MEMORY, "the limit is 1000");
}

TEST(err_compile)
{
    if (test_context()->caps.vendor == VENDOR_OCLGRIND) // reports the failed build as a finding
        return;
    directory_up();
    directory_write("norm/softmax.cl", "#error broken on purpose\n");
    setenv("ATTNCL_CL_DIR", IN_DIRECTORY(""), 1);
    attncl_context *ctx = new_context();
    ck_fails(softmax(ctx, NULL), ATTNCL_ERR_COMPILE, "norm/softmax.cl");
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
    const attncl_status status = softmax(test_context(), NULL);
    launch_mock_flush = NULL;
    ck_fails(status, ATTNCL_ERR_OPENCL, "clFlush: CL_INVALID_COMMAND_QUEUE");
}

TEST(err_blas)
{
    setenv("ATTNCL_GEMM", "clblast", 1);
    launch_mock_clblast_fails = true;
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
    launch_mock_clblast_fails = false;
    unsetenv("ATTNCL_GEMM");
}

TEST(err_io_and_err_format)
{
    attncl_safetensors *file = NULL;
    attncl_model *model = NULL;
    ck_fails(attncl_model_open(test_context(), "/absent/model", NULL, &model), ATTNCL_ERR_IO,
             "/absent/model");
    ck_fails(attncl_safetensors_parse("no tensors here", 15, &file), ATTNCL_ERR_FORMAT, "header");
}

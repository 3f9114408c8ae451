// SPDX-License-Identifier: MIT
// A graph in the caller's own buffers, queue and events; canaries; profiles.

#include <string.h>

#include "attncl/opencl.h"
#include "attncl/profile.h"
#include "device/context.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "graph/nodes.h"
#include "support/test.h"

enum { N = 64 };

// y = x + x over N floats.
static attncl_graph *doubling(attncl_context *ctx)
{
    attncl_graph *g = NULL;
    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    attncl_graph_push_scope(g, "double");
    attncl_graph_output(g, "y", attncl__graph_add(g, attncl__op_find("add_fwd"), NULL, IN(x, x)));
    ck_ok(attncl_graph_compile(g, NULL));
    return g;
}

static cl_mem buffer_of(size_t floats, float first)
{
    cl_int code;
    float data[1024];
    attncl_context *ctx = test_context();
    for (size_t i = 0; i < floats; ++i)
        data[i] = first + (float)i;
    cl_mem mem = clCreateBuffer(ctx->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                floats * sizeof data[0], data, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return mem;
}

static void check_buffer(cl_mem mem, size_t offset, float first)
{
    float got[N];
    ck_assert_int_eq(clEnqueueReadBuffer(test_context()->queue, mem, CL_TRUE, offset * 4,
                                         sizeof got, got, 0, NULL, NULL),
                     CL_SUCCESS);
    for (int i = 0; i < N; ++i)
        ck_assert_msg(got[i] == 2 * (first + (float)i), "element %d is %g", i, (double)got[i]);
}

// Offsets: none, aligned for a sub-buffer, and neither.
static const int64_t offsets[] = {0, 256, 7};

LOOP_TEST(callers_buffers_are_used, 0, 9)
{
    attncl_graph *g = doubling(test_context());
    const int64_t in_at = offsets[_i / 3], out_at = offsets[_i % 3];
    cl_mem in = buffer_of(512, 1), out = buffer_of(512, 0);

    ck_ok(attncl_graph_bind(g, "x", in, in_at));
    ck_ok(attncl_graph_bind(g, "y", out, out_at));
    cl_event done = NULL;
    ck_ok(attncl_graph_enqueue(g, 0, NULL, &done));
    ck_assert_int_eq(clWaitForEvents(1, &done), CL_SUCCESS);
    clReleaseEvent(done);
    check_buffer(out, (size_t)out_at, 1 + (float)in_at);

    // What lies around the output is untouched.
    float edge[2];
    clEnqueueReadBuffer(test_context()->queue, out, CL_TRUE, (size_t)(out_at + N) * 4, 8, edge, 0,
                        NULL, NULL);
    ck_assert(edge[0] == (float)(out_at + N) && edge[1] == (float)(out_at + N + 1));

    float x[N];
    ck_fails(attncl_graph_write(g, "x", x, sizeof x), ATTNCL_ERR_STATE, "bound");
    ck_fails(attncl_graph_read(g, "y", x, sizeof x), ATTNCL_ERR_STATE, "bound");
    ck_ok(attncl_graph_bind(g, "x", NULL, 0));
    ck_ok(attncl_graph_bind(g, "y", NULL, 0));
    memset(x, 0, sizeof x);
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", x, sizeof x));
    ck_assert(x[5] == 0);
    clReleaseMemObject(in);
    clReleaseMemObject(out);
    attncl_graph_destroy(g);
}

TEST(copied_inputs_have_an_offset_each)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value z = attncl_graph_input(g, "z", ATTNCL_F32, 1, (int64_t[]){N});
    cl_mem in = buffer_of(512, 0);
    float y[N];

    attncl_graph_output(g, "y", attncl__graph_add(g, attncl__op_find("add_fwd"), NULL, IN(x, z)));
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_bind(g, "x", in, 7));
    ck_ok(attncl_graph_bind(g, "z", in, 9));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, sizeof y));
    ck_assert(y[0] == 7 + 9 && y[N - 1] == 2 * (N - 1) + 16);
    clReleaseMemObject(in);
    attncl_graph_destroy(g);
}

TEST(bind_refuses_what_does_not_fit)
{
    attncl_graph *g = doubling(test_context());
    cl_mem small = buffer_of(N, 0);
    ck_fails(attncl_graph_bind(g, "x", small, 1), ATTNCL_ERR_ARGUMENT,
             "256 bytes from element 1 on, the buffer has 256");
    ck_fails(attncl_graph_bind(g, "x", small, -1), ATTNCL_ERR_ARGUMENT, "-1");
    ck_fails(attncl_graph_bind(g, "z", small, 0), ATTNCL_ERR_ARGUMENT, "no input or output z");
    ck_fails(attncl_graph_bind(g, "x", small, INT64_MAX), ATTNCL_ERR_ARGUMENT, "256");
    clReleaseMemObject(small);
    attncl_graph_destroy(g);
}

TEST(bind_refuses_buffers_that_kernels_cannot_use_so)
{
    attncl_context *ctx = test_context();
    attncl_graph *g = doubling(ctx);
    cl_int code[2];
    cl_mem read = clCreateBuffer(ctx->cl, CL_MEM_READ_ONLY, N * sizeof(float), NULL, &code[0]),
           write = clCreateBuffer(ctx->cl, CL_MEM_WRITE_ONLY, N * sizeof(float), NULL, &code[1]);

    ck_assert(code[0] == CL_SUCCESS && code[1] == CL_SUCCESS);
    ck_fails(attncl_graph_bind(g, "y", read, 0), ATTNCL_ERR_ARGUMENT,
             "y is an output, kernels can only read the buffer");
    ck_fails(attncl_graph_bind(g, "x", write, 0), ATTNCL_ERR_ARGUMENT,
             "x is an input, kernels can only write the buffer");
    ck_ok(attncl_graph_bind(g, "x", read, 0));
    ck_ok(attncl_graph_bind(g, "y", write, 0));
    clReleaseMemObject(read);
    clReleaseMemObject(write);
    attncl_graph_destroy(g);
}

TEST(a_run_waits_for_events_and_gives_one)
{
    attncl_context *ctx = test_context();
    if (ctx->caps.vendor == VENDOR_OCLGRIND)
        return; // its clFlush waits for the gate that this thread would open
    attncl_graph *g = doubling(ctx);
    cl_int code;
    cl_event gate = clCreateUserEvent(ctx->cl, &code), done = NULL;
    cl_int state;
    float x[N];
    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    if (code == CL_SUCCESS) {
        ck_ok(attncl_graph_enqueue(g, 1, &gate, &done));
        clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        ck_assert_int_ne(state, CL_COMPLETE);
        clSetUserEventStatus(gate, CL_COMPLETE);
        ck_assert_int_eq(clWaitForEvents(1, &done), CL_SUCCESS);
        clReleaseEvent(done);
        clReleaseEvent(gate);
        ck_ok(attncl_graph_read(g, "y", x, sizeof x));
        ck_assert(x[9] == 18);
    }
    ck_fails(attncl_graph_enqueue(g, 1, NULL, NULL), ATTNCL_ERR_ARGUMENT, "list is NULL");
    attncl_graph_destroy(g);
}

TEST(an_empty_graph_still_gives_an_event)
{
    cl_event done = NULL;
    attncl_graph *g = test_graph();
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_enqueue(g, 0, NULL, &done));
    ck_assert_ptr_nonnull(done);
    ck_assert_int_eq(clWaitForEvents(1, &done), CL_SUCCESS);
    clReleaseEvent(done);
    attncl_graph_destroy(g);
}

TEST(inside_the_callers_context)
{
    attncl_context *own = test_context(), *ctx = NULL;
    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(own->cl, own->device, 0, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_ok(attncl_context_adopt(own->cl, own->device, queue, NULL, &ctx));
    attncl_graph *g = doubling(ctx);
    float x[N] = {3};
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", x, sizeof x));
    ck_assert(x[0] == 6);
    ck_fails(attncl_context_destroy(ctx), ATTNCL_ERR_STATE, "graph");
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
    clReleaseCommandQueue(queue);
}

TEST(canaries_detect_an_overwrite)
{
    attncl_graph *g = test_graph();
    g->canaries = true; // whatever the environment says
    attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    attncl_graph_push_scope(g, "first");
    x = attncl__graph_add(g, attncl__op_find("add_fwd"), NULL, IN(x, x));
    attncl_graph_pop_scope(g);
    attncl_graph_output(g, "y", attncl__graph_add(g, attncl__op_find("add_fwd"), NULL, IN(x, x)));
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
    const struct program *p = attncl__graph_program(g);
    const size_t after = p->guarded[0].start + p->guarded[0].bytes;
    ck_ok(attncl__buffer_fill(test_context(), p->arena, 1, after, 4));
    ck_fails(attncl__graph_check_canaries(g), ATTNCL_ERR_STATE, "first: add_fwd: memory after");
    ck_ok(attncl_graph_run(g)); // poisoning mends it
    attncl_graph_destroy(g);
}

TEST(profiles_by_node)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    options.profile = 1;
    ck_ok(attncl_context_create(&options, &ctx));
    attncl_graph *g = doubling(ctx);
    char path[] = "trace-XXXXXX.json", text[4096] = "";
    ck_fails(attncl_graph_write_trace(g, path), ATTNCL_ERR_STATE, "no run");
    ck_ok(attncl_graph_run_profiled(g));
    ck_ok(attncl_graph_run_profiled(g));
    const attncl_profile_row *row = attncl_graph_profile_row(g, 0);
    ck_assert_ptr_nonnull(row);
    ck_assert_str_eq(row->op, "add_fwd");
    ck_assert_str_eq(row->scope, "double");
    ck_assert_uint_eq(row->n_commands, 1);
    ck_assert_uint_eq(row->runs, 2);
    ck_assert_uint_le(row->min_ns * 2, row->total_ns);
    ck_assert_ptr_null(attncl_graph_profile_row(g, 1));

    ck_ok(attncl_graph_write_trace(g, path));
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    remove(path);
    ck_assert_uint_gt(n, 0);
    ck_assert_ptr_nonnull(strstr(text, "\"traceEvents\""));
    ck_assert_ptr_nonnull(strstr(text, "\"scope\":\"double\""));
    ck_fails(attncl_graph_write_trace(g, "/no/such/directory/x.json"), ATTNCL_ERR_IO,
             "/no/such/directory");
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));

    g = doubling(test_context());
    ck_fails(attncl_graph_run_profiled(g), ATTNCL_ERR_STATE, "profile = 1");
    attncl_graph_destroy(g);
}

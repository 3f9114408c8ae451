// SPDX-License-Identifier: MIT
// Outputs that are read while a run goes on.

#include <string.h>

#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "device/context.h"
#include "exec/exec.h"
#include "support/test.h"

enum { N = 64 };

// Outputs in the order they are named in: late = x + x + x + x, and early = x + x.
static attncl_graph *chain(void)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value early = attncl_add(g, x, x);
    attncl_graph_output(g, "late", attncl_add(g, early, early));
    attncl_graph_output(g, "early", early);
    ck_ok(attncl_graph_compile(g, NULL));
    return g;
}

static void write_input(attncl_graph *g, float first)
{
    float x[N];
    for (int i = 0; i < N; ++i)
        x[i] = first + (float)i;
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
}

TEST(outputs_are_read_in_the_order_they_are_complete)
{
    attncl_graph *g = chain();
    float late[N], early[N];
    struct early_read reads[] = {{.name = "late", .data = late, .bytes = sizeof late},
                                 {.name = "early", .data = early, .bytes = sizeof early}};

    ck_ok(attncl__early_reads_sort(g, reads, 2));
    ck_assert_str_eq(reads[0].name, "early");
    ck_assert_str_eq(reads[1].name, "late");
    for (int run = 0; run < 3; ++run) {
        bool done = false;
        write_input(g, (float)run);
        memset(late, 0, sizeof late);
        memset(early, 0, sizeof early);
        ck_ok(attncl__graph_run_reading(g, reads, 2));
        while (!done)
            ck_ok(attncl__early_read_is_done(&reads[1], &done));
        ck_ok(attncl__early_read_is_done(&reads[0], &done)); // the queue is in order
        ck_assert(done);
        for (int i = 0; i < N; ++i) {
            const float x = (float)(run + i);
            ck_assert(early[i] == 2 * x && late[i] == 4 * x);
        }
        ck_ok(attncl__early_reads_end(g, reads, 2));
    }
    // All that was begun ends before its memory is given back.
    ck_ok(attncl__graph_run_reading(g, reads, 2));
    ck_ok(attncl__early_reads_end(g, reads, 2));
    attncl_graph_destroy(g);
}

TEST(wrong_reads_are_refused)
{
    attncl_graph *g = chain();
    float data[N];
    struct early_read unknown = {.name = "other", .data = data, .bytes = sizeof data};
    struct early_read cut = {.name = "late", .data = data, .bytes = sizeof data - 4};

    ck_fails(attncl__early_reads_sort(g, &unknown, 1), ATTNCL_ERR_ARGUMENT, "no output other");
    ck_fails(attncl__graph_run_reading(g, &unknown, 1), ATTNCL_ERR_ARGUMENT, "no output other");
    ck_fails(attncl__graph_run_reading(g, &cut, 1), ATTNCL_ERR_ARGUMENT, "has 256 bytes");
    cut.bytes = sizeof data;
    cl_int code;
    cl_mem mem =
        clCreateBuffer(test_context()->cl, CL_MEM_READ_WRITE, 2 * sizeof data, NULL, &code);
    ck_ok(attncl_graph_bind(g, "x", mem, 7));
    ck_fails(attncl__graph_run_reading(g, &cut, 1), ATTNCL_ERR_STATE, "bound to a caller's");
    clReleaseMemObject(mem);
    attncl_graph_destroy(g);
}

// SPDX-License-Identifier: MIT
// Contexts: options, children, destroy hooks, forks, adoption.

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attncl/opencl.h"
#include "base/alloc.h"
#include "device/context.h"
#include "support/test.h"

TEST(it_describes_its_device)
{
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;

    ck_ok(attncl_context_device(test_context(), &info));
    ck_assert_uint_gt(strlen(info.name), 0);
    ck_assert_uint_gt(info.compute_units, 0);
    ck_assert_uint_gt(info.max_buffer_bytes, 0);
    ck_assert_int_eq(info.available, 1);
    ck_ok(attncl_context_finish(test_context()));
}

TEST(it_is_not_destroyed_while_a_child_lives)
{
    attncl__context_add_child(test_context(), "graph");
    ck_fails(attncl_context_destroy(test_context()), ATTNCL_ERR_STATE, "graph");
    attncl__context_remove_child(test_context());
    ck_ok(attncl_context_finish(test_context()));
}

static void count(void *n)
{
    ++*(int *)n;
}

TEST(what_is_kept_for_a_context_is_told_of_its_end)
{
    attncl_context *ctx = NULL;
    int n = 0;

    ck_ok(attncl_context_create(NULL, &ctx));
    ctx->on_destroy = count;
    ctx->destroy_user = &n;
    ck_ok(attncl_context_destroy(ctx));
    ck_assert_int_eq(n, 1);
}

TEST(a_fork_is_refused)
{
    int status = -1;
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
        // The driver is not touched: every call stops at the process check.
        _exit(attncl_context_finish(test_context()) == ATTNCL_ERR_STATE &&
                      attncl_context_device(test_context(), &info) == ATTNCL_ERR_STATE &&
                      attncl_context_destroy(test_context()) == ATTNCL_ERR_STATE
                  ? 0
                  : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

TEST(options_are_checked)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;

    ck_fails(attncl_context_create(NULL, NULL), ATTNCL_ERR_ARGUMENT, "NULL");
    options.struct_size = 0;
    ck_fails(attncl_context_create(&options, &ctx), ATTNCL_ERR_ARGUMENT, "struct_size");
    options.struct_size = sizeof options;
    options.precision = (attncl_precision)4;
    ck_fails(attncl_context_create(&options, &ctx), ATTNCL_ERR_ARGUMENT,
             "precision is 4, it can be 0 to 3");
    // A caller compiled when the struct ended after `device`.
    options.struct_size = sizeof(size_t) + sizeof(char *);
    options.profile = 1;
    ck_ok(attncl_context_create(&options, &ctx));
    ck_assert(!ctx->profile);
    ck_ok(attncl_context_destroy(ctx));
    ck_ok(attncl_context_destroy(NULL));
}

TEST(it_adopts_the_callers_objects)
{
    attncl_context *own = test_context(), *ctx = NULL;
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    cl_int code;
    cl_command_queue out_of_order =
        clCreateCommandQueue(own->cl, own->device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);

    ck_ok(attncl_context_adopt(own->cl, own->device, own->queue, NULL, &ctx));
    ck_ok(attncl_context_device(ctx, &info));
    ck_assert_str_eq(info.name, own->info.name);
    ck_assert_int_eq(info.device, own->info.device);
    ck_ok(attncl_context_destroy(ctx));
    ck_ok(attncl_context_finish(own)); // still usable

    ctx = NULL;
    ck_fails(attncl_context_adopt(own->cl, NULL, own->queue, NULL, &ctx), ATTNCL_ERR_ARGUMENT,
             "NULL");
    if (out_of_order) { // not every device has them
        ck_fails(attncl_context_adopt(own->cl, own->device, out_of_order, NULL, &ctx),
                 ATTNCL_ERR_ARGUMENT, "out-of-order");
        clReleaseCommandQueue(out_of_order);
    }
    cl_context other = clCreateContext(NULL, 1, &own->device, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_fails(attncl_context_adopt(other, own->device, own->queue, NULL, &ctx), ATTNCL_ERR_ARGUMENT,
             "another OpenCL context");
    clReleaseContext(other);
    ck_assert_ptr_null(ctx);
}

TEST(short_of_memory_nothing_is_left_behind)
{
    const size_t heap_before = attncl__alloc_live();
    struct object_counts before, after;

    attncl__objects_count(&before);
    for (size_t n = 1;; ++n) {
        attncl_context *ctx = NULL;

        attncl__alloc_fail_at(n);
        const attncl_status status = attncl_context_create(NULL, &ctx);
        const int failed = attncl__alloc_has_failed();
        attncl__alloc_fail_at(0);
        // A missing text of a device's description is no failure.
        ck_assert(status == ATTNCL_OK || (failed && !ctx));
        ck_ok(attncl_context_destroy(ctx));
        attncl__objects_count(&after);
        ck_assert_mem_eq(before.live, after.live, sizeof before.live);
        ck_assert_uint_eq(attncl__alloc_live(), heap_before);
        if (!failed)
            break;
    }
}

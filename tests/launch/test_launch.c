// SPDX-License-Identifier: MIT
// Launching kernels from a test directory: arguments, limits, rebinding, object counts.

#include <string.h>

#include "device/context.h"
#include "launch/command_list.h"
#include "launch/launch.h"
#include "support/directory.h"
#include "support/launch_mock.h"
#include "support/test.h"

NO_DEVICE;

enum { N = 100, LOCAL = 4 };

// dst[i] = a * src[i] + b + c; `none` is an absent buffer.
static const char source[] =
    "#include \"common/twice.clh\"\n"
    "__kernel void probe_axpb_fwd(__global const float *src, __global float *dst,\n"
    "                             __global const float *none, __local float *tmp, float a,\n"
    "                             long b, int c)\n"
    "{\n"
    "    const int i = get_global_id(0);\n"
    "    tmp[get_local_id(0)] = src[i];\n"
    "    dst[i] = a * tmp[get_local_id(0)] + (float)b + (float)(c * TWICE(OFFSET));\n"
    "}\n"
    "__kernel void probe_hog_fwd(__global float *dst)\n"
    "{\n"
    "    __local float tmp[HOG];\n"
    "    tmp[get_local_id(0)] = 1;\n"
    "    dst[get_global_id(0)] = tmp[get_local_id(0)];\n"
    "}\n";

static void sources_up(void)
{
    setenv("ATTNCL_CL_DIR", directory_up(), 1);
    directory_write("probe.cl", source);
    directory_write("common/twice.clh", "#define TWICE(x) (2 * (x))\n");
    directory_write("broken.cl",
                    "\n__kernel void broken_fwd(__global float *x)\n{\n    x[0] = nothing;\n}\n");
    device_up();
}

static void sources_down(void)
{
    device_down();
    directory_down();
}

static struct command_list command_list;
static struct launcher launcher;
static struct storage src, dst;

static void set_up(void)
{
    float x[N];

    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    ck_ok(attncl__command_list_begin(test_context(), &command_list));
    launcher = (struct launcher){.caps = &test_context()->caps, .command_list = &command_list};
    src.bytes = dst.bytes = sizeof x;
    ck_ok(attncl__buffer_create(test_context(), sizeof x, &src.mem));
    ck_ok(attncl__buffer_create(test_context(), sizeof x, &dst.mem));
    ck_ok(attncl__buffer_write(test_context(), src.mem, 0, x, sizeof x));
    ck_ok(attncl__buffer_fill(test_context(), dst.mem, 0x7fc00000u, 0, sizeof x));
}

static void tear_down(void)
{
    attncl__command_list_free(&command_list);
    attncl__buffer_release(&src.mem);
    attncl__buffer_release(&dst.mem);
}

static struct kspec probe(void)
{
    struct kspec spec = kspec_begin("probe.cl", "probe_axpb_fwd");

    kspec_int(&spec, "OFFSET", 3);
    kspec_int(&spec, "HOG", 1);
    return spec;
}

enum { N_ARGS = 7 };

static attncl_status launch_args(const struct arg args[N_ARGS])
{
    const struct kspec spec = probe();

    return attncl__launch(&launcher, &spec, grid_1d(N / LOCAL, LOCAL), args, N_ARGS);
}

static attncl_status launch_probe(float a, int64_t b, int64_t c)
{
    return launch_args((const struct arg[N_ARGS]){
        arg_mem((struct span){&src}), arg_mem((struct span){&dst}), arg_mem((struct span){NULL}),
        arg_local(LOCAL * sizeof(float)), arg_f32(a), arg_i64(b), arg_i32(c)});
}

// dst = scale * i + offset?
static void check(struct storage *where, float scale, float offset)
{
    float y[N];

    ck_ok(attncl__buffer_read(test_context(), where->mem, 0, y, sizeof y));
    for (int i = 0; i < N; ++i)
        ck_assert_float_eq(y[i], scale * (float)i + offset);
}

FIXTURE_ONCE(sources_up, sources_down);
FIXTURE(set_up, tear_down);

TEST(arguments_reach_the_kernel)
{
    ck_ok(launch_probe(2.0f, 1000, 7));
    ck_assert_uint_eq(command_list.n_commands, 1);
    ck_assert_str_eq(command_list.commands[0].name, "probe_axpb_fwd");
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    check(&dst, 2, 1042);
}

TEST(an_argument_of_another_kind_is_named)
{
    const struct span from = {&src}, to = {&dst}, none = {NULL};
    struct arg args[N_ARGS] = {arg_mem(from), arg_mem(to), arg_mem(none), arg_local(LOCAL),
                               arg_f32(1),    arg_i64(2),  arg_i32(3)};
    static const char *const expected[N_ARGS - 1] = {
        NULL,
        NULL,
        "argument 2 (none): the kernel takes memory, the host passes local memory",
        "argument 3 (tmp): the kernel takes local memory, the host passes float",
        "argument 4 (a): the kernel takes float, the host passes long",
        "argument 5 (b): the kernel takes long, the host passes int",
    };

    setenv("ATTNCL_GUARD", "1", 1);
    for (int i = 2; i < N_ARGS - 1; ++i) { // one changes places with the next
        const struct arg first = args[i];
        args[i] = args[i + 1];
        args[i + 1] = first;
        ck_fails(launch_args(args), ATTNCL_ERR_STATE, expected[i]);
        args[i + 1] = args[i];
        args[i] = first;
    }
    ck_assert_uint_eq(command_list.n_commands, 0);
}

TEST(an_empty_grid_appends_nothing)
{
    const struct kspec spec = probe();

    ck_ok(attncl__launch(&launcher, &spec, grid_1d(0, LOCAL), NULL, 0));
    ck_assert_uint_eq(command_list.n_commands, 0);
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
}

TEST(rebinding_exchanges_the_buffer)
{
    struct storage other = {.bytes = dst.bytes};
    cl_mem first = dst.mem;

    ck_ok(attncl__buffer_create(test_context(), other.bytes, &other.mem));
    ck_ok(launch_probe(1.0f, 0, 0));
    dst.mem = other.mem;
    ck_ok(attncl__command_list_rebind(&command_list, &dst));
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    check(&other, 1, 0);
    dst.mem = first;
    attncl__buffer_release(&other.mem);
}

static attncl_status fill_two(attncl_context *ctx, void *user, cl_event *event)
{
    (void)event; // gives none
    return attncl__buffer_fill(ctx, ((struct storage *)user)->mem, 0x40000000u, 0,
                               sizeof(float) * N);
}

TEST(copies_calls_and_events)
{
    struct storage third = {.bytes = dst.bytes};
    cl_event events[3], wait = NULL, last = NULL;

    ck_ok(attncl__buffer_create(test_context(), third.bytes, &third.mem));
    ck_ok(attncl__command_list_add_call(&command_list, "two", fill_two, &src, NULL));
    ck_ok(launch_probe(1.0f, 5, 0)); // dst = 2 + 5
    ck_ok(attncl__command_list_add_copy(&command_list, "copy", &dst, 0, &third, 0, dst.bytes));
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, &wait));
    ck_ok(attncl__command_list_enqueue(&command_list, 1, &wait, events, &last));
    ck_assert_int_eq(clWaitForEvents(1, &last), CL_SUCCESS);
    ck_assert_ptr_null(events[0]);
    ck_assert_ptr_nonnull(events[1]);
    ck_assert_ptr_nonnull(events[2]);
    check(&third, 0, 7);
    for (int i = 0; i < 3; ++i)
        attncl__event_release(&events[i]);
    attncl__event_release(&wait);
    attncl__event_release(&last);
    attncl__buffer_release(&third.mem);
}

// Whatever waits flushes too.
static int n_flushes;

static cl_int count_flush(cl_command_queue queue)
{
    (void)queue;
    n_flushes++;
    return CL_SUCCESS;
}

TEST(what_takes_long_is_flushed_in_parts)
{
    size_t first = 0;

    launch_mock_flush = count_flush;
    for (int i = 0; i < 10; ++i)
        ck_ok(launch_probe(1.0f, i, 0));
    n_flushes = 0;
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    ck_assert_int_eq(n_flushes, 1); // no estimate
    attncl__command_list_set_seconds(&command_list, 0, 1.0);
    n_flushes = 0;
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    ck_assert_int_eq(n_flushes, 5 + 1); // every 0.2 s, and in the end
    n_flushes = 0;
    ck_ok(attncl__command_list_enqueue_nodes(&command_list, &first, 0));
    ck_assert_int_eq(n_flushes, 5 + 1);
    check(&dst, 1, 9);

    // Of the last two, which take 0.15 s each, the second passes the limit.
    attncl__command_list_set_seconds(&command_list, 0, 0.0);
    attncl__command_list_set_seconds(&command_list, 8, 0.3);
    n_flushes = 0;
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    ck_assert_int_eq(n_flushes, 1 + 1);
    launch_mock_flush = NULL;
}

TEST(a_gpu_counts_work_items_with_ints)
{
    const struct kspec spec = probe();
    static struct device_caps caps; // the launcher keeps it
    const struct arg args[] = {arg_mem((struct span){&src})};

    caps = *launcher.caps;
    caps.is_gpu = true;
    launcher.caps = &caps;
    for (int axis = 0; axis < 3; ++axis) {
        struct grid grid = grid_1d(1, 1);
        grid.groups[axis] = (size_t)1 << 30;
        grid.local[axis] = 2;
        ck_fails(attncl__launch(&launcher, &spec, grid, args, 1), ATTNCL_ERR_UNSUPPORTED,
                 "1073741824 work-groups of 2 work-items overflow the device's 2147483647");
    }
    ck_assert_uint_eq(command_list.n_commands, 0);
}

TEST(a_broken_kernel_gives_the_compilers_line)
{
    struct object_counts before, after;
    const struct kspec spec = kspec_begin("broken.cl", "broken_fwd");

    if (launcher.caps->vendor == VENDOR_OCLGRIND) // reports the failed build as a finding
        return;
    for (int i = 0; i < 2; ++i) {
        ck_fails(
            attncl__launch(&launcher, &spec, grid_1d(1, 1), ARGS(arg_mem((struct span){&dst}))),
            ATTNCL_ERR_COMPILE, "broken.cl");
        ck_assert_ptr_nonnull(strstr(attncl_last_error(), "nothing"));
        attncl__objects_count(i == 0 ? &before : &after);
    }
    // The second refusal came from memory.
    ck_assert_int_eq(before.created[OBJECT_PROGRAM], after.created[OBJECT_PROGRAM]);
    ck_assert_uint_eq(command_list.n_commands, 0);
    ck_assert(!attncl__kernel_fits(&launcher, &spec, 1, false));
}

TEST(what_does_not_fit_is_unsupported)
{
    struct kspec hog = kspec_begin("probe.cl", "probe_hog_fwd");
    struct device_caps small = *launcher.caps;
    static struct arg many[5000];
    size_t max = 0;

    kspec_int(&hog, "OFFSET", 0);
    kspec_int(&hog, "HOG", 1024);
    ck_assert(attncl__kernel_fits(&launcher, &hog, 1, false));
    ck_assert(!attncl__kernel_fits(&launcher, &hog, (size_t)1 << 20, false));
    ck_fails(attncl__launch(&launcher, &hog, grid_1d(1, (size_t)1 << 20),
                            ARGS(arg_mem((struct span){&dst}))),
             ATTNCL_ERR_UNSUPPORTED, "work-items");
    setenv("TEST_KERNEL_GROUP", "2", 1); // smaller work-groups would do, and the op is told so
    ck_fails(launch_probe(1.0f, 0, 0), ATTNCL_ERR_UNSUPPORTED, "the device can run 2");
    unsetenv("TEST_KERNEL_GROUP");
    ck_assert(launcher.refusal.refused && launcher.refusal.max_group == 2);
    // Pointers and longs.
    ck_ok(attncl__device_max_argument_bytes(test_context(), &max));
    for (size_t k = 0; k < 2; ++k) {
        const size_t each = k ? 8 : launcher.caps->address_bits / 8, n = max / each + 1;
        ck_assert_uint_le(n, COUNT_OF(many));
        for (size_t i = 0; i < n; ++i)
            many[i] = k ? arg_i64(0) : arg_mem((struct span){NULL});
        launcher.refusal = (struct launch_refusal){false, 1};
        ck_fails(attncl__launch(&launcher, &hog, grid_1d(1, 1), many, n), ATTNCL_ERR_UNSUPPORTED,
                 "bytes of arguments, the device allows");
        ck_assert(launcher.refusal.refused && launcher.refusal.max_group == 0);
    }
    // The probe takes LOCAL floats of local memory.
    small.local_bytes = LOCAL * sizeof(float) - 1;
    launcher.caps = &small;
    launcher.refusal = (struct launch_refusal){false, 1};
    ck_fails(launch_probe(1.0f, 0, 0), ATTNCL_ERR_UNSUPPORTED,
             "bytes of local memory, the device has 15"); // some drivers add a few of their own
    ck_assert(launcher.refusal.refused && launcher.refusal.max_group == 0);
    ck_fails(
        attncl__launch(&launcher, &hog, grid_1d(INT64_MAX, 4), ARGS(arg_mem((struct span){&dst}))),
        ATTNCL_ERR_UNSUPPORTED, "overflow");
    small.address_bits = 32;
    ck_fails(attncl__launch(&launcher, &hog, grid_1d((int64_t)1 << 31, 2),
                            ARGS(arg_mem((struct span){&dst}))),
             ATTNCL_ERR_UNSUPPORTED, "overflow");
    ck_assert_uint_eq(command_list.n_commands, 0);
}

TEST(group_sizes_for_rows)
{
    struct device_caps caps = {.max_group = 256};

    ck_assert_uint_eq(attncl__group_for_row(&caps, 0), 32);
    ck_assert_uint_eq(attncl__group_for_row(&caps, 128), 32);
    ck_assert_uint_eq(attncl__group_for_row(&caps, 129), 64);
    ck_assert_uint_eq(attncl__group_for_row(&caps, INT64_MAX), 256);
    caps.max_group = 100;
    ck_assert_uint_eq(attncl__group_for_row(&caps, 1000), 64);
    for (caps.max_group = 1; caps.max_group <= 4; ++caps.max_group)
        ck_assert_uint_eq(attncl__group_for_row(&caps, 1000), caps.max_group < 4 ? 1 : 4);
}

TEST(a_cap_of_iterations)
{
    static struct tune_table tuned;
    struct device_caps caps = {.max_loop_iterations = 0, .tuned = &tuned};

    tuned.entries[0][0].line = 1;
    ck_ok(attncl__check_loops(&caps, "probe", INT64_MAX));
    ck_assert_ptr_nonnull(attncl__tuned(&caps, 0, 0));
    caps.max_loop_iterations = 100;
    ck_ok(attncl__check_loops(&caps, "probe", 99));
    ck_fails(attncl__check_loops(&caps, "probe", 100), ATTNCL_ERR_UNSUPPORTED, "stops at 100");
    ck_assert_ptr_null(attncl__tuned(&caps, 0, 0)); // its tiles follow from exact counts
}

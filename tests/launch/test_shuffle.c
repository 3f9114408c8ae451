// SPDX-License-Identifier: MIT
// Reductions over a work-group by shuffles, local memory standing for them: every work-item gets the bits that it gets
// without; those of extensions, where the device has them; the comparison at first use, and what of it is kept.

#include <math.h>
#include <string.h>

#include "launch/command_list.h"
#include "launch/shuffle_choice.h"
#include "support/directory.h"
#include "support/sources.h"
#include "support/test.h"

enum { MAX_GROUP = 256, LANES = 128 }; // of the comparison: two sizes of work-groups

static const char probe[] = "#include \"common/reduce.clh\"\n"
                            "KERNEL void probe_reduce(__global const float *x, __global float *y)\n"
                            "{\n"
                            "    GROUP_SPACE(tmp);\n"
                            "    const int i = (int)get_local_id(0);\n"
                            "    y[i] = GROUP_SUM(x[i], tmp);\n"
                            "    y[LS + i] = GROUP_MAX(x[LS + i], tmp);\n"
                            "}\n";

static attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

static void up(void)
{
    static char path[FILE_BYTES];
    directory_begin();
    options.cache_dir = directory_path("cache", path);
    setenv("ATTNCL_CACHE", "rw", 1);
}

static void down(void)
{
    unsetenv("ATTNCL_CL_DIR");
    unsetenv("ATTNCL_SHUFFLE");
    setenv("ATTNCL_CACHE", "off", 1);
    directory_end();
}

FIXTURE(up, down);

static attncl_context *open_context(void)
{
    attncl_context *ctx = NULL;
    ck_ok(attncl_context_create(&options, &ctx));
    return ctx;
}

static struct device_caps describe(const attncl_context *ctx, enum lane_shuffle shuffle,
                                   unsigned lanes)
{
    struct device_caps caps = ctx->caps;

    caps.variant = VARIANT_GPU;
    caps.vector_width = 4;
    caps.shuffle_candidate = shuffle;
    caps.shuffle_lanes = lanes;
    return caps;
}

static void reduce(attncl_context *ctx, const struct device_caps *caps, size_t group,
                   float y[2 * MAX_GROUP])
{
    struct command_list list;
    struct launcher l = {.caps = caps, .command_list = &list};
    struct kspec spec = kspec_begin("probe.cl", "probe_reduce");
    struct storage in = {.bytes = 2 * group * sizeof(float)}, out = in;
    float x[2 * MAX_GROUP];

    for (size_t i = 0; i < 2 * group; ++i)
        x[i] = ldexpf((float)(i * 7919 % 1009) - 500.3f, (int)(i % 13) - 6);
    kspec_set_vw_ls(&spec, 1, group);
    ck_ok(attncl__buffer_create(ctx, in.bytes, &in.mem));
    ck_ok(attncl__buffer_create(ctx, out.bytes, &out.mem));
    ck_ok(attncl__buffer_write(ctx, in.mem, 0, x, in.bytes));
    ck_ok(attncl__command_list_begin(ctx, &list));
    ck_ok(attncl__launch(&l, &spec, grid_1d(1, group),
                         ARGS(arg_mem((struct span){&in}), arg_mem((struct span){&out}))));
    ck_ok(attncl__command_list_enqueue(&list, 0, NULL, NULL, NULL));
    ck_ok(attncl__buffer_read(ctx, out.mem, 0, y, out.bytes));
    attncl__command_list_free(&list);
    attncl__buffer_release(&in.mem);
    attncl__buffer_release(&out.mem);
}

static const struct {
    unsigned lanes;
    size_t group;
} sizes[] = {{8, 4}, {8, 8}, {8, 16}, {8, 128}, {32, 32}, {64, 256}};

TABLE_TEST(every_work_item_gets_the_same_bits, sizes)
{
    sources_write("common/shuffle.clh", "x", "x");
    directory_write("probe.cl", probe);
    attncl_context *ctx = open_context();
    struct device_caps caps = describe(ctx, SHUFFLE_EMULATED, sizes[_i].lanes);
    const size_t group = sizes[_i].group;
    float expected[2 * MAX_GROUP], found[2 * MAX_GROUP];

    if (group <= caps.max_group) {
        reduce(ctx, &caps, group, expected);
        for (size_t i = 0; i < group; ++i)
            ck_assert_float_eq(expected[i], expected[0]);
        caps.shuffle = SHUFFLE_EMULATED;
        reduce(ctx, &caps, group, found);
        ck_assert_mem_eq(found, expected, 2 * group * sizeof(float));
    }
    ck_ok(attncl_context_destroy(ctx));
}

static void check_judged(enum lane_shuffle shuffle, const char *words)
{
    attncl_context *ctx = open_context();
    const struct device_caps caps = describe(ctx, shuffle, LANES);
    char failed[FINDING_BYTES] = "nothing was written";

    if (caps.max_group >= LANES) {
        ck_ok(attncl__shuffle_judge(ctx, &caps, failed));
        if (words)
            ck_assert_msg(strstr(failed, words) != NULL, "\"%s\" lacks \"%s\"", failed, words);
        else
            ck_assert_str_eq(failed, "");
    }
    ck_ok(attncl_context_destroy(ctx));
}

TEST(right_ones_pass)
{
    check_judged(SHUFFLE_EMULATED, NULL);
}

TEST(what_the_compiler_does_not_know_fails)
{
    check_judged(SHUFFLE_AMD, "does not build");
}

// By extensions, 16 lanes as lib/device/caps.c takes them: right on devices that have them.
static const enum lane_shuffle extensions[] = {SHUFFLE_INTEL, SHUFFLE_KHR};

TABLE_TEST(extensions_are_right_or_do_not_build, extensions)
{
    enum { SUB_GROUP = 16 };
    setenv("ATTNCL_VARIANT", "gpu", 1);
    attncl_context *ctx = open_context();
    unsetenv("ATTNCL_VARIANT");
    const bool has = ctx->caps.shuffle_candidate == extensions[_i];
    const struct device_caps caps = describe(ctx, extensions[_i], SUB_GROUP);
    char failed[FINDING_BYTES] = "nothing was written";

    if (has)
        ck_assert_uint_eq(ctx->caps.shuffle_lanes, SUB_GROUP);
    if (caps.max_group >= SUB_GROUP) {
        ck_ok(attncl__shuffle_judge(ctx, &caps, failed));
        if (has || *failed == '\0')
            ck_assert_str_eq(failed, "");
        else
            ck_assert_str_eq(failed, "its kernel does not build");
    }
    ck_ok(attncl_context_destroy(ctx));
}

static const char *const mistakes[] = {"(i ^ 1)", "(i ^ (distance / 2))"};

TABLE_TEST(wrong_ones_fail, mistakes)
{
    sources_write("common/shuffle.clh", "(i ^ distance)", mistakes[_i]);
    check_judged(SHUFFLE_EMULATED, "differ from local memory's");
}

// In a new context each time.
static enum lane_shuffle chosen(void)
{
    attncl_context *ctx = open_context();
    struct device_caps caps = describe(ctx, SHUFFLE_EMULATED, LANES);

    attncl__choose_shuffle(ctx, &caps);
    ck_ok(attncl_context_destroy(ctx));
    return caps.shuffle;
}

TEST(the_choice_is_kept)
{
    ck_assert_int_eq(chosen(), SHUFFLE_EMULATED);
    setenv("ATTNCL_SHUFFLE", "off", 1);
    ck_assert_int_eq(chosen(), SHUFFLE_NONE);
    unsetenv("ATTNCL_SHUFFLE");
    attncl_context *ctx = open_context();
    char failed[FINDING_BYTES] = "nothing was written";
    ck_assert(attncl__finding_read(ctx, "shuffle", failed));
    ck_assert_str_eq(failed, "");
    ck_ok(attncl__finding_keep(ctx, "shuffle", "it is known to be wrong"));
    ck_ok(attncl_context_destroy(ctx));
    ck_assert_int_eq(chosen(), SHUFFLE_NONE);
}

// SPDX-License-Identifier: MIT
// Reductions over a work-group or a row by shuffles, local memory standing for them: every work-item gets the bits that it gets
// without; what AMD's are composed of.

#include <math.h>
#include <string.h>

#include "launch/command_list.h"
#include "support/directory.h"
#include "support/sources.h"
#include "support/test.h"

enum { MAX_GROUP = 256, ROW_SUMS = 8 };

static const char probe[] = "#include \"common/reduce.clh\"\n"
                            "KERNEL void probe_reduce(__global const float *x, __global float *y)\n"
                            "{\n"
                            "    GROUP_SPACE(tmp);\n"
                            "    const int i = (int)get_local_id(0);\n"
                            "    y[i] = GROUP_SUM(x[i], tmp);\n"
                            "    y[LS + i] = GROUP_MAX(x[LS + i], tmp);\n"
                            "}\n";

static const char row_probe[] =
    "#include \"common/row_tiling.clh\"\n"
    "KERNEL void probe_rows(__global const float *x, __global float *y)\n"
    "{\n"
    "    ROW_REDUCE_LOCALS(tmp, 8);\n"
    "    const int i = (int)get_local_id(0);\n"
    "    const float a = x[i], b = x[LS + i];\n"
    "    const float2 two = row_reduce_sum2((float2)(b, a), ROW_REDUCE_SLOT(tmp, 1));\n"
    "    const float4 four = row_reduce_sum4((float4)(a, b, 2 * a, -b), ROW_REDUCE_SLOT(tmp, 3));\n"
    "    y[i] = row_reduce_sum(a, ROW_REDUCE_SLOT(tmp, 0));\n"
    "    y[LS + i] = row_reduce_max(b, ROW_REDUCE_SLOT(tmp, 7));\n"
    "    vstore2(two, i, y + 2 * LS);\n"
    "    vstore4(four, i, y + 4 * LS);\n"
    "}\n";

FIXTURE(findings_up, findings_down);

static struct device_caps describe(const attncl_context *ctx, unsigned lanes)
{
    struct device_caps caps = ctx->caps;

    sources_emulate = true;
    caps.variant = VARIANT_GPU;
    caps.vector_width = 4;
    caps.shuffle_lanes = lanes;
    return caps;
}

static void numbers(float *x, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        x[i] = ldexpf((float)(i * 7919 % 1009) - 500.3f, (int)(i % 13) - 6);
}

// y: n_out floats, of 2 numbers for each work-item.
static void run(attncl_context *ctx, const struct device_caps *caps, const struct kspec *spec,
                size_t group, float *y, size_t n_out)
{
    struct command_list list;
    struct launcher l = {.caps = caps, .command_list = &list};
    struct storage in = {.bytes = 2 * group * sizeof(float)},
                   out = {.bytes = n_out * sizeof(float)};
    float x[2 * MAX_GROUP];

    numbers(x, 2 * group);
    ck_ok(attncl__buffer_create(ctx, in.bytes, &in.mem));
    ck_ok(attncl__buffer_create(ctx, out.bytes, &out.mem));
    ck_ok(attncl__buffer_write(ctx, in.mem, 0, x, in.bytes));
    ck_ok(attncl__command_list_begin(ctx, &list));
    ck_ok(attncl__launch(&l, spec, grid_1d(1, group),
                         ARGS(arg_mem((struct span){&in}), arg_mem((struct span){&out}))));
    ck_ok(attncl__command_list_enqueue(&list, 0, NULL, NULL, NULL));
    ck_ok(attncl__buffer_read(ctx, out.mem, 0, y, out.bytes));
    attncl__command_list_free(&list);
    attncl__buffer_release(&in.mem);
    attncl__buffer_release(&out.mem);
}

static void reduce(attncl_context *ctx, const struct device_caps *caps, size_t group,
                   float y[2 * MAX_GROUP])
{
    struct kspec spec = kspec_begin("probe.cl", "probe_reduce");

    kspec_set_vw_ls(&spec, 1, group);
    run(ctx, caps, &spec, group, y, 2 * group);
}

static const enum lane_shuffle emulated[] = {SHUFFLE_KHR, SHUFFLE_AMD};

static const struct {
    unsigned lanes;
    size_t group;
} sizes[] = {{8, 4}, {8, 8}, {8, 16}, {8, 128}, {32, 32}, {64, 256}};

TABLE_TEST(every_work_item_gets_the_same_bits, sizes)
{
    sources_write("common/shuffle.clh", "x", "x");
    directory_write("probe.cl", probe);
    attncl_context *ctx = findings_context();
    struct device_caps caps = describe(ctx, sizes[_i].lanes);
    const size_t group = sizes[_i].group;
    float expected[2 * MAX_GROUP], found[2 * MAX_GROUP];

    if (group <= caps.max_group) {
        reduce(ctx, &caps, group, expected);
        for (size_t i = 0; i < group; ++i)
            ck_assert_float_eq(expected[i], expected[0]);
        for (size_t k = 0; k < COUNT_OF(emulated); ++k) {
            caps.shuffle = emulated[k];
            reduce(ctx, &caps, group, found);
            ck_assert_mem_eq(found, expected, 2 * group * sizeof(float));
        }
    }
    ck_ok(attncl_context_destroy(ctx));
}

// All work-items of a row have its sums and its largest.
static void check_rows(const float *y, size_t group, int per_row)
{
    float x[2 * MAX_GROUP];

    numbers(x, 2 * group);
    for (size_t first = 0; first < group; first += (size_t)per_row) {
        double sum[2] = {0}, size[2] = {0};
        float largest = -INFINITY;
        for (size_t i = first; i < first + (size_t)per_row; ++i) {
            for (size_t k = 0; k < 2; ++k) {
                sum[k] += (double)x[k * group + i];
                size[k] += fabs((double)x[k * group + i]);
            }
            largest = fmaxf(largest, x[group + i]);
        }
        // Each of the tree's log2(per_row) additions rounds once.
        const double slack = 0x1p-24 * log2(per_row);
        for (size_t i = first; i < first + (size_t)per_row; ++i) {
            const float *two = y + 2 * group + 2 * i, *four = y + 4 * group + 4 * i;
            ck_assert_float_eq(y[group + i], largest);
            ck_assert_double_le(fabs(y[i] - sum[0]), slack * size[0]);
            ck_assert_double_le(fabs(two[0] - sum[1]), slack * size[1]);
            const float again[5] = {two[1], four[0], four[2] / 2, four[1], -four[3]};
            for (int k = 0; k < 5; ++k)
                ck_assert_float_eq(again[k], k < 3 ? y[i] : two[0]);
            ck_assert_float_eq(y[i], y[first]);
            ck_assert_float_eq(two[0], y[2 * group + 2 * first]);
        }
    }
}

static const struct {
    unsigned lanes;
    size_t group;
    int per_row;
} rows[] = {{8, 4, 4},     {16, 64, 4},    {16, 16, 8},    {32, 128, 16},  {32, 64, 32},
            {32, 128, 64}, {64, 128, 64},  {16, 128, 128}, {32, 128, 128}, {64, 64, 8},
            {8, 128, 128}, {64, 256, 256}, {8, 256, 256},  {16, 256, 128}};

TABLE_TEST(every_work_item_gets_the_same_bits_of_its_row, rows)
{
    sources_write("common/shuffle.clh", "x", "x");
    directory_write("probe.cl", row_probe);
    attncl_context *ctx = findings_context();
    struct device_caps caps = describe(ctx, rows[_i].lanes);
    struct kspec spec = kspec_begin("probe.cl", "probe_rows");
    const size_t group = rows[_i].group;
    static float expected[ROW_SUMS * MAX_GROUP], found[ROW_SUMS * MAX_GROUP];

    kspec_set_vw_ls(&spec, 1, group);
    kspec_int(&spec, "LANES_PER_ROW", rows[_i].per_row);
    kspec_int(&spec, "VECS_PER_LANE", 1);
    if (group <= caps.max_group) {
        run(ctx, &caps, &spec, group, expected, ROW_SUMS * group);
        check_rows(expected, group, rows[_i].per_row);
        for (size_t k = 0; k < COUNT_OF(emulated); ++k) {
            caps.shuffle = emulated[k];
            run(ctx, &caps, &spec, group, found, ROW_SUMS * group);
            ck_assert_mem_eq(found, expected, ROW_SUMS * group * sizeof(float));
        }
    }
    ck_ok(attncl_context_destroy(ctx));
}

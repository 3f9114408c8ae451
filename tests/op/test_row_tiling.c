// SPDX-License-Identifier: MIT
// How many work-items share a row on which GPU, and what happens when they do not fit: on devices
// that are only described.

#include "op/op.h"
#include "op/row_launch.h"
#include "support/launch_mock.h"
#include "support/test.h"

NO_DEVICE;

static struct {
    int n_asked, n_refuse; // the first n_refuse variants asked for do not fit
    bool spills;           // no variant has all its values in registers
} seen;

static bool fake_fits(const struct kspec *spec, bool no_spills)
{
    (void)spec;
    return ++seen.n_asked > seen.n_refuse && !(seen.spills && no_spills);
}

static struct row_launch choose(const struct device_caps *caps, struct row_problem work)
{
    static const struct launch_mock mock = {.is_launchable = fake_fits};
    struct launcher l = {.caps = caps};

    launch_mock_set(&mock);
    seen.n_asked = 0;
    work.spec = kspec_begin("norm/softmax.cl", "softmax_rows_fwd");
    return attncl__choose_row_tiling(&l, &work);
}

static void check(const struct row_launch *p, int vw, int lanes_per_row, int vecs_per_lane,
                  size_t group)
{
    char want[128];

    snprintf(want, sizeof want,
             "#define LANES_PER_ROW %d\n#define LS %zu\n#define VECS_PER_LANE %d\n#define VW %d\n",
             lanes_per_row, group, vecs_per_lane, vw);
    ck_assert_str_eq(p->spec.defines, want);
    ck_assert_uint_eq(p->grid.local[0], group);
    ck_assert_int_eq((int)p->rows_per_group, (int)group / lanes_per_row);
}

enum { MANY = 65536 };

// Two work-groups for each multiprocessor, of a warp at least.
TEST(few_rows_are_spread)
{
    const struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 100);
    struct row_launch p =
        choose(&caps, (struct row_problem){.rows = 801, .width = 512, .arrays = 1});

    check(&p, 1, 32, 16, 128);
    p = choose(&caps, (struct row_problem){.rows = 400, .width = 512, .arrays = 1});
    check(&p, 1, 32, 16, 64);
    p = choose(&caps,
               (struct row_problem){.rows = 3, .width = 64, .arrays = 1, .float4_aligned = true});
    check(&p, 4, 8, 2, 32);
    ck_assert_uint_eq(p.grid.groups[0], 1);
}

TEST(what_does_not_fit_gives_way)
{
    static const int fallbacks[][2] = {{128, 8}, {256, 4}, {256, 8}, {256, 0}, {64, 0}, {16, 0}};
    const struct row_problem work = {
        .rows = MANY, .width = 4096, .arrays = 1, .float4_aligned = true};
    const struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 100);
    struct row_launch p;

    for (seen.n_refuse = 0; seen.n_refuse < 6; ++seen.n_refuse) {
        const int *row = fallbacks[seen.n_refuse];
        p = choose(&caps, work);
        check(&p, 4, row[0], row[1], (size_t)row[0]);
    }
    p = choose(&caps, work);
    check(&p, 1, 1, 0, 1);
    seen.n_refuse = 0;
    seen.spills = true;
    p = choose(&caps, work);
    check(&p, 4, 128, 8, 128);
    seen.spills = false;
}

TEST(groups_within_the_device)
{
    struct device_caps caps = launch_mock_gpu(VENDOR_OTHER, 1, 100);
    const struct row_problem narrow = {
        .rows = MANY, .width = 60, .arrays = 1, .float4_aligned = true};
    const struct row_problem wide = {
        .rows = MANY, .width = 2000, .arrays = 1, .float4_aligned = true};

    caps.max_group = 64;
    struct row_launch p = choose(&caps, narrow);
    check(&p, 4, 8, 2, 64);
    p = choose(&caps, wide);
    check(&p, 4, 64, 0, 64);
    caps.max_group = 1;
    p = choose(&caps, wide);
    check(&p, 1, 1, 0, 1);
}

TEST(aligned_rows)
{
    ck_assert(attncl__rows_are_float4_aligned(8, &(struct rows){2, 12, 16}));
    ck_assert(!attncl__rows_are_float4_aligned(2, &(struct rows){2, 12, 16}));
    ck_assert(!attncl__rows_are_float4_aligned(8, &(struct rows){2, 10, 16}));
    ck_assert(!attncl__rows_are_float4_aligned(8, &(struct rows){2, 12, 13}));
}

TEST(gpus_count_work_items_with_ints)
{
    const struct device_caps caps = {.variant = VARIANT_GPU,
                                     .is_gpu = true,
                                     .max_group = 256,
                                     .compute_units = 1,
                                     .vector_width = 4};
    const int64_t rows = 100000000, count = (int64_t)1 << 34;
    const struct row_launch r = attncl__row_launch(&caps, "f.cl", "f", rows, 1024);
    const struct elementwise_launch e = attncl__elementwise_launch(&caps, "f.cl", "f", count);

    ck_assert_uint_le(r.grid.groups[0] * r.grid.local[0], INT32_MAX);
    ck_assert_int_ge((int64_t)r.grid.groups[0] * r.rows_per_group, rows);
    ck_assert_uint_le(e.grid.groups[0] * e.grid.local[0], INT32_MAX);
    ck_assert_int_ge((int64_t)e.grid.groups[0] * e.per_group, count);
    ck_assert_int_eq(e.per_group % 1024, 0);
}

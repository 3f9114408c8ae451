// SPDX-License-Identifier: MIT
// How many work-items share a row on which GPU, and what happens when they do not fit: on devices
// that are only described.

#include "op/op.h"
#include "support/test.h"

static struct {
    int n_asked, n_refuse; // the first n_refuse forms asked for do not fit
    bool spills;           // no form has all its values in registers
} seen;

static bool fake_fits(void *user, const struct kspec *spec, size_t local, bool registers)
{
    (void)user;
    (void)spec;
    (void)local;
    return ++seen.n_asked > seen.n_refuse && !(seen.spills && registers);
}

static struct device_caps described(enum device_vendor vendor, unsigned multiple)
{
    return (struct device_caps){.vendor = vendor,
                                .form = FORM_GPU,
                                .is_gpu = true,
                                .compute_units = 100,
                                .max_group = 256,
                                .local_bytes = 32768,
                                .vector_width = 4,
                                .group_multiple = multiple};
}

static struct row_pass choose(const struct device_caps *caps, struct row_work work)
{
    const struct launch_watch watch = {.fits = fake_fits};
    struct launcher l = {.caps = caps, .watch = &watch};

    seen.n_asked = 0;
    work.spec = kspec_begin("op/softmax.cl", "softmax_rows_fwd");
    return attncl__share_rows(&l, &work);
}

static void check(const struct row_pass *p, int vw, int items, int held, size_t group)
{
    char want[128];

    snprintf(want, sizeof want,
             "#define VW %d\n#define LS %zu\n#define ITEMS %d\n#define HELD %d\n", vw, group, items,
             held);
    ck_assert_str_eq(p->spec.defines, want);
    ck_assert_uint_eq(p->grid.local[0], group);
    ck_assert_int_eq((int)p->rows_per_group, (int)group / items);
}

enum { MANY = 65536 };
static const struct {
    enum device_vendor vendor;
    unsigned multiple;
    int64_t width;
    int arrays;
    bool whole;
    int vw, items, held;
    size_t group;
} choices[] = {
    {VENDOR_NVIDIA, 32, 1, 1, false, 1, 8, 8, 128},
    {VENDOR_NVIDIA, 32, 64, 1, true, 4, 8, 2, 128},
    {VENDOR_NVIDIA, 32, 65, 1, false, 1, 16, 8, 128},
    {VENDOR_NVIDIA, 32, 1024, 1, true, 4, 32, 8, 128},
    {VENDOR_AMD, 32, 1024, 1, true, 4, 32, 8, 128},
    {VENDOR_AMD, 64, 1024, 1, true, 4, 64, 4, 256},
    {VENDOR_INTEL, 1, 1024, 1, true, 4, 64, 4, 128},
    {VENDOR_NVIDIA, 32, 1024, 2, true, 4, 64, 4, 128}, // two arrays: half of each
    {VENDOR_NVIDIA, 32, 1024, 4, true, 4, 128, 2, 128},
    {VENDOR_NVIDIA, 32, 64, 0, true, 4, 8, 0, 256}, // nothing kept
    {VENDOR_NVIDIA, 32, 1000, 0, true, 4, 128, 0, 256},
    {VENDOR_NVIDIA, 32, 1025, 1, false, 1, 128, 32, 128},
    {VENDOR_INTEL, 1, 4096, 1, true, 4, 256, 4, 256},
    {VENDOR_OTHER, 1, 8192, 1, true, 4, 256, 8, 256},
    {VENDOR_OTHER, 1, 8192, 2, true, 4, 256, 0, 256},
    {VENDOR_OTHER, 1, 8193, 1, false, 1, 256, 0, 256},
};
enum { N_CHOICES = sizeof choices / sizeof choices[0] };

START_TEST(by_vendor_and_width)
{
    const struct device_caps caps = described(choices[_i].vendor, choices[_i].multiple);
    const struct row_pass p = choose(&caps, (struct row_work){.rows = MANY,
                                                              .width = choices[_i].width,
                                                              .arrays = choices[_i].arrays,
                                                              .whole = choices[_i].whole});

    check(&p, choices[_i].vw, choices[_i].items, choices[_i].held, choices[_i].group);
    ck_assert_uint_eq(p.grid.groups[0], MANY * (size_t)choices[_i].items / choices[_i].group);
}
END_TEST

// Two groups for each multiprocessor, of a warp at least.
START_TEST(few_rows_are_spread)
{
    const struct device_caps caps = described(VENDOR_NVIDIA, 32);
    struct row_pass p = choose(&caps, (struct row_work){.rows = 801, .width = 512, .arrays = 1});

    check(&p, 1, 32, 16, 128);
    p = choose(&caps, (struct row_work){.rows = 400, .width = 512, .arrays = 1});
    check(&p, 1, 32, 16, 64);
    p = choose(&caps, (struct row_work){.rows = 3, .width = 64, .arrays = 1, .whole = true});
    check(&p, 4, 8, 2, 32);
    ck_assert_uint_eq(p.grid.groups[0], 1);
}
END_TEST

START_TEST(what_does_not_fit_gives_way)
{
    static const int ladder[][2] = {{128, 8}, {256, 4}, {256, 8}, {256, 0}, {64, 0}, {16, 0}};
    const struct row_work work = {.rows = MANY, .width = 4096, .arrays = 1, .whole = true};
    const struct device_caps caps = described(VENDOR_NVIDIA, 32);
    struct row_pass p;

    for (seen.n_refuse = 0; seen.n_refuse < 6; ++seen.n_refuse) {
        const int *row = ladder[seen.n_refuse];
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
END_TEST

START_TEST(groups_within_the_device)
{
    struct device_caps caps = described(VENDOR_OTHER, 1);
    const struct row_work narrow = {.rows = MANY, .width = 60, .arrays = 1, .whole = true};
    const struct row_work wide = {.rows = MANY, .width = 2000, .arrays = 1, .whole = true};

    caps.max_group = 64;
    struct row_pass p = choose(&caps, narrow);
    check(&p, 4, 8, 2, 64);
    p = choose(&caps, wide);
    check(&p, 4, 64, 0, 64);
    caps.max_group = 1;
    p = choose(&caps, wide);
    check(&p, 1, 1, 0, 1);
}
END_TEST

START_TEST(aligned_rows)
{
    ck_assert(attncl__rows_are_whole(8, &(struct rows){2, 12, 16}));
    ck_assert(!attncl__rows_are_whole(2, &(struct rows){2, 12, 16}));
    ck_assert(!attncl__rows_are_whole(8, &(struct rows){2, 10, 16}));
    ck_assert(!attncl__rows_are_whole(8, &(struct rows){2, 12, 13}));
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("launch.share_rows");
    TCase *core = tcase_create("core");

    tcase_add_loop_test(core, by_vendor_and_width, 0, N_CHOICES);
    tcase_add_test(core, few_rows_are_spread);
    tcase_add_test(core, what_does_not_fit_gives_way);
    tcase_add_test(core, groups_within_the_device);
    tcase_add_test(core, aligned_rows);
    suite_add_tcase(s, core);
    return s;
}

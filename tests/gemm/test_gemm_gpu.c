// SPDX-License-Identifier: MIT
// Which GPU tiles a GEMM gets, and what happens when they do not fit: on devices that are only
// described.  GEMMs with split-K and, where kernels become code quickly, every vendor's rows run.

#include <math.h>

#include "gemm/gemm_native.h"
#include "launch/command_list.h"
#include "support/launch_mock.h"
#include "support/test.h"

NO_DEVICE;

// What a described device was asked and given.
static struct {
    int n_asked, n_refuse; // the first n_refuse rows asked for do not fit
    bool spills;           // no row has all its values in registers
    char asked[8][64];     // "128x128x16/256", in the order of asking
    char launched[4][64];  // the same, or the kernel's name where it has no tile
    size_t groups[4], splits[4];
    int n_launched;
} seen;

static int macro(const struct kspec *spec, const char *name)
{
    char line[40];
    snprintf(line, sizeof line, "#define %s ", name);
    const char *at = strstr(spec->defines, line);
    return at ? atoi(at + strlen(line)) : 0;
}

static void tile_text(const struct kspec *spec, char text[64])
{
    snprintf(text, 64, "%dx%dx%d/%d", macro(spec, "BM"), macro(spec, "BN"), macro(spec, "BK"),
             macro(spec, "LS"));
}

static bool fake_fits(void *user, const struct kspec *spec, size_t local, bool no_spills)
{
    (void)user;
    (void)local;
    if (strcmp(spec->kernel, "gemm_gpu_tile") != 0)
        return true;
    if (seen.n_asked < 8)
        tile_text(spec, seen.asked[seen.n_asked]);
    return ++seen.n_asked > seen.n_refuse && !(seen.spills && no_spills);
}

static attncl_status fake_launch(void *user, const struct kspec *spec, const struct grid *grid,
                                 size_t local_arg_bytes)
{
    (void)user;
    (void)local_arg_bytes;
    ck_assert_int_lt(seen.n_launched, 4);
    if (macro(spec, "BM"))
        tile_text(spec, seen.launched[seen.n_launched]);
    else
        snprintf(seen.launched[seen.n_launched], 64, "%s", spec->kernel);
    seen.groups[seen.n_launched] = grid->groups[0];
    seen.splits[seen.n_launched++] = grid->groups[1];
    return ATTNCL_OK;
}

static struct device_caps described(enum device_vendor vendor, unsigned multiple, unsigned units)
{
    return (struct device_caps){.vendor = vendor,
                                .variant = VARIANT_GPU,
                                .is_gpu = true,
                                .compute_units = units,
                                .max_group = 256,
                                .local_bytes = 32768,
                                .vector_width = 4,
                                .group_multiple = multiple};
}

static attncl_status choose(const struct device_caps *caps, int64_t m, int64_t n, int64_t k)
{
    static struct storage storage;
    static const struct launch_mock mock = {fake_fits, fake_launch, NULL};
    struct launcher l = {.caps = caps, .gemm = "native"};
    struct gemm g = {.batch = 1, .m = m, .n = n, .k = k};

    seen.n_asked = seen.n_launched = 0;
    g.scratch.storage = &storage;
    g.scratch_bytes = attncl__gemm_scratch(caps, &g);
    launch_mock_set(&mock);
    const attncl_status status = attncl__gemm(&l, &g);
    launch_mock_set(NULL);
    return status;
}

// The larger tile where it gives every multiprocessor two, then smaller ones.
static const struct {
    enum device_vendor vendor;
    unsigned multiple, units;
    int m, n;
    const char *tile;
} choices[] = {
    {VENDOR_NVIDIA, 32, 132, 4096, 4096, "128x128x16/256"},
    {VENDOR_NVIDIA, 32, 132, 1500, 2048, "64x128x16/128"},
    {VENDOR_NVIDIA, 32, 132, 1024, 1024, "64x64x16/128"},
    {VENDOR_NVIDIA, 32, 132, 256, 256, "32x32x32/64"},
    {VENDOR_NVIDIA, 32, 132, 30, 65536, "32x32x32/64"},
    {VENDOR_AMD, 32, 40, 4096, 4096, "128x128x8/128"},
    {VENDOR_AMD, 32, 40, 1024, 1024, "128x64x16/128"},
    {VENDOR_AMD, 32, 40, 512, 640, "64x64x16/64"},
    {VENDOR_AMD, 64, 104, 4096, 4096, "128x128x16/256"},
    {VENDOR_AMD, 64, 104, 1024, 1024, "64x64x16/256"},
    {VENDOR_INTEL, 1, 32, 4096, 4096, "64x64x16/128"},
    {VENDOR_OTHER, 1, 4, 100, 200, "64x64x16/128"},
    {VENDOR_OTHER, 1, 4, 9, 200, "32x32x32/64"},
};
enum { N_CHOICES = sizeof choices / sizeof choices[0] };

LOOP_TEST(rows_by_vendor_and_size, 0, N_CHOICES)
{
    const struct device_caps caps =
        described(choices[_i].vendor, choices[_i].multiple, choices[_i].units);

    ck_ok(choose(&caps, choices[_i].m, choices[_i].n, 100));
    ck_assert_str_eq(seen.launched[0], choices[_i].tile);
    ck_assert_int_eq(seen.n_launched, 1);
}

// Each row that does not build, does not fit or spills falls back to the next; the last to an
// error.
TEST(rows_that_do_not_fit_fall_back)
{
    static const char *const fallbacks[] = {"128x128x16/256", "64x128x16/128", "64x64x16/128",
                                            "32x32x32/64", "16x16x16/16"};
    const struct device_caps caps = described(VENDOR_NVIDIA, 32, 4);

    for (seen.n_refuse = 0; seen.n_refuse < 4; ++seen.n_refuse) {
        ck_ok(choose(&caps, 1024, 1024, 100));
        ck_assert_str_eq(seen.asked[0], fallbacks[0]);
        ck_assert_str_eq(seen.launched[0], fallbacks[seen.n_refuse]);
    }
    // 16 x 16 is no vendor's first choice: the second round comes to it.
    seen.n_refuse = 8;
    ck_ok(choose(&caps, 1024, 1024, 100));
    ck_assert_str_eq(seen.launched[0], fallbacks[4]);
    seen.n_refuse = 100;
    ck_fails(choose(&caps, 1024, 1024, 100), ATTNCL_ERR_UNSUPPORTED, "no tile variant");
    seen.n_refuse = 0;
    seen.spills = true;
    ck_ok(choose(&caps, 1024, 1024, 100));
    ck_assert_str_eq(seen.launched[0], fallbacks[0]);
    seen.spills = false;
}

// A device of small work-groups is not asked for large ones.
TEST(groups_within_the_device)
{
    struct device_caps caps = described(VENDOR_NVIDIA, 32, 4);

    caps.max_group = 64;
    ck_ok(choose(&caps, 1024, 1024, 100));
    ck_assert_str_eq(seen.launched[0], "32x32x32/64");
}

TEST(long_sums_use_split_k)
{
    const struct device_caps caps = described(VENDOR_NVIDIA, 32, 132);

    ck_ok(choose(&caps, 64, 64, 65536));
    ck_assert_int_eq(seen.n_launched, 2);
    ck_assert_str_eq(seen.launched[0], "64x64x16/128");
    ck_assert_int_eq((int)seen.splits[0], 256); // two for each multiprocessor, of whole blocks
    ck_assert_str_eq(seen.launched[1], "gemm_epilogue");
    ck_ok(choose(&caps, 64, 64, 256)); // splits of a few blocks are not worth it
    ck_assert_int_eq(seen.n_launched, 1);
    ck_ok(choose(&caps, 2048, 2048, 65536)); // tiles enough
    ck_assert_int_eq(seen.n_launched, 1);
}

// -- on the device

static uint32_t random_state;
static float next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int32_t)random_state * (1.0f / 2147483648.0f);
}

static struct storage filled(const float *data, size_t count)
{
    struct storage s = {.bytes = count * sizeof(float)};

    ck_ok(attncl__buffer_create(test_context(), s.bytes, &s.mem));
    ck_ok(attncl__buffer_write(test_context(), s.mem, 0, data, s.bytes));
    return s;
}

// a, b, bias and c of one random GEMM; c = A B + bias in double, bound: what rounding may do.
struct operands {
    float *a, *b, *bias, *c;
    struct storage mem[5];
    size_t count[5];
};

static float *random_floats(size_t n)
{
    float *x = malloc(n * sizeof *x);

    ck_assert(x != NULL);
    for (size_t i = 0; i < n; ++i)
        x[i] = next_random();
    return x;
}

static void check_gemm(const struct operands *o, int m, int n, int k)
{
    double worst = 0;

    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double want = o->bias[j], size = fabs(want);
            for (int t = 0; t < k; ++t) {
                const double x = (double)o->a[i * k + t] * (double)o->b[t * n + j];
                want += x;
                size += fabs(x);
            }
            // k roundings of what was summed so far, and a few of the epilogue
            const double bound = (k + 4) * 0x1p-24 * size;
            worst = fmax(worst, fabs((double)o->c[i * n + j] - want) / bound);
        }
    ck_assert_msg(worst <= 1, "%dx%dx%d: error is %g times the bound", m, n, k, worst);
}

static void run_gemm(const struct device_caps *caps, int m, int n, int k, int n_commands)
{
    const size_t sizes[] = {(size_t)m * k, (size_t)k * n, (size_t)n, (size_t)m * n};
    struct operands o = {.a = random_floats(sizes[0]),
                         .b = random_floats(sizes[1]),
                         .bias = random_floats(sizes[2]),
                         .c = random_floats(sizes[3])};
    float *const data[] = {o.a, o.b, o.bias, o.c};
    struct command_list command_list;
    struct launcher l = {.caps = caps, .command_list = &command_list, .gemm = "native"};
    struct gemm g = {.batch = 1, .m = m, .n = n, .k = k, .bias_kind = GEMM_BIAS_COLUMN};

    for (int i = 0; i < 4; ++i)
        o.mem[i] = filled(data[i], sizes[i]);
    g.scratch_bytes = attncl__gemm_scratch(caps, &g);
    o.mem[4].bytes = g.scratch_bytes;
    ck_ok(attncl__buffer_create(test_context(), g.scratch_bytes, &o.mem[4].mem));
    g.a = (struct gemm_matrix){.span = {&o.mem[0]}, .ld = k};
    g.b = (struct gemm_matrix){.span = {&o.mem[1]}, .ld = n};
    g.c = (struct gemm_matrix){.span = {&o.mem[3]}, .ld = n};
    g.bias.storage = &o.mem[2];
    g.scratch.storage = &o.mem[4];
    ck_ok(attncl__command_list_begin(test_context(), &command_list));
    ck_ok(attncl__gemm(&l, &g));
    ck_assert_int_eq((int)command_list.n_commands, n_commands);
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    ck_ok(attncl__buffer_read(test_context(), o.mem[3].mem, 0, o.c, o.mem[3].bytes));
    check_gemm(&o, m, n, k);
    attncl__command_list_free(&command_list);
    for (int i = 0; i < 5; ++i)
        attncl__buffer_release(&o.mem[i].mem);
    for (int i = 0; i < 4; ++i)
        free(data[i]);
}

FIXTURE_ONCE(device_up, device_down);

TEST(split_k_sums_are_right)
{
    struct device_caps caps = test_context()->caps;

    caps.variant = VARIANT_GPU;
    caps.vector_width = 4;
    caps.compute_units = 6;
    if (caps.max_loop_iterations || caps.max_group < 64)
        return;
    run_gemm(&caps, 19, 37, 1153, 2);
    run_gemm(&caps, 7, 20, 1030, 2);
}

// PoCL takes many seconds to compile each of these; simulators, GPUs and Intel's runtime do not.
LOOP_TEST(rows_of_all_vendors_are_right, 0, 8)
{
    static const struct {
        enum device_vendor vendor;
        unsigned multiple;
        int m, n, k;
    } rows[] = {{VENDOR_NVIDIA, 32, 131, 133, 35}, {VENDOR_NVIDIA, 32, 62, 131, 35},
                {VENDOR_AMD, 32, 131, 133, 19},    {VENDOR_AMD, 32, 130, 61, 35},
                {VENDOR_AMD, 64, 67, 65, 35},      {VENDOR_AMD, 64, 131, 133, 35},
                {VENDOR_INTEL, 1, 67, 65, 35},     {VENDOR_INTEL, 1, 30, 65, 67}};
    struct device_caps caps = test_context()->caps;

    if (caps.vendor == VENDOR_POCL || caps.vendor == VENDOR_MESA_CPU)
        return;
    caps.variant = VARIANT_GPU;
    caps.vector_width = 4;
    caps.compute_units = 1;
    caps.vendor = rows[_i].vendor;
    caps.group_multiple = rows[_i].multiple;
    run_gemm(&caps, rows[_i].m, rows[_i].n, rows[_i].k, 1);
}

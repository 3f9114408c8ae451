// SPDX-License-Identifier: MIT
// Which GPU tiles a GEMM gets, and what happens when they do not fit, on devices that are only
// described.  Split-K and, where kernels compile quickly, every vendor's tiles also run.

#include "device/context.h"
#include "gemm/internal.h"
#include "launch/command_list.h"
#include "support/gemm_test.h"
#include "support/launch_mock.h"
#include "support/test.h"

NO_DEVICE;

// What a described device was asked and given.
static struct {
    int n_asked, n_refuse; // the first n_refuse tiles asked for do not fit
    bool spills;           // every tile spills
    bool causal;           // the GEMM
    char asked[8][64];     // "128x128x16/256", in the order of asking
    char launched[4][64];  // the same, or the kernel's name where it has no tile
    size_t groups[4], splits[4];
    int n_launched;
    int weights; // WTYPE of the last launch
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

static bool fake_fits(const struct kspec *spec, bool no_spills)
{
    if (strcmp(spec->kernel, "gemm_gpu_tile") != 0)
        return true;
    if (seen.n_asked < 8)
        tile_text(spec, seen.asked[seen.n_asked]);
    return ++seen.n_asked > seen.n_refuse && !(seen.spills && no_spills);
}

static attncl_status fake_launch(const struct kspec *spec, const struct grid *grid)
{
    ck_assert_int_lt(seen.n_launched, 4);
    seen.weights = macro(spec, "WTYPE");
    if (macro(spec, "BM"))
        tile_text(spec, seen.launched[seen.n_launched]);
    else
        snprintf(seen.launched[seen.n_launched], 64, "%s", spec->kernel);
    seen.groups[seen.n_launched] = grid->groups[0];
    seen.splits[seen.n_launched++] = grid->groups[1];
    return ATTNCL_OK;
}

static attncl_status choose(const struct device_caps *caps, int64_t m, int64_t n, int64_t k)
{
    static struct storage storage;
    static const struct launch_mock mock = {fake_fits, fake_launch};
    struct launcher l = {.caps = caps, .gemm = "native"};
    struct gemm g = {.batch = 1, .m = m, .n = n, .k = k, .causal = seen.causal};

    l.seconds = gemm_seconds(caps, &g);

    seen.n_asked = seen.n_launched = 0;
    g.scratch.storage = &storage;
    g.scratch_bytes = attncl__gemm_scratch(caps, &g);
    launch_mock_set(&mock);
    const attncl_status status = attncl__gemm(&l, &g);
    launch_mock_set(NULL);
    return status;
}

// Few enough for devices that allow 256 bytes of arguments (the embedded profile).
TEST(arguments_are_few)
{
    static struct storage storage;
    static const struct launch_mock mock = {fake_fits, fake_launch};
    const struct device_caps caps = launch_mock_gpu(VENDOR_OTHER, 1, 4);
    const struct span some = {&storage};
    const struct gemm_norm norm = {.weight = some, .bias = some, .eps = 1e-5f};
    const struct gemm_other other = {{.span = some}, some, some};
    const struct gemm forms[] = {
        {.m = 100, .n = 64, .k = 64},
        {.m = 2, .n = 64, .k = 64},
        {.m = 2, .n = 64, .k = 64, .trans_b = true, .norm = norm},
        {.m = 2, .n = 64, .k = 64, .trans_b = true, .merge = {some, 4, 3, 100}},
        {.m = 2, .n = 64, .k = 64, .trans_b = true, .norm = norm, .other = {other, other}},
    };

    for (size_t i = 0; i < COUNT_OF(forms); ++i) {
        struct launcher l = {.caps = &caps, .gemm = "native"};
        struct gemm g = forms[i];
        g.batch = 1;
        g.n_other = g.n;
        seen.n_asked = seen.n_launched = 0;
        launch_mock_set(&mock);
        ck_ok(attncl__gemm(&l, &g));
        launch_mock_set(NULL);
        ck_assert_int_eq(seen.n_launched, 1);
        ck_assert_uint_gt(launch_mock_argument_bytes(), 128);
        ck_assert_uint_le(launch_mock_argument_bytes(), MIN_ARGUMENT_BYTES);
    }
}

// Each tile that does not build, does not fit or spills falls back to the next; the last to an
// error.
TEST(tiles_that_do_not_fit_fall_back)
{
    static const char *const fallbacks[] = {"128x128x8/256", "64x64x16/256", "64x64x16/128",
                                            "32x32x32/64", "16x16x16/16"};
    const struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 4);

    for (seen.n_refuse = 0; seen.n_refuse < 4; ++seen.n_refuse) {
        ck_ok(choose(&caps, 1024, 1024, 100));
        ck_assert_str_eq(seen.asked[0], fallbacks[0]);
        ck_assert_str_eq(seen.launched[0], fallbacks[seen.n_refuse]);
    }
    // 16 x 16 is never profitable: it comes in the second pass.
    seen.n_refuse = 8;
    ck_ok(choose(&caps, 1024, 1024, 100));
    ck_assert_str_eq(seen.launched[0], fallbacks[4]);
    seen.n_refuse = 100;
    ck_fails(choose(&caps, 1024, 1024, 100), ATTNCL_ERR_UNSUPPORTED,
             "in the device's 256 work-items and");
    seen.n_refuse = 0;
    seen.spills = true;
    ck_ok(choose(&caps, 1024, 1024, 100));
    ck_assert_str_eq(seen.launched[0], fallbacks[0]);
    seen.spills = false;
}

// What each vendor gets of 145 x 151 and of a causal GEMM.
static const struct {
    enum device_vendor vendor;
    unsigned multiple, units;
    const char *tile, *causal;
} vendors[] = {
    {VENDOR_NVIDIA, 32, 1, "128x128x8/256", "128x128x8/256"},
    {VENDOR_NVIDIA, 32, 4, "128x128x8/256", "128x128x8/256"},
    {VENDOR_NVIDIA, 32, 6, "64x64x16/256", "64x64x16/256"},
    {VENDOR_AMD, 32, 1, "128x128x8/128", "128x64x16/128"},
    {VENDOR_AMD, 64, 1, "128x128x16/256", "128x128x16/256"},
    {VENDOR_AMD, 64, 8, "64x64x16/256", "64x64x16/256"},
    {VENDOR_INTEL, 1, 1, "64x64x16/128", "32x32x32/64"},
    {VENDOR_OTHER, 1, 1, "64x64x16/128", "64x64x16/128"},
};

TABLE_TEST(tiles_by_vendor, vendors)
{
    const struct device_caps caps =
        launch_mock_gpu(vendors[_i].vendor, vendors[_i].multiple, vendors[_i].units);

    ck_ok(choose(&caps, 145, 151, 38));
    ck_assert_str_eq(seen.launched[0], vendors[_i].tile);
    seen.causal = true;
    ck_ok(choose(&caps, 145, 145, 145));
    seen.causal = false;
    ck_assert_str_eq(seen.launched[0], vendors[_i].causal);
}

// A device of small work-groups is not asked for large ones.
TEST(groups_within_the_device)
{
    struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 4);

    caps.max_group = 64;
    ck_ok(choose(&caps, 1024, 1024, 100));
    ck_assert_str_eq(seen.launched[0], "32x32x32/64");
}

TEST(long_sums_use_split_k)
{
    const struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 132);

    ck_ok(choose(&caps, 64, 64, 65536));
    ck_assert_int_eq(seen.n_launched, 2);
    ck_assert_str_eq(seen.launched[0], "64x64x16/256");
    ck_assert_int_eq((int)seen.splits[0], 256); // two for each compute unit, of whole blocks
    ck_assert_str_eq(seen.launched[1], "gemm_epilogue");
    ck_ok(choose(&caps, 64, 64, 256)); // splits of a few blocks are not worth it
    ck_assert_int_eq(seen.n_launched, 1);
    ck_ok(choose(&caps, 2048, 2048, 65536)); // tiles enough
    ck_assert_int_eq(seen.n_launched, 1);
}

// Of few rows no tile has much to compute, and shorter sums are worth a split.
TEST(skinny_gemms_use_split_k)
{
    const struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 132);

    ck_ok(choose(&caps, 8, 512, 512));
    ck_assert_int_eq(seen.n_launched, 2);
    ck_assert_str_eq(seen.launched[0], "8x64x16/32");
    ck_assert_int_eq((int)seen.groups[0], 8);
    ck_assert_int_eq((int)seen.splits[0], 8); // of 64 terms
    ck_ok(choose(&caps, 32, 512, 256));
    ck_assert_str_eq(seen.launched[0], "32x32x32/64");
    ck_assert_int_eq((int)seen.splits[0], 4);
    ck_ok(choose(&caps, 8, 512, 255));
    ck_assert_int_eq(seen.n_launched, 1);
    ck_ok(choose(&caps, 8, 65536, 512)); // tiles enough
    ck_assert_int_eq(seen.n_launched, 1);
}

// Weights of 16 bits are read by the tile: one launch, no scratch for floats, and no other library.
TEST(weights_of_16_bits_stay_as_they_are)
{
    static struct storage storage;
    static const struct launch_mock mock = {fake_fits, fake_launch};
    static const attncl_dtype types[] = {ATTNCL_F16, ATTNCL_BF16};
    struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 132);
    struct launcher l = {.caps = &caps, .gemm = "clblast"};

    caps.clblast = true;
    for (int i = 0; i < 2; ++i) {
        struct gemm g = {
            .batch = 1, .m = 2048, .n = 4096, .k = 1024, .b_dtype = types[i], .trans_b = true};
        g.a.span.storage = g.b.span.storage = g.c.span.storage = &storage;
        seen.n_asked = seen.n_launched = 0;
        ck_assert_uint_eq(attncl__gemm_scratch(&caps, &g), 0);
        launch_mock_set(&mock);
        ck_ok(attncl__gemm(&l, &g));
        launch_mock_set(NULL);
        ck_assert_int_eq(seen.n_launched, 1);
        ck_assert_str_eq(seen.launched[0], "128x128x8/256");
        ck_assert_int_eq(seen.weights, i + 1);
    }
}

// -- on the device

FIXTURE_ONCE(device_up, device_down);

// Who computes a GEMM: a GPU of NVIDIA where CLBlast was found right, but for what a row says.
enum { IS_CPU = 1, HAS_MMA = 2, UNKNOWN = 4, SLOWER_SINGLE = 8, SLOWER_BATCH = 16 };
static const struct {
    int batch, m, n, k;
    int gap;    // between the matrices of A, in elements
    int device; // bits
    bool causal, bias;
    double seconds; // that it may take
    bool clblast;
} backends[] = {
    {1, 512, 512, 512, .clblast = true},
    {1, 511, 512, 512, .clblast = false},
    {1, 2048, 512, 512, .bias = true, .clblast = true},
    {1, 4, 16384, 4096, .clblast = false}, // reads B once
    {1, 1024, 1024, 1024, .causal = true},
    {1, 1024, 1024, 1024, .device = IS_CPU},
    {1, 1024, 1024, 1024, .device = HAS_MMA},
    {1, 1024, 1024, 1024, .device = UNKNOWN},
    {1, 1024, 1024, 1024, .seconds = 1.1},
    {1, 1024, 1024, 1024, .seconds = 0.9, .clblast = true},
    {1, 1024, 1024, 1024, .device = SLOWER_SINGLE},
    {1, 1024, 1024, 1024, .device = SLOWER_BATCH, .clblast = true},
    // Of attention: its scores and its sums.
    {64, 256, 256, 64, .clblast = true},
    {16, 1024, 1024, 64, .clblast = true},
    {16, 1024, 64, 1024, .clblast = true},
    {16, 1024, 1024, 64, .device = SLOWER_BATCH},
    {16, 1024, 1024, 64, .device = SLOWER_SINGLE, .clblast = true},
    {31, 256, 256, 64, .clblast = false},
    // A call for each matrix pays for large ones.
    {64, 256, 256, 64, .gap = 256},
    {4, 512, 512, 512, .gap = 512, .clblast = true},
};

TABLE_TEST(large_gemms_and_batches_of_gpus_are_left_to_clblast, backends)
{
    static const struct launch_mock mock = {NULL, fake_launch};
    const int device = backends[_i].device;
    const int64_t m = backends[_i].m, n = backends[_i].n, k = backends[_i].k;
    struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 132);
    struct tune_table tuned = {.path = NULL};
    struct storage storage = {.bytes = 0};
    struct command_list list;
    struct launcher l = {.caps = &caps, .command_list = &list, .seconds = backends[_i].seconds};
    struct gemm g = GEMM_OF(backends[_i].batch, m, n, k, .causal = backends[_i].causal,
                            .a = {{&storage}, 0, k, m * k + backends[_i].gap},
                            .b = {{&storage}, 0, n, k * n}, .c = {{&storage}, 0, n, m * n});

    if (backends[_i].bias) {
        g.bias_kind = GEMM_BIAS_COLUMN;
        g.bias.storage = &storage;
    }
    caps.clblast_candidate = !(device & IS_CPU);
    caps.clblast = !(device & UNKNOWN);
    caps.mma = device & HAS_MMA ? MMA_PTX : MMA_NONE;
    caps.tuned = &tuned;
    tuned.entries[TUNE_GEMM_BACKEND][TUNE_SINGLE].line = (device & SLOWER_SINGLE) != 0;
    tuned.entries[TUNE_GEMM_BACKEND][TUNE_BATCH].line = (device & SLOWER_BATCH) != 0;
    seen.n_asked = seen.n_launched = 0;
    ck_ok(attncl__command_list_begin(test_context(), &list));
    launch_mock_set(&mock);
    ck_ok(attncl__gemm(&l, &g));
    launch_mock_set(NULL);
    ck_assert_uint_eq(list.n_commands, backends[_i].clblast);
    ck_assert_int_eq(seen.n_launched > 0, backends[_i].bias || !backends[_i].clblast);
    attncl__command_list_free(&list);
}

static int check_with_bias(const struct device_caps *caps, int m, int n, int k)
{
    return gemm_check(&GEMM_CASE(1, m, n, k, .bias = GEMM_BIAS_COLUMN, .scratch = true,
                                 .caps = caps, .backend = "native"));
}

// 1.2 s for all of k at that speed.
TEST(long_launches_are_cut_along_k)
{
    struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 2);

    ck_ok(choose(&caps, 1024, 1024, 4096));
    ck_assert_int_eq(seen.n_launched, 1); // speed not known
    caps.flop_per_second = 2.0 * 1024 * 1024 * 4096 / 1.2;
    ck_ok(choose(&caps, 1024, 1024, 4096));
    ck_assert_int_eq(seen.n_launched, 3);
    caps.flop_per_second *= 2.5;
    ck_ok(choose(&caps, 1024, 1024, 4096));
    ck_assert_int_eq(seen.n_launched, 1);
}

TEST(split_k_sums_are_right)
{
    struct device_caps caps = test_context()->caps;

    caps.variant = VARIANT_GPU;
    caps.vector_width = 4;
    caps.compute_units = 6;
    if (caps.max_loop_iterations || caps.max_group < 64)
        return;
    ck_assert_int_eq(check_with_bias(&caps, 19, 37, 1153), 2);
    ck_assert_int_eq(check_with_bias(&caps, 7, 20, 1030), 2);
    ck_assert_int_eq(check_with_bias(&caps, 13, 67, 261), 2);
    caps.compute_units = 16;
    ck_assert_int_eq(gemm_check(&GEMM_CASE(2, 37, 45, 2049, .trans_b = true, .residual = true,
                                           .gap = 3, .bias = GEMM_BIAS_COLUMN, .scratch = true,
                                           .caps = &caps, .backend = "native")),
                     2);
}

// Tiles of 8 and of 16 rows, each filled exactly and raggedly, in every form.
LOOP_TEST(skinny_gemms_are_right, 0, 4)
{
    static const int rows[] = {5, 8, 11, 16};
    struct device_caps caps = test_context()->caps;

    caps.variant = VARIANT_GPU;
    caps.vector_width = 4;
    caps.compute_units = 1;
    caps.group_multiple = 1;
    if (caps.max_loop_iterations || caps.max_group < 64)
        return;
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        struct gemm_case p =
            GEMM_CASE(2, rows[i], 67 + 61 * (int)(i % 2), 35, .trans_a = _i & 1, .trans_b = _i >> 1,
                      .bias = GEMM_BIAS_COLUMN, .activation = ATTNCL_GELU, .gate = true,
                      .residual = true, .caps = &caps, .backend = "native");
        ck_assert_int_eq(gemm_check(&p), 1);
        p.gap = 3;
        p.shared_b = true;
        gemm_check(&p);
    }
}

// Whole rows by loads of four, aligned or not, edges on all sides, parts of long sums, single columns; of more rows than
// GEMV takes.
LOOP_TEST(stored_weights_are_right, 0, 4)
{
    struct device_caps caps = test_context()->caps;

    caps.variant = VARIANT_GPU;
    caps.vector_width = 4;
    caps.compute_units = 6;
    caps.group_multiple = 1;
    if (caps.max_loop_iterations || caps.max_group < 64)
        return;
    for (int gap = 0; gap < 5; ++gap) {
        struct gemm_case p = GEMM_CASE(1, 37, 67, 40, .trans_b = _i & 1, .bias = GEMM_BIAS_COLUMN,
                                       .gap = gap, .b_dtype = _i >> 1 ? ATTNCL_BF16 : ATTNCL_F16,
                                       .scratch = true, .caps = &caps, .backend = "native");
        ck_assert_int_eq(gemm_check(&p), 1);
        p.k = 37;
        ck_assert_int_eq(gemm_check(&p), 1);
        p.n = 1;
        ck_assert_int_eq(gemm_check(&p), 1);
        p.n = 20;
        p.k = 1030;
        ck_assert_int_eq(gemm_check(&p), 2);
    }
}

// PoCL takes many seconds to compile each of these; simulators, GPUs and Intel's runtime do not.
LOOP_TEST(tiles_of_all_vendors_are_right, 0, 8)
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
    ck_assert_int_eq(check_with_bias(&caps, rows[_i].m, rows[_i].n, rows[_i].k), 1);
}

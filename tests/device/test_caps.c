// SPDX-License-Identifier: MIT
// The effect of the table of quirks on devices, most of which this machine lacks.

#include <string.h>

#include "device/context.h"
#include "device/internal.h"
#include "support/test.h"

// A device as its driver describes it, and what becomes of max_group 1024, vector_width 8 and no
// loop limit.
static const struct {
    attncl_device_type type;
    const char *platform, *vendor, *name;
    enum device_vendor maker;
    size_t max_group;
    unsigned vector_width;
    uint64_t max_loop_iterations;
    bool clblast;
} devices[] = {
    {ATTNCL_DEVICE_CPU, "Portable Computing Language", "AuthenticAMD",
     "pthread-skylake-avx512-AMD EPYC", VENDOR_POCL, 256, 16, 0, false},
    {ATTNCL_DEVICE_CPU, "Portable Computing Language", "GenuineIntel", "pthread-haswell-Intel",
     VENDOR_POCL, 256, 8, 0, false},
    {ATTNCL_DEVICE_CPU, "rusticl", "Mesa/X.org", "llvmpipe (LLVM 15.0.6, 256 bits)",
     VENDOR_MESA_CPU, 32, 8, 65535, false},
    {ATTNCL_DEVICE_GPU, "rusticl", "AMD", "AMD Radeon RX 6600", VENDOR_AMD, 256, 8, 0, true},
    {ATTNCL_DEVICE_CPU, "Oclgrind", "Oclgrind", "Oclgrind Simulator", VENDOR_OCLGRIND, 256, 8, 0,
     false},
    {ATTNCL_DEVICE_GPU, "NVIDIA CUDA", "NVIDIA Corporation", "NVIDIA H200", VENDOR_NVIDIA, 1024, 8,
     0, false},
    {ATTNCL_DEVICE_GPU, "NVIDIA CUDA", "NVIDIA Corporation", "NVIDIA A100", VENDOR_NVIDIA, 1024, 8,
     0, true},
    {ATTNCL_DEVICE_GPU, "AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.",
     "gfx1030", VENDOR_AMD, 256, 8, 0, true},
    {ATTNCL_DEVICE_GPU, "Intel(R) OpenCL Graphics", "Intel(R) Corporation", "Intel(R) Arc(TM) A770",
     VENDOR_INTEL, 256, 8, 0, true},
    {ATTNCL_DEVICE_CPU, "Intel(R) OpenCL", "Intel(R) Corporation", "Intel(R) Xeon(R)", VENDOR_INTEL,
     1024, 8, 0, false},
    {ATTNCL_DEVICE_GPU, "ARM Platform", "ARM", "Mali-G78", VENDOR_ARM, 128, 8, 0, false},
    {ATTNCL_DEVICE_GPU, "QUALCOMM Snapdragon(TM)", "QUALCOMM", "QUALCOMM Adreno(TM) 740",
     VENDOR_QUALCOMM, 128, 8, 0, false},
    {ATTNCL_DEVICE_CPU, "Apple", "Intel", "Intel(R) Core(TM)", VENDOR_APPLE, 1, 8, 0, false},
    {ATTNCL_DEVICE_OTHER, "Some FPGA", "Maker", "board", VENDOR_OTHER, 1024, 8, 0, true},
};

TABLE_TEST(quirks_change_what_they_are_about, devices)
{
    attncl_device_info info = {.type = devices[_i].type};
    struct device_caps caps = {
        .max_group = 1024, .local_bytes = 65536, .vector_width = 8, .clblast_candidate = true};

    strcpy(info.platform_name, devices[_i].platform);
    strcpy(info.vendor, devices[_i].vendor);
    strcpy(info.name, devices[_i].name);
    caps.vendor = attncl__quirks_find_vendor(&info);
    ck_assert_int_eq(caps.vendor, devices[_i].maker);
    attncl__quirks_apply(&info, &caps);
    ck_assert_uint_eq(caps.max_group, devices[_i].max_group);
    ck_assert_uint_eq(caps.vector_width, devices[_i].vector_width);
    ck_assert_uint_eq(caps.max_loop_iterations, devices[_i].max_loop_iterations);
    ck_assert_int_eq(caps.clblast_candidate, devices[_i].clblast);
}

TEST(local_memory_is_what_can_be_used)
{
    const attncl_device_info info = {.type = ATTNCL_DEVICE_GPU, .platform_name = "Apple"};
    for (size_t bytes = 16384; bytes <= 65536; bytes *= 2) {
        struct device_caps caps = {.vendor = VENDOR_APPLE, .local_bytes = bytes};
        attncl__quirks_apply(&info, &caps);
        ck_assert_uint_eq(caps.local_bytes, bytes < 32768 ? bytes : 32768);
    }
}

// By exact names only, of the vendors' own drivers.
static const struct {
    const char *platform, *name;
    unsigned compute_capability;
    enum matrix_instruction mma;
    enum lane_shuffle shuffle;
    unsigned lanes;
} architectures[] = {
    {"NVIDIA CUDA", "NVIDIA H200", 90, MMA_PTX, SHUFFLE_PTX, 32},
    {"NVIDIA CUDA", "NVIDIA A100", 80, MMA_PTX, SHUFFLE_PTX, 32},
    {"NVIDIA CUDA", "Tesla T4", 75, MMA_NONE, SHUFFLE_PTX, 32},
    {"NVIDIA CUDA", "a later one", 130, MMA_NONE, SHUFFLE_NONE, 0},
    {"Portable Computing Language", "NVIDIA H200", 90, MMA_NONE, SHUFFLE_NONE, 0},
    {"AMD Accelerated Parallel Processing", "gfx90a:sramecc+:xnack-", 0, MMA_MFMA, SHUFFLE_AMD, 64},
    {"AMD Accelerated Parallel Processing", "gfx942", 0, MMA_MFMA, SHUFFLE_AMD, 64},
    {"AMD Accelerated Parallel Processing", "gfx90", 0, MMA_NONE, SHUFFLE_NONE, 0},
    {"AMD Accelerated Parallel Processing", "gfx90ab", 0, MMA_NONE, SHUFFLE_NONE, 0},
    {"AMD Accelerated Parallel Processing", "gfx1030", 0, MMA_NONE, SHUFFLE_AMD, 32},
    {"AMD Accelerated Parallel Processing", "gfx1100", 0, MMA_WMMA, SHUFFLE_AMD, 32},
    {"AMD Accelerated Parallel Processing", "gfx1151", 0, MMA_WMMA, SHUFFLE_AMD, 32},
    {"AMD Accelerated Parallel Processing", "gfx1201", 0, MMA_WMMA_GFX12, SHUFFLE_AMD, 32},
    {"AMD Accelerated Parallel Processing", "gfx1202", 0, MMA_NONE, SHUFFLE_NONE, 0},
    {"rusticl", "gfx90a", 0, MMA_NONE, SHUFFLE_NONE, 0},
};

TABLE_TEST(instructions_by_architecture, architectures)
{
    attncl_device_info info = {.type = ATTNCL_DEVICE_GPU};

    strcpy(info.platform_name, architectures[_i].platform);
    strcpy(info.name, architectures[_i].name);
    struct device_caps caps = {.nv_compute_capability = architectures[_i].compute_capability};
    attncl__quirks_apply(&info, &caps);
    ck_assert_int_eq(caps.mma_candidate, architectures[_i].mma);
    ck_assert_int_eq(caps.shuffle_candidate, architectures[_i].shuffle);
    ck_assert_uint_eq(caps.shuffle_lanes, architectures[_i].lanes);
}

TEST(this_device_is_usable)
{
    const struct device_caps *caps = &test_context()->caps;

    ck_assert_uint_ge(caps->max_group, 1);
    ck_assert_uint_ge(caps->align_bytes, 128);
    ck_assert_uint_eq(caps->align_bytes & (caps->align_bytes - 1), 0);
    ck_assert(caps->vector_width == 4 || caps->vector_width == 8 || caps->vector_width == 16);
    ck_assert(caps->is_cpu || caps->is_gpu || test_context()->info.type == ATTNCL_DEVICE_OTHER);
    ck_assert_uint_ge(caps->local_bytes, 1024);
}

static struct device_caps caps_with(const char *variant, int ignore)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    char *old = getenv("ATTNCL_VARIANT") ? strdup(getenv("ATTNCL_VARIANT")) : NULL;

    options.ignore_environment = ignore;
    setenv("ATTNCL_VARIANT", variant, 1);
    ck_ok(attncl_context_create(&options, &ctx));
    const struct device_caps caps = ctx->caps;
    ck_ok(attncl_context_destroy(ctx));
    if (old)
        setenv("ATTNCL_VARIANT", old, 1);
    else
        unsetenv("ATTNCL_VARIANT");
    free(old);
    return caps;
}

// A GPU whose work-groups have one work-item, as drivers without barriers report it.
TEST(a_gpu_without_work_groups_takes_the_cpu_variant)
{
    static const struct {
        uint64_t max_group;
        enum kernel_variant variant;
    } gpus[] = {{1, VARIANT_CPU}, {2, VARIANT_CPU}, {4, VARIANT_GPU}};
    attncl_device_info info = test_context()->info;
    struct device_caps caps;

    strcpy(info.platform_name, "Some platform");
    strcpy(info.vendor, "Maker");
    info.type = ATTNCL_DEVICE_GPU;
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; ++i) {
        info.max_work_group = gpus[i].max_group;
        ck_ok(attncl__caps_fill(test_context()->device, &info, NULL, &caps));
        ck_assert_int_eq(caps.variant, gpus[i].variant);
    }
}

TEST(the_variant_can_be_overridden)
{
    const struct device_caps plain = caps_with("", 0), gpu = caps_with("gpu", 0);

    ck_assert_int_eq(gpu.variant, VARIANT_GPU);
    ck_assert_uint_eq(gpu.vector_width, 4);
    ck_assert_int_eq(caps_with("cpu", 0).variant, VARIANT_CPU);
    ck_assert_int_eq(caps_with("neither", 1).variant, plain.variant);
    ck_assert_int_eq(caps_with("gpu", 1).is_gpu, plain.is_gpu);
    if (plain.is_cpu)
        ck_assert_int_eq(caps_with("gpu", 1).variant, VARIANT_CPU); // the environment was ignored
}

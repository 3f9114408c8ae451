// SPDX-License-Identifier: MIT
//
// The table of device quirks.  To add one, add a row: which devices, what changes, why.

#include <string.h>

#include "device/internal.h"

// The first row whose texts are contained in the device's texts (NULL: any) gives the vendor.  Runtimes
// come before hardware vendors, because PoCL reports the CPU's vendor, AMD or Intel.
static const struct {
    const char *platform, *vendor, *name;
    enum device_vendor is;
} vendors[] = {
    {"Oclgrind", NULL, NULL, VENDOR_OCLGRIND},
    {"Portable Computing Language", NULL, NULL, VENDOR_POCL},
    {NULL, NULL, "llvmpipe", VENDOR_MESA_CPU},
    {"Apple", NULL, NULL, VENDOR_APPLE},
    {NULL, "NVIDIA", NULL, VENDOR_NVIDIA},
    {NULL, "Advanced Micro Devices", NULL, VENDOR_AMD},
    {NULL, "AMD", NULL, VENDOR_AMD},
    {NULL, "Intel", NULL, VENDOR_INTEL},
    {NULL, "ARM", NULL, VENDOR_ARM},
    {NULL, "QUALCOMM", NULL, VENDOR_QUALCOMM},
    {NULL, "Qualcomm", NULL, VENDOR_QUALCOMM},
};

// A field of 0 or NULL matches any device, or changes nothing.
struct quirk {
    enum device_vendor vendor; // VENDOR_OTHER: any
    attncl_device_type type;
    const char *name; // part of the device's name
    size_t max_group;
    uint64_t max_loop_iterations;
    unsigned vector_width;
    unsigned group_multiple;
    size_t local_bytes;
    bool no_clblast;
    bool cpu_variant;
    bool builtin_prefetch;
    bool has_own_cache;
    bool blocking_writes;
};

static const struct quirk quirks[] = {
    // CLBlast reaches a tenth of a CPU's peak, and each of its kernels compiles for a second.
    {.type = ATTNCL_DEVICE_CPU, .no_clblast = true},

    // One thread's stack holds the live values of all work-items of a work-group; larger work-groups
    // have overflowed it.
    {.vendor = VENDOR_POCL, .max_group = 256},
    // prefetch() does nothing.  With the compiler's builtin, skinny GEMMs take two thirds of the time.
    {.vendor = VENDOR_POCL, .builtin_prefetch = true},

    // To return a program's binary it compiles every kernel again, for work-groups of any size, which takes as long as
    // the first build.  It caches programs on disk itself.
    {.vendor = VENDOR_POCL, .has_own_cache = true},

    // The CPU's vectors hold 16 floats, whatever native width the driver reports.
    {.type = ATTNCL_DEVICE_CPU, .name = "avx512", .vector_width = 16},
    {.type = ATTNCL_DEVICE_CPU, .name = "znver4", .vector_width = 16},
    {.type = ATTNCL_DEVICE_CPU, .name = "znver5", .vector_width = 16},

    // A work-item's loops end silently after 65,535 iterations.  clFinish() may return before the data
    // of non-blocking writes has been read (Mesa 22.3).
    {.vendor = VENDOR_MESA_CPU,
     .blocking_writes = true,
     .max_group = 32, // whatever the driver reports
     .max_loop_iterations = 65535,
     .no_clblast = true,
     .cpu_variant = true},

    // A simulator of one CPU; claims to be a GPU too.
    {.vendor = VENDOR_OCLGRIND, .max_group = 256, .no_clblast = true, .cpu_variant = true},

    // CLBlast takes 1.1 to 1.9 times as long as native kernels in five GEMMs from 1024^3 to 4096 x 2048 x 512 and in
    // batches; its database has no row for this GPU.
    {.vendor = VENDOR_NVIDIA, .type = ATTNCL_DEVICE_GPU, .name = "H100", .no_clblast = true},
    {.vendor = VENDOR_NVIDIA, .type = ATTNCL_DEVICE_GPU, .name = "H200", .no_clblast = true},

    // 32 work-items execute together on every NVIDIA device; 64 on every AMD device that does not
    // say otherwise.
    {.vendor = VENDOR_NVIDIA, .type = ATTNCL_DEVICE_GPU, .group_multiple = 32},
    // Larger work-groups need reqd_work_group_size and may not fit the registers.
    {.vendor = VENDOR_AMD, .type = ATTNCL_DEVICE_GPU, .max_group = 256},
    // Kernels with many registers halve the largest work-group; above this size the per-kernel limit decides.
    {.vendor = VENDOR_INTEL, .type = ATTNCL_DEVICE_GPU, .max_group = 256},
    // Local memory is emulated in global memory, and the compiler handles CLBlast's kernels badly.
    {.vendor = VENDOR_ARM, .type = ATTNCL_DEVICE_GPU, .max_group = 128, .no_clblast = true},
    // Per-kernel limits as low as 128 were seen.
    {.vendor = VENDOR_QUALCOMM, .type = ATTNCL_DEVICE_GPU, .max_group = 128, .no_clblast = true},
    // Creating a kernel that uses all of the local memory fails.
    {.vendor = VENDOR_APPLE, .type = ATTNCL_DEVICE_GPU, .local_bytes = 32768, .no_clblast = true},
    // The CPU device accepts no work-group of more than one work-item with barriers.
    {.vendor = VENDOR_APPLE, .type = ATTNCL_DEVICE_CPU, .max_group = 1},
};

// GPU architectures with their vendor's own driver.  Names must match exactly, because a compiler may abort at an
// instruction that it does not know; AMD's driver appends features: "gfx90a:sramecc+:xnack-".
struct architecture {
    const char *platform, *name; // name NULL: match compute_capability instead
    unsigned compute_capability;
    unsigned unit_local_kib; // local memory of a compute unit (NVIDIA's guide); 0: unknown
    enum matrix_instruction mma;
    unsigned lanes; // that a shuffle reaches; RDNA's waves of 64 shuffle in halves
};

static const char cuda[] = "NVIDIA CUDA", amd[] = "AMD Accelerated Parallel Processing";

static const struct architecture architectures[] = {
    {cuda, NULL, 70, 96, MMA_NONE, 32},         {cuda, NULL, 75, 64, MMA_NONE, 32},
    {cuda, NULL, 80, 164, MMA_PTX, 32},         {cuda, NULL, 86, 100, MMA_PTX, 32},
    {cuda, NULL, 87, 164, MMA_PTX, 32},         {cuda, NULL, 89, 100, MMA_PTX, 32},
    {cuda, NULL, 90, 228, MMA_PTX, 32},         {cuda, NULL, 100, 228, MMA_PTX, 32},
    {cuda, NULL, 120, 100, MMA_PTX, 32},        {amd, "gfx906", 0, 0, MMA_NONE, 64},
    {amd, "gfx908", 0, 0, MMA_NONE, 64},        {amd, "gfx90a", 0, 0, MMA_MFMA, 64},
    {amd, "gfx942", 0, 0, MMA_MFMA, 64},        {amd, "gfx1030", 0, 0, MMA_NONE, 32},
    {amd, "gfx1031", 0, 0, MMA_NONE, 32},       {amd, "gfx1032", 0, 0, MMA_NONE, 32},
    {amd, "gfx1100", 0, 0, MMA_WMMA, 32},       {amd, "gfx1101", 0, 0, MMA_WMMA, 32},
    {amd, "gfx1102", 0, 0, MMA_WMMA, 32},       {amd, "gfx1103", 0, 0, MMA_WMMA, 32},
    {amd, "gfx1150", 0, 0, MMA_WMMA, 32},       {amd, "gfx1151", 0, 0, MMA_WMMA, 32},
    {amd, "gfx1200", 0, 0, MMA_WMMA_GFX12, 32}, {amd, "gfx1201", 0, 0, MMA_WMMA_GFX12, 32},
};

static bool is_architecture(const struct architecture *a, const attncl_device_info *info,
                            unsigned compute_capability)
{
    const size_t n = strcspn(info->name, ":");

    return strcmp(info->platform_name, a->platform) == 0 &&
           (a->name ? strlen(a->name) == n && strncmp(a->name, info->name, n) == 0
                    : a->compute_capability == compute_capability);
}

static void apply_architecture(const attncl_device_info *info, struct device_caps *caps)
{
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; ++i) {
        const struct architecture *a = &architectures[i];
        if (!is_architecture(a, info, caps->nv_compute_capability))
            continue;
        caps->unit_local_bytes = (size_t)1024 * a->unit_local_kib;
        caps->mma_candidate = a->mma;
        caps->shuffle_candidate = a->platform == cuda ? SHUFFLE_PTX : SHUFFLE_AMD;
        caps->shuffle_lanes = a->lanes;
    }
}

static bool is_part_of(const char *part, const char *text)
{
    return !part || strstr(text, part);
}

enum device_vendor attncl__quirks_find_vendor(const attncl_device_info *info)
{
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; ++i)
        if (is_part_of(vendors[i].platform, info->platform_name) &&
            is_part_of(vendors[i].vendor, info->vendor) && is_part_of(vendors[i].name, info->name))
            return vendors[i].is;
    return VENDOR_OTHER;
}

static bool matches_device(const struct quirk *q, enum device_vendor vendor,
                           const attncl_device_info *info)
{
    return (q->vendor == VENDOR_OTHER || q->vendor == vendor) &&
           (!q->type || q->type == info->type) && is_part_of(q->name, info->name);
}

void attncl__quirks_apply(const attncl_device_info *info, struct device_caps *caps)
{
    apply_architecture(info, caps);
    for (size_t i = 0; i < sizeof quirks / sizeof quirks[0]; ++i) {
        const struct quirk *q = &quirks[i];

        if (!matches_device(q, caps->vendor, info))
            continue;
        if (q->max_group && caps->max_group > q->max_group)
            caps->max_group = q->max_group;
        if (q->local_bytes && caps->local_bytes > q->local_bytes)
            caps->local_bytes = q->local_bytes;
        if (q->max_loop_iterations)
            caps->max_loop_iterations = q->max_loop_iterations;
        if (q->vector_width)
            caps->vector_width = q->vector_width;
        if (q->group_multiple)
            caps->group_multiple = q->group_multiple;
        if (q->cpu_variant)
            caps->variant = VARIANT_CPU;
        caps->clblast_candidate &= !q->no_clblast;
        caps->builtin_prefetch |= q->builtin_prefetch;
        caps->has_own_cache |= q->has_own_cache;
        caps->blocking_writes |= q->blocking_writes;
    }
}

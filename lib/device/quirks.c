// SPDX-License-Identifier: MIT
//
// The table of device quirks.  To add one, add a row: which devices, what changes, why.

#include <string.h>

#include "device/internal.h"

// The vendor is that of the first row whose texts are part of the device's (NULL: any).  Runtimes
// come before hardware vendors: PoCL names the CPU's vendor, AMD or Intel.
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

// 0 and NULL: unchanged, any.
struct quirk {
    enum device_vendor vendor; // VENDOR_OTHER: any
    attncl_device_type type;
    const char *name; // part of the device's
    size_t max_group;
    uint64_t max_loop_iterations;
    unsigned vector_width;
    unsigned group_multiple;
    size_t local_bytes;
    bool no_clblast;
    bool cpu_variant;
    bool builtin_prefetch;
    bool keeps_programs;
    bool blocking_writes;
};

static const struct quirk quirks[] = {
    // CLBlast reaches a tenth of a CPU's peak, and each of its kernels compiles for a second.
    {.type = ATTNCL_DEVICE_CPU, .no_clblast = true},

    // Live values of all work-items of a work-group are on one thread's stack, which larger
    // work-groups have overflowed.
    {.vendor = VENDOR_POCL, .max_group = 256},
    // prefetch() does nothing.  Skinny GEMMs take two thirds of their time with the compiler's
    // builtin.
    {.vendor = VENDOR_POCL, .builtin_prefetch = true},

    // Asked for a program's binary it compiles every kernel once more, for work-groups of any size: as long as
    // the first run took.  What it compiles it keeps on disk.
    {.vendor = VENDOR_POCL, .keeps_programs = true},

    // The CPU's vectors hold 16 floats, whatever native width the driver reports.
    {.type = ATTNCL_DEVICE_CPU, .name = "avx512", .vector_width = 16},
    {.type = ATTNCL_DEVICE_CPU, .name = "znver4", .vector_width = 16},
    {.type = ATTNCL_DEVICE_CPU, .name = "znver5", .vector_width = 16},

    // A work-item's loops end after 65,535 iterations, silently.  clFinish() may return before data
    // of non-blocking writes has been read (Mesa 22.3).
    {.vendor = VENDOR_MESA_CPU,
     .blocking_writes = true,
     .max_group = 32, // whatever the driver reports
     .max_loop_iterations = 65535,
     .no_clblast = true,
     .cpu_variant = true},

    // A simulator of one CPU; claims to be a GPU too.
    {.vendor = VENDOR_OCLGRIND, .max_group = 256, .no_clblast = true, .cpu_variant = true},

    // 1.1 to 1.9 times the time of native kernels in five products from 1024^3 to 4096 x 2048 x 512 and in batches; its
    // database has no row for this processor.
    {.vendor = VENDOR_NVIDIA, .type = ATTNCL_DEVICE_GPU, .name = "H100", .no_clblast = true},
    {.vendor = VENDOR_NVIDIA, .type = ATTNCL_DEVICE_GPU, .name = "H200", .no_clblast = true},

    // 32 work-items execute together on every NVIDIA device; 64 on every AMD device that does not
    // say otherwise.
    {.vendor = VENDOR_NVIDIA, .type = ATTNCL_DEVICE_GPU, .group_multiple = 32},
    // Larger work-groups need reqd_work_group_size and may not fit the registers.
    {.vendor = VENDOR_AMD, .type = ATTNCL_DEVICE_GPU, .max_group = 256},
    // Kernels with many registers halve the work-group that fits: the per-kernel limit decides
    // above this.
    {.vendor = VENDOR_INTEL, .type = ATTNCL_DEVICE_GPU, .max_group = 256},
    // Local memory is global memory, and CLBlast's kernels do not suit the compiler.
    {.vendor = VENDOR_ARM, .type = ATTNCL_DEVICE_GPU, .max_group = 128, .no_clblast = true},
    // Per-kernel limits as low as 128 were seen.
    {.vendor = VENDOR_QUALCOMM, .type = ATTNCL_DEVICE_GPU, .max_group = 128, .no_clblast = true},
    // Pipelines that use all of the local memory fail when their kernel is created.
    {.vendor = VENDOR_APPLE, .type = ATTNCL_DEVICE_GPU, .local_bytes = 32768, .no_clblast = true},
    // The CPU device accepts no work-group of more than one work-item with barriers.
    {.vendor = VENDOR_APPLE, .type = ATTNCL_DEVICE_CPU, .max_group = 1},
};

// Each runs its vendor's own driver.  AMD's puts features behind a colon: "gfx90a:sramecc+:xnack-".  By exact names: a
// compiler may abort where it does not know an instruction.
// Local memory of a compute unit: as NVIDIA's programming guide has it; 0: not known.
// Lanes that a shuffle reaches: AMD's later architectures have waves of 32 or 64, which shuffle in halves.
struct architecture {
    const char *platform, *name; // name NULL: by its compute capability
    unsigned compute_capability, unit_local_kib;
    enum matrix_instruction mma;
    unsigned lanes;
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

static bool part_of(const char *part, const char *text)
{
    return !part || strstr(text, part);
}

enum device_vendor attncl__quirks_vendor(const attncl_device_info *info)
{
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; ++i)
        if (part_of(vendors[i].platform, info->platform_name) &&
            part_of(vendors[i].vendor, info->vendor) && part_of(vendors[i].name, info->name))
            return vendors[i].is;
    return VENDOR_OTHER;
}

static bool matches(const struct quirk *q, enum device_vendor vendor,
                    const attncl_device_info *info)
{
    return (q->vendor == VENDOR_OTHER || q->vendor == vendor) &&
           (!q->type || q->type == info->type) && part_of(q->name, info->name);
}

void attncl__quirks_apply(const attncl_device_info *info, struct device_caps *caps)
{
    apply_architecture(info, caps);
    for (size_t i = 0; i < sizeof quirks / sizeof quirks[0]; ++i) {
        const struct quirk *q = &quirks[i];

        if (!matches(q, caps->vendor, info))
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
        caps->keeps_programs |= q->keeps_programs;
        caps->blocking_writes |= q->blocking_writes;
    }
}

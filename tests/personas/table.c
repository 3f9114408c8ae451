// SPDX-License-Identifier: MIT
//
// The table of personas.  Each row's numbers are those that the source named above it prints (clinfo, in an
// issue), or the specification's minima.  What no source tells is marked so.

#include <string.h>

#include "personas/table.h"

#define KIB (size_t)1024
#define MIB ((cl_ulong)1 << 20)
#define GIB ((cl_ulong)1 << 30)

#define ATOMICS                                                                                    \
    "cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics "                       \
    "cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics "                         \
    "cl_khr_byte_addressable_store"

// Members that every row has, in the order of struct persona, but for the alignment.
#define TEXTS(platform_, vendor_, device_, version_, c_version_, extensions_)                      \
    .platform = (platform_), .vendor = (vendor_), .device = (device_), .version = (version_),      \
    .c_version = (c_version_), .extensions = (extensions_)
#define GROUPS(max, x, y, z, kernel)                                                               \
    .max_group = (max), .max_items = {(x), (y), (z)}, .kernel_group = (kernel)
#define MEMORY(local, global, buffer, align)                                                       \
    .local_bytes = (local), .global_bytes = (global), .max_buffer_bytes = (buffer),                \
    .align_bits = (align)
#define ARGUMENTS(bytes, constants, constant_bytes_)                                               \
    .parameter_bytes = (bytes), .constant_args = (constants), .constant_bytes = (constant_bytes_)
#define UNITS(n, vector, warp_) .units = (n), .vector_width = (vector), .warp = (warp_)

const struct persona personas[] = {
    // OpenCL 1.2, section 10 (EMBEDDED_PROFILE): minima of table 4.3 as changed there; work-groups of 1.
    {
        .name = "minimum",
        TEXTS("Persona", "Minimum", "embedded profile", "OpenCL 1.2 persona",
              "OpenCL C 1.2 persona", ""),
        .embedded = true,
        GROUPS(1, 1, 1, 1, 1),
        MEMORY(1 * KIB, 4 * MIB, 1 * MIB, 1024),
        .local_is_global = true,
        ARGUMENTS(256, 4, 1 * KIB),
        UNITS(1, 1, 1),
        .unified = true,
    },
    // OpenCL 1.2, table 4.3: minima of the full profile.  Memory: the smallest whose quarter is less than
    // the minimum of CL_DEVICE_MAX_MEM_ALLOC_SIZE.
    {
        .name = "full",
        TEXTS("Persona", "Minimum", "full profile", "OpenCL 1.2 persona", "OpenCL C 1.2 persona",
              ATOMICS),
        GROUPS(1, 1, 1, 1, 1),
        MEMORY(32 * KIB, 128 * MIB, 32 * MIB, 1024),
        .local_is_global = true,
        ARGUMENTS(1024, 8, 64 * KIB),
        UNITS(1, 1, 1),
    },
    // No device: work-groups of 64, of which kernels with local memory run 16, and 16 KiB of local memory.
    {
        .name = "small",
        TEXTS("Persona", "Small", "small work-groups", "OpenCL 1.2 persona", "OpenCL C 1.2 persona",
              ATOMICS),
        GROUPS(64, 64, 64, 64, 16),
        MEMORY(16 * KIB, 512 * MIB, 128 * MIB, 32768),
        ARGUMENTS(1024, 8, 64 * KIB),
        UNITS(2, 1, 1),
    },
    // No device: the local memory of "small" with work-groups of a desktop's, and a compiler that refuses more.
    {
        .name = "local16k",
        TEXTS("Persona", "Small", "small local memory", "OpenCL 1.2 persona",
              "OpenCL C 1.2 persona", ATOMICS),
        GROUPS(512, 512, 512, 64, 512),
        MEMORY(16 * KIB, 512 * MIB, 128 * MIB, 2048),
        .build_counts = true,
        ARGUMENTS(4352, 9, 64 * KIB),
        UNITS(16, 1, 32),
    },
    // github.com/ARM-software/ComputeLibrary/issues/999: Mali-G52.  64 registers halve a kernel's threads twice
    // (Arm, "Mali GPU Best Practices"); memory as of a board with 512 MiB.
    {
        .name = "mali",
        TEXTS("ARM Platform", "ARM", "Mali-G52", "OpenCL 2.0 persona", "OpenCL C 2.0 persona",
              ATOMICS " cl_khr_fp16"),
        GROUPS(384, 384, 384, 384, 64),
        MEMORY(32 * KIB, 512 * MIB, 128 * MIB, 1024),
        .local_is_global = true,
        ARGUMENTS(1024, 8, 64 * KIB),
        UNITS(2, 4, 8),
        .unified = true,
    },
    // github.com/BOINC/boinc/issues/3613: Adreno.  A kernel's limit of 128: seen (device/quirks.c).
    {
        .name = "adreno",
        TEXTS("QUALCOMM Snapdragon(TM)", "QUALCOMM", "QUALCOMM Adreno(TM)", "OpenCL 2.0 persona",
              "OpenCL C 2.0 persona", ATOMICS " cl_khr_fp16"),
        GROUPS(1024, 1024, 1024, 1024, 128),
        MEMORY(32 * KIB, 4 * GIB, 1 * GIB, 1024),
        ARGUMENTS(1024, 8, 64 * KIB),
        UNITS(4, 1, 64),
        .unified = true,
    },
    // github.com/diku-dk/futhark/issues/1708, github.com/hashcat/hashcat/issues/2976: Apple M1.  Not told there:
    // the alignment and a kernel's limit.
    {
        .name = "apple",
        TEXTS("Apple", "Apple", "Apple M1", "OpenCL 1.2 ", "OpenCL C 1.2 ", ATOMICS),
        GROUPS(256, 256, 256, 256, 128),
        MEMORY(32 * KIB, 5 * GIB, 1 * GIB, 32768),
        ARGUMENTS(4096, 31, 1 * GIB),
        UNITS(8, 1, 32),
        .unified = true,
    },
    // github.com/ROCm/legacy-rocm-build/issues/1388 and 1215: 256 of 1024 work-items, local memory, arguments.
    {
        .name = "amd",
        TEXTS("AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", "gfx1030",
              "OpenCL 2.0 persona", "OpenCL C 2.0 persona",
              ATOMICS " cl_khr_fp64 cl_khr_fp16 cl_amd_device_attribute_query"),
        GROUPS(256, 1024, 1024, 1024, 256),
        MEMORY(64 * KIB, 16 * GIB, 13 * GIB, 1024),
        ARGUMENTS(1024, 8, 6 * GIB),
        UNITS(36, 1, 32),
    },
    // github.com/10gic/vanitygen-plusplus/issues/100: Tesla T4; github.com/pocl/pocl/pull/1046: arguments.
    // 49,152 bytes of static local memory: CUDA's programming guide, technical specifications.
    {
        .name = "nvidia",
        TEXTS("NVIDIA CUDA", "NVIDIA Corporation", "Tesla T4", "OpenCL 3.0 persona",
              "OpenCL C 1.2 ", ATOMICS " cl_khr_fp64 cl_nv_device_attribute_query"),
        GROUPS(1024, 1024, 1024, 64, 256),
        MEMORY(48 * KIB, 15 * GIB, 15 * GIB / 4, 4096),
        .build_counts = true,
        ARGUMENTS(4352, 9, 64 * KIB),
        UNITS(40, 1, 32),
        .compute_capability = 75,
    },
    // Not read from a device: units and memory as announced, a quarter of it in one buffer, else the row above.
    {
        .name = "h200",
        TEXTS("NVIDIA CUDA", "NVIDIA Corporation", "NVIDIA H200", "OpenCL 3.0 CUDA",
              "OpenCL C 1.2 ", ATOMICS " cl_khr_fp64 cl_nv_device_attribute_query"),
        GROUPS(1024, 1024, 1024, 64, 256),
        MEMORY(48 * KIB, 139 * GIB, 139 * GIB / 4, 4096),
        .build_counts = true,
        ARGUMENTS(4352, 9, 64 * KIB),
        UNITS(132, 1, 32),
        .compute_capability = 90,
    },
    // Not read from a device: units, wavefront and memory as announced, 85 % of it in one buffer, else "amd".
    {
        .name = "mi210",
        TEXTS("AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.",
              "gfx90a:sramecc+:xnack-", "OpenCL 2.0 persona", "OpenCL C 2.0 persona",
              ATOMICS " cl_khr_fp64 cl_khr_fp16 cl_amd_device_attribute_query"),
        GROUPS(256, 1024, 1024, 1024, 256),
        MEMORY(64 * KIB, 64 * GIB, 54 * GIB, 1024),
        ARGUMENTS(1024, 8, 54 * GIB),
        UNITS(104, 1, 64),
    },
    // github.com/intel/compute-runtime/issues/428 and 207, github.com/intel/intel-graphics-compiler/issues/390.
    // Not told there: a kernel's limit.
    {
        .name = "intel",
        TEXTS("Intel(R) OpenCL HD Graphics", "Intel(R) Corporation",
              "Intel(R) UHD Graphics [0x9bca]", "OpenCL 3.0 NEO ", "OpenCL C 3.0 ",
              ATOMICS " cl_khr_fp16 cl_khr_pci_bus_info"),
        GROUPS(256, 256, 256, 256, 128),
        MEMORY(64 * KIB, 12 * GIB, 4 * GIB - 8192, 1024),
        ARGUMENTS(2048, 8, 4 * GIB - 8192),
        UNITS(24, 1, 32),
        .unified = true,
    },
    // Not read from a device: units, memory and sub-groups as announced, a guess of what a kernel runs, else "intel".
    {
        .name = "a770",
        TEXTS("Intel(R) OpenCL Graphics", "Intel(R) Corporation", "Intel(R) Arc(TM) A770 Graphics",
              "OpenCL 3.0 NEO ", "OpenCL C 1.2 ",
              ATOMICS " cl_khr_fp16 cl_khr_pci_bus_info cl_intel_subgroups "
                      "cl_intel_required_subgroup_size cl_intel_device_attribute_query "
                      "cl_intel_subgroup_matrix_multiply_accumulate"),
        GROUPS(1024, 1024, 1024, 1024, 512),
        MEMORY(64 * KIB, 16 * GIB, 4 * GIB - 8192, 1024),
        ARGUMENTS(2048, 8, 4 * GIB - 8192),
        UNITS(512, 1, 32),
    },
};
const size_t n_personas = sizeof personas / sizeof personas[0];

const struct persona *persona_find(const char *name)
{
    for (size_t i = 0; i < n_personas; ++i)
        if (strcmp(personas[i].name, name) == 0)
            return &personas[i];
    return NULL;
}

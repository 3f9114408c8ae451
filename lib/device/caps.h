// SPDX-License-Identifier: MIT
// Device capabilities: the numbers that select kernel variants and tile configurations.  caps.c fills
// them once per context from the driver's answers and the table of quirks.c.
#ifndef ATTNCL_DEVICE_CAPS_H
#define ATTNCL_DEVICE_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum device_vendor {
    VENDOR_OTHER,
    VENDOR_NVIDIA,
    VENDOR_AMD,
    VENDOR_INTEL,
    VENDOR_APPLE,
    VENDOR_ARM,
    VENDOR_QUALCOMM,
    VENDOR_POCL,     // PoCL's CPU device, whatever the CPU's vendor
    VENDOR_MESA_CPU, // rusticl on llvmpipe
    VENDOR_OCLGRIND,
};

// Two families of kernels.  CPU variant: one work-item per row or tile, wide vectors, no barriers.
// GPU variant: work-groups of many work-items, local memory, barriers.
enum kernel_variant { VARIANT_CPU, VARIANT_GPU };

// Matrix instructions; values of macro MMA (cl/common/mma.clh).  WMMA is RDNA 3's, WMMA_GFX12 RDNA 4's; DPAS has
// sub-groups of 8 on Arc and 16 on later GPUs.
enum matrix_instruction {
    MMA_NONE,
    MMA_PTX,
    MMA_MFMA,
    MMA_WMMA,
    MMA_WMMA_GFX12,
    MMA_DPAS_8,
    MMA_DPAS_16,
    N_MATRIX_INSTRUCTIONS
};
// Precision of the factors of matrix instructions, if the instruction supports it; values of macro PRECISION.
enum gemm_precision { GEMM_F32, GEMM_TF32, GEMM_BF16, N_GEMM_PRECISIONS };

// How work-items of a sub-group read each other's registers; values of macro SHUFFLE (cl/common/shuffle.clh).
enum lane_shuffle {
    SHUFFLE_NONE,
    SHUFFLE_PTX,
    SHUFFLE_AMD,
    SHUFFLE_INTEL, // cl_intel_subgroups
    SHUFFLE_KHR    // cl_khr_subgroup_shuffle
};

struct tune_table;

struct device_caps {
    enum device_vendor vendor;
    enum kernel_variant variant;
    bool is_cpu;
    bool is_gpu;
    unsigned compute_units;
    size_t max_group;        // work-items per work-group
    size_t local_bytes;      // local memory per work-group
    size_t unit_local_bytes; // local memory per compute unit, shared by its work-groups; 0: unknown
    uint64_t global_bytes;
    uint64_t max_buffer_bytes;
    size_t align_bytes;             // alignment of sub-buffer origins, at least 128
    unsigned vector_width;          // VW of CPU variants: 16, 8 or 4; of GPU variants: 4
    unsigned group_multiple;        // preferred multiple of work-items (warp, wave); 1: unknown
    uint64_t max_loop_iterations;   // iteration cap of one work-item; 0: none known
    unsigned nv_compute_capability; // major * 10 + minor; 0 elsewhere
    // A candidate is what the architecture or driver offers.  Kernels use a feature once its probe passed.
    enum matrix_instruction mma_candidate;
    enum matrix_instruction mma; // used by GEMMs
    enum matrix_instruction attention_mma;
    enum matrix_instruction attention_bwd_mma;
    enum gemm_precision precision;
    enum lane_shuffle shuffle_candidate;
    enum lane_shuffle shuffle;
    unsigned shuffle_lanes; // sub-group size of shuffle_candidate
    unsigned address_bits;  // of the device's size_t: 32 or 64
    double flop_per_second; // GPUs: lower estimate of what kernels reach; 0: unknown
    bool clblast_candidate; // false on CPU devices and on GPUs whose compilers handle CLBlast badly
    bool clblast;           // used by GEMMs
    bool uses_host_memory;  // a CPU device that can use host memory as a buffer
    bool blocking_writes;   // clFinish() may return before a non-blocking write has read its data
    bool has_own_cache;     // the driver caches programs itself and is slow to return a binary
    bool builtin_prefetch;  // the compiler's __builtin_prefetch makes kernels faster
    bool vnni;              // the CPU has AVX512_VNNI, and the compiler takes x86's assembler
    struct tune_table *tuned; // this device's (launch/launch_size.c); NULL: none
};

#endif

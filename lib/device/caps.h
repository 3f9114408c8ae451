// SPDX-License-Identifier: MIT
// Device capabilities: the numbers that decide which kernel variant and tile configuration runs.
// Filled once per context by caps.c from the driver's answers and the table of quirks.c.
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

// Matrix instructions, the values of macro MMA (cl/common/mma.clh).
// WMMA: of RDNA 3, and of RDNA 4; DPAS: by sub-groups of 8 on Arc, of 16 later.
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
// Of the factors of products, where the instruction has it: the values of macro PRECISION.
enum gemm_precision { GEMM_F32, GEMM_TF32, GEMM_BF16, N_GEMM_PRECISIONS };

// How work-items of a sub-group read each other's registers, the values of macro SHUFFLE
// (cl/common/shuffle.clh).
enum lane_shuffle {
    SHUFFLE_NONE,
    SHUFFLE_PTX,
    SHUFFLE_AMD,
    SHUFFLE_EMULATED,
    SHUFFLE_INTEL,       // cl_intel_subgroups
    SHUFFLE_KHR,         // cl_khr_subgroup_shuffle
    SHUFFLE_AMD_EMULATED // as SHUFFLE_AMD composes AMD's instructions
};

struct tune_table;

struct device_caps {
    enum device_vendor vendor;
    enum kernel_variant variant;
    bool is_cpu;
    bool is_gpu;
    unsigned compute_units;
    size_t max_group;        // work-items
    size_t local_bytes;      // local memory of a work-group
    size_t unit_local_bytes; // of a compute unit, shared by its work-groups; 0: not known
    uint64_t global_bytes;
    uint64_t max_buffer_bytes;
    size_t align_bytes;             // sub-buffer origins, at least 128
    unsigned vector_width;          // VW for CPU variants: 16, 8 or 4; for GPU variants: 4
    unsigned group_multiple;        // preferred multiple of work-items (warp, wave); 1 when unknown
    uint64_t max_loop_iterations;   // iteration cap of one work-item, 0: none known
    unsigned nv_compute_capability; // major * 10 + minor; 0 elsewhere
    enum matrix_instruction mma_candidate;     // the architecture has it
    enum matrix_instruction mma;               // GEMMs use it, where a probe passed
    enum matrix_instruction attention_mma;     // attention does
    enum matrix_instruction attention_bwd_mma; // its gradients
    bool mma_emulated;                         // in local memory, for tests
    enum gemm_precision precision;
    enum lane_shuffle shuffle_candidate; // the architecture has it, or an extension
    enum lane_shuffle shuffle;           // kernels use it, where a probe passed
    unsigned shuffle_lanes;              // of a sub-group, where there is a candidate
    unsigned address_bits;               // of the device's size_t: 32 or 64
    double flop_per_second;              // GPUs: what kernels reach at least, a low guess; 0: none
    bool clblast_candidate; // not on CPU devices, and GPUs whose compilers its kernels do not suit
    bool clblast;           // GEMMs use it, where a probe passed
    bool uses_host_memory;  // a CPU whose buffers may be the host's own memory
    bool blocking_writes;   // clFinish() does not say that a non-blocking write has read its data
    bool keeps_programs;    // the driver has its own program cache, and is slow to give a binary
    bool builtin_prefetch;  // kernels gain by the compiler's __builtin_prefetch
    struct tune_table *tuned; // of this device (launch/launch_size.c); NULL: none
};

#endif

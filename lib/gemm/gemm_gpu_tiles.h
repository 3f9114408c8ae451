// SPDX-License-Identifier: MIT
// Tiles of the GPU variant's GEMMs: which one a GEMM gets, and in how many splits along k.
#ifndef ATTNCL_GEMM_GEMM_GPU_TILES_H
#define ATTNCL_GEMM_GEMM_GPU_TILES_H

#include "gemm/gemm_native.h"

// A tile of bm x bn elements of C, in blocks of bk along k, by tx x ty work-items.  Each work-item
// sums bm bn / (tx ty) elements.  Local memory: (bm + bn + 8) bk floats, 16.5 KiB at most.
// By a matrix instruction: a sub-group has bm / ty rows, and with its neighbours along n all bn columns;
// (bm + bn + 32) bk floats.
struct gpu_tile {
    enum device_vendor vendor; // VENDOR_OTHER: any
    unsigned group_multiple;   // warp or wave; 0: any
    int bm, bn, bk, tx, ty;
    enum matrix_instruction mma; // MMA_NONE: FMAs
};

// The kernel and its macros.
struct kspec attncl__gpu_tile_spec(const struct launcher *l, const struct gemm *g,
                                   const struct gpu_tile *t);

// Of all batch entries.
int64_t attncl__gpu_tile_count(const struct gemm *g, const struct gpu_tile *t);

// Number of splits of k, each but the last of *step_ret terms; 1: no split-K.
int64_t attncl__gpu_split_k_count(const struct device_caps *caps, const struct gemm *g,
                                  const struct gpu_tile *t, int64_t *step_ret);

// The tuned tile of the GEMM's class, else the first of the table that is profitable, else any, preferably
// without spills.  False: none runs on the device.
bool attncl__gpu_tile_choose(struct launcher *l, const struct gemm *g, struct gpu_tile *ret,
                             bool *tuned_ret);

#endif

// SPDX-License-Identifier: MIT
// The built-in (native) GEMM kernels.  gemm/gemm.c chooses among them and CLBlast.
#ifndef ATTNCL_GEMM_GEMM_NATIVE_H
#define ATTNCL_GEMM_GEMM_NATIVE_H

#include "gemm/gemm.h"

// How a GEMM is computed, for the log.
enum { GEMM_HOW_BYTES = 96 };

// Every argument list of these kernels: sizes first, then matrices, then the epilogue.
enum { GEMM_MAX_ARGS = 40 };
struct gemm_args {
    struct arg arg[GEMM_MAX_ARGS];
    size_t n;
};
void attncl__gemm_add_arg(struct gemm_args *args, struct arg arg);
void attncl__gemm_add_matrix(struct gemm_args *args, const struct gemm_matrix *x);
// EPILOGUE_PARAMS of cl/common/epilogue.clh
void attncl__gemm_add_epilogue(struct gemm_args *args, const struct gemm *g);

// What both tile variants' argument lists begin with, and the macros both have.
void attncl__gemm_add_sizes(struct gemm_args *args, const struct gemm *g, int64_t k_from,
                            int64_t k_to);
void attncl__gemm_add_form(struct kspec *spec, const struct gemm *g);
// Tiles of one batch entry; ERR_UNSUPPORTED when those of all are too many.
int64_t attncl__gemm_tile_count(const struct gemm *g, int64_t tile_m, int64_t tile_n);
attncl_status attncl__gemm_check_groups(const struct gemm *g, int64_t groups);

// True when there is anything to do after the GEMM.
bool attncl__gemm_has_epilogue(const struct gemm *g);

// Tiles (gemm/gemm_tiles.c, gemm/gemm_gpu.c): any GEMM with k > 0.  ERR_UNSUPPORTED when no
// tile variant runs on the device or the grid is too large.
attncl_status attncl__gemm_tiles(struct launcher *l, const struct gemm *g,
                                 char how[GEMM_HOW_BYTES]);

// The same in each form.
attncl_status attncl__gemm_cpu_tiles(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES]);
attncl_status attncl__gemm_gpu_tiles(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES]);

// Scratch of the tile variants, for a GEMM that is not empty and not skinny.
size_t attncl__gemm_gpu_scratch(const struct device_caps *caps, const struct gemm *g);

// The GEMM's class among tuned rows: TUNE_SMALL, TUNE_MEDIUM or TUNE_LARGE.
int attncl__gemm_class(const struct gemm *g);

// Skinny: B streams through once.
bool attncl__gemm_is_skinny(const struct device_caps *caps, const struct gemm *g);
attncl_status attncl__gemm_skinny(struct launcher *l, const struct gemm *g,
                                  char how[GEMM_HOW_BYTES]);

// The epilogue of what is in C, of zero, or of the sum of `n_splits` dense partial results in
// g->scratch.
enum gemm_sums { GEMM_SUMS_IN_C, GEMM_SUMS_ZERO, GEMM_SPLIT_K };
attncl_status attncl__gemm_apply_epilogue(struct launcher *l, const struct gemm *g,
                                          enum gemm_sums sums, int64_t n_splits);

#endif

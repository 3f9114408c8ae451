// SPDX-License-Identifier: MIT
// The native GEMM kernels, for the files of gemm/.  gemm_backend.c chooses among them and CLBlast.
#ifndef ATTNCL_GEMM_GEMM_NATIVE_H
#define ATTNCL_GEMM_GEMM_NATIVE_H

#include "gemm/gemm.h"

// How a GEMM is computed, for the log.
enum { GEMM_HOW_BYTES = 96 };

// Tiles: any GEMM with k > 0, by the device's variant.  ERR_UNSUPPORTED when no tile configuration
// runs on the device or the grid is too large.
attncl_status attncl__gemm_tiles(struct launcher *l, const struct gemm *g,
                                 char how[GEMM_HOW_BYTES]);
attncl_status attncl__gemm_cpu(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES]);
attncl_status attncl__gemm_gpu(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES]);

// Their scratch, for a GEMM that is not empty and not skinny.
size_t attncl__gemm_cpu_scratch(const struct device_caps *caps, const struct gemm *g);
size_t attncl__gemm_gpu_scratch(const struct device_caps *caps, const struct gemm *g);

// Skinny: few enough rows of A that B is read once.
bool attncl__gemm_is_skinny(const struct device_caps *caps, const struct gemm *g);
attncl_status attncl__gemm_skinny(struct launcher *l, const struct gemm *g,
                                  char how[GEMM_HOW_BYTES]);
// Those that gemm_skinny.c leaves to cl/gemm/gemv_*.cl; and with layer norm, in the GPU variant.
enum { GEMV_MAX_ROWS = 4 }; // but for blocks of rows
bool attncl__gemv_takes(const struct device_caps *caps, const struct gemm *g);
bool attncl__gemv_norms(const struct device_caps *caps, const struct gemm *g);
attncl_status attncl__gemv(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES]);

// Whether the longest loop nest of a work-item may have so many iterations.
bool attncl__gemm_loops_fit(const struct device_caps *caps, int64_t iterations);

// True when the GEMM has an activation, a bias, a gate or a residual.
bool attncl__gemm_has_epilogue(const struct gemm *g);

// Applies the epilogue to what is in C, to zero, or to the sum of `n_splits` dense partial results
// in g->scratch.
enum gemm_sums { GEMM_SUMS_IN_C, GEMM_SUMS_ZERO, GEMM_SPLIT_K };
attncl_status attncl__gemm_apply_epilogue(struct launcher *l, const struct gemm *g,
                                          enum gemm_sums sums, int64_t n_splits);

// The GEMM's class among tuned values: TUNE_SMALL, TUNE_MEDIUM or TUNE_LARGE.
int attncl__gemm_class(const struct gemm *g);
// Of tiles on GPUs; TUNE_SKINNY: at most 32 rows.
int attncl__gemm_gpu_class(const struct gemm *g);

// An argument list: sizes first, then matrices, then the epilogue (EPILOGUE_PARAMS of
// cl/common/epilogue.clh).
void attncl__gemm_add_matrix(struct arg_list *args, const struct gemm_matrix *x);
void attncl__gemm_add_epilogue(struct arg_list *args, const struct gemm *g);

// The macros that both tile variants have: TRANS_A, TRANS_B, CAUSAL, WTYPE, ACT.
void attncl__gemm_add_macros(struct kspec *spec, const struct gemm *g);

// Tiles of one batch entry, and ERR_UNSUPPORTED when those of all entries are too many.
int64_t attncl__gemm_tile_count(const struct gemm *g, int64_t tile_m, int64_t tile_n);
attncl_status attncl__gemm_check_groups(const struct gemm *g, int64_t groups);

// The largest work-group for rows of `width` elements that the built kernel can run: halved from
// what the device can.  `make` gives the specialisation for a work-group size.
typedef struct kspec (*gemm_spec_fn)(const struct device_caps *caps, const struct gemm *g,
                                     size_t local);
size_t attncl__gemm_fit_group(struct launcher *l, const struct gemm *g, int64_t width,
                              gemm_spec_fn make, struct kspec *spec);

#endif

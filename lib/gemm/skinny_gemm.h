// SPDX-License-Identifier: MIT
// The macros of cl/common/skinny_gemm.clh, for every kernel with a skinny GEMM (small M) in it.
#ifndef ATTNCL_GEMM_SKINNY_GEMM_H
#define ATTNCL_GEMM_SKINNY_GEMM_H

#include "launch/launch.h"

enum { SKINNY_GEMM_MAX_ROWS = 16 }; // of A

// VW, LS = 1, COLS_PER_PASS, MAX_ROWS and USE_PREFETCH for m rows.
void attncl__skinny_gemm_macros(const struct device_caps *caps, int64_t m, struct kspec *spec);

// Prefetch distance, in rows of weights of k elements.
int64_t attncl__skinny_gemm_prefetch_rows(const struct device_caps *caps, int64_t m, int64_t k,
                                          attncl_dtype dtype);

#endif

// SPDX-License-Identifier: MIT
// What attncl-gpu-variants launches: shapes that make the library choose each of its rows.
#ifndef ATTNCL_TEST_KERNELS_GPU_CASES_H
#define ATTNCL_TEST_KERNELS_GPU_CASES_H

#include "gemm/gemm.h"
#include "op/op.h"

enum { RESOURCE_MAX_IN = 16 };
struct resource_case {
    const char *label;
    const char *op; // NULL: a GEMM
    const void *params;
    struct {
        attncl_dtype dtype;
        int rank;
        int64_t dim[4];
    } in[RESOURCE_MAX_IN];
    struct gemm gemm; // spans are filled in
    bool skinny;      // of few rows
};
attncl_status resource_case_run(struct launcher *l, const struct resource_case *c);

extern const struct resource_case resource_cases[];
extern const size_t n_resource_cases;

#endif

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
        int64_t dim[5];
        int64_t gap; // elements between rows of the last axis
    } in[RESOURCE_MAX_IN];
    struct gemm gemm; // spans are filled in
    bool skinny;      // of few rows
};
attncl_status resource_case_run(struct launcher *l, const struct resource_case *c);

// A table for each part of the library.
extern const struct resource_case resource_general[], resource_steps[], resource_gradients[];
extern const size_t n_resource_general, n_resource_steps, n_resource_gradients;

// clang-format off
#define EXTENTS(type, ...)                                                                           \
    {ATTNCL_##type, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}}
#define DIM(...) EXTENTS(F32, __VA_ARGS__)
#define ABSENT   {.rank = 0}
#define INDEX    {.dtype = ATTNCL_I32}
#define OP_CASE(name, cls, values, ...)                                                            \
    {.label = name, .op = #cls, .params = &(const struct cls##_params)values, .in = {__VA_ARGS__}}
#define VALUES(...) {__VA_ARGS__}
#define GEMM(name, rows, columns, terms, ...)                                                      \
    {.label = name,                                                                                \
     .gemm = {.batch = 1, .m = (rows), .n = (columns), .k = (terms), __VA_ARGS__}}
#define SKINNY(name, rows, ...)                                                                    \
    {.label = name, .skinny = true,                                                                \
     .gemm = {.batch = 1, .m = (rows), .n = 4096, .k = 4096, __VA_ARGS__}}
// clang-format on

#define HEADS(t, d) DIM(1, 16, t, d)
#define QKV(t, b)   DIM(t, b, 512), DIM(t, b, 512), DIM(t, b, 512)

#endif

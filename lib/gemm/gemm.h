// SPDX-License-Identifier: MIT
// GEMMs with an epilogue, batched and strided, by the backend that suits device and
// shape:
//
//   C = act(A B + bias) * gate + residual         per batch entry; row-major, all float
//
// A is [m, k] or, transposed, [k, m]; B is [k, n] or [n, k]; C is [m, n].
#ifndef ATTNCL_GEMM_GEMM_H
#define ATTNCL_GEMM_GEMM_H

#include "launch/launch.h"

enum gemm_activation {
    GEMM_ACT_NONE,
    GEMM_ACT_GELU,
    GEMM_ACT_RELU,
    GEMM_ACT_SIGMOID,
    GEMM_ACT_TANH,
    GEMM_ACT_SILU
};
enum gemm_bias { GEMM_BIAS_NONE, GEMM_BIAS_COLUMN /* bias[n] */, GEMM_BIAS_ROW /* bias[m] */ };

// A matrix per batch entry: element (i, j) of entry b is at start + b * batch_stride + i * ld + j.
struct gemm_matrix {
    struct span span; // absent: this operand is not used (gate, residual, bias)
    int64_t start;
    int64_t ld;
    int64_t batch_stride; // 0: shared by all entries
};

// Layer normalisation of the rows of A, weight and bias [k]; absent: none.
struct gemm_norm {
    struct span weight, bias;
    float eps;
};

struct gemm {
    int64_t batch, m, n, k;
    struct gemm_matrix a, b, c;
    bool trans_a, trans_b;
    bool causal; // A is square and lower triangular: elements (i, j > i) are not read; not with
                 // trans_a
    enum gemm_bias bias_kind;
    struct span bias;
    enum gemm_activation activation;
    struct gemm_matrix gate;     // multiplies after the activation
    struct gemm_matrix residual; // added last
    struct span scratch;         // may be absent
    size_t scratch_bytes;
    struct gemm_norm norm;          // only where attncl__gemm_norms()
    struct span saved_for_backward; // present: receives A B + bias, dense [batch, m, n]
};

// Scratch for split-K of a GEMM whose C alone would not fill the device; 0: of no
// use.  Reads sizes and form of the GEMM only, so that launching asks for as much again.
size_t attncl__gemm_scratch(const struct device_caps *caps, const struct gemm *g);

// Whether the GEMM can normalise the rows of A itself, for less than a launch of its own takes.
// Reads sizes and form of the GEMM only.
bool attncl__gemm_norms(const struct device_caps *caps, const struct gemm *g);

// Appends the GEMM.  k = 0 gives the epilogue of zero; an empty C appends nothing.
attncl_status attncl__gemm(struct launcher *l, const struct gemm *g);

#endif

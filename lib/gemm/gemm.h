// SPDX-License-Identifier: MIT
// GEMM with an epilogue, batched and strided.  The backend depends on device and shape:
//
//   C = act(A B + bias) * gate + residual         per batch entry; row-major, float
//
// A is [m, k] or, transposed, [k, m]; B is [k, n] or [n, k]; C is [m, n].
#ifndef ATTNCL_GEMM_GEMM_H
#define ATTNCL_GEMM_GEMM_H

#include "attncl/kinds.h"
#include "launch/launch.h"

enum gemm_bias { GEMM_BIAS_NONE, GEMM_BIAS_COLUMN /* bias[n] */, GEMM_BIAS_ROW /* bias[m] */ };

// A matrix per batch entry: element (i, j) of entry b is at start + b * batch_stride + i * ld + j.
struct gemm_matrix {
    struct span span; // absent: this operand is not used (gate, residual, bias)
    int64_t start;
    int64_t ld;
    int64_t batch_stride; // 0: shared by all entries
};

// Normalisation of A's rows: layer norm, or RMS norm without bias; weight and bias [k].  Absent weight: none.  Before it,
// partials_bias, [k], may be absent, and the partial sums [n_partials, m, k] are added to A.  Absent partials: none.
struct gemm_norm {
    struct span weight, bias;
    float eps;
    struct span partials, partials_bias;
    int64_t n_partials;
};

// Merging of partial attention into the rows of A: A's span holds the partial results of attention
// steps, [m, n_heads, n_parts, 2 + k / n_heads].  Absent position: none.
struct gemm_merge {
    struct span position;
    int64_t n_heads, n_parts, limit;
    int32_t own_keys; // 0 or 1: a position attends to position + own_keys keys, at most `limit`
};

// Another GEMM of the same A: B of the same type with n_other columns, dense C.  Absent B: none.
struct gemm_other {
    struct gemm_matrix b;
    struct span bias, c; // bias [n], may be absent
};
enum { GEMM_MAX_OTHERS = 2 };

struct gemm {
    int64_t batch, m, n, k;
    struct gemm_matrix a, b, c;
    attncl_dtype b_dtype; // F16, BF16, Q8, Q4: stored weights, with batch 1; any other: float
    bool trans_a, trans_b;
    bool causal; // A is square, lower triangular, not transposed: (i, j > i) is not read
    enum gemm_bias bias_kind;
    struct span bias;
    attncl_activation activation;
    struct gemm_matrix gate;     // multiplies after the activation
    struct gemm_matrix residual; // added last
    struct span scratch;         // may be absent
    size_t scratch_bytes;
    // Each requires the predicate below.  other[]: all are set or none.
    struct gemm_norm norm;
    struct gemm_merge merge;
    struct gemm_other other[GEMM_MAX_OTHERS];
    int64_t n_other;                // at most n
    struct span saved_for_backward; // present: receives A B + bias, dense [batch, m, n]
};

// Smaller GEMMs, in FLOP of the whole batch, do not use CLBlast: it pads and transposes operands in several launches.
#define CLBLAST_MIN_FLOP (2.0 * 512 * 512 * 512)

// GEMM_OF(batch, m, n, k, .member = value, ...)
#define GEMM_OF(...) ((struct gemm){.batch = __VA_ARGS__})

// Returns the bytes of scratch for split-K, 0 if it does not help.  Depends on the GEMM's sizes, types and
// layout only, so that planning and launching agree.
size_t attncl__gemm_scratch(const struct device_caps *caps, const struct gemm *g);

// True when the GEMM can normalise A's rows, add partial sums to them before, merge them, or compute GEMM_MAX_OTHERS more
// GEMMs of A, in less time than a separate launch takes.  Depends on sizes and layout, and on the heads and parts to merge.
bool attncl__gemm_can_norm(const struct device_caps *caps, const struct gemm *g);
bool attncl__gemm_can_add_partials(const struct device_caps *caps, const struct gemm *g);
bool attncl__gemm_can_merge(const struct device_caps *caps, const struct gemm *g);
bool attncl__gemm_can_take_others(const struct device_caps *caps, const struct gemm *g);

// Appends the GEMM.  With k = 0 the epilogue is applied to zero; an empty C appends nothing.
attncl_status attncl__gemm(struct launcher *l, const struct gemm *g);

// -- cl/common/skinny_gemm.clh, for every kernel that contains a skinny GEMM (small m)

enum { SKINNY_GEMM_MAX_ROWS = 16 }; // of A

// Adds VW, LS = 1, COLS_PER_PASS, MAX_ROWS and USE_PREFETCH for m rows and weight rows of k elements.
void attncl__skinny_gemm_add_macros(const struct device_caps *caps, int64_t m, int64_t k,
                                    attncl_dtype dtype, struct kspec *spec);

// Returns the prefetch distance, in weight rows of k elements.
int64_t attncl__skinny_gemm_prefetch_rows(const struct device_caps *caps, int64_t m, int64_t k,
                                          attncl_dtype dtype);

#endif

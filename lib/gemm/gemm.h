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

// Normalisation of the rows of A, weight and bias [k]; without bias RMS normalisation.  Absent weight: none.
struct gemm_norm {
    struct span weight, bias;
    float eps;
};

// Rows of A that are attention of one position and still in parts: A's span holds them as
// steps of attention leave them, [m, n_heads, n_parts, 2 + k / n_heads].  Absent position: none.
struct gemm_merge {
    struct span position;
    int64_t n_heads, n_parts, limit;
    int32_t
        own_keys; // of the position itself, 0 or 1: it has position + own_keys keys, at most limit
};

// Another product of the same A: B of the same type, with n_other columns, C dense.  Absent B: none.
struct gemm_other {
    struct gemm_matrix b;
    struct span bias, c; // bias [n], may be absent
};
enum { GEMM_MAX_OTHERS = 2 };

struct gemm {
    int64_t batch, m, n, k;
    struct gemm_matrix a, b, c;
    attncl_dtype b_dtype; // F16, BF16, Q8, Q4: weights as they are stored, batch 1; else float
    bool trans_a, trans_b;
    bool causal; // A is square, lower triangular, not transposed: (i, j > i) is not read
    enum gemm_bias bias_kind;
    struct span bias;
    attncl_activation activation;
    struct gemm_matrix gate;     // multiplies after the activation
    struct gemm_matrix residual; // added last
    struct span scratch;         // may be absent
    size_t scratch_bytes;
    struct gemm_norm norm;   // only where attncl__gemm_norms()
    struct gemm_merge merge; // only where attncl__gemm_merges()
    struct gemm_other
        other[GEMM_MAX_OTHERS];     // both or none; only where attncl__gemm_takes_others()
    int64_t n_other;                // n at most
    struct span saved_for_backward; // present: receives A B + bias, dense [batch, m, n]
};

// CLBlast takes several launches, and pads and transposes its operands, for what one native kernel does: GEMMs
// of less FLOP, with the batch, are not left to it.
#define CLBLAST_MIN_FLOP (2.0 * 512 * 512 * 512)

// GEMM_OF(batch, m, n, k, .member = value, ...)
#define GEMM_OF(...) ((struct gemm){.batch = __VA_ARGS__})

// Bytes of scratch for split-K, 0 where it is of no use.  Depends on the GEMM's sizes, types and layout only,
// so that planning and launching agree.
size_t attncl__gemm_scratch(const struct device_caps *caps, const struct gemm *g);

// True when the GEMM can normalise the rows of A itself, in less time than a separate
// launch.  Depends on the GEMM's sizes and layout only.
bool attncl__gemm_norms(const struct device_caps *caps, const struct gemm *g);

// True when the GEMM can merge its rows from parts itself, in less time than a separate launch.  Depends on
// the GEMM's sizes and layout and on the numbers of heads and parts.
bool attncl__gemm_merges(const struct device_caps *caps, const struct gemm *g);

// True when one launch computes the GEMM and two other products of A, as wide at most, and reads every B once.  Depends
// on the GEMM's sizes and layout only.
bool attncl__gemm_takes_others(const struct device_caps *caps, const struct gemm *g);

// Appends the GEMM.  With k = 0 the epilogue is applied to zero; an empty C appends nothing.
attncl_status attncl__gemm(struct launcher *l, const struct gemm *g);

// -- the macros of cl/common/skinny_gemm.clh, for every kernel with a skinny GEMM (small M) in it

enum { SKINNY_GEMM_MAX_ROWS = 16 }; // of A

// VW, LS = 1, COLS_PER_PASS, MAX_ROWS and USE_PREFETCH for m rows and weights of k elements.
void attncl__skinny_gemm_macros(const struct device_caps *caps, int64_t m, int64_t k,
                                attncl_dtype dtype, struct kspec *spec);

// Prefetch distance, in rows of weights of k elements.
int64_t attncl__skinny_gemm_prefetch_rows(const struct device_caps *caps, int64_t m, int64_t k,
                                          attncl_dtype dtype);

#endif

// SPDX-License-Identifier: MIT
// Matrix product with an epilogue, CPU form.  Host side: lib/launch/gemm_tiles.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] or [k, m], B [k, n] or [n, k]
//
//   Work      one work-item = one tile of tile_m x tile_n of C, cut into panels of MR rows and of NR columns.  1-D
//             grid: column tiles fastest, then batch entries, then row tiles (when CAUSAL the last one, which has the
//             longest sums, first)
//   Memory    blocks of tile_k: B's part is packed into `b_pack` [panel][k][NR], zeros beyond n; that of a transposed A
//             into `a_pack` [panel][k][MR], with gaps, A_ROWS rows of C at a time.  Sums of earlier blocks, and of
//             earlier launches [0, k_from), wait in C
//   Numerics  float; one chain of multiply-adds (fused where the device does) per block, blocks added in order.
//             CAUSAL: element (i, j > i) of A is neither read nor multiplied, so row i is right whatever later rows of
//             B hold
//
//   Macro     Meaning                                              Values
//   LS        work-items in a group                                1
//   VW        vector width                                         4 | 8 | 16
//   NV        vectors across a panel of columns                    1 .. 4
//   TRANS_A   A is [k, m]                                          0 | 1
//   TRANS_B   B is [n, k]                                          0 | 1
//   CAUSAL    A is square and lower triangular                     0 | 1; 0 with TRANS_A
//   AHEAD     as in ahead.clh                                      0 | 1
//   ACT       activation of the epilogue                           0 .. 5

#include "common/ahead.clh"
#include "common/transpose.clh"
#include "common/types.clh"

#ifndef NV
#error "NV: vectors across a panel of columns"
#endif
#ifndef TRANS_A
#error "TRANS_A: A is [k, m]"
#endif
#ifndef TRANS_B
#error "TRANS_B: B is [n, k]"
#endif
#ifndef CAUSAL
#error "CAUSAL: A is lower triangular"
#endif

#include "common/epilogue.clh"

// Six rows by four vectors leave AVX-512 room for the operands: 24 sums, 4 of B and 1 of A in 32 registers.
#define MR 6
#define NR (NV * VW)
// Elements of a row of A that are fetched ahead together: a cache line.
#define LINE 16
// A row of a transposed A's panel is copied as eight floats, of which the next row, or the gap, takes the last two.
#define COPIED 8
// Floats from a panel of A to the next: with the gap, a line, their rows do not all fall into one cache set.
#define A_PANEL(kc) ((kc)*MR + 16)
// Rows of a transposed A that are copied together.
#define AK 8
// Rows of C, whole cache lines of a transposed A, that are packed at a time: few, since the cache is B's.
#define A_ROWS 96

#if TRANS_B
LOCAL_INLINE void copy_square(__global const float *from, long ld, __local float *to)
{
    FV row[VW];

#pragma unroll
    for (int i = 0; i < VW; i++)
        row[i] = VLOAD(from + i * ld);
    transpose_square(row);
#pragma unroll
    for (int i = 0; i < VW; i++)
        VSTORE(row[i], to + i * NR);
}
#endif

// b: kc rows, `width` columns of B -> pack [kc][NR], zeros in the missing columns
LOCAL_INLINE void pack_b(__global const float *b, long ldb, int width, int kc, __local float *pack)
{
#if TRANS_B
    const int whole = width / VW * VW, whole_k = kc / VW * VW;

    for (int k = 0; k < whole_k; k += VW)
        for (int c = 0; c < whole; c += VW)
            copy_square(b + c * ldb + k, ldb, pack + k * NR + c);
    for (int k = whole_k; k < kc; k++)
        for (int c = 0; c < whole; c++)
            pack[k * NR + c] = b[c * ldb + k];
    for (int k = 0; k < kc && whole < NR; k++)
        for (int c = whole; c < NR; c++)
            pack[k * NR + c] = c < width ? b[c * ldb + k] : 0.0f;
#else
    for (int k = 0; k < kc; k++, b += ldb, pack += NR)
        for (int c = 0; c < NR; c += VW) {
            if (c + VW <= width)
                VSTORE(VLOAD(b + c), pack + c);
            else
                for (int x = c; x < c + VW; x++)
                    pack[x] = x < width ? b[x] : 0.0f;
        }
#endif
}

#if TRANS_A
#define A_SPACE __local

#ifdef __clang__
typedef float8 COPIED_ANYWHERE __attribute__((aligned(4)));
#define COPY(from, to)                                                                             \
    (*(__local COPIED_ANYWHERE *)(to) = *(__global const COPIED_ANYWHERE *)(from))
#else
#define COPY(from, to) vstore8(vload8(0, from), 0, to)
#endif

// a: kc rows, `rows` columns of the transposed A, of which `there` can be read -> pack [panel][kc][MR]; missing columns
// repeat the last one
LOCAL_INLINE void pack_a(__global const float *a, long lda, int rows, int there, int kc,
                         __local float *pack)
{
    const int whole = min(rows, max(there - COPIED + MR, 0) / MR * MR); // panels that COPY may read
    int k = 0;

    // Several rows at a time: more loads on their way, and stores of whole cache lines.
    for (; k + AK <= kc; k += AK)
        for (int i = 0; i < whole; i += MR) {
            __local float *to = pack + i / MR * A_PANEL(kc) + k * MR;
#pragma unroll
            for (int x = 0; x < AK; x++)
                COPY(a + (k + x) * lda + i, to + x * MR);
        }
    for (; k < kc; k++)
        for (int i = 0; i < whole; i += MR)
            COPY(a + k * lda + i, pack + i / MR * A_PANEL(kc) + k * MR);
    for (int i = whole; i < rows; i += MR)
        for (k = 0; k < kc; k++)
            for (int r = 0; r < MR; r++)
                pack[i / MR * A_PANEL(kc) + k * MR + r] = a[k * lda + min(i + r, rows - 1)];
}
#else
#define A_SPACE __global
#endif

// A panel of A.  Row r takes part while k < k_all + r.
struct a_panel {
    A_SPACE const float *at; // packed, rows interleaved, when TRANS_A
    long ld;
    long ahead; // from a row to the one that has its place in the next panel
    int height, k_all;
};

// sums [MR][NV] = a panel of A times a packed one of B, kc terms, and a bias of its columns; absent: NULL
LOCAL_INLINE void multiply_panels(const struct a_panel *a, __local const float *b, int kc,
                                  __global const float *bias, FV (*sums)[NV])
{
    const int end = CAUSAL ? min(a->k_all, kc) : kc;
    int k = 0;

#if TRANS_A
#define A_AT(r) a->at[k * MR + r]
#else
    A_SPACE const float *row[MR]; // a missing row repeats the last one and is not stored
#pragma unroll
    for (int r = 0; r < MR; r++)
        row[r] = a->at + min(r, a->height - 1) * a->ld;
#define A_AT(r) row[r][k]
#endif
#pragma unroll
    for (int r = 0; r < MR; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sums[r][v] = bias ? VLOAD(bias + v * VW) : (FV)(0.0f);

    for (; k < end; k++, b += NR) {
        FV bv[NV];
#if !TRANS_A
        if (k % LINE == 0)
#pragma unroll
            for (int r = 0; r < MR; r++)
                fetch_ahead(row[r] + a->ahead + k);
#endif
#pragma unroll
        for (int v = 0; v < NV; v++)
            bv[v] = VLOAD(b + v * VW);
#pragma unroll
        for (int r = 0; r < MR; r++) {
            const FV av = (FV)(A_AT(r));
#pragma unroll
            for (int v = 0; v < NV; v++)
                sums[r][v] += av * bv[v];
        }
    }
#if CAUSAL
    for (const int last = min(a->k_all + a->height - 1, kc); k < last; k++, b += NR)
#pragma unroll
        for (int r = 1; r < MR; r++)
            if (k < a->k_all + r) {
                const FV av = (FV)(A_AT(r));
#pragma unroll
                for (int v = 0; v < NV; v++)
                    sums[r][v] += av * VLOAD(b + v * VW);
            }
#endif
}

// Where sums belong: height x width elements of C from (i, j), the first at `out`.
struct c_panel {
    __global float *out;
    long ld;
    int i, j, height, width;
    bool grow, finish; // there are earlier sums; these are the last
};

LOCAL_INLINE void store_panel(const struct c_panel *c, const struct epilogue *e, FV (*sums)[NV])
{
    if (!c->finish && c->height == MR && c->width == NR) {
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++) {
                __global float *to = c->out + r * c->ld + v * VW;
                VSTORE(c->grow ? VLOAD(to) + sums[r][v] : sums[r][v], to);
            }
    } else {
        // By way of memory: in registers the epilogue would be there MR NV times.
        float waiting[MR * NR];
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                VSTORE(sums[r][v], waiting + r * NR + v * VW);
        for (int r = 0; r < c->height; r++) {
            __global float *out = c->out + r * c->ld;
            if (c->width == NR) {
#pragma unroll
                for (int x = 0; x < NR; x += VW) {
                    FV sum = VLOAD(waiting + r * NR + x);
                    if (c->grow)
                        sum += VLOAD(out + x);
                    if (c->finish)
                        sum = epilogue_v(e, sum, c->i + r, c->j + x);
                    VSTORE(sum, out + x);
                }
            } else {
                for (int x = 0; x < c->width; x += VW) {
                    const int n = c->width - x;
                    FV sum = VLOAD(waiting + r * NR + x);
                    if (c->grow)
                        sum += load_some(out + x, n, 0.0f);
                    if (c->finish)
                        sum = epilogue_some(e, sum, c->i + r, c->j + x, n);
                    store_some(sum, out + x, n);
                }
            }
        }
    }
}

// Elements k_from .. k_to - 1 of the sums; the launch with k_to = k finishes them.
KERNEL void gemm_cpu_tile(int m, int n, int k, int k_from, int k_to, int tile_m, int tile_n,
                          int tile_k, int tiles_m, int tiles_n, int batch,
                          __global const float *restrict a_base, long a_start, long lda,
                          long a_batch, __global const float *restrict b_base, long b_start,
                          long ldb, long b_batch, __global float *restrict c_base, long c_start,
                          long ldc, long c_batch, __local float *restrict b_pack,
                          __local float *restrict a_pack, EPILOGUE_PARAMS)
{
    const int group = get_group_id(0);
    const int entry = group / tiles_n % batch;
    const int row_tile = group / tiles_n / batch;
    const int j0 = group % tiles_n * tile_n;
    const int i0 = (CAUSAL ? tiles_m - 1 - row_tile : row_tile) * tile_m;
    const int rows = min(tile_m, m - i0), columns = min(tile_n, n - j0);
    const int k_all = CAUSAL ? min(k, i0 + rows) : k, k_end = min(k_to, k_all);
    __global const float *a = a_base + a_start + entry * a_batch;
    __global const float *b = b_base + b_start + entry * b_batch;
    __global float *c = c_base + c_start + entry * c_batch + i0 * ldc + j0;
    const struct epilogue e = EPILOGUE_OF(entry);
    // Where one block makes the sums of whole panels, they start from the bias: it may then be all the epilogue there is.
    struct epilogue rest = e;

    rest.parts &= ~PART_BIAS_COLUMN;
    for (int k0 = k_from; k0 < k_end; k0 += tile_k) {
        const int kc = min(tile_k, k_end - k0);
        const bool with_bias = (parts & PART_BIAS_COLUMN) && kc == k_all;

        for (int j = 0; j < columns; j += NR)
            pack_b(b + (TRANS_B ? (j0 + j) * ldb + k0 : k0 * ldb + j0 + j), ldb,
                   min(NR, columns - j), kc, b_pack + j * kc);
        for (int i = 0; i < rows; i += MR) {
#if TRANS_A
            if (i % A_ROWS == 0)
                pack_a(a + k0 * lda + i0 + i, lda, min(A_ROWS, rows - i), m - i0 - i, kc, a_pack);
            A_SPACE const float *a_at = a_pack + i % A_ROWS / MR * A_PANEL(kc);
#else
            A_SPACE const float *a_at = a + (i0 + i) * lda + k0;
#endif
            const int height = min(MR, rows - i);
            const struct a_panel a_panel = {a_at, lda, MR * lda, height, i0 + i + 1 - k0};

            for (int j = 0; j < columns; j += NR) {
                const int width = min(NR, columns - j);
                const bool started = with_bias && width == NR;
                const struct epilogue *left = started ? &rest : &e;
                const struct c_panel c_panel = {
                    c + i * ldc + j, ldc, i0 + i, j0 + j, height, width, k0 > 0,
                    k0 + kc == k_all && !epilogue_is_empty(left)};
                FV sums[MR][NV];
                multiply_panels(&a_panel, b_pack + j * kc, kc, started ? bias + j0 + j : 0, sums);
                store_panel(&c_panel, left, sums);
            }
        }
    }
}

// SPDX-License-Identifier: MIT
// Matrix product with an epilogue, CPU form.  Host side: lib/launch/gemm_tiles.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] or [k, m], B [k, n] or [n, k]
//
//   Work      one work-item = one tile of tile_m x tile_n of C, cut into panels of MR rows and of NR columns.  1-D
//             grid: column tiles fastest, then batch entries, then row tiles (when CAUSAL the last one, which has the
//             longest sums, first)
//   Memory    blocks of tile_k: B's part is packed into `b_pack` [panel][k][NR], zeros beyond n; that of a transposed A
//             into `a_pack` [panel][k][AR], with gaps, A_ROWS rows of C at a time.  Sums of earlier blocks, and of
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
//   ACT       activation of the epilogue                           0 .. 5

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
// A row of a transposed A's panel is copied as eight floats; the last two belong to the next panel and are not used.
#define AR 8
// Floats between panels of A: a line of padding keeps their rows, stored one after the other, out of one cache set.
#define A_PANEL(kc) ((kc)*AR + 16)
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

// a: kc rows, `rows` columns of the transposed A, of which `there` can be read -> pack [panel][kc][AR]; missing columns
// repeat the last one
LOCAL_INLINE void pack_a(__global const float *a, long lda, int rows, int there, int kc,
                         __local float *pack)
{
    const int whole = min(rows, max(there - AR + MR, 0) / MR * MR); // panels whose eight floats exist
    int k = 0;

    // Several rows at a time: more loads on their way, and stores of whole cache lines.
    for (; k + AK <= kc; k += AK)
        for (int i = 0; i < whole; i += MR) {
            __local float *to = pack + i / MR * A_PANEL(kc) + k * AR;
#pragma unroll
            for (int x = 0; x < AK; x++)
                vstore8(vload8(0, a + (k + x) * lda + i), 0, to + x * AR);
        }
    for (; k < kc; k++)
        for (int i = 0; i < whole; i += MR)
            vstore8(vload8(0, a + k * lda + i), 0, pack + i / MR * A_PANEL(kc) + k * AR);
    for (int i = whole; i < rows; i += MR)
        for (k = 0; k < kc; k++)
            for (int r = 0; r < MR; r++)
                pack[i / MR * A_PANEL(kc) + k * AR + r] = a[k * lda + min(i + r, rows - 1)];
}
#else
#define A_SPACE __global
#endif

// C's panel `out`, of height x width elements, becomes or grows by the product of a panel of A and one of B.  Row r of
// A takes part while k < k_all + r, and k < kc.  a: row 0 of the panel; packed (rows interleaved) when TRANS_A.
LOCAL_INLINE void multiply_panels(A_SPACE const float *a, long lda, __local const float *b, int kc,
                                  int k_all, bool grow, __global float *out, long ldc, int height,
                                  int width)
{
    FV c[MR][NV];
    int k = 0;

#if TRANS_A
#define A_AT(r) a[k * AR + r]
#else
    A_SPACE const float *row[MR]; // a missing row repeats the last one and is not stored
#pragma unroll
    for (int r = 0; r < MR; r++)
        row[r] = a + min(r, height - 1) * lda;
#define A_AT(r) row[r][k]
#endif
#pragma unroll
    for (int r = 0; r < MR; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            c[r][v] = (FV)(0.0f);

    for (const int end = min(k_all, kc); k < end; k++, b += NR) {
        FV bv[NV];
#pragma unroll
        for (int v = 0; v < NV; v++)
            bv[v] = VLOAD(b + v * VW);
#pragma unroll
        for (int r = 0; r < MR; r++) {
            const FV av = (FV)(A_AT(r));
#pragma unroll
            for (int v = 0; v < NV; v++)
                c[r][v] += av * bv[v];
        }
    }
#if CAUSAL
    for (const int end = min(k_all + height - 1, kc); k < end; k++, b += NR)
#pragma unroll
        for (int r = 1; r < MR; r++)
            if (k < k_all + r) {
                const FV av = (FV)(A_AT(r));
#pragma unroll
                for (int v = 0; v < NV; v++)
                    c[r][v] += av * VLOAD(b + v * VW);
            }
#endif

    if (height == MR && width == NR) {
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++) {
                __global float *to = out + r * ldc + v * VW;
                VSTORE(grow ? VLOAD(to) + c[r][v] : c[r][v], to);
            }
    } else {
        float edge[MR * NR];
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                VSTORE(c[r][v], edge + r * NR + v * VW);
        for (int r = 0; r < height; r++)
            for (int x = 0; x < width; x++)
                out[r * ldc + x] = grow ? out[r * ldc + x] + edge[r * NR + x] : edge[r * NR + x];
    }
}

static inline void finish_tile(const struct epilogue *e, __global float *out, long ldc, int i0,
                               int j0, int rows, int columns)
{
    for (int i = i0; i < i0 + rows; i++, out += ldc) {
        int j = 0;
        for (; j + VW <= columns; j += VW)
            VSTORE(epilogue_v(e, VLOAD(out + j), i, j0 + j), out + j);
        for (; j < columns; j++)
            out[j] = epilogue_f(e, out[j], i, j0 + j);
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
    const int k_end = CAUSAL ? min(k_to, i0 + rows) : k_to;
    __global const float *a = a_base + a_start + entry * a_batch;
    __global const float *b = b_base + b_start + entry * b_batch;
    __global float *c = c_base + c_start + entry * c_batch + i0 * ldc + j0;

    // k = 0 still stores zeros.
    for (int k0 = k_from; k0 < k_end || k0 == 0; k0 += tile_k) {
        const int kc = min(tile_k, k_end - k0);

        for (int j = 0; j < columns; j += NR)
            pack_b(b + (TRANS_B ? (j0 + j) * ldb + k0 : k0 * ldb + j0 + j), ldb,
                   min(NR, columns - j), kc, b_pack + j * kc);
        for (int i = 0; i < rows; i += MR) {
#if TRANS_A
            if (i % A_ROWS == 0)
                pack_a(a + k0 * lda + i0 + i, lda, min(A_ROWS, rows - i), m - i0 - i, kc, a_pack);
            A_SPACE const float *a_panel = a_pack + i % A_ROWS / MR * A_PANEL(kc);
#else
            A_SPACE const float *a_panel = a + (i0 + i) * lda + k0;
#endif
            for (int j = 0; j < columns; j += NR)
                multiply_panels(a_panel, lda, b_pack + j * kc, kc, CAUSAL ? i0 + i + 1 - k0 : kc,
                                k0 > 0, c + i * ldc + j, ldc, min(MR, rows - i),
                                min(NR, columns - j));
        }
    }

    const struct epilogue e = EPILOGUE_OF(entry);
    if (k_to == k && !epilogue_is_empty(&e))
        finish_tile(&e, c, ldc, i0, j0, rows, columns);
}

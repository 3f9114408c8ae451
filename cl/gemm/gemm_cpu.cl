// SPDX-License-Identifier: MIT
// GEMM with an epilogue, CPU variant.  Host side: lib/gemm/gemm_cpu.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] or [k, m], B [k, n] or [n, k]
//
//   Work      one work-item = one tile of tile_m x tile_n of C, cut into panels of MR rows and of NR columns.  1-D
//             grid: column tiles fastest, then batch entries, then row tiles (when CAUSAL the last one, which has the
//             longest sums, first)
//   Memory    blocks of tile_k: B is packed into `b_pack` [panel][k][NR] as floats, zeros beyond n; a transposed A into `a_pack`
//             [panel][k][MR], with gaps, A_ROWS rows of C at a time; DIRECT: both are read where they are.  Sums of
//             earlier blocks, and of earlier launches [0, k_from), are in C
//   Numerics  float; one chain of FMAs (fused where the device does) per block, blocks added in order.
//             CAUSAL: element (i, j > i) of A is neither read nor multiplied, so row i is right whatever later rows of
//             B hold
//
//   Macro   Meaning                           Values
//   CAUSAL  A is square and lower triangular  0 | 1; 0 with TRANS_A

#include "common/prefetch.clh"

#ifndef CAUSAL
#error "CAUSAL: A is lower triangular"
#endif

#include "common/epilogue.clh"
#include "gemm/gemm_pack.clh"

// Elements of a row of A that are prefetched together: a cache line.
#define LINE 16

// A panel of A.  Row r takes part while k < k_all + r.
struct a_panel {
    A_SPACE const float *at; // packed, rows interleaved, when TRANS_A
    long ld;
    long prefetch_distance; // from a row to the one that has its place in the next panel
    int height, k_all;
};

#define PANELS                                                                                     \
    const struct a_panel *a, B_SPACE const float *b, long ldb, int kc, __global const float *bias

// The first nv columns of vectors of sums [MR][NV] = a panel of A times a packed one of B, kc terms, and a bias of
// its columns; absent: NULL.  Sums are in registers until the end: what sums_ret points to may be memory.
LOCAL_INLINE void add_terms(PANELS, int nv, FV (*sums_ret)[NV])
{
    FV sums[MR][NV];
    const int end = CAUSAL ? min(a->k_all, kc) : kc;
    int k = 0;

#if TRANS_A && !DIRECT
#define A_AT(r) a->at[k * MR + r]
#else
    const long row_step = DIRECT ? 1 : a->ld, k_step = DIRECT ? a->ld : 1;
    A_SPACE const float *row[MR]; // a missing row repeats the last one and is not stored
#pragma unroll
    for (int r = 0; r < MR; r++)
        row[r] = a->at + min(r, a->height - 1) * row_step;
#define A_AT(r) row[r][k * k_step]
#endif
#pragma unroll
    for (int r = 0; r < MR; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sums[r][v] = bias ? VLOAD(bias + v * VW) : (FV)(0.0f);

    // Unrolled by four: an address of a row that finds no register is loaded once for four terms.
    while (k < end) {
        const int stop = min(k + LINE, end);
#if !TRANS_A
#pragma unroll
        for (int r = 0; r < MR; r++)
            prefetch_l2(row[r] + a->prefetch_distance + k);
#endif
#pragma unroll 4
        for (; k < stop; k++, b += ldb) {
            FV bv[NV];
#pragma unroll
            for (int v = 0; v < NV; v++)
                if (v < nv)
                    bv[v] = VLOAD(b + v * VW);
#pragma unroll
            for (int r = 0; r < MR; r++) {
                const FV av = (FV)(A_AT(r));
#pragma unroll
                for (int v = 0; v < NV; v++)
                    if (v < nv)
                        sums[r][v] += av * bv[v];
            }
        }
    }
#if CAUSAL
    for (const int last = min(a->k_all + a->height - 1, kc); k < last; k++, b += ldb)
#pragma unroll
        for (int r = 1; r < MR; r++)
            if (k < a->k_all + r) {
                const FV av = (FV)(A_AT(r));
#pragma unroll
                for (int v = 0; v < NV; v++)
                    if (v < nv)
                        sums[r][v] += av * VLOAD(b + v * VW);
            }
#endif
#pragma unroll
    for (int r = 0; r < MR; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            if (v < nv)
                sums_ret[r][v] = sums[r][v];
}

OUT_OF_LINE void multiply_panels(PANELS, FV (*sums)[NV])
{
    add_terms(a, b, ldb, kc, bias, NV, sums);
}

#if NARROW
OUT_OF_LINE void multiply_narrow_panels(PANELS, FV (*sums)[NV])
{
    add_terms(a, b, ldb, kc, bias, 1, sums);
}
#else
#define multiply_narrow_panels multiply_panels // never called
#endif

// Where sums belong: height x width elements of C from (i, j), the first at `out`.
struct c_panel {
    __global float *out;
    __global const float *addend; // what they are added to; NULL: nothing
    long ld, addend_ld;
    int i, j, height, width;
    bool apply_epilogue; // these are the last sums
};

// Fetches it too, while the sums are computed.
LOCAL_INLINE void set_addend(struct c_panel *c, __global const float *addend, long ld)
{
    c->addend = addend;
    c->addend_ld = ld;
    for (int r = 0; r < c->height; r++)
#pragma unroll
        for (int x = 0; x < NR; x += LINE)
            prefetch_l2(addend + r * ld + x);
}

OUT_OF_LINE void store_panel(const struct c_panel *c, const struct epilogue *e, FV (*sums)[NV])
{
    if (!c->apply_epilogue && c->height == MR && c->width == NR) {
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++) {
                __global float *to = c->out + r * c->ld + v * VW;
                VSTORE(c->addend ? VLOAD(c->addend + r * c->addend_ld + v * VW) + sums[r][v]
                                 : sums[r][v],
                       to);
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
                    if (c->addend)
                        sum += VLOAD(c->addend + r * c->addend_ld + x);
                    if (c->apply_epilogue)
                        sum = epilogue_v(e, sum, c->i + r, c->j + x);
                    VSTORE(sum, out + x);
                }
            } else {
                for (int x = 0; x < c->width; x += VW) {
                    const int n = c->width - x;
                    FV sum = VLOAD(waiting + r * NR + x);
                    if (c->addend)
                        sum += load_some(c->addend + r * c->addend_ld + x, n, 0.0f);
                    if (c->apply_epilogue)
                        sum = epilogue_some(e, sum, c->i + r, c->j + x, n);
                    store_some(sum, out + x, n);
                }
            }
        }
    }
}

// Elements k_from .. k_to - 1 of the sums; the launch with k_to = k finishes them.
KERNEL void gemm_cpu_tile(int m, int n, int k, int k_from, int k_to, int tile_m, int tile_n,
                          int tile_k, int tiles_m, int tiles_n, int batch, MATRIX_PARAMS,
                          __local float *restrict b_pack, __local float *restrict a_pack,
                          EPILOGUE_PARAMS)
{
    const int group = get_group_id(0);
    const int entry = group / tiles_n % batch;
    const int row_tile = group / tiles_n / batch;
    const int j0 = group % tiles_n * tile_n;
    const int i0 = (CAUSAL ? tiles_m - 1 - row_tile : row_tile) * tile_m;
    const int rows = min(tile_m, m - i0), columns = min(tile_n, n - j0);
    const int k_all = CAUSAL ? min(k, i0 + rows) : k, k_end = min(k_to, k_all);
    __global const float *a = A_OF(entry);
    __global const WEIGHT *b = B_OF(entry);
    __global float *c = C_OF(entry) + i0 * ldc + j0;
    struct epilogue e = EPILOGUE_OF(entry);
    // A residual that is the whole epilogue is what the first block's sums are added to.
    __global const float *start = 0;

    if (ACT == ACT_IDENTITY && flags == EPI_RESIDUAL) {
        start = e.residual + i0 * e.residual_ld + j0;
        e.flags = 0;
    }
    // Sums that one block makes start from the bias, which may be all the epilogue there is; a
    // panel's rest of columns does not, since the bias ends with these.
    struct epilogue rest = e;

    rest.flags &= ~EPI_BIAS_COL;
    for (int k0 = k_from; k0 < k_end; k0 += tile_k) {
        const int kc = min(tile_k, k_end - k0);
        const bool with_bias = (flags & EPI_BIAS_COL) && kc == k_all;

#if !DIRECT
        for (int j = 0; j < columns; j += NR)
            pack_b(b + (TRANS_B ? (j0 + j) * ldb + k0 : k0 * ldb + j0 + j), ldb,
                   min(NR, columns - j), kc, b_pack + j * kc);
#endif
        for (int i = 0; i < rows; i += MR) {
#if DIRECT
            A_SPACE const float *a_at = a + k0 * lda + i0 + i;
#elif TRANS_A
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
                struct c_panel c_panel = {
                    .out = c + i * ldc + j,
                    .ld = ldc,
                    .i = i0 + i,
                    .j = j0 + j,
                    .height = height,
                    .width = width,
                    .apply_epilogue = k0 + kc == k_all && !epilogue_is_empty(left),
                };
                if (k0 > 0)
                    set_addend(&c_panel, c_panel.out, ldc);
                else if (start)
                    set_addend(&c_panel, start + i * e.residual_ld + j, e.residual_ld);
#if DIRECT
                B_SPACE const float *b_at = b + k0 * ldb + j0 + j;
                const long b_ld = ldb;
#else
                B_SPACE const float *b_at = b_pack + j * kc;
                const long b_ld = NR;
#endif
                FV sums[MR][NV];
                if (is_narrow(width))
                    multiply_narrow_panels(&a_panel, b_at, b_ld, kc, 0, sums);
                else
                    multiply_panels(&a_panel, b_at, b_ld, kc, started ? bias + j0 + j : 0, sums);
                store_panel(&c_panel, left, sums);
            }
        }
    }
}

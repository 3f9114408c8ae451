// SPDX-License-Identifier: MIT
// GEMM with an epilogue, B in 8 or 4 bits, CPU variant.  Host side: lib/gemm/gemm_quantised.c
//
//   C = act(A B + bias) * gate + residual        A [m, k], B [n, k] (common/weights.clh), k a multiple of 32
//   With NORM, the rows of A are normalised first, as in gemm_cpu_skinny.cl; PRODUCTS: products.clh
//
//   Work      one work-item = `rows_per_item` rows by `panels_per_item` panels of 16 columns of C.  1-D grid: panels fastest
//   Memory    the work-item's rows of A, rounded, are in local memory, `a_pairs` and `a_blocks`, `blocks_at_once` blocks of each at
//             a time (even; with NORM all), rows up to a multiple of MAX_ROWS; sums of earlier blocks are in C.  B is read once for
//             each rows_per_item rows, in order, and again from a cache for each MAX_ROWS of them.  `normalised`: a row, padded
//             to whole vectors
//   Numerics  A is rounded to 16 bits: 65,535 levels between plus and minus the largest magnitude of a block of 32.  Products with
//             B's integers and their sums in a block are exact; blocks are added in float, in order.  A row of C does not depend
//             on the number of rows.  A block of A with infinity or NaN makes its row NaN
//
//   Macro     Meaning                       Values
//   MAX_ROWS  rows of A at a time           1 | 2 | 4 | 8
//   VNNI      AVX512_VNNI is used           0 | 1
//   NORM      the rows of A are normalised  0 | NORM_LAYER | NORM_RMS

#include "common/prefetch.clh"
#include "common/weights.clh"
#include "gemm/products.clh"

#if !defined MAX_ROWS || !defined VNNI || !defined NORM
#error "MAX_ROWS: rows of A at a time; VNNI: AVX512_VNNI is used; NORM: they are normalised"
#endif

#if NORM
#include "common/norm.clh"
#define ROW_SPACE __local
#define NORM_PARAMS                                                                                \
    , __global const float *restrict norm_weight, __global const float *restrict norm_bias,        \
        float eps, __local float *restrict normalised
#else
#define ROW_SPACE __global
#define NORM_PARAMS
#endif

// Bytes from a block of B to what is prefetched.
#define PREFETCHED 4096

// A block of a row of A is `scale` times integers.
struct a_block {
    float scale;
    int start; // their sum times what a stored weight is too large by, negative
};

// sum + what the low halves, and the high halves, of two words multiply to.  x86 has an instruction for it, which compilers do not
// find again once they have simplified the halves, and with AVX512_VNNI one that adds too, which PoCL's targets do not have.
static inline int16 add_products(int16 sum, uint16 w, int x)
{
#if defined __AVX512BW__ && VNNI
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"((int16)(x)));
    return sum;
#elif defined __AVX512BW__
    typedef short short32 __attribute__((vector_size(64)));
    const short32 a = __builtin_astype(w, short32), b = __builtin_astype((int16)(x), short32);
    return sum + __builtin_astype(__builtin_ia32_pmaddwd512(a, b), int16);
#elif defined __AVX2__
    typedef short halves __attribute__((vector_size(32)));
    const halves low = __builtin_astype(w.lo, halves), high = __builtin_astype(w.hi, halves);
    const halves b = __builtin_astype((int8)(x), halves);
    return sum + (int16)(__builtin_astype(__builtin_ia32_pmaddwd256(low, b), int8),
                         __builtin_astype(__builtin_ia32_pmaddwd256(high, b), int8));
#else
    return sum + as_int16(w & 0xffff) * (int16)(x << 16 >> 16) +
           (as_int16(w) >> 16) * (int16)(x >> 16);
#endif
}

LOCAL_INLINE int largest(int16 v)
{
    const int8 a = max(v.lo, v.hi);
    const int4 b = max(a.lo, a.hi);
    const int2 c = max(b.lo, b.hi);
    return max(c.x, c.y);
}

LOCAL_INLINE uint sum_of(uint16 v)
{
    const uint8 a = v.lo + v.hi;
    const uint4 b = a.lo + a.hi;
    return (b.x + b.y) + (b.z + b.w);
}

// Word 2 q + t of a rounded block has elements 4 q + t and 4 q + t + 2.
LOCAL_INLINE void round_block(ROW_SPACE const float *x, __local int *pairs,
                              __local struct a_block *block)
{
    const float16 first = vload16(0, x), second = vload16(1, x);
    const int bits = largest(max(as_int16(first) & INT_MAX, as_int16(second) & INT_MAX));
    const bool finite = bits < as_int(INFINITY);
    const float largest_x = finite ? fmax(as_float(bits), 1e-33f) : 1.0f; // 32767 / x is finite
    const float inverse = finite ? 32767.0f / largest_x : 0.0f;
    const float16 shift =
        (float16)(12582912.0f); // 3 * 2^22: the sum's last bits are the nearest integer
    const uint16 low = as_uint16((float16)(first.s014589cd, second.s014589cd) * inverse + shift);
    const uint16 high = as_uint16((float16)(first.s2367abef, second.s2367abef) * inverse + shift);

    vstore16(as_int16((low & 0xffff) | high << 16), 0, pairs);
    block->scale = finite ? largest_x / 32767.0f : NAN;
    block->start = -ZERO_POINT * (int)(sum_of(low + high) - 32 * as_uint(12582912.0f));
}

// A block's 16 columns of MAX_ROWS rows are added to totals.  A loop over words: unrolled, it spills with several rows.
LOCAL_INLINE void add_block(__global const uchar *pair, int h, __local const int *a,
                            __local const struct a_block *block, bool prefetch, float16 *totals)
{
    enum { TOGETHER = MAX_ROWS <= 2 ? 16 : WEIGHTS_OF_WORD / 2 };
    int16 sum[MAX_ROWS];

#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
        sum[r] = (int16)(block[r].start);
#pragma unroll 1
    for (int p0 = 0; p0 < 16; p0 += TOGETHER)
#pragma unroll
        for (int p = p0; p < p0 + TOGETHER; p++) {
            const uint16 w = quantised_pairs(pair, h, p);
#pragma unroll
            for (int r = 0; r < MAX_ROWS; r++)
                sum[r] = add_products(sum[r], w, a[r * 16 + p]);
        }
    if (prefetch) {
#pragma unroll
        for (int line = 0; line <= BLOCK_BYTES; line += 64)
            prefetch_l2(pair + PREFETCHED + h * BLOCK_BYTES + line);
    }
    const float16 d = quantised_scales(pair, h);
#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
        totals[r] += convert_float16(sum[r]) * (d * block[r].scale);
}

// Loads 16 columns of a row of C, or the `width` that exist.
LOCAL_INLINE float16 load_sums(__global const float *c, int width)
{
    float waiting[16];

#pragma unroll
    for (int x = 0; x < 16; x += VW)
        VSTORE(load_some(c + x, width - x, 0.0f), waiting + x);
    return vload16(0, waiting);
}

// The epilogue is that of row i and column j0; NULL: none.
LOCAL_INLINE void store_sums(float16 sums, const struct epilogue *e, __global float *c, int width,
                             int i, int j0)
{
    float waiting[16];

    vstore16(sums, 0, waiting);
    for (int x = 0; x < 16 && x < width; x += VW) {
        const FV v = VLOAD(waiting + x);
        store_some(e ? epilogue_some(e, v, i, j0 + x, width - x) : v, c + x, width - x);
    }
}

KERNEL void gemm_cpu_quantised(int m, int n, int k, int groups_n, int rows_per_item,
                               int panels_per_item, int blocks_at_once, OPERAND_PARAMS,
                               __local int *restrict a_pairs,
                               __local struct a_block *restrict a_blocks NORM_PARAMS OTHER_PARAMS)
{
    const int columns = 16 * panels_per_item, items = PRODUCT_GROUPS(columns);
    const int group = (int)get_group_id(0) % items, j0 = COLUMN_OF(group, columns);
    const struct operands g = OPERANDS_OF(ENTRY_OF(group, columns));
    const int first = j0 / 16, end = (min(j0 + columns, g.n) + 15) / 16;
    const int i0 = (int)get_group_id(0) / items * rows_per_item;
    const int rows = min(rows_per_item, m - i0);
    __global const float *a = g.a + i0 * lda;
    __global float *c = g.c + i0 * g.c_row;

    for (int from = 0; from < k / 32; from += blocks_at_once) {
        const int blocks = min(blocks_at_once, k / 32 - from);
        const bool is_last = from + blocks == k / 32;

        for (int r = 0; r < rows; r++) { // sums of rows beyond are not stored
#if NORM
            __local const float *row = normalised;
            normalise_row(a + r * lda, k, norm_weight, norm_bias, eps, normalised);
#else
            __global const float *row = a + r * lda;
#endif
            const int at = r / MAX_ROWS * MAX_ROWS * blocks + r % MAX_ROWS;
            for (int b = 0; b < blocks; b++)
                round_block(row + (from + b) * 32, a_pairs + (at + b * MAX_ROWS) * 16,
                            a_blocks + at + b * MAX_ROWS);
        }
        for (int panel = first; panel < end; panel++)
            for (int r0 = 0; r0 < rows; r0 += MAX_ROWS) {
                __global const uchar *pair = g.b + ((long)panel * PAIRS(k) + from / 2) * PAIR_BYTES;
                __local const struct a_block *block = a_blocks + r0 * blocks;
                __local const int *x = a_pairs + r0 * blocks * 16;
                __global float *to = c + r0 * g.c_row + panel * 16;
                const int width = g.n - panel * 16;
                float16 totals[MAX_ROWS];

#pragma unroll
                for (int r = 0; r < MAX_ROWS; r++)
                    totals[r] = from > 0 && r0 + r < rows ? load_sums(to + r * g.c_row, width)
                                                          : (float16)(0.0f);
                for (int b = 0; b < blocks; b++, x += MAX_ROWS * 16, block += MAX_ROWS)
                    add_block(pair + b / 2 * PAIR_BYTES, b % 2, x, block, r0 == 0, totals);
#pragma unroll
                for (int r = 0; r < MAX_ROWS; r++)
                    if (r0 + r < rows)
                        store_sums(totals[r], is_last ? &g.e : 0, to + r * g.c_row, width,
                                   i0 + r0 + r, panel * 16);
            }
    }
}

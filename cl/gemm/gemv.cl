// SPDX-License-Identifier: MIT
// Skinny GEMM (small M) with an epilogue: B, the weights, is read once.  Host side: lib/gemm/gemm_skinny.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] of few rows, B [k, n] or [n, k]
//   With NORM, the rows of A are normalised first: (a - mean) / sqrt(variance + eps) * norm_weight + norm_bias
//   With MERGE, the rows of A are attention of one position, merged here from the parts that attention_split_gpu.cl left
//
//   Work      gemv_dot (B is [n, k]): one work-group = COLS_PER_GROUP elements of each row of C, with MAX_ROWS = 8 of one block
//             of MAX_ROWS rows; its work-items divide the sums over k.  With NORM, each work-group computes the statistics of all rows, which takes less time than a
//             launch while the rows are in the cache; with MERGE, each merges the parts of all rows.  gemv_axpy (B is [k, n]):
//             one work-item = NV VW columns.  1-D grid: blocks of rows fastest, then columns, then batch entries or products
//   Memory    reads B once for each block of rows, A or the parts of it once per work-group; writes C once; LS floats of local
//             memory in gemv_dot, SUMS_AT_ONCE (LS + 1) for blocks, PART_FLOATS for each part besides
//   Numerics  float; gemv_dot: LS VW chains of FMAs, summed by a tree; of blocks LS chains, added in order by 32 and then those
//             sums; layer norm as in layer_norm.cl; gemv_axpy: one chain over k
//
//   Macro     Meaning                                              Values
//   LS        work-group size, a power of two                      1 .. 256
//   VW        vector width; 1 where MAX_ROWS is 8                  1 | 4 | 8 | 16
//   NV        vectors of columns of a work-item in gemv_axpy       1 .. 4
//   MAX_ROWS  maximum rows of A; 8: of a block, in gemv_dot alone  1 | 4 | 8
//   NORM      the rows of A are normalised; gemv_dot alone         0 | 1
//   MERGE     the rows of A are merged from parts; gemv_dot       0 | 1
//   PRODUCTS  products of A, each with its B, bias and C in         1 | 3
//             gemv_dot; where there are several, of one batch entry
//             and without gate and residual: some devices allow 256 bytes
//             of arguments
//   WTYPE     as in weights.clh: type of B                         0 | 1 | 2
//   ACT       activation of the epilogue                           0 .. 6

#include "common/attention_merge.clh"
#include "common/norm.clh"
#include "common/reduce.clh"
#include "common/types.clh"
#include "common/vector.clh"
#include "common/weights.clh"

#if !defined NV || !defined MAX_ROWS || !defined NORM || !defined MERGE || !defined PRODUCTS
#error "NV, MAX_ROWS, NORM, MERGE and PRODUCTS must be defined"
#endif

#include "common/epilogue.clh"

#if MAX_ROWS > 4
#if VW != 1
#error "VW: 1 with blocks of rows, whose sums would take too many registers"
#endif
#define COLS_PER_GROUP 8
#define ROWS_AT_ONCE   4
#define SUMS_AT_ONCE   (ROWS_AT_ONCE * COLS_PER_GROUP)
#define PIECE          (LS > SUMS_AT_ONCE ? SUMS_AT_ONCE : 1)
#else
#define COLS_PER_GROUP 4
#endif

#if NORM
#define NORM_PARAMS                                                                                \
    , __global const float *restrict norm_weight, __global const float *restrict norm_bias,        \
        float eps
#else
#define NORM_PARAMS
#endif

#if MERGE
// A's base is [m, n_heads, n_parts, 2 + width] of position[0] + own_keys keys, limit at most; part_weights: PART_FLOATS m
// n_heads n_parts floats
#define MERGE_PARAMS                                                                               \
    , __global const int *restrict position, int n_heads, int n_parts, int width, int limit,       \
        int own_keys, __local float *part_weights
#else
#define MERGE_PARAMS
#endif

#if PRODUCTS == 3
// Bit i of has_bias: product i has one.  C without a start, its rows as far apart as the first's
#define DOT_EPILOGUE_PARAMS int has_bias, __global const float *restrict bias
#define PRODUCT_PARAMS(i)                                                                          \
    , __global const WEIGHT *restrict b_##i, long b_start_##i, long ldb_##i,                       \
        __global const float *restrict bias_##i, __global float *restrict c_##i
#define OTHER_PARAMS PRODUCT_PARAMS(1) PRODUCT_PARAMS(2)
#else
#define DOT_EPILOGUE_PARAMS EPILOGUE_PARAMS
#define OTHER_PARAMS
#endif

#if MAX_ROWS > 4
// partial: [SUMS_AT_ONCE][LS + 1], what each work-item has of each sum.  Element PIECE i of a row becomes the sum of
// PIECE elements.
LOCAL_INLINE void sum_pieces(__local float *partial)
{
    const int id = (int)get_local_id(0);

    if (PIECE > 1) {
        __local float *mine = partial + id % SUMS_AT_ONCE * (LS + 1) + id / SUMS_AT_ONCE * PIECE;
        float total = 0.0f;
        for (int i = 0; i < PIECE; i++)
            total += mine[i];
        mine[0] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

KERNEL void gemv_dot(int m, int n, int k, int groups_n, __global const float *restrict a_base,
                     long a_start, long lda, long a_batch, __global const WEIGHT *restrict b_base,
                     long b_start, long ldb, long b_batch, __global float *restrict c_base,
                     long c_start, long ldc, long c_batch,
                     DOT_EPILOGUE_PARAMS NORM_PARAMS MERGE_PARAMS OTHER_PARAMS)
{
#if MAX_ROWS <= 4 || NORM
    GROUP_SPACE(tmp);
#endif
#if MAX_ROWS > 4
    __local float partial[SUMS_AT_ONCE * (LS + 1)];
    const int n_blocks = (m + MAX_ROWS - 1) / MAX_ROWS, group = (int)get_group_id(0) / n_blocks;
    const int i0 = (int)get_group_id(0) % n_blocks * MAX_ROWS;
#else
    const int group = (int)get_group_id(0), i0 = 0;
#endif
    const int rows = m - i0, j0 = group % groups_n * COLS_PER_GROUP;
#if PRODUCTS == 3
    const int product = group / groups_n;
    __global const float *a = a_base + a_start;
    __global const WEIGHT *b = product == 0   ? b_base + b_start
                               : product == 1 ? b_1 + b_start_1
                                              : b_2 + b_start_2;
    __global float *c = product == 0 ? c_base + c_start : product == 1 ? c_1 : c_2;
    const long b_row = product == 0 ? ldb : product == 1 ? ldb_1 : ldb_2;
    const struct epilogue e = {.flags = has_bias >> product & 1 ? EPI_BIAS_COL : 0,
                               .bias = product == 0   ? bias
                                       : product == 1 ? bias_1
                                                      : bias_2};
#else
    const int entry = group / groups_n;
    __global const float *a = a_base + a_start + entry * a_batch;
    __global const WEIGHT *b = b_base + b_start + entry * b_batch;
    __global float *c = c_base + c_start + entry * c_batch;
    const long b_row = ldb;
    const struct epilogue e = EPILOGUE_OF(entry);
#endif
    FV sum[MAX_ROWS][COLS_PER_GROUP];

#if MERGE
    a += (long)i0 * n_heads * n_parts * (2 + width);
#else
    a += i0 * lda;
#endif
#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
#pragma unroll
        for (int o = 0; o < COLS_PER_GROUP; o++)
            sum[r][o] = (FV)(0.0f);

#if NORM
    float mean[MAX_ROWS] = {0.0f}, rest[MAX_ROWS] = {0.0f}, scale[MAX_ROWS] = {0.0f};
#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++) {
        __global const float *row = a + min(r, rows - 1) * lda;
        const float row_mean = WORKGROUP_ROW_SUM(row, k, tmp) / (float)k;
        const float2 part = row_distances(row, 0, k, 1, row_mean);
        const float2 d = (float2)(GROUP_SUM(part.x, tmp), GROUP_SUM(part.y, tmp));
        const float row_scale = norm_scale(d, (float)k, eps);
        // Where the loop stays one, as by Intel's compiler, an index would keep the arrays in memory.
#pragma unroll
        for (int i = 0; i < MAX_ROWS; i++) {
            mean[i] = i == r ? row_mean : mean[i];
            rest[i] = i == r ? d.x / (float)k : rest[i];
            scale[i] = i == r ? row_scale : scale[i];
        }
    }
#endif
#if MERGE
    const int n_used = used_parts(clamp(position[0], 0, limit - own_keys) + own_keys, n_parts);
    weigh_parts(a, min(rows, MAX_ROWS) * n_heads, n_parts, n_used, width, part_weights);
#endif
    for (int k0 = (int)get_local_id(0) * VW; k0 < k; k0 += LS * VW) {
        const int left = k - k0;
        FV x[MAX_ROWS];
#if NORM
        const FV weight =
            left >= VW ? VLOAD(norm_weight + k0) : load_part(norm_weight + k0, left, 0.0f);
        const FV bias = left >= VW ? VLOAD(norm_bias + k0) : load_part(norm_bias + k0, left, 0.0f);
#endif
#pragma unroll
        for (int r = 0; r < MAX_ROWS; r++) {
#if MERGE // width is a multiple of VW
            const int head = k0 / width, part = (min(r, rows - 1) * n_heads + head) * n_parts;
            x[r] = merge_parts(part_weights + part,
                               a + (long)part * (2 + width) + 2 + (k0 - head * width), n_used,
                               width, VW);
#else
            __global const float *from = a + min(r, rows - 1) * lda + k0;
            x[r] = left >= VW ? VLOAD(from) : load_part(from, left, 0.0f);
#endif
#if NORM
            x[r] = ((x[r] - mean[r]) - rest[r]) * scale[r] * weight + bias;
#endif
        }
#pragma unroll
        for (int o = 0; o < COLS_PER_GROUP; o++) {
            __global const WEIGHT *from = b + min(j0 + o, n - 1) * b_row + k0;
            const FV w = left >= VW ? load_weights(from) : load_weights_part(from, left);
#pragma unroll
            for (int r = 0; r < MAX_ROWS; r++)
                sum[r][o] += x[r] * w;
        }
    }

#if MAX_ROWS > 4
#pragma unroll
    for (int first = 0; first < MAX_ROWS; first += ROWS_AT_ONCE) {
#pragma unroll
        for (int s = 0; s < SUMS_AT_ONCE; s++)
            partial[s * (LS + 1) + (int)get_local_id(0)] =
                sum[first + s / COLS_PER_GROUP][s % COLS_PER_GROUP];
        barrier(CLK_LOCAL_MEM_FENCE);
        sum_pieces(partial);
        for (int s = (int)get_local_id(0); s < SUMS_AT_ONCE; s += LS) {
            const int r = first + s / COLS_PER_GROUP, j = j0 + s % COLS_PER_GROUP;
            float dot = 0.0f;
            for (int i = 0; i < LS; i += PIECE)
                dot += partial[s * (LS + 1) + i];
            if (r < rows && j < n)
                c[(i0 + r) * ldc + j] = epilogue_f(&e, dot, i0 + r, j);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
#pragma unroll
        for (int o = 0; o < COLS_PER_GROUP; o++) {
            const float dot = GROUP_SUM(horizontal_sum(sum[r][o]), tmp);
            if (get_local_id(0) == 0 && r < m && j0 + o < n)
                c[r * ldc + j0 + o] = epilogue_f(&e, dot, r, j0 + o);
        }
#endif
}

KERNEL void gemv_axpy(int m, int n, int k, int groups_n, __global const float *restrict a_base,
                      long a_start, long lda, long a_batch, __global const WEIGHT *restrict b_base,
                      long b_start, long ldb, long b_batch, __global float *restrict c_base,
                      long c_start, long ldc, long c_batch, EPILOGUE_PARAMS)
{
    const int entry = (int)get_group_id(0) / groups_n;
    const int j0 = ((int)get_group_id(0) % groups_n * LS + (int)get_local_id(0)) * (NV * VW);
    __global const float *a = a_base + a_start + entry * a_batch;
    __global const WEIGHT *b = b_base + b_start + entry * b_batch + j0;
    __global float *c = c_base + c_start + entry * c_batch;
    const struct epilogue e = EPILOGUE_OF(entry);
    const int columns = min(NV * VW, n - j0);
    FV sum[MAX_ROWS][NV];

#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[r][v] = (FV)(0.0f);

    if (columns == NV * VW) {
        for (int i = 0; i < k; i++, b += ldb)
#pragma unroll
            for (int v = 0; v < NV; v++) {
                const FV w = load_weights(b + v * VW);
#pragma unroll
                for (int r = 0; r < MAX_ROWS; r++)
                    sum[r][v] += (FV)(a[min(r, m - 1) * lda + i]) * w;
            }
#pragma unroll
        for (int r = 0; r < MAX_ROWS; r++)
#pragma unroll
            for (int v = 0; v < NV; v++)
                if (r < m) {
                    const int j = j0 + v * VW;
                    VSTORE(epilogue_v(&e, sum[r][v], r, j), c + r * ldc + j);
                }
        return;
    }

    // The last columns, vector by vector and row by row.
    for (int x = 0; x < columns; x += VW) {
        const int width = min(VW, columns - x);
        for (int r = 0; r < m; r++) {
            float one[VW];
            FV part = (FV)(0.0f);
            for (int i = 0; i < k; i++) {
                __global const WEIGHT *from = b + i * ldb + x;
                part += (FV)(a[r * lda + i]) *
                        (width == VW ? load_weights(from) : load_weights_part(from, width));
            }
            VSTORE(part, one);
            for (int s = 0; s < width; s++)
                c[r * ldc + j0 + x + s] = epilogue_f(&e, one[s], r, j0 + x + s);
        }
    }
}

// SPDX-License-Identifier: MIT
// GEMM with an epilogue, B in 8 or 4 bits, GPU variant.  Host side: lib/gemm/gemm_quantised.c
//
//   C = act(A B + bias) * gate + residual        A [m, k], B [n, k] (common/weights.clh), k a multiple of 32
//
//   Work      one work-group = 16 columns of MAX_ROWS rows of C; work-item i has column i % 16 and every LS / 16-th block.  1-D
//             grid: blocks of rows fastest
//   Memory    reads B once for each MAX_ROWS rows, 64 bytes side by side; A once per work-group; LS floats of local memory
//   Numerics  float; one chain of FMAs for a block, blocks added in order, then what the work-items have
//
//   Macro     Meaning              Values
//   MAX_ROWS  rows of a work-group  1 | 8

#include "common/epilogue.clh"
#include "common/weights.clh"

#ifndef MAX_ROWS
#error "MAX_ROWS: rows of a work-group"
#endif
#if LS % 16 != 0
#error "LS: a multiple of 16"
#endif

#define SHARES (LS / 16)

KERNEL void gemm_gpu_quantised(int m, int n, int k, int row_groups, MATRIX_PARAMS, EPILOGUE_PARAMS)
{
    __local float partial[LS];
    const int id = (int)get_local_id(0), column = id % 16;
    const int i0 = (int)get_group_id(0) % row_groups * MAX_ROWS;
    const int panel = (int)get_group_id(0) / row_groups, j = panel * 16 + column;
    const struct epilogue e = EPILOGUE_OF(0);
    float total[MAX_ROWS];

#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++)
        total[r] = 0.0f;
    for (int block = id / 16; block < k / 32; block += SHARES) {
        __global const uchar *pair = b_base + ((long)panel * PAIRS(k) + block / 2) * PAIR_BYTES;
        const int h = block % 2;
        const float d = vload_half(h * 16 + column, (__global const half *)pair);
        __global const uint *words = (__global const uint *)(pair + 64 + h * BLOCK_BYTES) + column;
        __global const float *a = A_OF(0) + block * 32;
        float part[MAX_ROWS];

#pragma unroll
        for (int r = 0; r < MAX_ROWS; r++)
            part[r] = 0.0f;
        for (int v = 0; v < BITS; v++) {
            const uint word = words[v * 16];
#pragma unroll
            for (int t = 0; t < WEIGHTS_OF_WORD; t++) {
                const uint q = word >> (8 * (t % 4) + 4 * (t / 4)) & ((1 << BITS) - 1);
                const float w = (float)((int)q - ZERO_POINT);
#pragma unroll
                for (int r = 0; r < MAX_ROWS; r++)
                    part[r] += w * a[min(i0 + r, m - 1) * lda + v * WEIGHTS_OF_WORD + t];
            }
        }
#pragma unroll
        for (int r = 0; r < MAX_ROWS; r++)
            total[r] += part[r] * d;
    }
#pragma unroll
    for (int r = 0; r < MAX_ROWS; r++) {
        partial[id] = total[r];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < 16 && j < n && i0 + r < m) {
            float sum = partial[id];
            for (int share = 1; share < SHARES; share++)
                sum += partial[share * 16 + id];
            C_OF(0)[(i0 + r) * ldc + j] = epilogue_f(&e, sum, i0 + r, j);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

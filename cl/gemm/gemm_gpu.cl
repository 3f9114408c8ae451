// SPDX-License-Identifier: MIT
// GEMM with an epilogue, GPU variant.  Host side: lib/gemm/gemm_gpu.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] or [k, m], B [k, n] or [n, k]
//
//   Work      one work-group of TX x TY work-items = one tile of BM x BN of C; a work-item owns RM x RN of it, as 4 x 4
//             squares TY * 4 rows and TX * 4 columns apart, so that neighbours read and store neighbouring float4s.
//             Grid: column tiles fastest, then batch entries, then row tiles (last first when CAUSAL); along the second
//             axis the splits of k (split-K), each with its own C
//   Memory    blocks of BK terms: those of A and B are in local memory, k-major, (BM + BN + 8) BK floats; the next block is
//             loaded into registers meanwhile.  Sums of earlier launches [0, k_from) are in C
//   Numerics  float; one chain of FMAs over k.  CAUSAL: element (i, j > i) of A is not multiplied, so row i is
//             right whatever later rows of B hold
//
//   Macro   Meaning                           Values
//   LS      work-group size                   TX TY
//   BM      rows of a tile                    a multiple of 4 TY
//   BN      columns of a tile                 a multiple of 4 TX
//   TX      work-items along n                a power of two
//   TY      work-items along m                a power of two
//   CAUSAL  A is square and lower triangular  0 | 1; 0 with TRANS_A

#include "common/epilogue.clh"

#if !defined TX || !defined TY || !defined CAUSAL
#error "TX, TY and CAUSAL must be defined"
#endif
#if VW != 4 || BM % (4 * TY) != 0 || BN % (4 * TX) != 0 || BK % 4 != 0 || LS != TX * TY
#error "BM, BN, BK, TX, TY, LS, VW do not go together"
#endif

#define RM (BM / TY)
#define RN (BN / TX)
// Pads keep float4s aligned and spread the transposing stores over the banks.
#define A_LD (BM + 4)
#define B_LD (BN + 4)
#include "gemm/gemm_gpu_blocks.clh"

// Where a work-item is in the tile.  A warp is 8 x 4: neighbours have the same columns, those two
// apart the same rows, so that float4s from A and from B take two requests of local memory each; in
// 16 x 2, row after row, those from B take four.
#if TX % 8 == 0 && TY % 4 == 0
#define LANE_X(id) ((id) / 2 % 8 + (id) / 32 % (TX / 8) * 8)
#define LANE_Y(id) ((id) % 2 + (id) / 16 % 2 * 2 + (id) / (4 * TX) * 4)
#else
#define LANE_X(id) ((id) % TX)
#define LANE_Y(id) ((id) / TX)
#endif

// This work-item's row r and column group c, counted in the tile.
#define TILE_ROW(r)    ((r) / 4 * (4 * TY) + ty * 4 + (r) % 4)
#define TILE_COLUMN(c) ((c) * (4 * TX) + tx * 4)

// sum += the GEMM of the blocks.  CAUSAL: row r of the tile takes part while k < k_all + r.  That
// is asked for every block, not only for those on the diagonal: PoCL 3.1 compiles a choice of loops
// between two barriers wrongly.
LOCAL_INLINE void multiply_blocks(__local const float *a_block, __local const float *b_block,
                                  int k_all, int tx, int ty, float4 sum[RM][RN / 4])
{
// Which rows take part is kept in registers for each step that is unrolled; beside 128 sums there are none for the
// factors of four steps.  Blocks of 8 without a loop: 5 to 8 % faster on an H200.
#if CAUSAL || RM * RN > 64
#pragma unroll 2
#elif BK == 8
#pragma unroll 8
#else
#pragma unroll 4
#endif
    for (int k = 0; k < BK; k++) {
        float4 b[RN / 4];
#pragma unroll
        for (int c = 0; c < RN / 4; c++)
            b[c] = *(__local const float4 *)(b_block + k * B_LD + TILE_COLUMN(c));
#pragma unroll
        for (int q = 0; q < RM / 4; q++) {
            const float4 four = *(__local const float4 *)(a_block + k * A_LD + TILE_ROW(4 * q));
            const float a[4] = {four.s0, four.s1, four.s2, four.s3};
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < RN / 4; c++)
                    if (!CAUSAL || k < k_all + TILE_ROW(4 * q + r))
                        sum[4 * q + r][c] += a[r] * b[c];
        }
    }
}

KERNEL void gemm_gpu_tile(TILE_PARAMS)
{
    __local float a_block[BK * A_LD] __attribute__((aligned(16)));
    __local float b_block[BK * B_LD] __attribute__((aligned(16)));
    const int tx = LANE_X((int)get_local_id(0)), ty = LANE_Y((int)get_local_id(0));
    const int group = (int)get_group_id(0);
    const int entry = group / tiles_n % batch;
    const int row_tile = group / tiles_n / batch;
    const int j0 = group % tiles_n * BN;
    const int i0 = (CAUSAL ? tiles_m - 1 - row_tile : row_tile) * BM;
    const int k_start = k_from + (int)get_group_id(1) * k_step,
              k_stop = min(k_start + k_step, k_to);
    const int k_end = CAUSAL ? min(k_stop, i0 + BM) : k_stop;
    __global const float *a = A_OF(entry);
    __global const WEIGHT *b = B_OF(entry);
    __global float *out = C_OF(entry) + (int)get_group_id(1) * c_split;
    const struct epilogue e = EPILOGUE_OF(entry);
    float4 sum[RM][RN / 4], a_part[A_PARTS];
    b_four b_part[B_PARTS];

#pragma unroll
    for (int r = 0; r < RM; r++)
#pragma unroll
        for (int c = 0; c < RN / 4; c++)
            sum[r][c] = (float4)(0.0f);

    fetch_block(a, lda, b, ldb, i0, j0, k_start, m, n, k_end, a_part, b_part);
    for (int k0 = k_start; k0 < k_end; k0 += BK) {
        place_block(a_block, b_block, a_part, b_part);
        barrier(CLK_LOCAL_MEM_FENCE);
        fetch_block(a, lda, b, ldb, i0, j0, k0 + BK, m, n, k_end, a_part, b_part);
        multiply_blocks(a_block, b_block, i0 + 1 - k0, tx, ty, sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (int r = 0; r < RM; r++) {
        const int i = i0 + TILE_ROW(r);
#pragma unroll
        for (int c = 0; c < RN / 4; c++) {
            const int j = j0 + TILE_COLUMN(c), left = i < m ? n - j : 0;
            __global float *to = out + i * ldc + j;
            float4 x = sum[r][c];
            if (left <= 0)
                continue;
            if (k_from > 0)
                x += load_some(to, left, 0.0f);
            if (apply_epilogue)
                x = epilogue_some(&e, x, i, j, left);
            store_some(x, to, left);
        }
    }
}

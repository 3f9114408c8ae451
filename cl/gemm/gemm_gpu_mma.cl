// SPDX-License-Identifier: MIT
// GEMM with an epilogue by matrix instructions.  Host side: lib/gemm/gemm_gpu.c
//
//   C = act(A B + bias) * gate + residual        per batch entry; A [m, k] or [k, m], B [k, n] or [n, k]
//
//   Work      one work-group = one tile of BM x BN of C; each sub-group of MMA_LANES work-items owns WM x WN of it, as
//             MMA_M x MMA_N pieces.  Grid: column tiles fastest, then batch entries, then row tiles; along the second
//             axis the splits of k (split-K), each with its own C
//   Memory    blocks of BK terms: those of A and B are in local memory, k-major, (BM + BN + 2 pads) BK floats; the
//             next block is loaded into registers meanwhile.  Sums of earlier launches [0, k_from) are in C
//   Numerics  that of cl/common/mma.clh
//
//   Macro    Meaning                        Values
//   LS       work-group size                128 | 256
//   BM       rows of a tile                 a multiple of 64
//   BN       columns of a tile              a multiple of 64
//   BK       length of a block of the sums  a multiple of 16
//   WAVES_N  sub-groups along n             2 | 4

#include "common/epilogue.clh"
#include "common/mma.clh"

#ifndef WAVES_N
#error "WAVES_N: sub-groups along n"
#endif

#define WAVES_M (LS / MMA_LANES / WAVES_N)
#define WM      (BM / WAVES_M)
#define WN      (BN / WAVES_N)
#if VW != 4 || LS % (MMA_LANES * WAVES_N) != 0 || BM % (MMA_M * WAVES_M) != 0 ||                   \
    BN % (MMA_N * WAVES_N) != 0 || BK % MMA_K != 0
#error "BM, BN, BK, LS, WAVES_N, VW do not go together"
#endif

// Pads so that a sub-group's rows k, k + 1 ... of an operand are in different banks.
#define PAD  (MMA == MMA_PTX ? 8 : 16)
#define A_LD (BM + PAD)
#define B_LD (BN + PAD)
#include "gemm/gemm_gpu_blocks.clh"

// Pieces of a sub-group's part.
#define PIECES_M (WM / MMA_M)
#define PIECES_N (WN / MMA_N)

KERNEL void gemm_gpu_mma_tile(TILE_PARAMS)
{
    __local float a_block[BK * A_LD] __attribute__((aligned(16)));
    __local float b_block[BK * B_LD] __attribute__((aligned(16)));
    MMA_LOCAL(box);
    const int lane = (int)get_local_id(0) % MMA_LANES, part = (int)get_local_id(0) / MMA_LANES;
    const int part_i = part / WAVES_N * WM, part_j = part % WAVES_N * WN;
    const int group = (int)get_group_id(0);
    const int entry = group / tiles_n % batch;
    const int j0 = group % tiles_n * BN, i0 = group / tiles_n / batch * BM;
    const int k_start = k_from + (int)get_group_id(1) * k_step, k_end = min(k_start + k_step, k_to);
    __global const float *a = A_OF(entry);
    __global const WEIGHT *b = B_OF(entry);
    __global float *out = C_OF(entry) + (int)get_group_id(1) * c_split;
    const struct epilogue e = EPILOGUE_OF(entry);
    float4 a_part[A_PARTS];
    b_four b_part[B_PARTS];
    float sum[PIECES_M][PIECES_N][MMA_C], rest[PIECES_M][PIECES_N][MMA_C];

#pragma unroll
    for (int p = 0; p < PIECES_M; p++)
#pragma unroll
        for (int q = 0; q < PIECES_N; q++)
#pragma unroll
            for (int i = 0; i < MMA_C; i++)
                sum[p][q][i] = rest[p][q][i] = 0.0f;

    fetch_block(a, lda, b, ldb, i0, j0, k_start, m, n, k_end, a_part, b_part);
    for (int k0 = k_start; k0 < k_end; k0 += BK) {
        place_block(a_block, b_block, a_part, b_part);
        barrier(CLK_LOCAL_MEM_FENCE);
        fetch_block(a, lda, b, ldb, i0, j0, k0 + BK, m, n, k_end, a_part, b_part);
// One step's pieces of both operands are enough registers.
#pragma unroll 1
        for (int k = 0; k < BK; k += MMA_K) {
            float a_high[PIECES_M][MMA_A], a_low[PIECES_M][MMA_A];
            float b_high[PIECES_N][MMA_B], b_low[PIECES_N][MMA_B];
#pragma unroll
            for (int p = 0; p < PIECES_M; p++)
#pragma unroll
                for (int i = 0; i < MMA_A; i++)
                    mma_split(a_block[(k + MMA_A_K(lane, i)) * A_LD + part_i + p * MMA_M +
                                      MMA_A_ROW(lane, i)],
                              &a_high[p][i], &a_low[p][i]);
#pragma unroll
            for (int q = 0; q < PIECES_N; q++)
#pragma unroll
                for (int i = 0; i < MMA_B; i++)
                    mma_split(b_block[(k + MMA_B_K(lane, i)) * B_LD + part_j + q * MMA_N +
                                      MMA_B_COLUMN(lane, i)],
                              &b_high[q][i], &b_low[q][i]);
#pragma unroll
            for (int p = 0; p < PIECES_M; p++)
#pragma unroll
                for (int q = 0; q < PIECES_N; q++)
                    mma_add(sum[p][q], rest[p][q], a_high[p], a_low[p], b_high[q], b_low[q], box);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (int p = 0; p < PIECES_M; p++)
#pragma unroll
        for (int q = 0; q < PIECES_N; q++)
#pragma unroll
            for (int c = 0; c < MMA_C; c++) {
                const int i = i0 + part_i + p * MMA_M + MMA_C_ROW(lane, c);
                const int j = j0 + part_j + q * MMA_N + MMA_C_COLUMN(lane, c);
                float x = mma_total(sum[p][q][c], rest[p][q][c]);
                if (i >= m || j >= n)
                    continue;
                if (k_from > 0)
                    x += out[i * ldc + j];
                out[i * ldc + j] = apply_epilogue ? epilogue_f(&e, x, i, j) : x;
            }
}

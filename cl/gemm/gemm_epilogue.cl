// SPDX-License-Identifier: MIT
// The epilogue alone, after CLBlast or split-K.  Host side: lib/gemm/gemm_native.c
//
//   C = act(S + bias) * gate + residual          per batch entry; S is C, zero, or the sum of split-K partials
//
//   Work      one work-group = `columns` of one row of C
//   Memory    writes C once, reads S, gate and residual once
//   Numerics  as the epilogue of gemm_cpu.cl and gemm_gpu.cl; partial sums are added in order

#include "common/epilogue.clh"

// The first n elements of a vector of S; c: its place in C, partial: in the first partial sums.
static inline FV sums_at(__global const float *c, __global const float *partial, int n_splits,
                         long split_stride, int n)
{
    FV x = n_splits < 0 ? load_some(c, n, 0.0f) : (FV)(0.0f);
    for (int p = 0; p < n_splits; p++)
        x += load_some(partial + p * split_stride, n, 0.0f);
    return x;
}

// partials: n_splits times [batch, m, n], split_stride apart; n_splits 0: S is zero, -1: S is C
KERNEL void gemm_epilogue(int m, int n, __global const float *restrict partials, int n_splits,
                          long split_stride, int columns, __global float *restrict c_base,
                          long c_start, long ldc, long c_batch, EPILOGUE_PARAMS)
{
    const int entry = (int)get_group_id(0) / m;
    const int i = (int)get_group_id(0) % m;
    __global float *c = c_base + c_start + entry * c_batch + i * ldc;
    __global const float *partial = partials + (long)get_group_id(0) * n;
    const struct epilogue e = EPILOGUE_OF(entry);
    const int first = (int)get_group_id(1) * columns, end = min(first + columns, n);

    for (int j = first + (int)get_local_id(0) * VW; j < end; j += LS * VW) {
        const FV x = sums_at(c + j, partial + j, n_splits, split_stride, n - j);
        store_some(epilogue_some(&e, x, i, j, n - j), c + j, n - j);
    }
}

// SPDX-License-Identifier: MIT
// The epilogue alone, for products that CLBlast made.  Host side: lib/launch/gemm_own.c
//
//   C = act(C + bias) * gate + residual          per batch entry, in place
//
//   Work      one group = one row of C
//   Memory    reads and writes C once, reads gate and residual once
//   Numerics  as the epilogue of gemm_cpu.cl and gemm_gpu.cl
//
//   Macro     Meaning                                    Values
//   LS        work-items in a group                      1 .. 256
//   VW        vector width                               1 | 4 | 8 | 16
//   ACT       activation of the epilogue                 0 .. 5

#include "common/types.clh"
#include "common/vector.clh"
#include "common/epilogue.clh"

// With `clear`, C counts as zero: the product of k = 0.
KERNEL void gemm_epilogue(int m, int n, int clear, __global float *restrict c_base, long c_start,
                          long ldc, long c_batch, EPILOGUE_PARAMS)
{
    const int entry = (int)get_group_id(0) / m;
    const int i = (int)get_group_id(0) % m;
    __global float *c = c_base + c_start + entry * c_batch + i * ldc;
    const struct epilogue e = EPILOGUE_OF(entry);

    for (int j = (int)get_local_id(0) * VW; j < n; j += LS * VW) {
        if (j + VW <= n) {
            VSTORE(epilogue_v(&e, clear ? (FV)(0.0f) : VLOAD(c + j), i, j), c + j);
        } else {
            for (int s = j; s < n; s++)
                c[s] = epilogue_f(&e, clear ? 0.0f : c[s], i, s);
        }
    }
}

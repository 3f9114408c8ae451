// SPDX-License-Identifier: MIT
// The gradients of the spatial gate, except its GEMMs.  Host side: lib/op/matmul/spatial_gate_bwd.c
//
//   Work      a work-group takes `per_group` rows, work-item i vectors or columns i, i + LS ... of each
//   Memory    reads and writes each element once
//   Numerics  one rounding; sums of a row in a fixed order.  Hidden elements become 0, NaN too

#include "common/rows.clh"

// s: [batch, length, width]; z1, dy, dz1, ds: [length, batch, width]
KERNEL void spatial_gate_bwd_gate(__global const float *restrict s,
                                  __global const float *restrict z1,
                                  __global const float *restrict dy, __global float *restrict dz1,
                                  __global float *restrict ds, long length, long batch, int width,
                                  int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, length * batch);

    for (long row = first; row < end; ++row) {
        const long at = row * width, s_at = (row % batch * length + row / batch) * width;
        for (int c = VW * (int)get_local_id(0); c < width; c += ROW_STEP) {
            const int n = width - c;
            const FV d = load_some(dy + at + c, n, 0.0f);
            store_some(d * load_some(s + s_at + c, n, 0.0f), dz1 + at + c, n);
            store_some(d * load_some(z1 + at + c, n, 0.0f), ds + at + c, n);
        }
    }
}

// Copies the visible elements of `from`, rows `ld` apart, to `to`, [n, n]; others, and rows and columns from `length`
// on, become 0.  mask: [length or 1, length], mask_stride 0 for one row; read if has_mask.
KERNEL void spatial_gate_bwd_mask(__global const float *from, __global const uchar *restrict mask,
                                  __global float *to, long ld, int n, int length, long mask_stride,
                                  int has_mask, int causal, int per_group)
{
    const int first = (int)get_group_id(0) * per_group;
    const int end = min(first + per_group, n);

    for (int i = first; i < end; ++i)
        for (int j = (int)get_local_id(0); j < n; j += LS) {
            int visible = i < length && j < length && (!causal || j <= i);
            if (visible && has_mask)
                visible = mask[i * mask_stride + j] != 0;
            to[(long)i * n + j] = visible ? from[i * ld + j] : 0.0f;
        }
}

// ds: [length, width]; db: [n], 0 from `length` on
KERNEL void spatial_gate_bwd_bias(__global const float *restrict ds, __global float *restrict db,
                                  long n, long length, int width, int per_group)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, n);

    for (long i = first; i < end; ++i) {
        const int used = i < length ? width : 0; // other rows only take part in the barriers
        const float sum = WORKGROUP_ROW_SUM(ds + i * width, used, tmp);
        if (get_local_id(0) == 0)
            db[i] = sum;
    }
}

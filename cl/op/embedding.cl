// SPDX-License-Identifier: MIT
// Rows of a table, chosen by tokens.  Host side: lib/op/embedding.c
//
//   Work      a group takes `per_group` tokens, work-item i vectors i, i + LS ... of each row
//   Memory    reads the chosen rows, writes as much
//   Numerics  one rounding; a token outside the table reads its nearest row, never beyond (the host
//             refuses such tokens where it sees them)
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/vector.clh"

#ifndef LS
#error "LS: work-items in a group"
#endif

// tokens: [rows]; weight: [n_tokens, width]; y: [rows, width]
KERNEL void embedding_rows_fwd(__global const int *restrict tokens,
                               __global const float *restrict weight, __global float *restrict y,
                               int n_tokens, int width, long rows, int per_group, float scale)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int from = VW * (int)get_local_id(0);

    for (long row = first; row < end; ++row) {
        __global const float *w = weight + (long)clamp(tokens[row], 0, n_tokens - 1) * width;
        __global float *yr = y + row * width;
        int c;

        for (c = from; c + VW <= width; c += VW * LS)
            VSTORE(VLOAD(w + c) * scale, yr + c);
        if (c < width)
            store_part(load_part(w + c, width - c, 0.0f) * scale, yr + c, width - c);
    }
}

// SPDX-License-Identifier: MIT
// Copies between a view of any strides and a contiguous array.  Host side: lib/op/view/copy.c
//
//   Work      a work-group copies `per_group` rows, work-item i vectors i, i + LS ...; the outer index of the first
//             row comes from division, the next ones from counting up
//   Memory    reads and writes each element once; reads y if it adds
//   Numerics  bits are copied, or converted between float and a 16-bit type; one rounding if it adds.  A view to
//             write must not have an element twice
//
//   Macro    Meaning                                                       Values
//   ELEMENT  type of an element                                            float | uint | uchar
//   X_TYPE   16-bit type of x as in stored.clh, then y is float; 0: none   0 | 1 | 2
//   Y_TYPE   16-bit type of y, then x is float; 0: none                    0 | 1 | 2
//   SCATTER  y is the view, else x                                         0 | 1
//   ADD      add to y, or overwrite it                                     0 | 1

#include "common/stored.clh"

#if !defined ELEMENT || !defined X_TYPE || !defined Y_TYPE || !defined SCATTER || !defined ADD
#error "ELEMENT, X_TYPE, Y_TYPE, SCATTER and ADD must be defined"
#endif
#if VW == 1
#define LOAD(p)     (*(p))
#define STORE(v, p) (*(p) = (v))
#else
#define LOAD(p)     CAT(vload, VW)(0, p)
#define STORE(v, p) CAT(vstore, VW)(v, 0, p)
#endif
#if X_TYPE
#define FROM        ushort
#define GET_V(from) load_stored(from, 0, X_TYPE)
#define GET(from)   load_stored_one(from, 0, X_TYPE)
#else
#define FROM        ELEMENT
#define GET_V(from) LOAD(from)
#define GET(from)   (*(from))
#endif
#if Y_TYPE
#define TO           ushort
#define PUT_V(v, to) store_stored(v, to, 0, Y_TYPE)
#define PUT(v, to)   store_stored_one(v, to, 0, Y_TYPE)
#else
#define TO ELEMENT
#if ADD
#define PUT_V(v, to) STORE(LOAD(to) + (v), to)
#define PUT(v, to)   (*(to) += (v))
#else
#define PUT_V(v, to) STORE(v, to)
#define PUT(v, to)   (*(to) = (v))
#endif
#endif

enum { N_OUTER = 7 };

// The view has outer dims d0 .. d6 with strides s0 .. s6; `step` is the stride in a row.  There are `count` elements in
// all, so the last row may be shorter.
KERNEL void copy_rows_fwd(__global const FROM *restrict x, __global TO *restrict y, long start,
                          int width, long step, long rows, long count, int per_group, long d0,
                          long s0, long d1, long s1, long d2, long s2, long d3, long s3, long d4,
                          long s4, long d5, long s5, long d6, long s6)
{
    const long dim[N_OUTER] = {d0, d1, d2, d3, d4, d5, d6};
    const long stride[N_OUTER] = {s0, s1, s2, s3, s4, s5, s6};
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int i = (int)get_local_id(0);
    long index[N_OUTER];

    long rest = first;
    for (int a = N_OUTER - 1; a >= 0; --a) {
        index[a] = dim[a] == 1 ? 0 : rest % dim[a];
        rest = dim[a] == 1 ? rest : rest / dim[a];
    }
    for (long row = first; row < end; ++row) {
        long at = start;
        for (int a = 0; a < N_OUTER; ++a)
            at += index[a] * stride[a];
        __global const FROM *from = x + (SCATTER ? row * width : at);
        __global TO *to = y + (SCATTER ? at : row * width);
        const int here = (int)min((long)width, count - row * width);
        int c = VW * i;
        if (step == 1) {
            for (; c + VW <= here; c += VW * LS)
                PUT_V(GET_V(from + c), to + c);
            for (int end_c = min(c + VW, here); c < end_c; ++c)
                PUT(GET(from + c), to + c);
        } else {
            for (c = i; c < here; c += LS)
                PUT(GET(from + (SCATTER ? c : c * step)), to + (SCATTER ? c * step : c));
        }
        for (int a = N_OUTER - 1; a >= 0; --a) {
            if (++index[a] < dim[a])
                break;
            index[a] = 0;
        }
    }
}

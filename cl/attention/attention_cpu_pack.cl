// SPDX-License-Identifier: MIT
// Keys and values laid out for attention_cpu.cl.  Host side: lib/op/attention/attention.c
//
//   Work      one work-item = one tile of BC keys of one head; grid (heads of all batch entries,
//             tiles)
//   Memory    keys: [head][tile][width][BC], zeros beyond the last key up to a whole panel; values:
//             [head][n_keys][value_pitch], zeros beyond their width.  Skips tiles beyond all lengths, whose
//             keys are never read, and, with AT_POSITION, tiles that no query sees
//   Numerics  exact
//
//   Macro  Meaning                              Values
//   BC     keys of a tile, a multiple of PANEL  8 .. 128
//   PANEL  keys of a panel of scores            8 .. 32

#include "attention/attention.clh"
#include "common/transpose.clh"

#if !defined BC || !defined PANEL
#error "BC and PANEL must be defined"
#endif

static inline void pack_keys(__global const float *k, long k_t, int keys, int width,
                             __global float *to)
{
    const int whole = keys / VW * VW, whole_d = width / VW * VW;
    const int filled = (keys + PANEL - 1) / PANEL * PANEL;

    for (int j = 0; j < whole; j += VW)
        for (int d = 0; d < whole_d; d += VW) {
            FV row[VW];
#pragma unroll
            for (int i = 0; i < VW; i++)
                row[i] = VLOAD(k + (j + i) * k_t + d);
            transpose_square(row);
#pragma unroll
            for (int i = 0; i < VW; i++)
                VSTORE(row[i], to + (d + i) * BC + j);
        }
    for (int d = whole_d; d < width; d++)
        for (int j = 0; j < whole; j++)
            to[d * BC + j] = k[j * k_t + d];
    for (int d = 0; d < width && whole < filled; d++)
        for (int j = whole; j < filled; j++)
            to[d * BC + j] = j < keys ? k[j * k_t + d] : 0.0f;
}

static inline void pack_values(__global const float *v, long v_t, int keys, int width, int pitch,
                               __global float *to)
{
    for (int j = 0; j < keys; j++, v += v_t, to += pitch) {
        int e = 0;
        for (; e + VW <= width; e += VW)
            VSTORE(VLOAD(v + e), to + e);
        if (e < width) {
            VSTORE(load_part(v + e, width - e, 0.0f), to + e);
            e += VW;
        }
        for (; e < pitch; e += VW)
            VSTORE((FV)(0.0f), to + e);
    }
}

// packed: keys from keys_at on, values from values_at on; value_pitch 0: values are not packed.
KERNEL void attention_cpu_pack_fwd(HEADS(k), HEADS(v), VISIBILITY_PARAMS,
                                   __global float *restrict packed, long keys_at, long values_at,
                                   int n_heads, int n_queries, int n_keys, int width,
                                   int value_width, int value_pitch POSITION_PARAM)
{
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int tile = get_group_id(1), j0 = tile * BC;
    const int keys = min(BC, n_keys - j0);
    const struct visibility visible = VISIBILITY_OF(b);
    const long tiles = get_num_groups(1);

    if (AT_POSITION &&
        (j0 >= end_key(&visible, n_queries - 1) || j0 + BC <= first_key(&visible, 0)))
        return;
    if (value_pitch)
        pack_values(HEAD_OF(v, b, h) + j0 * v_t, v_t, keys, value_width, value_pitch,
                    packed + values_at + ((long)head * n_keys + j0) * value_pitch);
    if (BY_LENGTHS && j0 >= longest(&visible, 0, n_queries))
        return;
    pack_keys(HEAD_OF(k, b, h) + j0 * k_t, k_t, keys, width,
              packed + keys_at + (head * tiles + tile) * BC * width);
}

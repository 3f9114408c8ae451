// SPDX-License-Identifier: MIT
// Gradient of attention-free mixing's biases, GPU variant.  Host side: lib/op/aft/aft_bwd_table.c
//
//   dw_ij += sum over channels of p_ij (a_i v_j - g_i y_i),   a = g sigmoid(q),
//   p_ij = e^(w_ij + k_j - L_i)
//
//   Work      one work-group = QUERIES queries and LS / QUERIES keys, one work-item = one pair; keys are
//             counted from the start of the queries' window
//   Memory    CHANNELS channels at a time pass through local memory
//   Numerics  every exponential separately; channels in order
//
//   Macro     Meaning                                 Values
//   LS        work-group size, a multiple of QUERIES  64 .. 8

#include "aft/aft_bias.clh"

#define QUERIES  8  // of a work-group: PAIR_QUERIES of the host side
#define CHANNELS 16 // at a time
#define KEYS     (LS / QUERIES)

// Arguments as in aft_bwd_cpu_table.
KERNEL void aft_bwd_gpu_pairs(PAIR_PARAMS, BIAS_PARAMS, int row0, int steps, int batch,
                              int channels, int lanes, int window, int causal,
                              __global float *restrict table, long table_start, int table_row)
{
    __local float key[KEYS * CHANNELS], value[KEYS * CHANNELS];
    __local float logs[QUERIES * CHANNELS], gated[QUERIES * CHANNELS], whole[QUERIES * CHANNELS];
    const int id = get_local_id(0), r = id / KEYS, c = id % KEYS;
    const int i0 = row0 + (int)get_group_id(1) * QUERIES;
    const int j0 = i0 - window + 1 + (int)get_group_id(0) * KEYS;
    const int i = i0 + r, j = j0 + c;
    const struct bias w = BIAS_OF_ARGUMENTS;
    const int there = i < steps && j >= 0 && j < steps && abs(i - j) < window;
    const float bias = there ? load_bias(&w, i, j) : NOTHING;
    float sum = 0.0f;

    for (int from = 0; from < lanes; from += CHANNELS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = id; n < KEYS * CHANNELS; n += LS) {
            const int l = min(from + n % CHANNELS, lanes - 1);
            const long t = (long)clamp(j0 + n / CHANNELS, 0, steps - 1) * batch;
            key[n] = k[k_start + t * k_stride + key_start(l, channels, k_stride)];
            value[n] = v[v_start + t * v_stride + lane_start(l, channels, v_stride)];
        }
        for (int n = id; n < QUERIES * CHANNELS; n += LS) {
            const int l = min(from + n % CHANNELS, lanes - 1);
            const long t = (long)min(i0 + n / CHANNELS, steps - 1) * batch;
            const float gradient = g[g_start + t * g_stride + lane_start(l, channels, g_stride)];
            logs[n] = log[log_start + t * log_stride + lane_start(l, channels, log_stride)];
            gated[n] =
                gradient * sigmoid_f(q[q_start + t * q_stride + lane_start(l, channels, q_stride)]);
            whole[n] = gradient * y[y_start + t * y_stride + lane_start(l, channels, y_stride)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!(bias <= NOTHING))
            for (int n = 0; n < min(CHANNELS, lanes - from); ++n) {
                const int a = r * CHANNELS + n, b = c * CHANNELS + n;
                const float p = exp_nonpos_f(min((key[b] - logs[a]) + bias, 0.0f));
                sum += p * (gated[a] * value[b] - whole[a]);
            }
    }
    if (!(bias <= NOTHING))
        table[table_start + (long)i * table_row + j] += sum;
}

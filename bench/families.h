// SPDX-License-Identifier: MIT
// The families of cases, one per name; a file of cases/ holds those that belong together.
#ifndef BENCH_FAMILIES_H
#define BENCH_FAMILIES_H

#include "cases.h"

// roofline/
extern const struct family bench_copy, bench_copy_buffer, bench_to_device, bench_from_device,
    bench_fma, bench_launch, bench_device_gemm;
// cases/rows.c
extern const struct family bench_softmax, bench_masked_softmax, bench_layer_norm, bench_gelu,
    bench_bias_gelu, bench_embedding, bench_cross_entropy;
// cases/gemm.c
extern const struct family bench_gemm, bench_bmm, bench_linear, bench_feed_forward;
// cases/aft.c
extern const struct family bench_aft_local, bench_aft_full, bench_aft_simple, bench_aft_conv;
// cases/attention.c
extern const struct family bench_attention, bench_mha_labml, bench_mha_d2l,
    bench_additive_attention, bench_attention_pooling;
// cases/recurrent.c
extern const struct family bench_gru, bench_bahdanau;
// cases/feedback.c
extern const struct family bench_feedback;
// cases/gmlp.c
extern const struct family bench_spatial_gate, bench_gmlp_block;
// cases/layers.c
extern const struct family bench_encoder_layer;
// cases/lm.c
extern const struct family bench_lm, bench_lm_decode;

#endif

// SPDX-License-Identifier: MIT
// The definitions of tests/ref as expressions: each returns its result in the arena of
// host_reset().
#ifndef BENCH_DEFINE_H
#define BENCH_DEFINE_H

#include "attncl/aft.h"
#include "attncl/ops.h"
#include "harness/case_data.h"

struct host *define_linear(const struct host *x, const struct host *weight,
                           const struct host *bias);
// a [B, n, m], b [B, m, p]
struct host *define_bmm(const struct host *a, const struct host *b);
struct host *define_activation(const struct host *x, attncl_activation kind);
struct host *define_layer_norm(const struct host *x, const struct host *weight,
                               const struct host *bias);
struct host *define_add(const struct host *a, const struct host *b);
struct host *define_aft(const struct host *q, const struct host *k, const struct host *v,
                        const struct host *pos_bias, attncl_aft_kind kind, int64_t window,
                        bool causal);
// z [T, B, F] -> [T, B, F/2]
struct host *define_spatial_gate(const struct host *z, const struct host *norm_weight,
                                 const struct host *norm_bias, const struct host *weight,
                                 const struct host *bias, bool causal);

// Some positions of an array [T, ...].
struct host *define_pick(const struct host *h, struct part positions);

// The epsilon of every layer norm here, as PyTorch's default.
#define LAYER_NORM_EPS 1e-5f

#endif

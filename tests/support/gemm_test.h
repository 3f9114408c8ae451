// SPDX-License-Identifier: MIT
// GEMMs on the test device against their reference.
#ifndef ATTNCL_TESTS_GEMM_TEST_H
#define ATTNCL_TESTS_GEMM_TEST_H

#include "gemm/gemm.h"
#include "launch/command_list.h"

struct gemm_case {
    int64_t batch, m, n, k;
    bool trans_a, trans_b, causal;
    enum gemm_bias bias;
    attncl_activation activation;
    bool gate, residual;
    int gap;                        // elements between rows, and before the first
    int side_gap;                   // more between those of the gate and the residual
    bool shared_b;                  // one B for all entries
    attncl_dtype b_dtype;           // F16 or BF16: B is stored so, its elements rounded
    bool scratch;                   // as much as the GEMM asks for
    const struct device_caps *caps; // NULL: the device's
    const char *backend;            // stands for ATTNCL_GEMM; NULL: the environment's
};

// GEMM_CASE(batch, m, n, k, .member = value, ...)
#define GEMM_CASE(...) ((struct gemm_case){.batch = __VA_ARGS__})

enum { A, B, C, BIAS, GATE, RESIDUAL, SCRATCH, N_OPERANDS };

struct gemm_data {
    const struct gemm_case *p;
    struct gemm g;
    struct storage storage[N_OPERANDS];
    float *data[N_OPERANDS];
    int64_t count[N_OPERANDS];
    int n_commands; // of the last run
};

// Random operands, with NaN in every element that the GEMM must neither read nor write, and in C.
void gemm_data_open(struct gemm_data *d, const struct gemm_case *p);
void gemm_data_close(struct gemm_data *d);
// Writes the operands, runs the GEMM, reads C.
attncl_status gemm_data_run(struct gemm_data *d);

// As compiling sets it for an op that is this GEMM.
static inline double gemm_seconds(const struct device_caps *caps, const struct gemm *g)
{
    const double flop = 2.0 * (double)g->batch * (double)g->m * (double)g->n * (double)g->k;
    return caps->flop_per_second > 0 ? flop / caps->flop_per_second : 0;
}

// Runs the GEMM and compares C with the reference; nothing beside C may have changed.  Returns the
// number of commands.
int gemm_check(const struct gemm_case *p);

#endif

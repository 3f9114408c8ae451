// SPDX-License-Identifier: MIT
// attncl selftest: what it computes on the device, and the same in double precision on the host.
#ifndef ATTNCL_TOOL_SELFTEST_H
#define ATTNCL_TOOL_SELFTEST_H

#include "tool.h"

enum { CHECK_MAX_IN = 8, CHECK_MAX_KEYS = 1024 };

// Shape and values of an array: F32 in [low, high], or I32 or U8 in [low, high).
struct check_array {
    attncl_dtype dtype;
    int rank;
    int64_t dim[4];
    double low, high;
};

struct check {
    const char *op; // what a failure names
    attncl_value (*build)(attncl_graph *g, const struct check *c, const attncl_value *in);
    // `in`, `out`: the elements in C order.
    void (*reference)(const struct check *c, double *const *in, double *out);
    bool has_gradient;
    int kind; // an attncl_activation or attncl_aft_kind, or as the check says
    int causal;
    struct check_array out;
    struct check_array in[CHECK_MAX_IN]; // rank 0 after the last one
};

extern const struct check selftest_checks[];
extern const size_t selftest_n_checks;
// On GPUs alone: too long for simulators.
extern const struct check selftest_large_checks[];
extern const size_t selftest_n_large_checks;

// How a check ended.
enum { OUTCOME_BYTES = 512 };
struct outcome {
    const char *op;
    double worst;                // difference, of the tolerance
    char message[OUTCOME_BYTES]; // what is wrong; "" where nothing is
};

void outcome_compare(struct outcome *o, const char *what, int64_t at, double got, double want,
                     double allowed);

// TOOL_OK also where the check fails, which the outcome says.
int check_op(const struct check *c, attncl_context *context, struct outcome *ret);

// A language model: steps of decoding are compared with a run of all positions, whose ops the other checks
// compare with the host's; gradients of its loss with differences of that.
struct model_check {
    const char *op, *config;
};

extern const struct model_check selftest_decodings[], selftest_trainings[];
extern const size_t selftest_n_decodings, selftest_n_trainings;

int check_decoding(const struct model_check *d, attncl_context *context, struct outcome *ret);
int check_gradients(const struct model_check *d, attncl_context *context, struct outcome *ret);

// Of its elements, and of its last axis.
int64_t check_count(const struct check_array *a);
int64_t check_last_axis(const struct check_array *a);

// softmax of n numbers; x and y may be the same.
void check_softmax_row(const double *x, int64_t n, double *y);
// Layer norm of n numbers.
void check_norm_row(const double *x, const double *weight, const double *bias, int64_t n,
                    double *y);

// Checks of selftest_rows.c, selftest_elements.c, selftest_products.c, selftest_half.c,
// selftest_attention.c, selftest_layers.c and selftest_training.c.
attncl_value check_build_softmax(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_softmax(const struct check *c, double *const *in, double *out);
attncl_value check_build_masked(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_masked(const struct check *c, double *const *in, double *out);
attncl_value check_build_norm(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_norm(const struct check *c, double *const *in, double *out);
attncl_value check_build_loss(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_loss(const struct check *c, double *const *in, double *out);
attncl_value check_build_argmax(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_argmax(const struct check *c, double *const *in, double *out);
attncl_value check_build_activation(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_activation(const struct check *c, double *const *in, double *out);
attncl_value check_build_sum(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_sum(const struct check *c, double *const *in, double *out);
attncl_value check_build_product(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_product(const struct check *c, double *const *in, double *out);
attncl_value check_build_concat(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_concat(const struct check *c, double *const *in, double *out);
attncl_value check_build_transpose(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_transpose(const struct check *c, double *const *in, double *out);
attncl_value check_build_embedding(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_embedding(const struct check *c, double *const *in, double *out);
attncl_value check_build_linear(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_linear(const struct check *c, double *const *in, double *out);
attncl_value check_build_bmm(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_bmm(const struct check *c, double *const *in, double *out);
attncl_value check_build_attention(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_attention(const struct check *c, double *const *in, double *out);
attncl_value check_build_aft(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_aft(const struct check *c, double *const *in, double *out);
attncl_value check_build_additive(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_additive(const struct check *c, double *const *in, double *out);
attncl_value check_build_gru(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_gru(const struct check *c, double *const *in, double *out);
attncl_value check_build_gating(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_gating(const struct check *c, double *const *in, double *out);
attncl_value check_build_mixing(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_mixing(const struct check *c, double *const *in, double *out);
attncl_value check_build_pooling(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_pooling(const struct check *c, double *const *in, double *out);
attncl_value check_build_feedback(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_feedback(const struct check *c, double *const *in, double *out);
attncl_value check_build_adam(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_adam(const struct check *c, double *const *in, double *out);
attncl_value check_build_sgd(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_sgd(const struct check *c, double *const *in, double *out);
attncl_value check_build_dropout(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_dropout(const struct check *c, double *const *in, double *out);
attncl_value check_build_biased(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_biased(const struct check *c, double *const *in, double *out);
attncl_value check_build_clamp(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_clamp(const struct check *c, double *const *in, double *out);
attncl_value check_build_slice(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_slice(const struct check *c, double *const *in, double *out);
attncl_value check_build_rotation(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_rotation(const struct check *c, double *const *in, double *out);
attncl_value check_build_halves(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_halves(const struct check *c, double *const *in, double *out);
attncl_value check_build_lookup(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_lookup(const struct check *c, double *const *in, double *out);
attncl_value check_build_clip(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_clip(const struct check *c, double *const *in, double *out);
attncl_value check_build_rate(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_rate(const struct check *c, double *const *in, double *out);
attncl_value check_build_accumulate(attncl_graph *g, const struct check *c, const attncl_value *in);
void check_ref_accumulate(const struct check *c, double *const *in, double *out);

#endif

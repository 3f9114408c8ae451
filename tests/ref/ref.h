// SPDX-License-Identifier: MIT
// The definitions of all ops and layers in C double, as directly as they can be written: what tests
// compare with. Outputs are created by the caller with the right shape; NULL inputs are absent
// ones.
//
// An op's references are declared by ref/prototypes.h, which the build generates from their
// definitions (tests/ref/OP.c); here stand those that say more than their names do.
#ifndef ATTNCL_TEST_REF_H
#define ATTNCL_TEST_REF_H

#include "gemm/gemm.h"
#include "support/host.h"

// -- rows and elements
// y[i...] = base[start + i . stride]
// Rows in 8 bits (op/attention/q8_row.h): `width` channels of each of n heads, a byte in each double.
void ref_q8_encode(const double *x, int64_t n, int64_t width, double *row_ret);
void ref_q8_decode(const double *row, int64_t n, int64_t width, double *x_ret);
void ref_copy_fwd(const struct host *base, const struct tensor_desc *view, struct host *y);
void ref_activation_fwd(const struct host *x, int kind, struct host *y); // kind: attncl_activation
void ref_add_positions_fwd(const struct host *x, const struct host *table, int layout,
                           struct host *y); // layout: attncl_layout

// reduction: attncl_reduction
void ref_cross_entropy_fwd(const struct host *logits, const struct host *targets, int reduction,
                           int64_t pad, double smoothing, struct host *loss);

// -- a token of each row: sample.c
struct ref_sample {
    double temperature; // 0: the best
    int64_t top_k;      // 0: all
    uint64_t seed;
};
void ref_sample_fwd(const struct ref_sample *s, const struct host *x, int64_t position,
                    struct host *y);

// -- dropout: dropout.c
struct ref_dropout {
    double p;
    uint64_t seed;
    uint32_t site, step;
};
// What an element of a row of `width` is multiplied by.
double ref_dropout_factor(const struct ref_dropout *d, int64_t row, int64_t width, int64_t column);
void ref_dropout_fwd(const struct ref_dropout *d, const struct host *x, int64_t position,
                     const struct host *residual, struct host *y); // residual may be NULL

// -- attention-free mixing: aft.c
// pos_bias, mask: NULL, or as the op takes them; g: the gradient of y.  per_head: k [T, B, H],
// pos_bias: w [H, s], and no window.
struct ref_aft_data {
    struct host *q, *k, *v, *pos_bias, *mask, *g;
    int window, causal;
    bool per_head;
    bool reaching; // unseen keys count, with weight 0: where NaN may be too
};
// scale: sigmoid(q) sum p |v|, what y's error is measured by.
void ref_aft_fwd(const struct ref_aft_data *x, struct host *y, struct host *scale);
void ref_aft_local_fwd(const struct host *q, const struct host *k, const struct host *v,
                       const struct host *pos_bias, const struct host *mask, int window, int causal,
                       struct host *y, struct host *scale);
void ref_aft_conv_fwd(const struct host *q, const struct host *k, const struct host *v,
                      const struct host *w, const struct host *mask, int causal, struct host *y,
                      struct host *scale);
// p of row i [T], all 0 where nothing is seen, and the logarithm of its sum; the element of k, and
// of pos_bias or -1, that a pair has.
double ref_aft_weights(const struct ref_aft_data *x, int64_t i, int64_t b, int64_t c, double *p);
int64_t ref_aft_key(const struct ref_aft_data *x, int64_t j, int64_t b, int64_t c);
int64_t ref_aft_bias(const struct ref_aft_data *x, int64_t i, int64_t j, int64_t c);
// log: of the sums of weights; dw NULL without biases.  sizes: aft_bwd.c
void ref_aft_bwd(const struct ref_aft_data *x, bool sizes, struct host *log_ret, struct host *dq,
                 struct host *dk, struct host *dv, struct host *dw);

// -- softmax attention: attention.c
struct ref_attention {
    double scale, softcap; // softcap 0: none
    int causal;
    int64_t window; // 0: none
    const struct host *mask, *valid_lens;
    struct ref_dropout dropout; // of the weights before they meet the values
    bool reaching;              // unseen keys count, with weight 0: where NaN may be too
    const struct host *bias, *slopes;
    bool hard_lens;              // keys beyond a length are unseen
    const struct host *position; // of the first query; NULL: S - T
};
// q [B, H, T, D], k [B, H, S, D] -> [B, H, T, S]
void ref_attention_weights(const struct ref_attention *a, const struct host *q,
                           const struct host *k, struct host *weights);
// Of a pair, from q . k, without bias.
double ref_attention_score(const struct ref_attention *a, double dot);
// What is added to it; offset: the first query's position.
double ref_attention_bias(const struct ref_attention *a, int64_t b, int64_t h, int64_t i, int64_t j,
                          int64_t offset);
// p becomes m p, [B, H, T, S].
void ref_attention_drop(const struct ref_attention *a, struct host *weights);
// v [B, H, S, E] -> [T, B, H, E] or [B, T, H, E]
void ref_attention_mix(const struct host *weights, const struct host *v, bool time_first,
                       struct host *y);
// The same with 0 times the values of weight 0.
void ref_attention_reach(const struct host *weights, const struct host *v, bool time_first,
                         struct host *y);

// What attention's gradients come from: g is that of y, c that of the weights or NULL.
struct ref_attention_data {
    struct host *q, *k, *v, *g, *c;
};
void ref_attention_bwd(const struct ref_attention *a, const struct ref_attention_data *x,
                       bool time_first, bool sizes, struct host *dq, struct host *dk,
                       struct host *dv,
                       struct host *dbias); // attention_bwd.c; dbias may be NULL

struct attention_step_fwd_params;
// keys, values [limit, B, C] are updated; slopes [H] or NULL
void ref_attention_step_fwd(const struct host *q, const struct host *k, const struct host *v,
                            const struct host *slopes, int64_t position,
                            const struct attention_step_fwd_params *params, struct host *keys,
                            struct host *values, struct host *y);
// q [B, T, N], k [B, S, N], v [B, S, E], w [N] -> y [B, T, E], weights [B, T, S]
void ref_additive_attention(const struct host *q, const struct host *k, const struct host *v,
                            const struct host *w, const struct host *lens, struct host *y,
                            struct host *weights);

// in: q, k, v, w, lens, step, position, g, c (of y and of the weights), NULL where absent; mask: factors
// [B, T, S] of the weights that meet the values, NULL: 1; out: dq, dk, dv, dw
void ref_additive_attention_bwd(struct host *const *in, const struct host *mask, bool sizes,
                                struct host *const *out);

// -- feedback
struct ref_feedback {
    struct host *q, *k, *v;     // [B, H D], [S, B, H, D]
    struct host *places, *u;    // [P, H, D], [H, D]
    struct host *place_bias;    // [P, H], NULL: joint scores
    struct ref_dropout dropout; // of the weights [B, H, S] before they meet the values
    bool grows;                 // the mask is of row `count` of [steps, B, H, S]
};
// What the weight of memory j of row b H + h is multiplied by.
double ref_feedback_factor(const struct ref_feedback *x, int64_t count, int64_t row, int64_t j);
// The first `count` memories.  bound: how far y may be off; weights may be NULL.
void ref_feedback_attention_fwd(const struct ref_feedback *x, int64_t count, struct host *y,
                                struct host *weights, struct host *bound);

// -- GEMMs: gemm.c
// The product of a linear map of `rows` rows, everything dense.
struct gemm ref_linear(int64_t rows, int64_t out, int64_t in, bool biased, int activation);
struct ref_operands {
    const double *a, *b, *bias, *gate, *residual; // indexed as struct gemm says; NULL: absent
};
// c and bound are dense [batch, m, n]; bound: how far a float result may be off (gemm.c says why).
void ref_gemm(const struct gemm *g, const struct ref_operands *x, double *c, double *bound);

// kind: Gaussian, boxcar, constant, Epanechikov; attention_pooling.c
void ref_attention_pooling_fwd(int kind, double sigma, const struct host *x, const struct host *y,
                               const struct host *z, struct host *out, struct host *weights);

// in: x, y, z, g, c (of y and of the weights); out: dx, dy, dz
void ref_attention_pooling_bwd(int kind, double sigma, struct host *const *in, bool sizes,
                               struct host *const *out);

struct ref_adam {
    double learning_rate, beta1, beta2, eps, weight_decay;
    int optimized, decoupled, scheduled_decay;
    double now; // the rate of this step; 0: learning_rate
};
// One step in place after `taken` ones; largest: NULL without AMSGrad; adam.c
void ref_adam_step(const struct ref_adam *a, int64_t taken, struct host *p, struct host *g,
                   struct host *m, struct host *v, struct host *largest);

struct ref_sgd {
    double learning_rate, momentum, dampening, weight_decay;
    int nesterov;
};
// The same; buffer: NULL without momentum; sgd.c
void ref_sgd_step(const struct ref_sgd *s, int64_t taken, struct host *p, const struct host *g,
                  struct host *buffer);

// The rate of step t, counted from 1; kind: attncl_rate_schedule; schedule.c
struct ref_schedule {
    int kind;
    double learning_rate, d_model, warmup, n_steps, min_rate;
};
double ref_schedule_rate(const struct ref_schedule *s, double t);

double ref_norm(struct host *const *x, int n); // of all arrays together; clip.c

struct gru_fwd_params;
#include "ref/prototypes.h"

#endif

// SPDX-License-Identifier: MIT
// The definitions of tests/ref as expressions, each with its result in the arena of host_reset();
// and the parameters that several families have.
#ifndef BENCH_DEFINE_H
#define BENCH_DEFINE_H

#include "harness/case.h"
#include "ref/layers.h"

struct host *define_linear(const struct host *x, const struct host *weight,
                           const struct host *bias);
// a [B, n, m], b [B, m, p]
struct host *define_bmm(const struct host *a, const struct host *b);
struct host *define_layer_norm(const struct host *x, const struct host *weight,
                               const struct host *bias);
struct host *define_add(const struct host *a, const struct host *b);

// The array of the case that is named by both, as a whole.
struct host *define_param(const struct case_data *t, const char *prefix, const char *name);
// A layer of the feedback transformer without its keys' and values' maps, `prefix` before the names.
struct ref_feedback_layer define_feedback_layer(const struct case_data *t, const char *prefix);

// -- a language model of random weights

enum { LM_PATH_BYTES = 512, N_CHECKED_STEPS = 8 };
// Query heads of Llama's form that share a key head.
enum { LLAMA_SHARED_BY = 4 };

struct lm_state {
    attncl_context *ctx; // NULL: the case's
    attncl_model *model;
    attncl_decoder *decoder;  // NULL: the whole text at once
    int32_t steps;            // of training, taken
    char path[LM_PATH_BYTES]; // of a model file that lm_close() removes; "": none
};

// Adds an array "y" of this shape for the result and what the model reads, and opens the model.
attncl_status lm_open(struct case_data *t, int rank, const int64_t *dim);
void lm_close_model(struct lm_state *state);
void lm_close(struct case_data *t);

// Adds every parameter of the model to the case's arrays, under its name in model files.
attncl_status lm_parameters(struct case_data *t);
// Writes a model with these parameters to a new file, which the caller removes.
attncl_status lm_write(const struct case_data *t, char path[LM_PATH_BYTES]);
// Logits [T, 1, V] of tokens [T, 1], in double precision, from the layers of tests/ref.
struct host *lm_define(const struct case_data *t, const struct host *tokens);

// The variable of a family, and that of one in the plain form, of build_NAME and check_NAME.
#define FAMILY(NAME, ...) const struct family bench_##NAME = {.name = #NAME, __VA_ARGS__};
#define PLAIN_FAMILY(NAME, SUITE)                                                                  \
    FAMILY(NAME, .suite = (SUITE), .build = build_##NAME, .check = check_##NAME)

// One whose check compares the part Y of the result with `want`, which the last argument computes.
#define CHECKED(NAME, SUITE, SUM_LENGTH, Y, ...)                                                   \
    static void check_##NAME(const struct case_data *t, const struct sizes *s, struct check *c)    \
    {                                                                                              \
        struct host *y = Y, *want = host_like(y);                                                  \
        __VA_ARGS__;                                                                               \
        check_compare(c, (double)(SUM_LENGTH), y, want);                                           \
    }                                                                                              \
    PLAIN_FAMILY(NAME, SUITE)

// The epsilon of every layer norm here, as PyTorch's default.
#define LAYER_NORM_EPS 1e-5f

// Fields of parameters, of the library's struct with MAP and ARRAY, of the reference's with WHOLE
// twice; of a case `t` with sizes `s`.  P goes before the names.
#define MAP(name, out, in)       case_map(t, name, out, in)
#define ARRAY(name, spread, ...) case_weight(t, name, spread, DIMS(__VA_ARGS__))
#define WHOLE(name, ...)         case_whole(t, name)

#define NORM_FIELDS(P, FIELD, NAME, n, ARRAY)                                                      \
    .FIELD##_weight = ARRAY(P NAME ".weight", 1, n), .FIELD##_bias = ARRAY(P NAME ".bias", 1, n)
#define DENSE_FIELDS(P, FIELD, NAME, out, in, MAP, ARRAY)                                          \
    .FIELD##_weight = MAP(P NAME ".weight", out, in), .FIELD##_bias = ARRAY(P NAME ".bias", 1, out)
// Attention's and AFT's.
#define MIXING_FIELDS(P, SUFFIX, MAP, ARRAY)                                                       \
    DENSE_FIELDS(P, query, "query" SUFFIX, s->C, s->C, MAP, ARRAY),                                \
        DENSE_FIELDS(P, key, "key" SUFFIX, s->C, s->C, MAP, ARRAY),                                \
        DENSE_FIELDS(P, value, "value" SUFFIX, s->C, s->C, MAP, ARRAY),                            \
        DENSE_FIELDS(P, output, "output", s->C, s->C, MAP, ARRAY)
#define FFN_FIELDS(P, MAP, ARRAY)                                                                  \
    DENSE_FIELDS(P, layer1, "layer1", s->F, s->C, MAP, ARRAY),                                     \
        DENSE_FIELDS(P, layer2, "layer2", s->C, s->F, MAP, ARRAY)
#define GATE_FIELDS(ARRAY)                                                                         \
    NORM_FIELDS("sgu.", norm, "norm", s->F / 2, ARRAY),                                            \
        .weight = ARRAY("sgu.weight", 0.1, s->T, s->T), .bias = ARRAY("sgu.bias", 1, s->T)
#define GMLP_FIELDS(MAP, ARRAY)                                                                    \
    NORM_FIELDS("", norm, "norm", s->C, ARRAY),                                                    \
        DENSE_FIELDS("", proj1, "proj1", s->F, s->C, MAP, ARRAY),                                  \
        DENSE_FIELDS("", proj2, "proj2", s->C, s->F / 2, MAP, ARRAY)

#endif

// SPDX-License-Identifier: MIT
// Small language models whose tokens are drawn, and drawing them on the host, step by step.
#ifndef ATTNCL_TEST_DRAWING_H
#define ATTNCL_TEST_DRAWING_H

#include <stdio.h>

#include "attncl/model.h"
#include "ref/ref.h"
#include "support/op_test.h"

enum { BATCH = 3, VOCABULARY = 37 };
static const int32_t start[BATCH] = {3, 0, 36};

static inline attncl_model *create_drawing(const char *arch, const char *keys, int max_len)
{
    attncl_model *model = NULL;
    char text[400];

    snprintf(text, sizeof text,
             "{%s, \"d_model\": 24, \"n_layers\": 2, \"n_vocab\": %d, \"max_len\": %d}", keys,
             VOCABULARY, max_len);
    ck_ok(attncl_model_create(test_context(), arch, text, 5, &model));
    return model;
}

// The scores of text [n, BATCH] at once, [n, BATCH, VOCABULARY].
static inline void get_scores(attncl_model *model, int n, const int32_t *text, float *scores)
{
    const attncl_array tokens = {
        .name = "tokens", .dtype = ATTNCL_I32, .rank = 2, .dim = {n, BATCH}};
    attncl_graph *graph = NULL;

    ck_ok(attncl_model_graph(model, &tokens, 1, &graph));
    ck_ok(attncl_graph_write(graph, "tokens", text, (size_t)(n * BATCH) * sizeof *text));
    ck_ok(attncl_graph_run(graph));
    ck_ok(attncl_graph_read(graph, "output", scores,
                            (size_t)(n * BATCH * VOCABULARY) * sizeof *scores));
    attncl_graph_destroy(graph);
}

static inline void close_model(attncl_model *model, attncl_decoder *decoder)
{
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
}

// What attncl_decoder_sample() does, by steps.
static inline void sample_by_steps(attncl_decoder *decoder, int n, const attncl_sampling *s,
                                   int32_t *tokens_ret)
{
    const struct ref_sample ref = {s->temperature, s->top_k, s->seed};
    struct host *scores = host_new(ATTNCL_F32, DIMS(BATCH, VOCABULARY)),
                *drawn = host_new(ATTNCL_I32, DIMS(BATCH));
    float logits[BATCH * VOCABULARY];

    for (int i = 0; i < n; ++i) {
        const int64_t position = attncl_decoder_position(decoder);
        ck_ok(attncl_decoder_step(decoder, i ? tokens_ret + (i - 1) * BATCH : start, logits));
        for (int j = 0; j < BATCH * VOCABULARY; ++j)
            scores->data[j] = (double)logits[j];
        ref_sample_fwd(&ref, scores, position, drawn);
        for (int b = 0; b < BATCH; ++b)
            tokens_ret[i * BATCH + b] = (int32_t)drawn->data[b];
    }
}

// N tokens at once are those of steps, which go to `want`; to the bit, as it is the same arithmetic.
static inline void check_drawn(attncl_decoder *decoder, int n, const attncl_sampling *s,
                               int32_t *want, int32_t *got)
{
    float want_logits[BATCH * VOCABULARY], got_logits[BATCH * VOCABULARY];

    sample_by_steps(decoder, n, s, want);
    ck_ok(attncl_decoder_step(decoder, want + (n - 1) * BATCH, want_logits));
    ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_sample(decoder, n, start, s, got));
    ck_assert_mem_eq(got, want, (size_t)(n * BATCH) * sizeof *want);
    ck_assert_int_eq(attncl_decoder_position(decoder), n);
    ck_ok(attncl_decoder_step(decoder, got + (n - 1) * BATCH, got_logits));
    ck_assert_mem_eq(got_logits, want_logits, sizeof want_logits);
    ck_ok(attncl_decoder_reset(decoder));
}

#endif

// SPDX-License-Identifier: MIT
//
// Language models through the model API: the whole text at once, and token by token.  Checked on
// the last batch entry, at every position; decoding must give what the definition gives for the
// prefix.

#include "cases/define.h"

#include "base/alloc.h"
#include "base/try.h"

struct lm_state {
    attncl_model *model;
    attncl_decoder *decoder; // NULL: the whole text at once
};

static double all_tokens(const struct sizes *s)
{
    return (double)(s->T * s->B);
}

static attncl_status open_model(struct case_data *t, struct lm_state **state_ret)
{
    const struct sizes *s = &t->c->sizes;
    struct lm_state *state = attncl__alloc_zero(sizeof *state);

    REQUIRE(state, ATTNCL_ERR_NO_MEMORY, "state of %s", t->c->name);
    t->state = state; // released by close_lm() from here on
    TRY(lm_parameters(t));
    TRY(lm_open(t, &state->model));
    case_array_indices(t, "tokens", 0, s->V, DIMS(s->T, s->B));
    case_array_add(t, "y", 0, DIMS(s->T, s->B, s->V));
    *state_ret = state;
    return t->status;
}

static void close_lm(struct case_data *t)
{
    struct lm_state *state = t->state;

    if (!state)
        return;
    attncl_graph_destroy(t->graph);
    t->graph = NULL;
    attncl_decoder_destroy(state->decoder);
    attncl_model_close(state->model);
    attncl__free(state);
    t->state = NULL;
}

static attncl_status open_lm(struct case_data *t)
{
    struct lm_state *state = NULL;

    TRY(open_model(t, &state));
    const struct case_array *tokens = case_array_find(t, "tokens");
    const attncl_array input = {.name = "tokens",
                                .dtype = ATTNCL_I32,
                                .rank = 2,
                                .dim = {tokens->dim[0], tokens->dim[1]},
                                .data = tokens->data,
                                .bytes = case_array_bytes(tokens)};
    const double start = clock_now();
    TRY(attncl_model_graph(state->model, &input, 1, &t->graph));
    t->compile_s = clock_now() - start;
    return attncl_graph_write(t->graph, "tokens", tokens->data, case_array_bytes(tokens));
}

static void check_lm(const struct case_data *t, struct check *c)
{
    const struct sizes *s = &t->c->sizes;
    const struct part batch = part_one(s->B - 1);

    check_compare(c, (double)(s->layers * (3 * s->C + s->F + s->T) + s->C),
                  PART(t, "y", ALL, batch, ALL), lm_define(t, PART(t, "tokens", ALL, batch)));
}

const struct family bench_lm = {.name = "lm",
                                .suite = SUITE_MODEL,
                                .output = "output",
                                .open = open_lm,
                                .close = close_lm,
                                .check = check_lm,
                                .tokens = all_tokens};

static attncl_status open_decode(struct case_data *t)
{
    struct lm_state *state = NULL;

    TRY(open_model(t, &state));
    const double start = clock_now();
    TRY(attncl_decoder_create(state->model, t->c->sizes.B, &state->decoder));
    t->compile_s = clock_now() - start;
    return ATTNCL_OK;
}

// A text of T tokens; each step's scores are read back, as sampling needs them.
static attncl_status run_decode(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const struct lm_state *state = t->state;
    const int32_t *tokens = case_array_find(t, "tokens")->data;
    float *logits = case_array_find(t, "y")->data;

    TRY(attncl_decoder_reset(state->decoder));
    for (int64_t p = 0; p < s->T; ++p) {
        const double start = clock_now();
        TRY(attncl_decoder_step(state->decoder, tokens + p * s->B, logits + p * s->B * s->V));
        REQUIRE(!t->latency || samples_add(t->latency, clock_now() - start), ATTNCL_ERR_NO_MEMORY,
                "%zu latencies", t->latency->n);
    }
    return ATTNCL_OK;
}

static attncl_status read_decode(struct case_data *t)
{
    (void)t; // run_decode() has read every step
    return ATTNCL_OK;
}

const struct family bench_lm_decode = {.name = "lm_decode",
                                       .suite = SUITE_MODEL,
                                       .open = open_decode,
                                       .run = run_decode,
                                       .read = read_decode,
                                       .close = close_lm,
                                       .check = check_lm,
                                       .tokens = all_tokens};

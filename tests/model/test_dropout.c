// SPDX-License-Identifier: MIT
// The loss of a model with dropout: its gradient is that of the same masks, a step is reproducible, and
// without a probability nothing changes.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/loss_graph.h"

enum { T = 5, B = 3, MAX_FLOATS = 1 << 14 };
static const int64_t shape_tb[] = {T, B};
static const int32_t tokens[T * B] = {1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1};
static const int32_t targets[T * B] = {2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2};

static attncl_array ints(const char *name, const int32_t *data)
{
    return (attncl_array){name, ATTNCL_I32, 2, {shape_tb[0], shape_tb[1]}, data, sizeof tokens};
}

enum { NO_DESC = -1 };

static void open_problem(struct loss_graph *p, const char *name, double dropout)
{
    const bool pairs = strcmp(name, "seq2seq_bahdanau") == 0; // then T is the batch
    const attncl_array in[] = {ints("targets", targets), ints(pairs ? "enc_X" : "tokens", tokens),
                               ints("dec_X", tokens)};
    attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;

    desc.dropout = dropout;
    desc.seed = 12345;
    loss_graph_open(p, name);
    loss_graph_build(p, dropout >= 0 ? &desc : NULL, in, pairs ? 3 : 2);
}

// Of the model without dropout.
static float plain_loss(const char *name)
{
    struct loss_graph p;

    open_problem(&p, name, NO_DESC);
    const float loss = loss_graph_run(&p);
    loss_graph_close(&p);
    return loss;
}

// The loss along the gradient of one weight: d loss = |gradient| d length.
static void check_weight(struct loss_graph *p, size_t i, int32_t step)
{
    static float x[MAX_FLOATS], moved[MAX_FLOATS];
    attncl_weight weight;
    float loss[2], *dx;
    double norm = 0;

    loss_graph_run_at(p, step);
    const size_t count = loss_graph_gradient(p, i, &weight, &dx);
    ck_assert_uint_le(count, MAX_FLOATS);
    for (size_t k = 0; k < count; ++k)
        norm += (double)dx[k] * dx[k];
    norm = sqrt(norm);
    if (norm < 1e-3) { // below what a float's loss shows
        free(dx);
        return;
    }
    ck_ok(attncl_tensor_read(weight.tensor, x, count * sizeof x[0]));
    const double length = 5e-3;
    for (int side = 0; side < 2; ++side) {
        for (size_t k = 0; k < count; ++k)
            moved[k] = x[k] + (float)((side ? -length : length) * dx[k] / norm);
        ck_ok(attncl_tensor_write(weight.tensor, moved, count * sizeof x[0]));
        loss[side] = loss_graph_run_at(p, step);
    }
    ck_ok(attncl_tensor_write(weight.tensor, x, count * sizeof x[0]));
    free(dx);
    const double slope = ((double)loss[0] - loss[1]) / (2 * length);
    ck_assert_msg(fabs(slope - norm) < 0.02 * norm + 2e-4, "%s: the slope is %g, the gradient %g",
                  weight.name, slope, norm);
}

static const char *const dropping[] = {"lm_transformer_learned", "lm_aft_full", "lm_post_norm",
                                       "seq2seq_bahdanau"};

TABLE_TEST(the_gradient_is_that_of_the_same_masks, dropping)
{
    struct loss_graph p;

    open_problem(&p, dropping[_i], 0.3);
    const float first = loss_graph_run_at(&p, 1);
    ck_assert(loss_graph_run_at(&p, 2) != first);
    ck_assert(loss_graph_run_at(&p, 1) == first);
    for (size_t i = 0; i < p.n_weights; ++i)
        check_weight(&p, i, 7);
    loss_graph_close(&p);
}

TABLE_TEST(probability_0_changes_no_bit, dropping)
{
    struct loss_graph with, without;
    attncl_weight weight;
    float *dx, *want;

    open_problem(&without, dropping[_i], NO_DESC);
    open_problem(&with, dropping[_i], 0);
    ck_assert(loss_graph_run_at(&with, 3) == loss_graph_run(&without));
    ck_assert_uint_eq(with.n_weights, without.n_weights);
    for (size_t i = 0; i < with.n_weights; ++i) {
        const size_t count = loss_graph_gradient(&with, i, &weight, &dx);
        loss_graph_gradient(&without, i, &weight, &want);
        ck_assert_msg(memcmp(dx, want, count * sizeof dx[0]) == 0, "the gradient of %s differs",
                      weight.name);
        free(dx);
        free(want);
    }
    loss_graph_close(&with);
    loss_graph_close(&without);
}

TEST(a_probability_near_0_keeps_all)
{
    const float loss = plain_loss("lm_transformer");
    struct loss_graph p;

    open_problem(&p, "lm_transformer", 1e-12); // times 1
    ck_assert(fabsf(loss_graph_run_at(&p, 1) - loss) <= 1e-6f * loss);
    loss_graph_close(&p);
}

TEST(a_block_without_places_drops_nothing)
{
    const float loss = plain_loss("lm_gmlp");
    struct loss_graph p;

    open_problem(&p, "lm_gmlp", 0.5);
    ck_assert(loss_graph_run_at(&p, 1) == loss);
    loss_graph_close(&p);
}

// SPDX-License-Identifier: MIT
// The loss of a model with dropout: a step is reproducible, a part of a batch has its masks, and without a probability nothing
// changes.  test_dropout_golden.c has gradients.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/compare.h"
#include "support/loss_graph.h"

enum { T = 5, B = 3 };
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
    const bool pairs = strncmp(name, "seq2seq", 7) == 0; // then T is the batch
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

static const char *const dropping[] = {"lm_transformer_learned", "lm_aft_full", "lm_post_norm",
                                       "seq2seq_bahdanau", "seq2seq_transformer"};

TABLE_TEST(each_step_has_its_masks, dropping)
{
    struct loss_graph p;

    open_problem(&p, dropping[_i], 0.3);
    const float first = loss_graph_run_at(&p, 1);
    ck_assert(loss_graph_run_at(&p, 2) != first);
    ck_assert(loss_graph_run_at(&p, 1) == first);
    loss_graph_close(&p);
}

TABLE_TEST(probability_0_changes_no_bit, dropping)
{
    struct loss_graph with, without;
    attncl_model_tensor weight;
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

// Inputs of sequences [begin, begin + n) of an axis, of which both arrays have `all`.
static attncl_array some(const attncl_array *whole, int axis, int64_t begin, int64_t n,
                         int32_t *memory)
{
    attncl_array part = *whole;
    const int64_t all = whole->dim[axis], inner = axis == 0 ? whole->dim[1] : 1;
    const int64_t count = whole->dim[0] * whole->dim[1] / all * n;
    for (int64_t i = 0; i < count; ++i)
        memory[i] = ((const int32_t *)
                         whole->data)[(i / (n * inner) * all + begin) * inner + i % (n * inner)];
    part.dim[axis] = n;
    part.data = memory;
    part.bytes = (size_t)count * sizeof *memory;
    return part;
}

static const char *const batched[] = {
    "lm_transformer_learned", "lm_aft_full",      "lm_post_norm",       "lm_feedback",
    "lm_feedback_kv",         "seq2seq_bahdanau", "seq2seq_transformer"};

// Loss and gradients of a batch are the means over its parts.
TABLE_TEST(parts_of_a_batch_have_its_masks, batched)
{
    const char *name = batched[_i];
    const bool pairs = strncmp(name, "seq2seq", 7) == 0;
    const int axis = pairs ? 0 : 1;
    const int64_t all = shape_tb[axis], cut = 1;
    const attncl_array in[] = {ints("targets", targets), ints(pairs ? "enc_X" : "tokens", tokens),
                               ints("dec_X", tokens)};
    struct loss_graph whole, part[2];
    double sum = 0;

    open_problem(&whole, name, 0.3);
    const float loss = loss_graph_run_at(&whole, 4);
    for (int k = 0; k < 2; ++k) {
        static int32_t memory[3][T * B];
        const int64_t begin = k ? cut : 0, n = k ? all - cut : cut;
        attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;
        attncl_array some_in[3];
        desc.dropout = 0.3;
        desc.seed = 12345;
        desc.batch_begin = begin;
        desc.batch_total = all;
        for (int i = 0; i < 3; ++i)
            some_in[i] = some(&in[i], axis, begin, n, memory[i]);
        loss_graph_open(&part[k], name);
        loss_graph_build(&part[k], &desc, some_in, pairs ? 3 : 2);
        sum += (double)n / (double)all * loss_graph_run_at(&part[k], 4);
    }
    ck_assert_msg(fabs(sum - loss) < 1e-5 * loss, "%s: %.9g, its parts %.9g", name, loss, sum);
    for (size_t i = 0; i < whole.n_weights; ++i) {
        attncl_model_tensor weight;
        float *dx, *dx_part[2];
        const size_t count = loss_graph_gradient(&whole, i, &weight, &dx);
        struct worst w = {0};
        for (int k = 0; k < 2; ++k)
            loss_graph_gradient(&part[k], i, &weight, &dx_part[k]);
        double largest = largest_of(dx, (int64_t)count);
        largest = largest < 0.05 ? 0.05 : largest; // below it roundings of larger terms count
        for (size_t j = 0; j < count; ++j) {
            const double share = (double)cut / (double)all;
            const double mean = share * dx_part[0][j] + (1 - share) * dx_part[1][j];
            worst_add(&w, (int64_t)j, mean, (double)dx[j], 1e-5 * largest);
        }
        ck_worst(&w, 1, "%s, %s", name, weight.name);
        free(dx);
        free(dx_part[0]);
        free(dx_part[1]);
    }
    loss_graph_close(&whole);
    loss_graph_close(&part[0]);
    loss_graph_close(&part[1]);
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

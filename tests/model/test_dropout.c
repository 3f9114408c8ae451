// SPDX-License-Identifier: MIT
// The loss of a model with dropout: its gradient is that of the same masks, a step is reproducible, and
// without a probability nothing changes.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/golden.h"

enum { T = 5, B = 3, MAX_WEIGHTS = 64, MAX_FLOATS = 1 << 14 };
static const int64_t shape_tb[] = {T, B};
static const int32_t tokens[T * B] = {1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1};
static const int32_t targets[T * B] = {2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2};

struct problem {
    struct golden golden;
    attncl_model *model;
    attncl_graph *g;
    size_t n;
};

static attncl_array ints(const char *name, const int32_t *data)
{
    return (attncl_array){.name = name,
                          .dtype = ATTNCL_I32,
                          .rank = 2,
                          .dim = {shape_tb[0], shape_tb[1]},
                          .data = data,
                          .bytes = sizeof tokens};
}

enum { NO_DESC = -1 };

static void open_problem(struct problem *p, const char *name, double dropout)
{
    const bool pairs = strcmp(name, "seq2seq_bahdanau") == 0; // then T is the batch
    const attncl_array in[] = {ints("targets", targets), ints(pairs ? "enc_X" : "tokens", tokens),
                               ints("dec_X", tokens)};
    attncl_value loss, weights[MAX_WEIGHTS], gradients[MAX_WEIGHTS];
    attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;
    char label[32];

    golden_load(&p->golden, name);
    ck_ok(attncl_model_open(test_context(), p->golden.path, &p->model));
    ck_ok(attncl_graph_create(test_context(), &p->g));
    desc.dropout = dropout;
    desc.seed = 12345;
    if (dropout >= 0)
        desc.step = attncl_graph_input(p->g, "step", ATTNCL_I32, 0, NULL);
    ck_ok(attncl_model_loss(p->model, p->g, dropout >= 0 ? &desc : NULL, in, pairs ? 3 : 2, &loss));
    ck_ok(attncl_model_gradient(p->model, p->g, loss, weights, gradients));
    attncl_graph_output(p->g, "loss", loss);
    p->n = attncl_model_weight_count(p->model);
    ck_assert_uint_le(p->n, MAX_WEIGHTS);
    for (size_t i = 0; i < p->n; ++i) {
        snprintf(label, sizeof label, "%zu", i);
        attncl_graph_output(p->g, label, gradients[i]);
    }
    ck_ok(attncl_graph_compile(p->g, NULL));
    for (size_t i = 0; i < (pairs ? 3 : 2); ++i)
        ck_ok(attncl_graph_write(p->g, in[i].name, in[i].data, in[i].bytes));
}

static void close_problem(struct problem *p)
{
    attncl_graph_destroy(p->g);
    attncl_model_close(p->model);
    golden_free(&p->golden);
}

static float loss_at(struct problem *p, int32_t step)
{
    float loss;
    ck_ok(attncl_graph_write(p->g, "step", &step, sizeof step));
    ck_ok(attncl_graph_run(p->g));
    ck_ok(attncl_graph_read(p->g, "loss", &loss, sizeof loss));
    return loss;
}

static size_t read_gradient(struct problem *p, size_t i, attncl_weight *weight, float *ret)
{
    char label[32];
    size_t count = 1;

    *weight = (attncl_weight)ATTNCL_WEIGHT_INIT;
    ck_ok(attncl_model_weight_at(p->model, i, weight));
    for (int k = 0; k < weight->shape.rank; ++k)
        count *= (size_t)weight->shape.dim[k];
    ck_assert_uint_le(count, MAX_FLOATS);
    snprintf(label, sizeof label, "%zu", i);
    ck_ok(attncl_graph_read(p->g, label, ret, count * sizeof *ret));
    return count;
}

// The loss along the gradient of one weight: d loss = |gradient| d length.
static void check_weight(struct problem *p, size_t i, int32_t step)
{
    static float x[MAX_FLOATS], moved[MAX_FLOATS], dx[MAX_FLOATS];
    attncl_weight weight;
    float loss[2];
    double norm = 0;

    loss_at(p, step);
    const size_t count = read_gradient(p, i, &weight, dx);
    for (size_t k = 0; k < count; ++k)
        norm += (double)dx[k] * dx[k];
    norm = sqrt(norm);
    if (norm < 1e-3) // below what a float's loss shows
        return;
    ck_ok(attncl_tensor_read(weight.tensor, x, count * sizeof x[0]));
    const double length = 5e-3;
    for (int side = 0; side < 2; ++side) {
        for (size_t k = 0; k < count; ++k)
            moved[k] = x[k] + (float)((side ? -length : length) * dx[k] / norm);
        ck_ok(attncl_tensor_write(weight.tensor, moved, count * sizeof x[0]));
        loss[side] = loss_at(p, step);
    }
    ck_ok(attncl_tensor_write(weight.tensor, x, count * sizeof x[0]));
    const double slope = ((double)loss[0] - loss[1]) / (2 * length);
    ck_assert_msg(fabs(slope - norm) < 0.02 * norm + 2e-4, "%s: the slope is %g, the gradient %g",
                  weight.name, slope, norm);
}

static const char *const dropping[] = {"lm_transformer_learned", "lm_aft_full", "lm_post_norm",
                                       "seq2seq_bahdanau"};

TABLE_TEST(the_gradient_is_that_of_the_same_masks, dropping)
{
    struct problem p;

    open_problem(&p, dropping[_i], 0.3);
    const float first = loss_at(&p, 1);
    ck_assert(loss_at(&p, 2) != first);
    ck_assert(loss_at(&p, 1) == first);
    for (size_t i = 0; i < p.n; ++i)
        check_weight(&p, i, 7);
    close_problem(&p);
}

TABLE_TEST(probability_0_changes_no_bit, dropping)
{
    static float dx[MAX_FLOATS], want[MAX_FLOATS];
    struct problem with, without;
    attncl_weight weight;
    float loss;

    open_problem(&without, dropping[_i], NO_DESC);
    ck_ok(attncl_graph_run(without.g));
    ck_ok(attncl_graph_read(without.g, "loss", &loss, sizeof loss));
    open_problem(&with, dropping[_i], 0);
    ck_assert(loss_at(&with, 3) == loss);
    ck_assert_uint_eq(with.n, without.n);
    for (size_t i = 0; i < with.n; ++i) {
        const size_t count = read_gradient(&with, i, &weight, dx);
        read_gradient(&without, i, &weight, want);
        ck_assert_msg(memcmp(dx, want, count * sizeof dx[0]) == 0, "the gradient of %s differs",
                      weight.name);
    }
    close_problem(&with);
    close_problem(&without);
}

TEST(a_probability_near_0_keeps_all)
{
    struct problem p;
    float loss;

    open_problem(&p, "lm_transformer", NO_DESC);
    ck_ok(attncl_graph_run(p.g));
    ck_ok(attncl_graph_read(p.g, "loss", &loss, sizeof loss));
    close_problem(&p);
    open_problem(&p, "lm_transformer", 1e-12); // times 1
    ck_assert(fabsf(loss_at(&p, 1) - loss) <= 1e-6f * loss);
    close_problem(&p);
}

TEST(feedback_layers_refuse)
{
    const attncl_array in[] = {ints("tokens", tokens), ints("targets", targets)};
    attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;
    struct problem p;
    attncl_value loss;

    golden_load(&p.golden, "lm_feedback");
    ck_ok(attncl_model_open(test_context(), p.golden.path, &p.model));
    ck_ok(attncl_graph_create(test_context(), &p.g));
    desc.dropout = 0.1;
    ck_fails(attncl_model_loss(p.model, p.g, &desc, in, 2, &loss), ATTNCL_ERR_UNSUPPORTED,
             "dropout is 0.1, layers of a feedback transformer have none");
    close_problem(&p);
}

TEST(a_block_without_places_drops_nothing)
{
    struct problem with, without;
    float loss;

    open_problem(&without, "lm_gmlp", NO_DESC);
    ck_ok(attncl_graph_run(without.g));
    ck_ok(attncl_graph_read(without.g, "loss", &loss, sizeof loss));
    close_problem(&without);
    open_problem(&with, "lm_gmlp", 0.5);
    ck_assert(loss_at(&with, 1) == loss);
    close_problem(&with);
}

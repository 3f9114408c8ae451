// SPDX-License-Identifier: MIT
// Dropout against PyTorch in float64, which multiplies the masks that numpy computes from their definition
// (tests/torch_models/dropout.py): loss and gradients of whole models at a step.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attncl/parameters.h"
#include "support/loss_graph.h"

enum { NAME_BYTES = 128 };

// That of test_golden.c, for the same depth of roundings.
static const double tolerance = 30 * 14 * 6e-8;

static const void *stored(const struct golden *golden, const char *name)
{
    const attncl_array *a = attncl_safetensors_find(golden->file, name);
    ck_assert_msg(a != NULL, "%s has no %s", golden->path, name);
    return a->data;
}

static void open_problem(struct loss_graph *p, const char *name)
{
    attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;

    loss_graph_open(p, name);
    desc.dropout = *(const double *)stored(&p->golden, "dropout.p");
    desc.seed = *(const uint64_t *)stored(&p->golden, "dropout.seed");
    loss_graph_build(p, &desc, p->golden.inputs, p->golden.n_inputs);
}

static size_t bytes_of(const attncl_shape *shape)
{
    size_t bytes = sizeof(float);
    for (int i = 0; i < shape->rank; ++i)
        bytes *= (size_t)shape->dim[i];
    return bytes;
}

// The gradients take the weights' place, so that they can be read as the file names and cuts them.
static void replace_weights(struct loss_graph *p)
{
    for (size_t i = 0; i < p->n_weights; ++i) {
        attncl_model_tensor weight;
        float *gradient;
        const size_t count = loss_graph_gradient(p, i, &weight, &gradient);
        ck_ok(attncl_tensor_write(weight.tensor, gradient, count * sizeof *gradient));
        free(gradient);
    }
}

static void check_gradient(struct loss_graph *p, const attncl_param *param)
{
    char name[NAME_BYTES];
    attncl_array got = {.name = name, .dtype = ATTNCL_F32, .rank = param->shape.rank};
    got.bytes = bytes_of(&param->shape);
    for (int i = 0; i < got.rank; ++i)
        got.dim[i] = param->shape.dim[i];
    float *gradient = malloc(got.bytes);
    ck_assert_ptr_nonnull(gradient);
    ck_ok(attncl_model_param_read(p->model, param->name, gradient, got.bytes));
    got.data = gradient;
    snprintf(name, sizeof name, "grad.%s", param->name);
    golden_check_one(&p->golden, &got, tolerance);
    free(gradient);
}

static const char *const names[] = {"dropout_lm_transformer",     "dropout_lm_aft_local",
                                    "dropout_lm_feedback",        "dropout_lm_feedback_kv",
                                    "dropout_seq2seq_bahdanau",   "dropout_lm_embed",
                                    "dropout_seq2seq_transformer"};

TABLE_TEST(losses_and_gradients_are_those_of_pytorch_with_the_same_masks, names)
{
    struct loss_graph p;
    size_t n_gradients = 0;

    open_problem(&p, names[_i]);
    const int32_t step = *(const int32_t *)stored(&p.golden, "dropout.step");
    const float other = loss_graph_run_at(&p, step + 1), loss = loss_graph_run_at(&p, step);
    const attncl_array got = {
        .name = "loss", .dtype = ATTNCL_F32, .data = &loss, .bytes = sizeof loss};
    golden_check_one(&p.golden, &got, tolerance);
    ck_assert(fabsf(other - loss) > 10 * (float)tolerance * loss); // so that masks matter
    replace_weights(&p);
    for (size_t i = 0; i < attncl_model_param_count(p.model); ++i) {
        attncl_param param = ATTNCL_PARAM_INIT;
        ck_ok(attncl_model_param_at(p.model, i, &param));
        if (!param.trainable)
            continue;
        check_gradient(&p, &param);
        ++n_gradients;
    }
    // Beside the parameters and their gradients: p, seed, step, the loss and the inputs.
    ck_assert_uint_eq(2 * n_gradients + 4 + p.golden.n_inputs,
                      attncl_safetensors_count(p.golden.file));
    loss_graph_close(&p);
}

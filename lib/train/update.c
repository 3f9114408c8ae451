// SPDX-License-Identifier: MIT
//
// Trained tensors: what an optimiser keeps for each, and its step.

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "base/alloc.h"
#include "base/desc.h"
#include "base/try.h"
#include "graph/graph.h"
#include "layer/layer.h"
#include "train/trainer.h"

bool attncl__trainer_sums(const attncl_trainer *t)
{
    return t->config.settings.accumulate > 1 || attncl_ranks_size(t->ranks) > 1;
}

bool attncl__steps_overlap(const attncl_trainer *t)
{
    return attncl_ranks_size(t->ranks) == 1;
}

static bool keeps(const attncl_trainer *t, enum kept kept)
{
    const struct train_settings *s = &t->config.settings;
    const bool is_sgd = s->optimizer.is_sgd;
    switch (kept) {
    case KEPT_EXP_AVG:
    case KEPT_EXP_AVG_SQ:
        return !is_sgd;
    case KEPT_MAX_EXP_AVG_SQ:
        return !is_sgd && s->optimizer.amsgrad;
    case KEPT_MOMENTUM_BUFFER:
        return is_sgd && s->optimizer.sgd.momentum > 0;
    case KEPT_AVERAGE:
        return s->ema > 0;
    default:
        return false;
    }
}

static attncl_status create_one(attncl_trainer *t, struct trained *trained)
{
    const attncl_shape *shape = &trained->shape;
    for (int kept = 0; kept < N_KEPT; ++kept)
        if (keeps(t, (enum kept)kept))
            TRY(attncl_tensor_create(t->context, ATTNCL_F32, shape->rank, shape->dim, ATTNCL_F32,
                                     NULL, &trained->tensor[kept]));
    if (attncl__trainer_sums(t))
        TRY(attncl_tensor_create(t->context, ATTNCL_F32, shape->rank, shape->dim, ATTNCL_F32, NULL,
                                 &trained->gradient));
    return ATTNCL_OK;
}

// All ranks start from rank 0's weights, and averages from the weights.
static attncl_status start_values(attncl_trainer *t, const struct trained *trained)
{
    const bool is_shared = attncl_ranks_size(t->ranks) > 1;
    if (!is_shared && !trained->tensor[KEPT_AVERAGE])
        return ATTNCL_OK;
    const size_t bytes = trained->count * sizeof(float);
    float *values = attncl__alloc(bytes);
    REQUIRE(values, ATTNCL_ERR_NO_MEMORY, "%zu bytes of %s", bytes, trained->name);
    attncl_status status = attncl_tensor_read(trained->tensor[KEPT_WEIGHT], values, bytes);
    if (status == ATTNCL_OK && is_shared)
        status = attncl_ranks_broadcast(t->ranks, values, bytes);
    if (status == ATTNCL_OK && is_shared)
        status = attncl_tensor_write(trained->tensor[KEPT_WEIGHT], values, bytes);
    if (status == ATTNCL_OK && trained->tensor[KEPT_AVERAGE])
        status = attncl_tensor_write(trained->tensor[KEPT_AVERAGE], values, bytes);
    attncl__free(values);
    return status;
}

attncl_status attncl__kept_create(attncl_trainer *t)
{
    if (attncl__steps_overlap(t))
        TRY(attncl_tensor_create(t->context, ATTNCL_F32, 0, NULL, ATTNCL_F32, NULL, &t->fault));
    const size_t n = attncl_model_tensor_count(t->model);
    t->trained = attncl__alloc_array(n, sizeof *t->trained);
    REQUIRE(t->trained, ATTNCL_ERR_NO_MEMORY, "%zu trained tensors", n);
    for (size_t i = 0; i < n; ++i) {
        attncl_model_tensor weight = ATTNCL_MODEL_TENSOR_INIT;
        struct tensor_desc desc;
        TRY(attncl_model_tensor_at(t->model, i, &weight));
        TRY(attncl__desc_make(ATTNCL_F32, weight.shape.rank, weight.shape.dim, &desc));
        t->trained[i] = (struct trained){.name = weight.name,
                                         .shape = weight.shape,
                                         .count = (size_t)attncl__desc_count(&desc),
                                         .tensor = {[KEPT_WEIGHT] = weight.tensor}};
        t->n_trained = i + 1;
        TRY(create_one(t, &t->trained[i]));
        TRY(start_values(t, &t->trained[i]));
    }
    return ATTNCL_OK;
}

void attncl__kept_destroy(attncl_trainer *t)
{
    for (size_t i = 0; i < t->n_trained; ++i) {
        for (int kept = KEPT_WEIGHT + 1; kept < N_KEPT; ++kept)
            attncl_tensor_destroy(t->trained[i].tensor[kept]);
        attncl_tensor_destroy(t->trained[i].gradient);
    }
    attncl_tensor_destroy(t->fault);
    t->fault = NULL;
    attncl__free(t->trained);
    t->trained = NULL;
    t->n_trained = 0;
}

// -- nodes

// 0 where a value is finite, else NaN.
static attncl_value zero_if_finite(attncl_graph *g, attncl_value x)
{
    static const float zero = 0;
    return attncl_mul(g, x, attncl_graph_constant(g, ATTNCL_F32, 0, NULL, &zero));
}

attncl_value attncl__update_note_fault(attncl_trainer *t, attncl_graph *g, attncl_value x)
{
    const attncl_value fault = attncl_graph_tensor(g, t->fault);
    attncl_accumulate(g, fault, zero_if_finite(g, x));
    return fault;
}

// The learning rate where loss and norm are finite, and those of earlier steps were, else no number: what
// optimisers and averages take as a request to leave everything as it is.
static attncl_value guarded_rate(attncl_trainer *t, attncl_graph *g, attncl_value loss,
                                 attncl_value norm)
{
    attncl_value rate = attncl_graph_input(g, "learning_rate", ATTNCL_F32, 0, NULL);
    rate = attncl_add(g, rate, zero_if_finite(g, norm));
    if (loss.id)
        rate = attncl_add(g, rate, zero_if_finite(g, loss));
    return t->fault ? attncl_add(g, rate, attncl__update_note_fault(t, g, rate)) : rate;
}

static attncl_value kept_value(attncl_graph *g, const struct trained *trained, enum kept kept)
{
    attncl_tensor *tensor = trained->tensor[kept];
    return tensor ? attncl_graph_tensor(g, tensor) : ATTNCL_NONE_VALUE;
}

static void add_optimizer(attncl_trainer *t, attncl_graph *g, attncl_value rate, attncl_value step,
                          const attncl_value *weights, const attncl_value *gradients)
{
    const struct optim_settings *s = &t->config.settings.optimizer;
    const attncl_value rates = attncl__optim_rates(g, s, rate, step);
    for (size_t i = 0; i < t->n_trained; ++i) {
        attncl_value states[OPTIM_MAX_STATES];
        size_t n = 0;
        for (int kept = KEPT_EXP_AVG; kept <= KEPT_MOMENTUM_BUFFER; ++kept)
            if (t->trained[i].tensor[kept])
                states[n++] = kept_value(g, &t->trained[i], (enum kept)kept);
        attncl__optim_update(g, s, rates, gradients[i], weights[i], states);
    }
}

static void add_averages(attncl_trainer *t, attncl_graph *g, attncl_value rate,
                         const attncl_value *weights)
{
    for (size_t i = 0; i < t->n_trained && t->config.settings.ema > 0; ++i)
        attncl__layer_average_update(g, kept_value(g, &t->trained[i], KEPT_AVERAGE), weights[i],
                                     rate, t->config.settings.ema);
}

// The norm of the gradients as they are.
static attncl_value norm_of(attncl_trainer *t, attncl_graph *g, const attncl_value *gradients)
{
    const double any = 1; // the clipped gradients are not used
    attncl_value *unused = attncl__alloc_array(t->n_trained, sizeof *unused);
    if (!unused)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%zu gradients", t->n_trained);
    const attncl_value norm =
        attncl_clip_grad_norm(g, t->n_trained, gradients, any, t->config.settings.clip, unused);
    attncl__free(unused);
    return norm;
}

// Clips into `clipped`, values before the norm, and returns the norm before both.
static attncl_value clip(attncl_trainer *t, attncl_graph *g, const attncl_value *gradients,
                         attncl_value *clipped)
{
    const struct train_settings *s = &t->config.settings;
    const bool by_value = s->grad_value_clip > 0, by_norm = s->grad_norm_clip > 0;
    attncl_value norm = by_value || !by_norm ? norm_of(t, g, gradients) : ATTNCL_NONE_VALUE;
    for (size_t i = 0; i < t->n_trained; ++i)
        clipped[i] = gradients[i];
    if (by_value)
        attncl_clip_grad_value(g, t->n_trained, gradients, s->grad_value_clip, clipped);
    if (!by_norm)
        return norm;
    const attncl_value between =
        attncl_clip_grad_norm(g, t->n_trained, clipped, s->grad_norm_clip, s->clip, clipped);
    return by_value ? norm : between;
}

attncl_status attncl__update_add(attncl_trainer *t, attncl_graph *g, attncl_value loss,
                                 const attncl_value *weights, const attncl_value *gradients)
{
    attncl_value *clipped = attncl__alloc_array(t->n_trained, sizeof *clipped);
    REQUIRE(clipped, ATTNCL_ERR_NO_MEMORY, "%zu gradients", t->n_trained);
    attncl_graph_push_scope(g, "update");
    const attncl_value norm = clip(t, g, gradients, clipped);
    attncl_graph_output(g, "grad_norm", norm);
    const attncl_value rate = guarded_rate(t, g, loss, norm);
    const attncl_value step = attncl_graph_index_input(g, "step", 0, NULL, 0, INT32_MAX);
    add_optimizer(t, g, rate, step, weights, clipped);
    add_averages(t, g, rate, weights);
    attncl_graph_pop_scope(g);
    attncl__free(clipped);
    return attncl_graph_status(g);
}

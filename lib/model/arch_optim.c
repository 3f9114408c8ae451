// SPDX-License-Identifier: MIT
//
// optimizer_step, clip_grad_norm.

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "model/arch.h"
#include "model/block_optim.h"
#include "model/config.h"

// -- optimizer_step

static attncl_status step_configure(struct config *config, void *settings)
{
    return attncl__adam_configure(config, settings);
}

static attncl_status step_build(struct build *b, const void *settings)
{
    const struct adam_settings *s = settings;
    attncl_adam_values before = ATTNCL_ADAM_VALUES_INIT, after = ATTNCL_ADAM_VALUES_INIT;
    attncl_value grad, step;
    TRY(attncl__input_real(b, "param", ANY, NULL, &before.param));
    const attncl_array *p = attncl__input_find(b, "param");
    TRY(attncl__input_real(b, "grad", p->rank, p->dim, &grad));
    TRY(attncl__input_real(b, "exp_avg", p->rank, p->dim, &before.exp_avg));
    TRY(attncl__input_real(b, "exp_avg_sq", p->rank, p->dim, &before.exp_avg_sq));
    if (s->amsgrad)
        TRY(attncl__input_real(b, "max_exp_avg_sq", p->rank, p->dim, &before.max_exp_avg_sq));
    TRY(attncl__input_index(b, "step", 0, NULL, INT32_MAX, &step));

    const attncl_value rates = attncl_adam_rates(b->graph, &s->adam, &s->schedule, step);
    attncl_adam_step(b->graph, &s->adam, rates, grad, &before, &after);
    attncl_graph_output(b->graph, "param", after.param);
    attncl_graph_output(b->graph, "exp_avg", after.exp_avg);
    attncl_graph_output(b->graph, "exp_avg_sq", after.exp_avg_sq);
    if (s->amsgrad)
        attncl_graph_output(b->graph, "max_exp_avg_sq", after.max_exp_avg_sq);
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_optimizer_step = {
    .name = "optimizer_step",
    .example = "{\"kind\": \"adam\", \"learning_rate\": 0.001}",
    .settings_bytes = sizeof(struct adam_settings),
    .configure = step_configure,
    .build = step_build,
    .no_gradients = true,
};

// -- clip_grad_norm

struct clip_settings {
    double max_norm;
    attncl_clip_style style;
};

static attncl_status clip_configure(struct config *config, void *settings)
{
    struct clip_settings *s = settings;
    TRY(attncl__config_number(config, "max_norm", 0, &s->max_norm));
    return attncl__clip_configure(config, "style", &s->style);
}

static bool is_gradient(const char *name)
{
    return name && strncmp(name, "g.", 2) == 0;
}

static attncl_status clip_all(struct build *b, const struct clip_settings *s, size_t n,
                              attncl_value *grads, attncl_value *clipped)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n_inputs; ++i)
        if (is_gradient(b->inputs[i].name))
            TRY(attncl__input_real(b, b->inputs[i].name, ANY, NULL, &grads[at++]));
    const attncl_value norm =
        attncl_clip_grad_norm(b->graph, n, grads, s->max_norm, s->style, clipped);
    at = 0;
    for (size_t i = 0; i < b->n_inputs; ++i)
        if (is_gradient(b->inputs[i].name))
            attncl_graph_output(b->graph, b->inputs[i].name, clipped[at++]);
    attncl_graph_output(b->graph, "total_norm", norm);
    return ATTNCL_OK;
}

static attncl_status clip_build(struct build *b, const void *settings)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_inputs; ++i)
        n += is_gradient(b->inputs[i].name);
    REQUIRE(n > 0, ATTNCL_ERR_ARGUMENT, "input g.* is missing: none of %zu inputs is a gradient",
            b->n_inputs);

    attncl_value *values = attncl__alloc_array(2 * n, sizeof *values);
    REQUIRE(values, ATTNCL_ERR_NO_MEMORY, "%zu gradients", n);
    const attncl_status status = clip_all(b, settings, n, values, values + n);
    attncl__free(values);
    return status;
}

const struct arch_class attncl__arch_clip_grad_norm = {
    .name = "clip_grad_norm",
    .example = "{\"max_norm\": 1}",
    .settings_bytes = sizeof(struct clip_settings),
    .configure = clip_configure,
    .build = clip_build,
    .any_inputs = "g.*",
    .no_gradients = true,
};

// SPDX-License-Identifier: MIT
//
// optimizer_step, clip_grad_norm.

#include <string.h>

#include "model/arch.h"
#include "model/block_layers.h"

// -- optimizer_step

static attncl_value step_build(struct build *b, const void *settings)
{
    const struct optim_settings *s = settings;
    const char *names[OPTIM_MAX_STATES];
    const size_t n = attncl__optim_states(s, names);
    attncl_value states[OPTIM_MAX_STATES] = {ATTNCL_NONE_VALUE};
    attncl_value param = attncl__input(b, "param");
    const attncl_value grad = attncl__input(b, "grad");
    for (size_t i = 0; i < n; ++i)
        states[i] = attncl__input(b, names[i]);
    const attncl_value step = attncl__input(b, "step");

    const attncl_value rates = attncl__optim_rates(b->graph, s, ATTNCL_NONE_VALUE, step);
    attncl__optim_step(b->graph, s, rates, grad, &param, states);
    attncl_graph_output(b->graph, "param", param);
    for (size_t i = 0; i < n; ++i)
        attncl_graph_output(b->graph, names[i], states[i]);
    return ATTNCL_NONE_VALUE;
}

#define ADAMS    UNLESS("kind", "sgd")
#define MOMENTUM UNLESS("momentum", "0")
#define AMSGRAD  WHEN("amsgrad", "true")

const struct arch_class attncl__arch_optimizer_step = {
    .example = "{\"kind\": \"adam\", \"learning_rate\": 0.001}",
    .settings_bytes = sizeof(struct optim_settings),
    .keys = attncl__optim_keys,
    .inputs = PORTS(
        PORT("param", F32, "..."), PORT("grad", F32, "..."), PORT("exp_avg", F32, "...", ADAMS),
        PORT("exp_avg_sq", F32, "...", ADAMS), PORT("max_exp_avg_sq", F32, "...", AMSGRAD),
        // The first step creates it.
        PORT("momentum_buffer", F32, "...", .optional = true, MOMENTUM), PORT("step", INDEX, "")),
    .outputs =
        PORTS(PORT("param", F32, "..."), PORT("exp_avg", F32, "...", ADAMS),
              PORT("exp_avg_sq", F32, "...", ADAMS), PORT("max_exp_avg_sq", F32, "...", AMSGRAD),
              PORT("momentum_buffer", F32, "...", MOMENTUM)),
    .build = step_build,
    .no_gradients = true,
};

// -- clip_grad_norm

struct clip_settings {
    double max_norm;
    attncl_clip_style style;
};

static bool is_gradient(const char *name)
{
    return name && strncmp(name, "g.", 2) == 0;
}

static void clip_all(struct build *b, const struct clip_settings *s, size_t n, attncl_value *grads,
                     attncl_value *clipped)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n_inputs; ++i)
        if (is_gradient(b->inputs[i].name))
            grads[at++] = attncl__input(b, b->inputs[i].name);
    const attncl_value norm =
        attncl_clip_grad_norm(b->graph, n, grads, s->max_norm, s->style, clipped);
    at = 0;
    for (size_t i = 0; i < b->n_inputs; ++i)
        if (is_gradient(b->inputs[i].name))
            attncl_graph_output(b->graph, b->inputs[i].name, clipped[at++]);
    attncl_graph_output(b->graph, "total_norm", norm);
}

static attncl_value clip_build(struct build *b, const void *settings)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_inputs; ++i)
        n += is_gradient(b->inputs[i].name);
    attncl_value *values = attncl__alloc_array(2 * n, sizeof *values);
    if (!values)
        return attncl__build_fail(b, FAIL(ATTNCL_ERR_NO_MEMORY, "%zu gradients", n));
    clip_all(b, settings, n, values, values + n);
    attncl__free(values);
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_clip_grad_norm = {
    .example = "{\"max_norm\": 1}",
    .settings_bytes = sizeof(struct clip_settings),
    .keys = KEYS({"max_norm", KEY_NUMBER, AT(clip_settings, max_norm), .min = 0},
                 {"style", KEY_WORD, AT(clip_settings, style), .choices = attncl__clip_choices,
                  OR_WORD("torch")}),
    .inputs = PORTS(PORT("g.*", F32, "...")),
    .outputs = PORTS(PORT("g.*", F32, "..."), PORT("total_norm", F32, "")),
    .build = clip_build,
    .no_gradients = true,
};

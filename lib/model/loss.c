// SPDX-License-Identifier: MIT
//
// loss = mean of cross entropy(output, targets)

#include "model/model.h"

#include "base/struct.h"
#include "base/suggest.h"
#include "graph/graph.h"

static attncl_status check_desc(const attncl_loss_desc *desc)
{
    REQUIRE(desc->label_smoothing >= 0 && desc->label_smoothing < 1, ATTNCL_ERR_ARGUMENT,
            "label_smoothing is %g, must be at least 0 and below 1", desc->label_smoothing);
    REQUIRE(desc->dropout >= 0 && desc->dropout <= 1, ATTNCL_ERR_ARGUMENT,
            "dropout is %g, must be 0 to 1", desc->dropout);
    return ATTNCL_OK;
}

static void begin_dropout(struct build *b, const attncl_loss_desc *desc)
{
    const int32_t first = 0;

    b->dropout = (attncl_dropout_desc){
        .struct_size = sizeof b->dropout,
        .p = desc->dropout,
        .seed = desc->seed,
        .step = desc->step,
        .batch_begin = desc->batch_begin,
        .batch_total = desc->batch_total,
    };
    if (!desc->step.id)
        b->dropout.step = attncl_graph_constant(b->graph, ATTNCL_I32, 0, NULL, &first);
}

attncl_status attncl__loss_build(struct build *b, const struct arch_class *arch,
                                 const void *settings, const attncl_loss_desc *desc,
                                 attncl_value *loss_ret, attncl_value *scores_ret)
{
    attncl_value targets;

    TRY(check_desc(desc));
    b->for_loss = true;
    if (desc->dropout > 0)
        begin_dropout(b, desc);
    attncl__inputs_begin(b, arch->inputs, (struct config_values){arch->keys, settings});
    *scores_ret = arch->build(b, settings);
    TRY(attncl_graph_status(b->graph));
    const attncl_shape shape = attncl_graph_shape(b->graph, *scores_ret);
    const int64_t n_classes = shape.dim[shape.rank - 1];
    TRY(attncl__input_exact(b, "targets", shape.rank - 1, shape.dim, n_classes, &targets));
    const attncl_cross_entropy_desc mean = {
        .struct_size = sizeof mean, .pad = desc->pad, .label_smoothing = desc->label_smoothing};
    *loss_ret = attncl_cross_entropy(b->graph, *scores_ret, targets, &mean);
    return attncl_graph_status(b->graph);
}

// Refuses inputs that the graph does not have, as they would have no effect.
static attncl_status check_names(const attncl_graph *g, const attncl_array *inputs, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        struct suggestion s = {.word = inputs[i].name};
        const char *name;
        if (attncl__graph_has_input(g, inputs[i].name))
            continue;
        for (size_t k = 0; (name = attncl_graph_input_name(g, k, NULL)) != NULL; ++k)
            attncl__suggestion_add(&s, name);
        return FAIL(ATTNCL_ERR_ARGUMENT, "input %.200s is not known%s", inputs[i].name,
                    attncl__suggestion_text(&s, "inputs"));
    }
    return ATTNCL_OK;
}

attncl_status attncl__model_scores_loss(attncl_model *model, attncl_graph *g,
                                        const attncl_loss_desc *desc, const attncl_array *inputs,
                                        size_t n, attncl_value *loss_ret, attncl_value *scores_ret)
{
    TRY(attncl_graph_status(g));
    REQUIRE(model->arch->target != TARGET_NONE, ATTNCL_ERR_UNSUPPORTED,
            "arch %s has no loss: its output is no scores of classes", model->arch_name);
    struct build b = {.graph = g, .inputs = inputs, .n_inputs = n};
    b.params = (struct params){.table = &model->params, .graph = g};
    TRY(attncl__loss_build(&b, model->arch, model->settings, desc, loss_ret, scores_ret));
    return check_names(g, inputs, n);
}

attncl_status attncl_model_loss(attncl_model *model, attncl_graph *g, const attncl_loss_desc *desc,
                                const attncl_array *inputs, size_t n, attncl_value *loss_ret)
{
    attncl_loss_desc d = ATTNCL_LOSS_DESC_INIT;
    attncl_value scores;

    REQUIRE(model && g && loss_ret && (inputs || n == 0), ATTNCL_ERR_ARGUMENT,
            "model, g, inputs or loss_ret is NULL");
    for (size_t i = 0; i < n; ++i)
        REQUIRE(inputs[i].name, ATTNCL_ERR_ARGUMENT, "input %zu has no name", i);
    if (desc)
        TRY(STRUCT_READ(attncl_loss_desc, &d, desc));
    return attncl__model_scores_loss(model, g, &d, inputs, n, loss_ret, &scores);
}

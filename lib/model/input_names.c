// SPDX-License-Identifier: MIT
//
// Names of inputs, against those that an architecture declares.

#include <string.h>

#include "base/suggest.h"
#include "graph/graph.h"
#include "model/model.h"

bool attncl__input_names_left(const attncl_graph *g, const attncl_array *inputs, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (!attncl__gradients_output(inputs[i].name) &&
            !attncl__graph_has_input(g, inputs[i].name))
            return true;
    return false;
}

static attncl_status refuse(const attncl_array *input, const struct port *table,
                            struct config_values config, const char *output)
{
    struct suggestion s = {.word = output ? output : input->name};
    for (const struct port *port = table; port && port->type; ++port)
        if (attncl__port_applies(port, config))
            attncl__suggestion_add(&s, port->name);
    if (output)
        return FAIL(ATTNCL_ERR_ARGUMENT, "input %.200s: there is no output %.200s%s", input->name,
                    output, attncl__suggestion_text(&s, "outputs"));
    return FAIL(ATTNCL_ERR_ARGUMENT, "input %.200s is not known%s", input->name,
                attncl__suggestion_text(&s, "inputs"));
}

static bool is_given(const struct port *port, const attncl_array *inputs, size_t n)
{
    struct port one[] = {*port, {0}};
    one[0].when.key = NULL; // it applies
    for (size_t i = 0; i < n; ++i)
        if (attncl__port_find(one, (struct config_values){0}, inputs[i].name))
            return true;
    return false;
}

static attncl_status check_missing(const struct port *table, struct config_values config,
                                   const attncl_array *inputs, size_t n)
{
    struct strbuf missing = STRBUF_EMPTY;
    size_t n_missing = 0;
    for (const struct port *port = table; port && port->type; ++port)
        if (!port->optional && attncl__port_applies(port, config) && !is_given(port, inputs, n))
            attncl__strbuf_add(&missing, "%s%s", n_missing++ ? ", " : "", port->name);
    if (n_missing == 0)
        return ATTNCL_OK;
    const attncl_status status =
        missing.failed
            ? FAIL(ATTNCL_ERR_NO_MEMORY, "%zu missing inputs", n_missing)
            : FAIL(ATTNCL_ERR_ARGUMENT, "%s %s %s missing", n_missing > 1 ? "inputs" : "input",
                   missing.data, n_missing > 1 ? "are" : "is");
    attncl__strbuf_free(&missing);
    return status;
}

attncl_status attncl__input_names_check(const attncl_model *model, const attncl_array *inputs,
                                        size_t n)
{
    const struct arch_class *arch = model->arch;
    const struct config_values config = attncl__model_values(model);
    for (size_t i = 0; i < n; ++i) {
        const char *output = attncl__gradients_output(inputs[i].name);
        const struct port *table = output ? arch->outputs : arch->inputs;
        if (!attncl__port_find(table, config, output ? output : inputs[i].name))
            return refuse(&inputs[i], table, config, output);
    }
    return check_missing(arch->inputs, config, inputs, n);
}

// SPDX-License-Identifier: MIT
//
// Names of inputs, against those that an architecture declares.

#include <string.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "base/try.h"
#include "graph/graph.h"
#include "model/gradients.h"
#include "model/input_names.h"

bool attncl__input_names_left(const attncl_graph *g, const attncl_array *inputs, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (!attncl__gradients_output(inputs[i].name) &&
            !attncl__graph_has_input(g, inputs[i].name))
            return true;
    return false;
}

// "g.*" is every name that begins with "g.".
static bool is_named(const struct probe_value *value, const char *name)
{
    const char *star = strchr(value->name, '*');
    return star ? strncmp(value->name, name, (size_t)(star - value->name)) == 0
                : strcmp(value->name, name) == 0;
}

static bool is_among(const struct probe_value *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; ++i)
        if (is_named(&list[i], name))
            return true;
    return false;
}

static attncl_status refuse(const attncl_array *input, const struct probe_value *list, size_t n,
                            const char *output)
{
    struct suggestion s = {.word = output ? output : input->name};
    for (size_t i = 0; i < n; ++i)
        attncl__suggestion_add(&s, list[i].name);
    if (output)
        return FAIL(ATTNCL_ERR_ARGUMENT, "input %.200s: there is no output %.200s%s", input->name,
                    output, attncl__suggestion_text(&s, "outputs"));
    return FAIL(ATTNCL_ERR_ARGUMENT, "input %.200s is not known%s", input->name,
                attncl__suggestion_text(&s, "inputs"));
}

static attncl_status check_missing(const struct probe *probe, const attncl_array *inputs, size_t n)
{
    struct strbuf missing = STRBUF_EMPTY;
    size_t n_missing = 0;
    for (size_t i = 0; i < probe->n_inputs; ++i) {
        bool given = probe->inputs[i].optional;
        for (size_t k = 0; k < n && !given; ++k)
            given = is_named(&probe->inputs[i], inputs[k].name);
        if (!given)
            attncl__strbuf_add(&missing, "%s%s", n_missing++ ? ", " : "", probe->inputs[i].name);
    }
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

static attncl_status check(const struct probe *probe, const attncl_array *inputs, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        const char *output = attncl__gradients_output(inputs[i].name);
        if (output && !is_among(probe->outputs, probe->n_outputs, output))
            return refuse(&inputs[i], probe->outputs, probe->n_outputs, output);
        if (!output && !is_among(probe->inputs, probe->n_inputs, inputs[i].name))
            return refuse(&inputs[i], probe->inputs, probe->n_inputs, NULL);
    }
    return check_missing(probe, inputs, n);
}

attncl_status attncl__input_names_check(const attncl_model *model, const attncl_array *inputs,
                                        size_t n)
{
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;
    struct probe *probe = attncl__alloc_zero(sizeof *probe);
    REQUIRE(probe, ATTNCL_ERR_NO_MEMORY, "names of inputs");
    probe->is_short = true; // the shortest sequences are within every limit
    TRY_DONE(attncl__graph_create_unbound(&g));
    TRY_DONE(attncl__arch_probe(model->arch, model->settings, probe, g));
    status = check(probe, inputs, n);
done:
    attncl_graph_destroy(g);
    attncl__free(probe);
    return status;
}

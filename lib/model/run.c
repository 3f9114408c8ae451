// SPDX-License-Identifier: MIT
//
// A model's graph for given input shapes, and running it from arrays to arrays.

#include <string.h>

#include "base/suggest.h"
#include "graph/graph.h"
#include "model/model.h"

attncl_status attncl__model_begin(attncl_model *model, const attncl_array *inputs, size_t n,
                                  struct build *ret)
{
    *ret = (struct build){.inputs = inputs, .n_inputs = n};
    TRY(attncl_graph_create(model->context, &ret->graph));
    ret->params = (struct params){.table = &model->params, .graph = ret->graph};
    ret->show_attention = model->show_attention;
    return ATTNCL_OK;
}

attncl_status attncl__model_end(struct build *b, attncl_status status, attncl_graph **graph_ret)
{
    if (status == ATTNCL_OK)
        status = attncl_graph_compile(b->graph, NULL);
    if (status == ATTNCL_OK)
        *graph_ret = b->graph;
    else
        attncl_graph_destroy(b->graph);
    return status;
}

void attncl_model_show_attention(attncl_model *model, int shown)
{
    if (model)
        model->show_attention = shown != 0;
}

static attncl_status check_call(const attncl_model *model, const attncl_array *inputs, size_t n)
{
    REQUIRE(model, ATTNCL_ERR_ARGUMENT, "model is NULL");
    REQUIRE(inputs || n == 0, ATTNCL_ERR_ARGUMENT, "inputs is NULL");
    for (size_t i = 0; i < n; ++i) {
        REQUIRE(inputs[i].name, ATTNCL_ERR_ARGUMENT, "input %zu has no name", i);
        REQUIRE(!model->arch->no_gradients || !attncl__gradients_output(inputs[i].name),
                ATTNCL_ERR_UNSUPPORTED, "arch %s has no gradients, input %s asks for them",
                model->arch_name, inputs[i].name);
        for (size_t j = 0; j < i; ++j)
            REQUIRE(strcmp(inputs[i].name, inputs[j].name) != 0, ATTNCL_ERR_ARGUMENT,
                    "input %s is given twice", inputs[i].name);
    }
    return ATTNCL_OK;
}

// -- names of inputs

static attncl_status refuse_input(const char *name, const struct port *table,
                                  struct config_values config)
{
    struct suggestion s = {.word = name};
    for (const struct port *port = table; port && port->type; ++port)
        if (attncl__port_applies(port, config))
            attncl__suggestion_add(&s, port->name);
    return FAIL(ATTNCL_ERR_ARGUMENT, "input %.200s is not known%s", name,
                attncl__suggestion_text(&s, "inputs"));
}

static bool is_given(const struct port *port, const attncl_array *inputs, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (attncl__port_is_named(port, inputs[i].name))
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

// ERR_ARGUMENT for an unknown name among the inputs (the message has the nearest known one) or for
// missing required inputs (it names all).  Unknown names come first: one may be why an input is missing.
static attncl_status check_names(const attncl_model *model, const attncl_array *inputs, size_t n)
{
    const struct port *table = model->arch->inputs;
    const struct config_values config = attncl__model_values(model);
    for (size_t i = 0; i < n; ++i)
        if (!attncl__gradients_output(inputs[i].name) &&
            !attncl__port_find(table, config, inputs[i].name))
            return refuse_input(inputs[i].name, table, config);
    return check_missing(table, config, inputs, n);
}

// -- the graph

static attncl_status build_graph(struct build *b, const attncl_model *model)
{
    const struct arch_class *arch = model->arch;
    TRY(check_names(model, b->inputs, b->n_inputs));
    attncl__inputs_begin(b, arch->inputs, attncl__model_values(model));
    const attncl_value y = arch->build(b, model->settings);
    if (y.id)
        attncl_graph_output(b->graph, arch->outputs->name, y);
    TRY(attncl_graph_status(b->graph));
    return attncl__gradients_asked(b->inputs, b->n_inputs) ? attncl__gradients_build(b, arch)
                                                           : ATTNCL_OK;
}

attncl_status attncl_model_graph(attncl_model *model, const attncl_array *inputs, size_t n,
                                 attncl_graph **graph_ret)
{
    REQUIRE(graph_ret, ATTNCL_ERR_ARGUMENT, "graph_ret is NULL");
    TRY(check_call(model, inputs, n));
    REQUIRE(!model->arch->run, ATTNCL_ERR_UNSUPPORTED,
            "arch %s is not one graph; attncl_model_run() runs it", model->arch_name);

    struct build b;
    TRY(attncl__model_begin(model, inputs, n, &b));
    return attncl__model_end(&b, build_graph(&b, model), graph_ret);
}

// -- results

attncl_status attncl__results_add(attncl_results *results, const char *name, attncl_dtype dtype,
                                  int rank, const int64_t *dim, void **data_ret)
{
    struct tensor_desc d;
    TRY(attncl__desc_make(dtype, rank, dim, &d));
    const size_t bytes = attncl__desc_bytes(&d);
    REQUIRE(GROW_LIST(results->list, results->n, results->capacity), ATTNCL_ERR_NO_MEMORY,
            "%zu results", results->n + 1);
    attncl_array *array = &results->list[results->n++];
    *data_ret = attncl__alloc(bytes);
    *array = attncl_array_make(attncl__copy_text(name), dtype, rank, d.dim, *data_ret);
    REQUIRE(array->name && array->data, ATTNCL_ERR_NO_MEMORY, "%zu bytes of %s", bytes, name);
    return ATTNCL_OK;
}

size_t attncl_results_count(const attncl_results *results)
{
    return results ? results->n : 0;
}

const attncl_array *attncl_results_at(const attncl_results *results, size_t i)
{
    return results && i < results->n ? &results->list[i] : NULL;
}

void attncl__results_clear(attncl_results *results)
{
    for (size_t i = 0; i < results->n; ++i) {
        attncl__free((char *)results->list[i].name);
        attncl__free((void *)results->list[i].data);
    }
    attncl__free(results->list);
}

void attncl_results_destroy(attncl_results *results)
{
    if (results)
        attncl__results_clear(results);
    attncl__free(results);
}

// -- a run

// Checks that the size fits the shape.  Sub-byte types have no size, and no input takes them.
static attncl_status check_data(const attncl_array *a)
{
    struct tensor_desc d;
    if (attncl_dtype_bytes(a->dtype) == 0)
        return ATTNCL_OK;
    TRY(attncl__desc_make(a->dtype, a->rank, a->dim, &d));
    REQUIRE(a->bytes == attncl__desc_bytes(&d), ATTNCL_ERR_ARGUMENT,
            "input %s %s %s has %zu bytes, expected %zu", a->name, attncl_dtype_name(a->dtype),
            SHAPE(&d), a->bytes, attncl__desc_bytes(&d));
    REQUIRE(a->data || a->bytes == 0, ATTNCL_ERR_ARGUMENT, "data of input %s is NULL", a->name);
    return ATTNCL_OK;
}

// I64 lengths become the nearest I32, since any length past the end of an axis means its end.
static attncl_status write_lengths(attncl_graph *g, const attncl_array *a)
{
    const size_t count = a->bytes / sizeof(int64_t);
    int32_t *near = attncl__alloc_array(count, sizeof *near);
    REQUIRE(near, ATTNCL_ERR_NO_MEMORY, "%zu lengths of input %s", count, a->name);
    for (size_t i = 0; i < count; ++i) {
        int64_t x;
        memcpy(&x, (const char *)a->data + i * sizeof x, sizeof x);
        near[i] = x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
    }
    const attncl_status status = attncl_graph_write(g, a->name, near, count * sizeof *near);
    attncl__free(near);
    return status;
}

static bool are_lengths(const char *name)
{
    return strcmp(name, "valid_lens") == 0 || strcmp(name, "enc_valid_lens") == 0;
}

attncl_status attncl__model_write_inputs(attncl_graph *g, const attncl_array *inputs, size_t n)
{
    const char *name;
    for (size_t i = 0; (name = attncl_graph_input_name(g, i, NULL)) != NULL; ++i) {
        const attncl_array *a = attncl__input_find(inputs, n, name);
        if (!a)
            continue;
        const size_t each = attncl_dtype_bytes(a->dtype);
        if (are_lengths(name) && a->dtype == ATTNCL_I64) {
            TRY(write_lengths(g, a));
            continue;
        }
        TRY(attncl_graph_write_as(g, name, a->dtype, a->data, a->bytes / each));
    }
    return ATTNCL_OK;
}

static attncl_status read_outputs(attncl_graph *g, attncl_results *results)
{
    attncl_shape shape;
    const char *name;
    for (size_t i = 0; (name = attncl_graph_output_name(g, i, &shape)) != NULL; ++i) {
        void *data;
        TRY(attncl__results_add(results, name, shape.dtype, shape.rank, shape.dim, &data));
        TRY(attncl_graph_read(g, name, data, results->list[results->n - 1].bytes));
    }
    return ATTNCL_OK;
}

static attncl_status run_graph(attncl_model *model, const attncl_array *inputs, size_t n,
                               attncl_results *results, attncl_graph **graph_ret)
{
    TRY(attncl_model_graph(model, inputs, n, graph_ret));
    TRY(attncl__model_write_inputs(*graph_ret, inputs, n));
    TRY(attncl_graph_run(*graph_ret));
    return read_outputs(*graph_ret, results);
}

attncl_status attncl_model_run(attncl_model *model, const attncl_array *inputs, size_t n,
                               attncl_results **results_ret, attncl_graph **graph_ret)
{
    REQUIRE(results_ret, ATTNCL_ERR_ARGUMENT, "results_ret is NULL");
    TRY(check_call(model, inputs, n));
    for (size_t i = 0; i < n; ++i)
        TRY(check_data(&inputs[i]));
    if (graph_ret)
        *graph_ret = NULL;

    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;
    attncl_results *results = attncl__alloc_zero(sizeof *results);
    REQUIRE(results, ATTNCL_ERR_NO_MEMORY, "results");
    if (model->arch->run) // more than one graph
        TRY_DONE(check_names(model, inputs, n));
    TRY_DONE(model->arch->run ? model->arch->run(model, inputs, n, results)
                              : run_graph(model, inputs, n, results, &g));
    *results_ret = results;
    results = NULL; // ownership has passed to the caller
    if (graph_ret) {
        *graph_ret = g;
        g = NULL;
    }

done:
    attncl_results_destroy(results);
    attncl_graph_destroy(g);
    return status;
}

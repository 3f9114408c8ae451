// SPDX-License-Identifier: MIT
//
// Running a compiled graph: data in, commands into the queue, data out.

#include "attncl/opencl.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "graph/internal.h"

static attncl_status ready(const attncl_graph *g)
{
    REQUIRE(g, ATTNCL_ERR_ARGUMENT, "graph is NULL");
    REQUIRE(g->compiled, ATTNCL_ERR_STATE, "the graph is not compiled");
    return attncl__context_usable(g->ctx);
}

static attncl_status find_binding(const char *what, const struct io_binding *bindings, int n,
                                  const char *name, int *ret)
{
    REQUIRE(name, ATTNCL_ERR_ARGUMENT, "the %s's name is NULL", what);
    *ret = attncl__io_binding_find(bindings, n, name);
    REQUIRE(*ret >= 0, ATTNCL_ERR_ARGUMENT, "the graph has no %s %s", what, name);
    return ATTNCL_OK;
}

static attncl_status check_range(const struct value *v, const void *data)
{
    const int64_t count = attncl__desc_count(&v->desc);
    for (int64_t i = 0; v->ranged && i < count; ++i) {
        int32_t x;
        memcpy(&x, (const char *)data + i * (int64_t)sizeof x, sizeof x);
        REQUIRE(x >= v->low && x < v->high, ATTNCL_ERR_ARGUMENT,
                "%s: element %" PRId64 " is %d, allowed are %" PRId64 " to %" PRId64, v->name, i,
                (int)x, v->low, v->high - 1);
    }
    return ATTNCL_OK;
}

// An input that a write may fill.
static attncl_status writable(attncl_graph *g, const char *name, const void *data,
                              struct value **ret)
{
    int at = -1;

    TRY(ready(g));
    TRY(find_binding("input", g->inputs, g->n_inputs, name, &at));
    REQUIRE(!g->inputs[at].bound, ATTNCL_ERR_STATE, "input %s is bound to a caller's buffer", name);
    *ret = &g->values[g->inputs[at].value];
    REQUIRE(data || (*ret)->storage.bytes == 0, ATTNCL_ERR_ARGUMENT, "data of input %s is NULL",
            name);
    return ATTNCL_OK;
}

// writable(), and the data is what the input takes.
static attncl_status writable_bytes(attncl_graph *g, const char *name, const void *data,
                                    size_t bytes, struct value **ret)
{
    TRY(writable(g, name, data, ret));
    REQUIRE(bytes == (*ret)->storage.bytes, ATTNCL_ERR_ARGUMENT,
            "input %s %s has %zu bytes, %zu were given", name, SHAPE(&(*ret)->desc),
            (*ret)->storage.bytes, bytes);
    return check_range(*ret, data);
}

attncl_status attncl_graph_write(attncl_graph *g, const char *name, const void *data, size_t bytes)
{
    struct value *v = NULL;

    TRY(writable_bytes(g, name, data, bytes, &v));
    return attncl__buffer_write(g->ctx, v->storage.mem, 0, data, bytes);
}

attncl_status attncl__graph_write_queued(attncl_graph *g, const char *name, const void *data,
                                         size_t bytes)
{
    struct value *v = NULL;

    TRY(writable_bytes(g, name, data, bytes, &v));
    return attncl__buffer_write_queued(g->ctx, v->storage.mem, 0, data, bytes);
}

attncl_status attncl_graph_write_as(attncl_graph *g, const char *name, attncl_dtype data_dtype,
                                    const void *data, size_t count)
{
    struct value *v = NULL;

    TRY(writable(g, name, data, &v));
    REQUIRE(count == (size_t)attncl__desc_count(&v->desc), ATTNCL_ERR_ARGUMENT,
            "input %s %s has %" PRId64 " elements, %zu were given", name, SHAPE(&v->desc),
            attncl__desc_count(&v->desc), count);
    if (data_dtype == v->desc.dtype)
        return attncl_graph_write(g, name, data, v->storage.bytes);

    attncl_status status = ATTNCL_OK;
    void *converted = attncl__alloc(v->storage.bytes);
    REQUIRE(converted, ATTNCL_ERR_NO_MEMORY, "%zu bytes to convert input %s", v->storage.bytes,
            name);
    status = attncl__convert(data_dtype, data, v->desc.dtype, converted, count);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("%s", name);
        goto done;
    }
    TRY_DONE(attncl_graph_write(g, name, converted, v->storage.bytes));
done:
    attncl__free(converted);
    return status;
}

// The run's three parts: copies of bound inputs, the graph, copies into bound outputs.  The first
// that has commands waits, the last gives the event.
static attncl_status enqueue(attncl_graph *g, cl_uint n_wait, const cl_event *wait, cl_event *last)
{
    const bool has_copy_out = g->copy_out.n_commands > 0;

    if (g->copy_in.n_commands > 0) {
        TRY(attncl__command_list_enqueue(&g->copy_in, n_wait, wait, NULL, NULL));
        n_wait = 0;
        wait = NULL;
    }
    TRY(attncl__command_list_enqueue(&g->command_list, n_wait, wait, NULL,
                                     has_copy_out ? NULL : last));
    if (has_copy_out)
        TRY(attncl__command_list_enqueue(&g->copy_out, 0, NULL, NULL, last));
    return ATTNCL_OK;
}

attncl_status attncl_graph_enqueue(attncl_graph *graph, cl_uint n_wait, const cl_event *wait,
                                   cl_event *event_ret)
{
    TRY(ready(graph));
    REQUIRE((n_wait == 0) == (wait == NULL), ATTNCL_ERR_ARGUMENT,
            "%u events to wait for, but the list is %s", (unsigned)n_wait, wait ? "given" : "NULL");
    TRY(enqueue(graph, n_wait, wait, event_ret));
    if (event_ret)
        attncl__event_transfer(*event_ret);
    return ATTNCL_OK;
}

attncl_status attncl_graph_run(attncl_graph *g)
{
    TRY(ready(g));
    if (!g->canaries)
        return enqueue(g, 0, NULL, NULL);
    TRY(attncl__graph_poison(g));
    TRY(enqueue(g, 0, NULL, NULL));
    return attncl__graph_check_canaries(g);
}

attncl_status attncl_graph_read(attncl_graph *g, const char *name, void *data, size_t bytes)
{
    int at = -1;

    TRY(ready(g));
    TRY(find_binding("output", g->outputs, g->n_outputs, name, &at));
    const struct value *v = &g->values[g->outputs[at].value];
    const size_t have = attncl__desc_bytes(&v->desc);
    REQUIRE(!g->outputs[at].bound, ATTNCL_ERR_STATE, "output %s is bound to a caller's buffer",
            name);
    REQUIRE(bytes == have, ATTNCL_ERR_ARGUMENT,
            "output %s %s has %zu bytes, capacity for %zu was given", name, SHAPE(&v->desc), have,
            bytes);
    REQUIRE(data || have == 0, ATTNCL_ERR_ARGUMENT, "data of output %s is NULL", name);
    if (have == 0)
        return attncl__queue_finish(g->ctx);
    return attncl__buffer_read(g->ctx, g->values[v->base].storage.mem, 0, data, bytes);
}

attncl_status attncl_graph_reset(attncl_graph *g)
{
    TRY(ready(g));
    for (int i = 1; i < g->n_values; ++i) {
        const struct value *v = &g->values[i];
        if (v->kind == VALUE_STATE && v->storage.bytes)
            TRY(attncl__buffer_fill(g->ctx, v->storage.mem, 0, 0, v->storage.bytes));
    }
    return ATTNCL_OK;
}

static const char *binding_at(const attncl_graph *g, const struct io_binding *bindings, int n,
                              size_t i, attncl_shape *shape_ret)
{
    if (i >= (size_t)n)
        return NULL;
    if (shape_ret)
        *shape_ret = attncl_graph_shape(g, attncl__graph_handle(g, bindings[i].value));
    return bindings[i].name;
}

size_t attncl_graph_input_count(const attncl_graph *g)
{
    return g ? (size_t)g->n_inputs : 0;
}

size_t attncl_graph_output_count(const attncl_graph *g)
{
    return g ? (size_t)g->n_outputs : 0;
}

const char *attncl_graph_input_name(const attncl_graph *g, size_t i, attncl_shape *shape_ret)
{
    return g ? binding_at(g, g->inputs, g->n_inputs, i, shape_ret) : NULL;
}

const char *attncl_graph_output_name(const attncl_graph *g, size_t i, attncl_shape *shape_ret)
{
    return g ? binding_at(g, g->outputs, g->n_outputs, i, shape_ret) : NULL;
}

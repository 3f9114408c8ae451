// SPDX-License-Identifier: MIT
//
// Inputs and outputs in the caller's own buffers: used in place where the device allows it, else
// copied in the run.

#include "attncl/opencl.h"
#include "base/ckd.h"
#include "graph/internal.h"

// The copies of all inputs, or all outputs, that are not used in place.
static attncl_status record_copies(attncl_graph *g, bool inputs)
{
    struct command_list *r = inputs ? &g->copy_in : &g->copy_out;
    struct io_binding *bindings = inputs ? g->inputs : g->outputs;
    const int n = inputs ? g->n_inputs : g->n_outputs;

    attncl__command_list_free(r);
    TRY(attncl__command_list_begin(g->ctx, r));
    for (int i = 0; i < n; ++i) {
        struct io_binding *p = &bindings[i];
        struct storage *own = &g->values[g->values[p->value].base].storage;
        if (!p->bound_buffer.mem)
            continue;
        if (inputs)
            TRY(attncl__command_list_add_copy(r, "copy_bound_input", &p->bound_buffer,
                                              p->bound_offset, own, 0, own->bytes));
        else
            TRY(attncl__command_list_add_copy(r, "copy_bound_output", own, 0, &p->bound_buffer,
                                              p->bound_offset, own->bytes));
    }
    return ATTNCL_OK;
}

// The caller's memory as a (sub-)buffer that starts at the value; NULL when the value must be
// copied.
static cl_mem in_place(attncl_graph *g, cl_mem buffer, size_t offset, size_t bytes)
{
    cl_mem part = NULL;

    if (offset == 0) {
        attncl__buffer_retain(buffer);
        return buffer;
    }
    if (offset % g->ctx->caps.align_bytes != 0)
        return NULL;
    // Fails for a buffer that is itself a part of another: then the value is copied.
    return attncl__buffer_part(g->ctx, buffer, offset, bytes, &part) == ATTNCL_OK ? part : NULL;
}

static attncl_status check_buffer(attncl_graph *g, const char *name, cl_mem buffer, int64_t offset,
                                  const struct tensor_desc *desc, size_t *offset_bytes)
{
    const size_t need = attncl__desc_bytes(desc);
    size_t have, end;

    REQUIRE(offset >= 0, ATTNCL_ERR_ARGUMENT, "%s: offset %" PRId64 " is negative", name, offset);
    TRY(attncl__buffer_query(g->ctx, buffer, &have));
    const bool fits = ckd_mul_size((size_t)offset, attncl_dtype_bytes(desc->dtype), offset_bytes) &&
                      ckd_add_size(*offset_bytes, need, &end) && end <= have;
    REQUIRE(fits, ATTNCL_ERR_ARGUMENT,
            "%s %s needs %zu bytes from element %" PRId64 " on, the buffer has %zu in all", name,
            SHAPE(desc), need, offset, have);
    return ATTNCL_OK;
}

attncl_status attncl_graph_bind(attncl_graph *graph, const char *name, cl_mem buffer,
                                int64_t offset)
{
    REQUIRE(graph && name, ATTNCL_ERR_ARGUMENT, "graph or name is NULL");
    REQUIRE(graph->compiled, ATTNCL_ERR_STATE, "the graph is not compiled");
    TRY(attncl__context_usable(graph->ctx));
    int at = attncl__io_binding_find(graph->inputs, graph->n_inputs, name);
    const bool is_input = at >= 0;
    if (!is_input)
        at = attncl__io_binding_find(graph->outputs, graph->n_outputs, name);
    REQUIRE(at >= 0, ATTNCL_ERR_ARGUMENT, "the graph has no input or output %s", name);

    struct io_binding *p = is_input ? &graph->inputs[at] : &graph->outputs[at];
    struct storage *s = &graph->values[graph->values[p->value].base].storage;
    size_t offset_bytes = 0;
    cl_mem use = NULL;
    if (buffer) {
        const struct tensor_desc *desc = &graph->values[p->value].desc;
        TRY(check_buffer(graph, name, buffer, offset, desc, &offset_bytes));
        use = in_place(graph, buffer, offset_bytes, s->bytes);
        attncl__buffer_retain(buffer);
    }
    TRY(attncl__queue_finish(graph->ctx)); // runs under way still use the old buffer
    if (s->mem != p->own)
        attncl__buffer_release(&s->mem);
    attncl__buffer_release(&p->bound);
    s->mem = use ? use : p->own;
    p->bound = buffer;
    p->bound_buffer = buffer && !use ? (struct storage){buffer, s->bytes} : (struct storage){0};
    p->bound_offset = offset_bytes;
    TRY(attncl__command_list_rebind(&graph->command_list, s));
    return record_copies(graph, is_input);
}

// SPDX-License-Identifier: MIT
//
// Inputs and outputs in the caller's own buffers: used in place where the device allows it, else
// copied in the run.

#include "attncl/opencl.h"
#include "base/ckd.h"
#include "exec/exec.h"

// The copies of all inputs, or all outputs, that are not used in place.
static attncl_status record_copies(struct program *p, bool inputs)
{
    struct command_list *r = inputs ? &p->copy_in : &p->copy_out;
    struct io_binding *bindings = inputs ? p->inputs : p->outputs;
    const int n = inputs ? p->n_inputs : p->n_outputs;

    attncl__command_list_free(r);
    TRY(attncl__command_list_begin(p->ctx, r));
    for (int i = 0; i < n; ++i) {
        struct io_binding *b = &bindings[i];
        struct storage *own = b->storage, *bound = &b->bound_buffer;
        if (!bound->mem)
            continue;
        if (inputs)
            TRY(attncl__command_list_add_copy(r, "copy_bound_input", bound, b->bound_offset, own, 0,
                                              own->bytes));
        else
            TRY(attncl__command_list_add_copy(r, "copy_bound_output", own, 0, bound,
                                              b->bound_offset, own->bytes));
    }
    return ATTNCL_OK;
}

// The caller's memory as a (sub-)buffer that starts at the value; NULL when the value must be
// copied.
static cl_mem in_place(attncl_context *ctx, cl_mem buffer, size_t offset, size_t bytes)
{
    cl_mem part = NULL;

    if (offset == 0) {
        attncl__buffer_retain(buffer);
        return buffer;
    }
    if (offset % ctx->caps.align_bytes != 0)
        return NULL;
    // Fails for a buffer that is itself a part of another: then the value is copied.
    return attncl__buffer_part(ctx, buffer, offset, bytes, &part) == ATTNCL_OK ? part : NULL;
}

// Whether the buffer has space for the value; the offset in bytes.
static attncl_status check_buffer(attncl_context *ctx, const struct io_binding *b, cl_mem buffer,
                                  int64_t offset, size_t *offset_bytes)
{
    const size_t need = attncl__desc_bytes(&b->desc);
    size_t have, end;

    REQUIRE(offset >= 0, ATTNCL_ERR_ARGUMENT, "%s: offset %" PRId64 " is negative", b->name,
            offset);
    TRY(attncl__buffer_query(ctx, buffer, &have));
    const bool fits =
        ckd_mul_size((size_t)offset, attncl_dtype_bytes(b->desc.dtype), offset_bytes) &&
        ckd_add_size(*offset_bytes, need, &end) && end <= have;
    REQUIRE(fits, ATTNCL_ERR_ARGUMENT,
            "%s %s needs %zu bytes from element %" PRId64 " on, the buffer has %zu in all", b->name,
            SHAPE(&b->desc), need, offset, have);
    return ATTNCL_OK;
}

attncl_status attncl_graph_bind(attncl_graph *graph, const char *name, cl_mem buffer,
                                int64_t offset)
{
    struct program *p = NULL;

    REQUIRE(graph && name, ATTNCL_ERR_ARGUMENT, "graph or name is NULL");
    TRY(attncl__program_of(graph, &p));
    TRY(attncl__context_usable(p->ctx));
    struct io_binding *b = attncl__program_input(p, name);
    const bool is_input = b != NULL;
    if (!is_input)
        b = attncl__program_output(p, name);
    REQUIRE(b, ATTNCL_ERR_ARGUMENT, "the graph has no input or output %s", name);

    struct storage *s = b->storage;
    size_t offset_bytes = 0;
    cl_mem use = NULL;
    if (buffer) {
        TRY(check_buffer(p->ctx, b, buffer, offset, &offset_bytes));
        use = in_place(p->ctx, buffer, offset_bytes, s->bytes);
        attncl__buffer_retain(buffer);
    }
    TRY(attncl__queue_finish(p->ctx)); // runs under way still use the old buffer
    if (s->mem != b->own)
        attncl__buffer_release(&s->mem);
    attncl__buffer_release(&b->bound);
    s->mem = use ? use : b->own;
    b->bound = buffer;
    b->bound_buffer = buffer && !use ? (struct storage){buffer, s->bytes} : (struct storage){0};
    b->bound_offset = offset_bytes;
    TRY(attncl__command_list_rebind(&p->command_list, s));
    return record_copies(p, is_input);
}

// SPDX-License-Identifier: MIT
//
// Binds inputs and outputs to callers' buffers, which kernels use in place if the device allows it;
// otherwise a run copies them.

#include "attncl/opencl.h"
#include "base/alloc.h"
#include "base/ckd.h"
#include "exec/exec.h"

// The replacement of a binding, and afterwards the former binding; released by free_change().
struct change {
    struct callers_buffer bound;
    cl_mem use;                 // the buffer or a part of it; NULL: the graph's own buffer
    struct command_list copies; // of all inputs, or of all outputs
};

static void free_change(struct change *change)
{
    attncl__buffer_release(&change->bound.mem);
    attncl__buffer_release(&change->use);
    attncl__free(change->bound.copied);
    attncl__command_list_free(&change->copies);
}

// Records the copies of all inputs, or all outputs, that are not used in place, with the change to
// binding `changing` applied.
static attncl_status record_copies(struct program *p, const struct io_list *io,
                                   const struct io_binding *changing, struct change *change)
{
    struct command_list *list = &change->copies;

    TRY(attncl__command_list_begin(p->ctx, list));
    for (const struct io_binding *binding = io->list; binding < io->list + io->n; ++binding) {
        const struct callers_buffer *bound = binding == changing ? &change->bound : &binding->bound;
        struct storage *own = binding->storage;
        if (!bound->copied)
            continue;
        if (io == &p->inputs)
            TRY(attncl__command_list_add_copy(list, "copy_bound_input", bound->copied,
                                              bound->offset, own, 0, own->bytes));
        else
            TRY(attncl__command_list_add_copy(list, "copy_bound_output", own, 0, bound->copied,
                                              bound->offset, own->bytes));
    }
    return ATTNCL_OK;
}

// *ret: a (sub-)buffer of the caller's memory that starts at the value; NULL when the value must be
// copied.
static attncl_status create_part_in_place(attncl_context *ctx, cl_mem buffer, size_t offset,
                                          size_t bytes, cl_mem *ret)
{
    if (offset == 0)
        return attncl__buffer_retain(buffer, ret);
    // Fails for a buffer that is itself a sub-buffer; then the value is copied.
    if (offset % ctx->caps.align_bytes == 0)
        (void)attncl__buffer_create_part(ctx, buffer, offset, bytes, ret);
    return ATTNCL_OK;
}

// Checks that the value fits into the buffer, and that kernels may use it so.  *offset_bytes: `offset`, which is in
// elements, in bytes.
static attncl_status check_buffer(attncl_context *ctx, const struct io_binding *binding,
                                  bool is_input, cl_mem buffer, int64_t offset,
                                  size_t *offset_bytes)
{
    cl_mem_flags flags = 0;
    const size_t need = attncl__desc_bytes(&binding->desc);
    size_t have, end;

    REQUIRE(offset >= 0, ATTNCL_ERR_ARGUMENT, "%s: offset %" PRId64 " is negative", binding->name,
            offset);
    TRY(attncl__buffer_query(ctx, buffer, &have, &flags));
    REQUIRE(!(flags & (is_input ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY)), ATTNCL_ERR_ARGUMENT,
            "%s is an %s, kernels can only %s the buffer", binding->name,
            is_input ? "input" : "output", is_input ? "write" : "read");
    const bool fits =
        ckd_mul_size((size_t)offset, attncl_dtype_bytes(binding->desc.dtype), offset_bytes) &&
        ckd_add_size(*offset_bytes, need, &end) && end <= have;
    REQUIRE(fits, ATTNCL_ERR_ARGUMENT,
            "%s %s needs %zu bytes from element %" PRId64 " on, the buffer has %zu in all",
            binding->name, SHAPE(&binding->desc), need, offset, have);
    return ATTNCL_OK;
}

static attncl_status add_copied_storage(const struct io_binding *binding,
                                        struct callers_buffer *bound)
{
    bound->copied = attncl__alloc(sizeof *bound->copied);
    REQUIRE(bound->copied, ATTNCL_ERR_NO_MEMORY, "the binding of %s", binding->name);
    *bound->copied =
        (struct storage){.mem = bound->mem, .bytes = bound->offset + binding->storage->bytes};
    return ATTNCL_OK;
}

// Makes the kernels use *use, or the graph's own buffer if it is NULL; *use becomes the former buffer.
// After a failure some kernels have the new one, until the next run repairs the bindings.
static attncl_status rebind(struct program *p, struct io_binding *binding, cl_mem *use)
{
    cl_mem former = binding->storage->mem;

    binding->storage->mem = *use ? *use : binding->own;
    const attncl_status status = attncl__command_list_rebind(&p->command_list, binding->storage);
    if (status == ATTNCL_OK) {
        *use = former == binding->own ? NULL : former;
    } else {
        binding->storage->mem = former;
        p->args_stale = true;
    }
    return status;
}

// Exchanges the binding and the change; rebind() has already exchanged the buffer in use.
static void exchange(struct io_binding *binding, struct command_list *copies, struct change *change)
{
    const struct command_list former_copies = *copies;
    const struct callers_buffer former = binding->bound;

    binding->bound = change->bound;
    *copies = change->copies;
    change->bound = former;
    change->copies = former_copies;
}

attncl_status attncl_graph_bind(attncl_graph *graph, const char *name, cl_mem buffer,
                                int64_t offset)
{
    struct program *p = NULL;

    REQUIRE(graph && name, ATTNCL_ERR_ARGUMENT, "graph or name is NULL");
    TRY(attncl__get_runnable_program(graph, &p));
    struct io_list *io = &p->inputs;
    struct io_binding *binding = attncl__find_binding(io, name);
    if (!binding) {
        io = &p->outputs;
        binding = attncl__find_binding(io, name);
    }
    REQUIRE(binding, ATTNCL_ERR_ARGUMENT, "the graph has no input or output %s", name);

    attncl_status status = ATTNCL_OK;
    struct change change = {0};
    if (buffer) {
        struct callers_buffer *bound = &change.bound;
        TRY_DONE(check_buffer(p->ctx, binding, io == &p->inputs, buffer, offset, &bound->offset));
        TRY_DONE(create_part_in_place(p->ctx, buffer, bound->offset, binding->storage->bytes,
                                      &change.use));
        TRY_DONE(attncl__buffer_retain(buffer, &bound->mem));
        if (!change.use)
            TRY_DONE(add_copied_storage(binding, bound));
    }
    TRY_DONE(record_copies(p, io, binding, &change));
    TRY_DONE(attncl__queue_finish(p->ctx)); // runs in flight still use the old buffer
    TRY_DONE(rebind(p, binding, &change.use));
    exchange(binding, &io->copies, &change);
    p->command_list.has_callers_buffers = attncl__has_bound_buffers(p);
done:
    free_change(&change);
    return status;
}

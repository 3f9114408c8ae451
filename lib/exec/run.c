// SPDX-License-Identifier: MIT
//
// Runs a compiled graph: writes inputs, enqueues commands, reads outputs.

#include "attncl/opencl.h"
#include "base/alloc.h"
#include "exec/exec.h"

// Finds an input or output that is not bound to a caller's buffer.
static attncl_status find_unbound(const struct io_list *io, const char *what, const char *name,
                                  struct io_binding **ret)
{
    REQUIRE(name, ATTNCL_ERR_ARGUMENT, "the %s's name is NULL", what);
    *ret = attncl__find_binding(io, name);
    REQUIRE(*ret, ATTNCL_ERR_ARGUMENT, "the graph has no %s %s", what, name);
    REQUIRE(!(*ret)->bound.mem, ATTNCL_ERR_STATE, "%s %s is bound to a caller's buffer", what,
            name);
    return ATTNCL_OK;
}

attncl_status attncl__find_readable_output(const struct program *p, const char *name, size_t bytes,
                                           struct io_binding **ret)
{
    TRY(find_unbound(&p->outputs, "output", name, ret));
    const size_t have = attncl__desc_bytes(&(*ret)->desc);
    REQUIRE(bytes == have, ATTNCL_ERR_ARGUMENT,
            "output %s %s has %zu bytes, capacity for %zu was given", name, SHAPE(&(*ret)->desc),
            have, bytes);
    return ATTNCL_OK;
}

static attncl_status check_range(const struct io_binding *b, const void *data)
{
    const int64_t count = attncl__desc_count(&b->desc);
    for (int64_t i = 0; b->ranged && i < count; ++i) {
        int32_t x;
        memcpy(&x, (const char *)data + i * (int64_t)sizeof x, sizeof x);
        REQUIRE(x >= b->low && x < b->high, ATTNCL_ERR_ARGUMENT,
                "%s: element %" PRId64 " is %d, allowed are %" PRId64 " to %" PRId64, b->name, i,
                (int)x, b->low, b->high - 1);
    }
    return ATTNCL_OK;
}

static attncl_status find_writable_input(attncl_graph *g, const char *name, const void *data,
                                         struct program **program_ret, struct io_binding **ret)
{
    TRY(attncl__get_runnable_program(g, program_ret));
    TRY(find_unbound(&(*program_ret)->inputs, "input", name, ret));
    REQUIRE(data || (*ret)->storage->bytes == 0, ATTNCL_ERR_ARGUMENT, "data of input %s is NULL",
            name);
    return ATTNCL_OK;
}

// write: attncl__buffer_write() or attncl__buffer_write_queued().
static attncl_status write_bytes(attncl_graph *g, const char *name, const void *data, size_t bytes,
                                 attncl_status (*write)(attncl_context *, cl_mem, size_t,
                                                        const void *, size_t))
{
    struct program *p = NULL;
    struct io_binding *b = NULL;

    TRY(find_writable_input(g, name, data, &p, &b));
    REQUIRE(bytes == b->storage->bytes, ATTNCL_ERR_ARGUMENT,
            "input %s %s has %zu bytes, %zu were given", name, SHAPE(&b->desc), b->storage->bytes,
            bytes);
    TRY(check_range(b, data));
    return write(p->ctx, b->storage->mem, 0, data, bytes);
}

attncl_status attncl_graph_write(attncl_graph *g, const char *name, const void *data, size_t bytes)
{
    return write_bytes(g, name, data, bytes, attncl__buffer_write);
}

attncl_status attncl__graph_write_queued(attncl_graph *g, const char *name, const void *data,
                                         size_t bytes)
{
    return write_bytes(g, name, data, bytes, attncl__buffer_write_queued);
}

const char *attncl__precision_name(const attncl_context *ctx)
{
    static const char *const names[N_GEMM_PRECISIONS] = {
        [GEMM_F32] = "float32", [GEMM_TF32] = "tf32", [GEMM_BF16] = "bf16"};
    return names[ctx->caps.precision];
}

bool attncl__queued_writes_block(const attncl_context *ctx)
{
    return ctx->caps.blocking_writes;
}

attncl_status attncl_graph_write_as(attncl_graph *g, const char *name, attncl_dtype data_dtype,
                                    const void *data, size_t count)
{
    struct program *p = NULL;
    struct io_binding *b = NULL;

    TRY(find_writable_input(g, name, data, &p, &b));
    const size_t bytes = b->storage->bytes;
    REQUIRE(count == (size_t)attncl__desc_count(&b->desc), ATTNCL_ERR_ARGUMENT,
            "input %s %s has %" PRId64 " elements, %zu were given", name, SHAPE(&b->desc),
            attncl__desc_count(&b->desc), count);
    if (data_dtype == b->desc.dtype)
        return attncl_graph_write(g, name, data, bytes);

    attncl_status status = ATTNCL_OK;
    void *converted = attncl__alloc(bytes);
    REQUIRE(converted, ATTNCL_ERR_NO_MEMORY, "%zu bytes to convert input %s", bytes, name);
    TRY_DONE(attncl__prefix_failure(
        attncl__convert(data_dtype, data, b->desc.dtype, converted, count), "%s", name));
    TRY_DONE(attncl_graph_write(g, name, converted, bytes));
done:
    attncl__free(converted);
    return status;
}

// -- ATTNCL_GUARD: everything that a run writes is poisoned before it, and the canaries (constant words on both sides
// of every value) must be intact after it

attncl_status attncl__poison_program(struct program *p)
{
    if (p->n_guarded && p->arena)
        TRY(attncl__buffer_fill(p->ctx, p->arena, CANARY_WORD, 0, p->arena_bytes));
    for (size_t i = 0; i < p->n_guarded; ++i) {
        const struct guarded *v = &p->guarded[i];
        if (v->poisoned)
            TRY(attncl__buffer_fill(p->ctx, v->whole, CANARY_WORD, 0,
                                    round_up_to_words(v->bytes + 2 * CANARY_BYTES)));
    }
    return ATTNCL_OK;
}

static bool is_intact(const unsigned char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i + 4 <= to; i += 4) {
        uint32_t word;
        memcpy(&word, bytes + i, sizeof word);
        if (word != CANARY_WORD)
            return false;
    }
    return true;
}

static attncl_status check_canaries(attncl_context *ctx, const struct guarded *v)
{
    const size_t end = v->start + round_up_to_words(v->bytes);
    unsigned char before[CANARY_BYTES], after[CANARY_BYTES];

    TRY(attncl__buffer_read(ctx, v->whole, v->start - CANARY_BYTES, before, sizeof before));
    // Rounding `bytes` up may push the last word of the last canary beyond the buffer.
    TRY(attncl__buffer_read(ctx, v->whole, end, after, CANARY_BYTES - 4));
    const bool before_intact = is_intact(before, 0, sizeof before);
    REQUIRE(before_intact && is_intact(after, 0, CANARY_BYTES - 4), ATTNCL_ERR_STATE,
            "%s%s%s: memory %s a value of %zu bytes was overwritten", v->scope,
            *v->scope ? ": " : "", v->name, before_intact ? "after" : "before", v->bytes);
    return ATTNCL_OK;
}

attncl_status attncl__graph_check_canaries(attncl_graph *g)
{
    const struct program *p = attncl__graph_program(g);

    if (!p || !p->n_guarded)
        return ATTNCL_OK;
    TRY(attncl__queue_finish(p->ctx));
    for (size_t i = 0; i < p->n_guarded; ++i)
        TRY(check_canaries(p->ctx, &p->guarded[i]));
    return ATTNCL_OK;
}

// Enqueues copies of bound inputs, the graph, and copies to bound outputs.  The first of these that has
// commands waits for `wait`; the last one produces the event.
static attncl_status enqueue_run(struct program *p, cl_uint n_wait, const cl_event *wait,
                                 cl_event *last)
{
    const bool has_copy_out = p->outputs.copies.n_commands > 0;

    if (p->inputs.copies.n_commands > 0) {
        TRY(attncl__command_list_enqueue(&p->inputs.copies, n_wait, wait, NULL, NULL));
        n_wait = 0;
        wait = NULL;
    }
    TRY(attncl__command_list_enqueue(&p->command_list, n_wait, wait, NULL,
                                     has_copy_out ? NULL : last));
    if (has_copy_out)
        TRY(attncl__command_list_enqueue(&p->outputs.copies, 0, NULL, NULL, last));
    return ATTNCL_OK;
}

attncl_status attncl_graph_enqueue(attncl_graph *graph, cl_uint n_wait, const cl_event *wait,
                                   cl_event *event_ret)
{
    struct program *p = NULL;

    TRY(attncl__get_runnable_program(graph, &p));
    REQUIRE((n_wait == 0) == (wait == NULL), ATTNCL_ERR_ARGUMENT,
            "%u events to wait for, but the list is %s", (unsigned)n_wait, wait ? "given" : "NULL");
    TRY(attncl__run_begin(p));
    TRY(attncl__run_end(p, enqueue_run(p, n_wait, wait, event_ret)));
    if (event_ret && *event_ret) // the application releases it
        attncl__object_released(OBJECT_EVENT);
    return ATTNCL_OK;
}

static attncl_status poison_and_run(attncl_graph *g, struct program *p)
{
    TRY(attncl__poison_program(p));
    TRY(enqueue_run(p, 0, NULL, NULL));
    return attncl__graph_check_canaries(g);
}

attncl_status attncl_graph_run(attncl_graph *g)
{
    struct program *p = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    TRY(attncl__run_begin(p));
    return attncl__run_end(p, poison_and_run(g, p));
}

attncl_status attncl_graph_read(attncl_graph *g, const char *name, void *data, size_t bytes)
{
    struct program *p = NULL;
    struct io_binding *b = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    TRY(attncl__find_readable_output(p, name, bytes, &b));
    REQUIRE(data || bytes == 0, ATTNCL_ERR_ARGUMENT, "data of output %s is NULL", name);
    TRY(attncl__check_outputs_defined(p));
    return attncl__run_note_wait(
        p, bytes ? attncl__buffer_read(p->ctx, b->storage->mem, 0, data, bytes)
                 : attncl__queue_finish(p->ctx));
}

attncl_status attncl__graph_wait(attncl_graph *g)
{
    struct program *p = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    return attncl__run_note_wait(p, attncl__queue_finish(p->ctx));
}

void attncl__graph_drain(attncl_graph *g)
{
    attncl__queue_drain(attncl__graph_program(g)->ctx);
}

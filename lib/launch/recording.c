// SPDX-License-Identifier: MIT
//
// Recordings: commands with everything decided, so that a run only enqueues.

#include "launch/recording.h"
#include "base/alloc.h"
#include "device/clerr.h"

attncl_status attncl__recording_begin(attncl_context *ctx, struct recording *r)
{
    *r = (struct recording){.ctx = ctx, .node = -1};
    return attncl__buffer_create(ctx, 0, &r->dummy);
}

static void command_free(struct command *c)
{
    attncl__kernel_release(&c->kernel);
    attncl__free(c->mem_args);
    if (c->user_free)
        c->user_free(c->user);
}

void attncl__recording_free(struct recording *r)
{
    for (size_t i = 0; i < r->n_commands; ++i)
        command_free(&r->commands[i]);
    attncl__free(r->commands);
    attncl__buffer_release(&r->dummy);
    *r = (struct recording){0};
}

attncl_status attncl__recording_append(struct recording *r, struct command **ret)
{
    if (r->n_commands == r->room) {
        const size_t room = r->room ? 2 * r->room : 16;
        struct command *grown = attncl__grow_array(r->commands, room, sizeof *grown);

        REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "%zu commands", room);
        r->commands = grown;
        r->room = room;
    }
    *ret = &r->commands[r->n_commands++];
    **ret = (struct command){.node = r->node};
    return ATTNCL_OK;
}

attncl_status attncl__recording_add_copy(struct recording *r, const char *name,
                                         struct storage *from, size_t from_offset,
                                         struct storage *to, size_t to_offset, size_t bytes)
{
    struct command *c = NULL;

    if (bytes == 0)
        return ATTNCL_OK;
    assert(from_offset <= from->bytes && bytes <= from->bytes - from_offset);
    assert(to_offset <= to->bytes && bytes <= to->bytes - to_offset);
    TRY(attncl__recording_append(r, &c));
    c->kind = COMMAND_COPY;
    c->name = name;
    c->from = from;
    c->from_offset = from_offset;
    c->to = to;
    c->to_offset = to_offset;
    c->bytes = bytes;
    return ATTNCL_OK;
}

attncl_status attncl__recording_add_call(struct recording *r, const char *name, command_fn call,
                                         void *user, void (*user_free)(void *user))
{
    struct command *c = NULL;

    TRY(attncl__recording_append(r, &c));
    c->kind = COMMAND_CALL;
    c->name = name;
    c->call = call;
    c->user = user;
    c->user_free = user_free;
    return ATTNCL_OK;
}

void attncl__recording_loop(struct recording *r, size_t first, int64_t n_rounds)
{
    if (r->n_commands == first)
        return;
    struct command *last = &r->commands[r->n_commands - 1];
    last->loop_first = first;
    last->n_rounds = (size_t)n_rounds;
}

size_t attncl__recording_length(const struct recording *r)
{
    size_t length = r->n_commands;

    for (size_t i = 0; i < r->n_commands; ++i) {
        const struct command *c = &r->commands[i];
        if (c->n_rounds > 0)
            length += (c->n_rounds - 1) * (i + 1 - c->loop_first);
    }
    return length;
}

size_t attncl__recording_next(const struct recording *r, size_t i, size_t *round)
{
    const struct command *c = &r->commands[i];

    if (c->n_rounds > 0 && ++*round < c->n_rounds)
        return c->loop_first;
    if (c->n_rounds > 0)
        *round = 0;
    return i + 1;
}

attncl_status attncl__recording_set_arg(cl_kernel kernel, cl_uint index, size_t bytes,
                                        const void *value)
{
    TRY_CL(clSetKernelArg(kernel, index, bytes, value));
    return ATTNCL_OK;
}

attncl_status attncl__recording_rebind(struct recording *r, const struct storage *storage)
{
    for (size_t i = 0; i < r->n_commands; ++i) {
        const struct command *c = &r->commands[i];

        for (size_t j = 0; j < c->n_mem_args; ++j)
            if (c->mem_args[j].storage == storage)
                TRY(attncl__recording_set_arg(c->kernel, c->mem_args[j].index, sizeof storage->mem,
                                              storage->mem ? &storage->mem : &r->dummy));
    }
    return ATTNCL_OK;
}

// Enqueues one command; `n_wait` events concern the first one.
static attncl_status enqueue(struct recording *r, const struct command *c, cl_uint n_wait,
                             const cl_event *wait, cl_event *event)
{
    cl_command_queue queue = r->ctx->queue;
    const cl_uint n_axes = c->global[2] > 1 ? 3 : c->global[1] > 1 ? 2 : 1;

    switch (c->kind) {
    case COMMAND_KERNEL:
        TRY_CL(clEnqueueNDRangeKernel(queue, c->kernel, n_axes, NULL, c->global, c->local, n_wait,
                                      wait, event));
        break;
    case COMMAND_COPY:
        TRY_CL(clEnqueueCopyBuffer(queue, c->from->mem, c->to->mem, c->from_offset, c->to_offset,
                                   c->bytes, n_wait, wait, event));
        break;
    case COMMAND_CALL:
        // A call takes no wait list: in an in-order queue a barrier before it does the same.
        if (n_wait)
            TRY_CL(clEnqueueBarrierWithWaitList(queue, n_wait, wait, NULL));
        TRY(c->call(r->ctx, c->user, event));
        break;
    }
    if (event && *event)
        attncl__object_made(OBJECT_EVENT);
    return ATTNCL_OK;
}

// An event of everything enqueued so far, for recordings whose last command gave none.
static attncl_status mark_end(struct recording *r, cl_uint n_wait, const cl_event *wait,
                              cl_event *ret)
{
    TRY_CL(clEnqueueMarkerWithWaitList(r->ctx->queue, n_wait, wait, ret));
    attncl__object_made(OBJECT_EVENT);
    return ATTNCL_OK;
}

static attncl_status enqueue_all(struct recording *r, cl_uint n_wait, const cl_event *wait,
                                 cl_event *events, cl_event *last)
{
    const size_t n = attncl__recording_length(r);
    size_t i = 0, round = 0;

    for (size_t done = 0; done < n; ++done) {
        cl_event *event = events ? &events[done] : done + 1 == n ? last : NULL;

        TRY(enqueue(r, &r->commands[i], done ? 0 : n_wait, done ? NULL : wait, event));
        i = attncl__recording_next(r, i, &round);
    }
    if (last && !*last)
        TRY(mark_end(r, n ? 0 : n_wait, n ? NULL : wait, last));
    TRY_CL(clFlush(r->ctx->queue));
    return ATTNCL_OK;
}

attncl_status attncl__recording_enqueue(struct recording *r, cl_uint n_wait, const cl_event *wait,
                                        cl_event *events, cl_event *last_ret)
{
    const size_t n = attncl__recording_length(r);
    cl_event last = NULL;

    for (size_t i = 0; events && i < n; ++i)
        events[i] = NULL;
    const attncl_status status = enqueue_all(r, n_wait, wait, events, last_ret ? &last : NULL);
    if (status != ATTNCL_OK) {
        for (size_t i = 0; events && i < n; ++i)
            attncl__event_release(&events[i]);
        attncl__event_release(&last);
        return status;
    }
    if (last_ret)
        *last_ret = last;
    return ATTNCL_OK;
}

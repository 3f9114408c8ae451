// SPDX-License-Identifier: MIT
//
// Command lists: a run only enqueues.

#include "launch/command_list.h"
#include "base/alloc.h"
#include "device/clerr.h"

attncl_status attncl__command_list_begin(attncl_context *ctx, struct command_list *list)
{
    *list = (struct command_list){.ctx = ctx, .node = -1};
    return attncl__buffer_create(ctx, 0, &list->dummy);
}

static void command_free(struct command *c)
{
    attncl__kernel_release(&c->kernel);
    attncl__free(c->mem_args);
    if (c->user_free)
        c->user_free(c->user);
}

void attncl__command_list_free(struct command_list *list)
{
    for (size_t i = 0; i < list->n_commands; ++i)
        command_free(&list->commands[i]);
    attncl__free(list->commands);
    attncl__free(list->events);
    attncl__buffer_release(&list->dummy);
    *list = (struct command_list){0};
}

attncl_status attncl__command_list_append(struct command_list *list, struct command **ret)
{
    struct command *grown =
        attncl__grow_list(list->commands, list->n_commands, &list->capacity, sizeof *grown);

    REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "%zu commands", list->n_commands);
    list->commands = grown;
    *ret = &list->commands[list->n_commands++];
    **ret = (struct command){.node = list->node, .queue = list->queue};
    return ATTNCL_OK;
}

attncl_status attncl__command_list_add_copy(struct command_list *list, const char *name,
                                            struct storage *from, size_t from_offset,
                                            struct storage *to, size_t to_offset, size_t bytes)
{
    struct command *c = NULL;

    if (bytes == 0)
        return ATTNCL_OK;
    assert(from_offset <= from->bytes && bytes <= from->bytes - from_offset);
    assert(to_offset <= to->bytes && bytes <= to->bytes - to_offset);
    TRY(attncl__command_list_append(list, &c));
    c->kind = COMMAND_COPY;
    c->name = name;
    c->from = from;
    c->from_offset = from_offset;
    c->to = to;
    c->to_offset = to_offset;
    c->bytes = bytes;
    return ATTNCL_OK;
}

attncl_status attncl__command_list_add_call(struct command_list *list, const char *name,
                                            command_fn call, void *user,
                                            void (*user_free)(void *user))
{
    struct command *c = NULL;

    TRY(attncl__command_list_append(list, &c));
    c->kind = COMMAND_CALL;
    c->name = name;
    c->call = call;
    c->user = user;
    c->user_free = user_free;
    list->has_calls = true;
    return ATTNCL_OK;
}

attncl_status attncl__command_list_use_queues(struct command_list *list, int n_queues,
                                              size_t n_events)
{
    TRY(attncl__queues_open(list->ctx, n_queues));
    list->events = attncl__alloc_array(n_events, sizeof *list->events);
    REQUIRE(list->events, ATTNCL_ERR_NO_MEMORY, "%zu events", n_events);
    list->n_events = n_events;
    list->n_queues = n_queues;
    return ATTNCL_OK;
}

attncl_status attncl__command_list_add_sync(struct command_list *list, enum command_kind kind,
                                            int queue, int slot)
{
    struct command *c = NULL;

    assert(slot >= 0 && (size_t)slot < list->n_events && queue < list->n_queues);
    TRY(attncl__command_list_append(list, &c));
    c->kind = kind;
    c->name = kind == COMMAND_SIGNAL ? "signal" : "wait";
    c->queue = queue;
    c->slot = slot;
    return ATTNCL_OK;
}

bool attncl__command_is_sync(const struct command *c)
{
    return c->kind == COMMAND_SIGNAL || c->kind == COMMAND_WAIT;
}

void attncl__command_list_loop(struct command_list *list, size_t first, int64_t trip_count)
{
    if (list->n_commands == first)
        return;
    struct command *last = &list->commands[list->n_commands - 1];
    last->loop_first = first;
    last->trip_count = (size_t)trip_count;
}

void attncl__command_list_estimate(struct command_list *list, size_t first, double seconds)
{
    for (size_t i = first; i < list->n_commands; ++i)
        list->commands[i].seconds = seconds / (double)(list->n_commands - first);
}

size_t attncl__command_list_length(const struct command_list *list)
{
    size_t length = list->n_commands;

    for (size_t i = 0; i < list->n_commands; ++i) {
        const struct command *c = &list->commands[i];
        if (c->trip_count > 0)
            length += (c->trip_count - 1) * (i + 1 - c->loop_first);
    }
    return length;
}

size_t attncl__command_list_next(const struct command_list *list, size_t i, size_t *iteration)
{
    const struct command *c = &list->commands[i];

    if (c->trip_count > 0 && ++*iteration < c->trip_count)
        return c->loop_first;
    if (c->trip_count > 0)
        *iteration = 0;
    return i + 1;
}

attncl_status attncl__command_list_set_arg(cl_kernel kernel, cl_uint index, size_t bytes,
                                           const void *value)
{
    TRY_CL(clSetKernelArg(kernel, index, bytes, value));
    return ATTNCL_OK;
}

attncl_status attncl__command_list_rebind(struct command_list *list, const struct storage *storage)
{
    for (size_t i = 0; i < list->n_commands; ++i) {
        const struct command *c = &list->commands[i];

        for (size_t j = 0; j < c->n_mem_args; ++j)
            if (c->mem_args[j].storage == storage)
                TRY(attncl__command_list_set_arg(c->kernel, c->mem_args[j].index,
                                                 sizeof storage->mem,
                                                 storage->mem ? &storage->mem : &list->dummy));
    }
    return ATTNCL_OK;
}

// The queue that is signalled is flushed: not every driver lets another wait for it otherwise.
static attncl_status signal(struct command_list *list, const struct command *c, cl_uint n_wait,
                            const cl_event *wait)
{
    cl_command_queue queue = attncl__queue(list->ctx, c->queue);

    TRY_CL(clEnqueueMarkerWithWaitList(queue, n_wait, wait, &list->events[c->slot]));
    attncl__object_created(OBJECT_EVENT);
    TRY_CL(clFlush(queue));
    return ATTNCL_OK;
}

// Enqueues one command.
static attncl_status enqueue(struct command_list *list, const struct command *c,
                             cl_command_queue queue, cl_uint n_wait, const cl_event *wait,
                             cl_event *event)
{
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
        // A call has no wait list; in an in-order queue a barrier before it has the same effect.
        if (n_wait)
            TRY_CL(clEnqueueBarrierWithWaitList(queue, n_wait, wait, NULL));
        TRY(c->call(list->ctx, c->user, event));
        break;
    case COMMAND_SIGNAL:
        return signal(list, c, n_wait, wait);
    case COMMAND_WAIT:
        TRY_CL(clEnqueueBarrierWithWaitList(queue, 1, &list->events[c->slot], NULL));
        return ATTNCL_OK;
    }
    if (event && *event)
        attncl__object_created(OBJECT_EVENT);
    return ATTNCL_OK;
}

static attncl_status flush(struct command_list *list)
{
    for (int i = 0; i < list->n_queues || i == 0; ++i)
        TRY_CL(clFlush(attncl__queue(list->ctx, i)));
    return ATTNCL_OK;
}

// Flushes where what was enqueued since the last flush may take long.
static attncl_status flush_if_long(struct command_list *list, const struct command *c,
                                   double *seconds)
{
    *seconds += c->seconds;
    if (*seconds < COMMAND_LIST_FLUSH_SECONDS)
        return ATTNCL_OK;
    *seconds = 0;
    return flush(list);
}

// An event for everything enqueued so far, for lists whose last command gave none.
static attncl_status mark_end(struct command_list *list, cl_uint n_wait, const cl_event *wait,
                              cl_event *ret)
{
    TRY_CL(clEnqueueMarkerWithWaitList(list->ctx->queue, n_wait, wait, ret));
    attncl__object_created(OBJECT_EVENT);
    return ATTNCL_OK;
}

static bool uses_several(const struct command_list *list)
{
    return list->n_queues > 1 && !list->has_calls && !list->has_callers_buffers;
}

// The run has its events no longer than while it is enqueued.
static void release_events(struct command_list *list)
{
    for (size_t i = 0; i < list->n_events; ++i)
        attncl__event_release(&list->events[i]);
}

static attncl_status enqueue_all(struct command_list *list, cl_uint n_wait, const cl_event *wait,
                                 cl_event *events, cl_event *last)
{
    const size_t n = attncl__command_list_length(list);
    const bool several = uses_several(list);
    size_t i = 0, iteration = 0;
    double seconds = 0;

    for (size_t done = 0; done < n; ++done) {
        const struct command *c = &list->commands[i];
        cl_event *event = events ? &events[done] : done + 1 == n ? last : NULL;

        if (several || !attncl__command_is_sync(c)) {
            TRY(enqueue(list, c, attncl__queue(list->ctx, several ? c->queue : 0), n_wait, wait,
                        event));
            n_wait = 0;
            wait = NULL;
        }
        TRY(flush_if_long(list, c, &seconds));
        i = attncl__command_list_next(list, i, &iteration);
    }
    if (last && !*last)
        TRY(mark_end(list, n_wait, wait, last));
    return flush(list);
}

attncl_status attncl__command_list_enqueue(struct command_list *list, cl_uint n_wait,
                                           const cl_event *wait, cl_event *events,
                                           cl_event *last_ret)
{
    const size_t n = attncl__command_list_length(list);
    cl_event last = NULL;

    for (size_t i = 0; events && i < n; ++i)
        events[i] = NULL;
    const attncl_status status = enqueue_all(list, n_wait, wait, events, last_ret ? &last : NULL);
    release_events(list);
    if (status != ATTNCL_OK) {
        // Commands of queues that queue 0 does not wait for must not outlive the run.
        if (uses_several(list))
            attncl__queue_drain(list->ctx);
        for (size_t i = 0; events && i < n; ++i)
            attncl__event_release(&events[i]);
        attncl__event_release(&last);
        return status;
    }
    if (last_ret)
        *last_ret = last;
    return ATTNCL_OK;
}

attncl_status attncl__command_list_enqueue_nodes(struct command_list *list, size_t *first,
                                                 int last_node)
{
    size_t iteration = 0, i = *first;
    double seconds = 0;

    while (i < list->n_commands && list->commands[i].node <= last_node) {
        if (!attncl__command_is_sync(&list->commands[i]))
            TRY(enqueue(list, &list->commands[i], list->ctx->queue, 0, NULL, NULL));
        TRY(flush_if_long(list, &list->commands[i], &seconds));
        i = attncl__command_list_next(list, i, &iteration);
    }
    *first = i;
    TRY_CL(clFlush(list->ctx->queue));
    return ATTNCL_OK;
}

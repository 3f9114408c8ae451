// SPDX-License-Identifier: MIT
//
// Runs a command list: enqueues commands, allocates nothing and sets no argument.

#include "device/clerr.h"
#include "launch/command_list.h"

// Flushes the queue, because some drivers let no other queue wait for it otherwise.
static attncl_status enqueue_signal(struct command_list *list, const struct command *c,
                                    cl_uint n_wait, const cl_event *wait)
{
    cl_command_queue queue = attncl__queue(list->ctx, c->queue);

    TRY_CL(clEnqueueMarkerWithWaitList(queue, n_wait, wait, &list->events[c->slot]));
    attncl__object_created(OBJECT_EVENT);
    TRY_CL(clFlush(queue));
    return ATTNCL_OK;
}

static cl_uint count_axes(const struct command *c)
{
    return c->global[2] > 1 ? 3 : c->global[1] > 1 ? 2 : 1;
}

static attncl_status enqueue_command(struct command_list *list, const struct command *c,
                                     cl_command_queue queue, cl_uint n_wait, const cl_event *wait,
                                     cl_event *event)
{
    switch (c->kind) {
    case COMMAND_KERNEL:
        TRY_CL(clEnqueueNDRangeKernel(queue, c->kernel, count_axes(c), NULL, c->global, c->local,
                                      n_wait, wait, event));
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
        return enqueue_signal(list, c, n_wait, wait);
    case COMMAND_WAIT:
        TRY_CL(clEnqueueBarrierWithWaitList(queue, 1, &list->events[c->slot], NULL));
        return ATTNCL_OK;
    }
    if (event && *event)
        attncl__object_created(OBJECT_EVENT);
    return ATTNCL_OK;
}

static attncl_status flush_queues(struct command_list *list)
{
    for (int i = 0; i < list->n_queues || i == 0; ++i)
        TRY_CL(clFlush(attncl__queue(list->ctx, i)));
    return ATTNCL_OK;
}

// Flushes if the commands enqueued since the last flush may take long.
static attncl_status flush_if_long(struct command_list *list, const struct command *c,
                                   double *seconds)
{
    *seconds += c->seconds;
    if (*seconds < COMMAND_LIST_FLUSH_SECONDS)
        return ATTNCL_OK;
    *seconds = 0;
    return flush_queues(list);
}

// Creates an event for everything enqueued so far, for lists whose last command has none.
static attncl_status enqueue_end_marker(struct command_list *list, cl_uint n_wait,
                                        const cl_event *wait, cl_event *ret)
{
    TRY_CL(clEnqueueMarkerWithWaitList(list->ctx->queue, n_wait, wait, ret));
    attncl__object_created(OBJECT_EVENT);
    return ATTNCL_OK;
}

static bool uses_several_queues(const struct command_list *list)
{
    return list->n_queues > 1 && !list->has_calls && !list->has_callers_buffers;
}

// The events of SIGNAL and WAIT are needed only while a run is enqueued.
static void release_events(struct command_list *list)
{
    for (size_t i = 0; i < list->n_events; ++i)
        attncl__event_release(&list->events[i]);
}

static attncl_status enqueue_all(struct command_list *list, cl_uint n_wait, const cl_event *wait,
                                 cl_event *events, cl_event *last)
{
    const size_t n = attncl__command_list_length(list);
    const bool several = uses_several_queues(list);
    size_t i = 0, iteration = 0;
    double seconds = 0;

    for (size_t done = 0; done < n; ++done) {
        const struct command *c = &list->commands[i];
        cl_event *event = events ? &events[done] : done + 1 == n ? last : NULL;

        if (several || !attncl__command_is_sync(c)) {
            TRY(enqueue_command(list, c, attncl__queue(list->ctx, several ? c->queue : 0), n_wait,
                                wait, event));
            n_wait = 0;
            wait = NULL;
        }
        TRY(flush_if_long(list, c, &seconds));
        i = attncl__command_list_next(list, i, &iteration);
    }
    if (last && !*last)
        TRY(enqueue_end_marker(list, n_wait, wait, last));
    return flush_queues(list);
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
        if (uses_several_queues(list))
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
            TRY(enqueue_command(list, &list->commands[i], list->ctx->queue, 0, NULL, NULL));
        TRY(flush_if_long(list, &list->commands[i], &seconds));
        i = attncl__command_list_next(list, i, &iteration);
    }
    *first = i;
    TRY_CL(clFlush(list->ctx->queue));
    return ATTNCL_OK;
}

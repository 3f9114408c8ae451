// SPDX-License-Identifier: MIT
//
// Stretches of a command list that are replayed: kernels recorded into a command buffer, which a run enqueues by one
// call.  Copies and calls of CLBlast are commands between them: versions of the extension record copies differently.
//
// A stretch lies inside a loop or outside: each iteration enqueues it again.  What it has recorded are the arguments of then,
// so that a buffer is rebound here.

#include "base/log.h"
#include "launch/command_list.h"

enum { MIN_KERNELS = 4 }; // fewer are hardly worth a command buffer of their own

static bool flushes_on_the_way(const struct command_list *list)
{
    const size_t n = attncl__command_list_length(list);
    size_t i = 0, iteration = 0;
    double seconds = 0;

    for (size_t done = 0; done < n; ++done) {
        seconds += list->commands[i].seconds;
        i = attncl__command_list_next(list, i, &iteration);
    }
    return seconds >= COMMAND_LIST_FLUSH_SECONDS;
}

static size_t stretch_end(const struct command_list *list, size_t first)
{
    const struct command *c = list->commands;
    size_t end = first;

    while (end < list->n_commands && c[end].kind == COMMAND_KERNEL &&
           (end == first || (!c[end].begins_loop && c[end - 1].trip_count == 0)))
        ++end;
    return end;
}

size_t attncl__command_list_find_stretches(struct command_list *list)
{
    size_t n_found = 0, next = 0;

    if (list->n_queues > 1 || flushes_on_the_way(list))
        return 0;
    while (next < list->n_commands) {
        const size_t first = next, end = stretch_end(list, first);
        next = end > first ? end : first + 1; // not a kernel: none
        if (end - first < MIN_KERNELS)
            continue;
        list->commands[first].n_replayed = end - first;
        ++n_found;
    }
    return n_found;
}

static attncl_status record_stretch(struct command_list *list, struct command *first)
{
    attncl_status status = ATTNCL_OK;
    struct command_buffer *buffer = NULL;

    TRY(attncl__command_buffer_create(list->ctx, &buffer));
    for (const struct command *c = first; c < first + first->n_replayed; ++c)
        TRY_DONE(attncl__command_buffer_add(list->ctx, buffer, c->kernel, attncl__command_axes(c),
                                            c->global, c->local));
    TRY_DONE(attncl__command_buffer_finalize(list->ctx, buffer));
    first->recorded = buffer;
    buffer = NULL;
done:
    attncl__command_buffer_release(list->ctx, &buffer);
    return status;
}

attncl_status attncl__command_list_record(struct command_list *list)
{
    attncl_status status = ATTNCL_OK;

    for (size_t i = 0; i < list->n_commands && status == ATTNCL_OK; ++i)
        if (list->commands[i].n_replayed && !list->commands[i].recorded)
            status = record_stretch(list, &list->commands[i]);
    list->replays = status == ATTNCL_OK;
    for (size_t i = 0; i < list->n_commands && status != ATTNCL_OK; ++i)
        attncl__command_buffer_release(list->ctx, &list->commands[i].recorded);
    return status;
}

static bool refers_to(const struct command *c, const struct storage *storage)
{
    for (size_t j = 0; j < c->n_mem_args; ++j)
        if (c->mem_args[j].storage == storage)
            return true;
    return false;
}

attncl_status attncl__command_list_rebind(struct command_list *list, const struct storage *storage)
{
    struct command *stretch = list->commands;

    for (size_t i = 0; i < list->n_commands; ++i) {
        struct command *c = &list->commands[i];

        stretch = c->n_replayed ? c : stretch;
        if (!refers_to(c, storage))
            continue;
        // Also where setting an argument fails: what is recorded has the old ones.
        if (c < stretch + stretch->n_replayed)
            attncl__command_buffer_release(list->ctx, &stretch->recorded);
        for (size_t j = 0; j < c->n_mem_args; ++j)
            if (c->mem_args[j].storage == storage)
                TRY(attncl__command_list_set_arg(c->kernel, c->mem_args[j].index,
                                                 sizeof storage->mem,
                                                 storage->mem ? &storage->mem : &list->dummy));
    }
    if (list->replays && attncl__command_list_record(list) != ATTNCL_OK)
        attncl__log(ATTNCL_LOG_INFO, "a graph is not replayed any more: %s", attncl_last_error());
    return ATTNCL_OK;
}

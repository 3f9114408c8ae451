// SPDX-License-Identifier: MIT
//
// Command lists: recording, and iteration over loops.

#include "launch/command_list.h"
#include "base/alloc.h"
#include "device/clerr.h"

attncl_status attncl__command_list_begin(attncl_context *ctx, struct command_list *list)
{
    *list = (struct command_list){.ctx = ctx, .node = -1};
    return attncl__buffer_create(ctx, 0, &list->dummy);
}

static void free_command(struct command *c)
{
    attncl__kernel_release(&c->kernel);
    attncl__free(c->mem_args);
    if (c->user_free)
        c->user_free(c->user);
}

void attncl__command_list_free(struct command_list *list)
{
    for (size_t i = 0; i < list->n_commands; ++i)
        free_command(&list->commands[i]);
    attncl__free(list->commands);
    attncl__free(list->events);
    attncl__buffer_release(&list->dummy);
    *list = (struct command_list){0};
}

attncl_status attncl__command_list_append(struct command_list *list, struct command command)
{
    REQUIRE(GROW_LIST(list->commands, list->n_commands, list->capacity), ATTNCL_ERR_NO_MEMORY,
            "%zu commands", list->n_commands);
    command.node = list->node;
    list->commands[list->n_commands++] = command;
    return ATTNCL_OK;
}

attncl_status attncl__command_list_add_copy(struct command_list *list, const char *name,
                                            struct storage *from, size_t from_offset,
                                            struct storage *to, size_t to_offset, size_t bytes)
{
    if (bytes == 0)
        return ATTNCL_OK;
    assert(from_offset <= from->bytes && bytes <= from->bytes - from_offset);
    assert(to_offset <= to->bytes && bytes <= to->bytes - to_offset);
    const struct command copy = {.kind = COMMAND_COPY,
                                 .queue = list->queue,
                                 .name = name,
                                 .from = from,
                                 .from_offset = from_offset,
                                 .to = to,
                                 .to_offset = to_offset,
                                 .bytes = bytes};
    return attncl__command_list_append(list, copy);
}

attncl_status attncl__command_list_add_call(struct command_list *list, const char *name,
                                            command_fn call, void *user,
                                            void (*user_free)(void *user))
{
    list->has_calls = true;
    return attncl__command_list_append(list, (struct command){.kind = COMMAND_CALL,
                                                              .queue = list->queue,
                                                              .name = name,
                                                              .call = call,
                                                              .user = user,
                                                              .user_free = user_free});
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
    const char *name = kind == COMMAND_SIGNAL ? "signal" : "wait";

    assert(slot >= 0 && (size_t)slot < list->n_events && queue < list->n_queues);
    return attncl__command_list_append(
        list, (struct command){.kind = kind, .queue = queue, .name = name, .slot = slot});
}

static cl_program get_program(const struct command *c)
{
    cl_program ret = NULL;

    if (c->kind == COMMAND_KERNEL)
        clGetKernelInfo(c->kernel, CL_KERNEL_PROGRAM, sizeof ret, &ret, NULL);
    return ret;
}

bool attncl__command_list_has_new_program(const struct command_list *list,
                                          const struct command_list *other)
{
    for (size_t i = 0; i < list->n_commands; ++i) {
        const cl_program program = get_program(&list->commands[i]);
        bool is_new = program != NULL;
        for (size_t k = 0; k < other->n_commands; ++k)
            is_new = is_new && get_program(&other->commands[k]) != program;
        if (is_new)
            return true;
    }
    return false;
}

bool attncl__command_is_sync(const struct command *c)
{
    return c->kind == COMMAND_SIGNAL || c->kind == COMMAND_WAIT;
}

void attncl__command_list_add_loop(struct command_list *list, size_t first, int64_t trip_count)
{
    if (list->n_commands == first)
        return;
    struct command *last = &list->commands[list->n_commands - 1];
    last->loop_first = first;
    last->trip_count = (size_t)trip_count;
}

void attncl__command_list_set_seconds(struct command_list *list, size_t first, double seconds)
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
    return CL_CALL(clSetKernelArg(kernel, index, bytes, value));
}

attncl_status attncl__command_list_rebind(struct command_list *list, const struct storage *storage)
{
    const cl_mem *mem = storage->mem ? &storage->mem : &list->dummy;

    for (size_t i = 0; i < list->n_commands; ++i) {
        const struct command *c = &list->commands[i];
        for (size_t j = 0; j < c->n_mem_args; ++j)
            if (c->mem_args[j].storage == storage)
                TRY(attncl__command_list_set_arg(c->kernel, c->mem_args[j].index, sizeof *mem,
                                                 mem));
    }
    return ATTNCL_OK;
}

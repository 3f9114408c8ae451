// SPDX-License-Identifier: MIT
//
// Allocation: dedicated buffers for inputs, outputs and state, one arena for intermediate values.

#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "compile/lowered.h"
#include "compile/program.h"

static attncl_status alloc_tables(const struct lowered *p, struct program *program)
{
    const size_t n_values = (size_t)p->n_values, n_nodes = (size_t)p->n_nodes;

    program->storages = attncl__alloc_array(n_values + n_nodes, sizeof *program->storages);
    program->nodes = attncl__alloc_array(n_nodes, sizeof *program->nodes);
    program->states = attncl__alloc_array(n_values, sizeof *program->states);
    program->parts = attncl__alloc_array(p->n_items, sizeof(struct storage *));
    program->guarded =
        attncl__alloc_array(p->canaries ? n_values + n_nodes : 0, sizeof *program->guarded);
    REQUIRE(program->storages && program->nodes && program->states && program->parts &&
                program->guarded,
            ATTNCL_ERR_NO_MEMORY, "program of %zu nodes", n_nodes);
    program->n_storages = n_values + n_nodes;
    program->n_nodes = p->n_nodes;
    return ATTNCL_OK;
}

static attncl_status allocate_arena(const struct lowered *p, struct program *program)
{
    const size_t pad = p->canaries ? canary_pad(p->caps) : 0;

    TRY(attncl__buffer_create(program->ctx, 4, &program->empty));
    program->arena_bytes = p->report.arena_bytes;
    if (program->arena_bytes)
        TRY(attncl__buffer_create(program->ctx, program->arena_bytes, &program->arena));
    if (program->arena_bytes && p->canaries)
        TRY(attncl__buffer_fill(program->ctx, program->arena, CANARY_WORD, 0,
                                program->arena_bytes));
    for (size_t i = 0; i < p->n_items; ++i) {
        const struct plan_item *item = &p->items[i];
        const struct lowered_node *node = &p->nodes[item->node];
        const size_t offset = item->offset + pad;
        struct storage *storage =
            &program->storages[item->value ? item->value : p->n_values + item->node];
        storage->bytes = item->content_bytes;
        if (!item->content_bytes) {
            TRY(attncl__buffer_retain(program->empty, &storage->mem));
            continue;
        }
        storage->begin = offset;
        storage->end = offset + item->content_bytes;
        TRY(attncl__buffer_create_part(program->ctx, program->arena, offset, item->content_bytes,
                                       &storage->mem));
        program->parts[program->n_parts++] = storage;
        if (p->canaries)
            program->guarded[program->n_guarded++] = (struct guarded){
                program->arena, offset, item->content_bytes, false, node->cls->name, node->scope};
    }
    return ATTNCL_OK;
}

// With canaries the value is a sub-buffer of its dedicated buffer.
static attncl_status allocate_dedicated(const struct lowered *p, struct program *program, int value)
{
    const struct lowered_value *v = &p->values[value];
    const size_t bytes = attncl__desc_bytes(v->desc);
    const size_t pad = p->canaries && bytes ? canary_pad(p->caps) : 0;
    struct storage *storage = &program->storages[value];
    attncl_status status = ATTNCL_OK;
    cl_mem whole = NULL;
    size_t padded;

    REQUIRE(ckd_add_size(bytes, 2 * pad + 4, &padded) && ckd_round_up(padded, 4, &padded),
            ATTNCL_ERR_DEVICE_MEMORY, "a value of %zu bytes", bytes);
    TRY(v->producer < 0 // inputs and state start zeroed
            ? attncl__buffer_create_zeroed(program->ctx, padded, false, &whole)
            : attncl__buffer_create(program->ctx, padded, &whole));
    if (pad)
        TRY_DONE(attncl__buffer_fill(program->ctx, whole, CANARY_WORD, 0, padded));
    if (pad && v->producer < 0)
        TRY_DONE(attncl__buffer_fill(program->ctx, whole, 0, pad, round_up_to_words(bytes)));
    storage->bytes = bytes;
    if (pad) {
        const struct lowered_node *node = v->producer < 0 ? NULL : &p->nodes[v->producer];
        // A reset writes whole words.
        TRY_DONE(attncl__buffer_create_part(program->ctx, whole, pad, round_up_to_words(bytes),
                                            &storage->mem));
        const char *name = node ? node->cls->name : v->origin->name;
        program->guarded[program->n_guarded++] =
            (struct guarded){whole, pad, bytes, node != NULL, name, node ? node->scope : ""};
    } else {
        storage->mem = whole;
    }
    whole = NULL;
done:
    attncl__buffer_release(&whole);
    return status;
}

// Returns the owner's state called `name`, skipping the first `n_before` of that name; NULL if there is none.
static const struct state *find_state(const struct program *owner, const char *name, int n_before)
{
    for (int i = 0; i < owner->n_states; ++i)
        if (strcmp(owner->states[i].name, name) == 0 && n_before-- == 0)
            return &owner->states[i];
    return NULL;
}

// Shares the state owner's memory if it has this state, else allocates.
static attncl_status allocate_state(const struct lowered *p, struct program *program, int value)
{
    const struct value *v = p->values[value].origin;
    struct storage *storage = &program->storages[value];
    const struct state *shared = NULL;
    int n_before = 0;

    for (int i = 0; i < program->n_states; ++i)
        n_before += strcmp(program->states[i].name, v->name) == 0;
    program->states[program->n_states++] = (struct state){v->name, v->desc, storage};
    if (program->state_owner)
        shared = find_state(program->state_owner, v->name, n_before);
    if (!shared)
        return allocate_dedicated(p, program, value);
    REQUIRE(attncl__desc_same_shape(&v->desc, &shared->desc) && v->desc.dtype == shared->desc.dtype,
            ATTNCL_ERR_SHAPE, "state %s is %s, the one to share is %s", v->name, SHAPE(&v->desc),
            SHAPE(&shared->desc));
    storage->bytes = shared->storage->bytes;
    return attncl__buffer_retain(shared->storage->mem, &storage->mem);
}

// Returns the last node that writes the value, or the end of that node's loop; -1 if none does.
static int find_last_writer(const struct lowered *p, const struct lowered_value *v)
{
    const struct lowered_value *base = &p->values[v->base];
    int last = base->producer;

    for (const struct use *use = base->first_use; use; use = use->next)
        if (use->writes && use->node > last)
            last = use->node;
    if (last >= 0 && p->nodes[last].loop >= 0)
        last = p->loops[p->nodes[last].loop].last;
    return last;
}

static attncl_status bind_own_buffers(const struct lowered *p, struct program *program,
                                      const struct named_values *values, struct io_list *io)
{
    io->names = &values->names;
    io->list = attncl__alloc_array((size_t)values->n, sizeof *io->list);
    REQUIRE(io->list, ATTNCL_ERR_NO_MEMORY, "%d inputs or outputs", values->n);
    for (; io->n < values->n; ++io->n) {
        const struct named_value *named = &values->list[io->n];
        const struct lowered_value *v = &p->values[named->value];
        struct storage *storage = &program->storages[v->base];
        io->list[io->n] = (struct io_binding){
            .name = named->name,
            .desc = *v->desc,
            .ranged = named->ranged,
            .low = named->low,
            .high = named->high,
            .last_node = find_last_writer(p, v),
            .storage = storage,
            .own = storage->mem,
        };
    }
    return ATTNCL_OK;
}

attncl_status attncl__allocate(const struct lowered *p, struct program *program)
{
    TRY(alloc_tables(p, program));
    TRY(allocate_arena(p, program));
    for (int i = 1; i < p->n_values; ++i) {
        const struct value *v = p->values[i].origin;
        if (v->kind == VALUE_INPUT || (v->kind == VALUE_RESULT && v->is_output))
            TRY(allocate_dedicated(p, program, i));
        if (v->kind == VALUE_STATE)
            TRY(allocate_state(p, program, i));
        // An in-place update of a node's result does not outlive a run.
        program->updates |=
            v->kind == VALUE_STATE || (v->kind != VALUE_RESULT && p->values[i].n_writes > 0);
    }
    TRY(bind_own_buffers(p, program, p->inputs, &program->inputs));
    return bind_own_buffers(p, program, p->outputs, &program->outputs);
}

static void free_bindings(struct io_list *io)
{
    for (int i = 0; i < io->n; ++i) {
        struct io_binding *b = &io->list[i];
        if (b->own && b->storage->mem != b->own) { // bound in place
            attncl__buffer_release(&b->storage->mem);
            b->storage->mem = b->own;
        }
        attncl__buffer_release(&b->bound.mem);
        attncl__free(b->bound.copied);
    }
    attncl__free(io->list);
    attncl__command_list_free(&io->copies);
}

void attncl__program_free(struct program *p)
{
    if (!p)
        return;
    attncl__command_list_free(&p->command_list);
    free_bindings(&p->inputs);
    free_bindings(&p->outputs);
    // In reverse order of creation: with overlapping parts NVIDIA's driver 580 crashes in any other.
    while (p->n_parts > 0)
        attncl__buffer_release(&p->parts[--p->n_parts]->mem);
    for (size_t i = 0; p->storages && i < p->n_storages; ++i)
        attncl__buffer_release(&p->storages[i].mem);
    for (size_t i = 0; i < p->n_guarded; ++i)
        if (p->guarded[i].whole != p->arena)
            attncl__buffer_release(&p->guarded[i].whole);
    attncl__buffer_release(&p->arena);
    attncl__buffer_release(&p->empty);
    if (p->profile)
        p->profile_free(p->profile);
    attncl__free(p->states);
    attncl__free(p->nodes);
    attncl__free(p->storages);
    attncl__free(p->parts);
    attncl__free(p->guarded);
    attncl__free(p);
}

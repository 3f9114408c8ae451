// SPDX-License-Identifier: MIT
//
// The state of a compiled graph: reset, read and write by name, copy.

#include <string.h>

#include "exec/exec.h"

attncl_status attncl_graph_reset(attncl_graph *g)
{
    struct program *p = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    for (int i = 0; i < p->n_states; ++i) {
        const struct storage *s = p->states[i].storage;
        if (s->bytes)
            TRY(attncl__buffer_fill(p->ctx, s->mem, 0, 0, round_up_to_words(s->bytes)));
    }
    return attncl__graph_restart(g);
}

attncl_status attncl__graph_restart(attncl_graph *g)
{
    struct program *p = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    if (p->needs_reset || p->is_pending) // report faults of earlier runs now, not as a later run's
        TRY(attncl__run_note_wait(p, attncl__queue_finish(p->ctx)));
    p->needs_reset = false;
    return ATTNCL_OK;
}

size_t attncl_graph_state_count(const attncl_graph *g)
{
    const struct program *p = g ? attncl__graph_program(g) : NULL;
    return p ? (size_t)p->n_states : 0;
}

const char *attncl_graph_state_name(const attncl_graph *g, size_t i, attncl_shape *shape_ret)
{
    if (i >= attncl_graph_state_count(g))
        return NULL;
    const struct state *s = &attncl__graph_program(g)->states[i];
    if (shape_ret) {
        *shape_ret = (attncl_shape){.dtype = s->desc.dtype, .rank = s->desc.rank};
        memcpy(shape_ret->dim, s->desc.dim, sizeof shape_ret->dim);
    }
    return s->name;
}

// Finds the only state of that name, which must have `bytes` bytes.
static attncl_status find_state(const struct program *p, const char *name, const void *data,
                                size_t bytes, struct storage **ret)
{
    const struct state *found = NULL;

    REQUIRE(name, ATTNCL_ERR_ARGUMENT, "the state's name is NULL");
    for (int i = 0; i < p->n_states; ++i) {
        if (strcmp(p->states[i].name, name) != 0)
            continue;
        REQUIRE(!found, ATTNCL_ERR_ARGUMENT, "the graph has several states %s", name);
        found = &p->states[i];
    }
    REQUIRE(found, ATTNCL_ERR_ARGUMENT, "the graph has no state %s", name);
    REQUIRE(bytes == found->storage->bytes, ATTNCL_ERR_ARGUMENT,
            "state %s %s of %s has %zu bytes, %zu were given", name, SHAPE(&found->desc),
            attncl_dtype_name(found->desc.dtype), found->storage->bytes, bytes);
    REQUIRE(data || bytes == 0, ATTNCL_ERR_ARGUMENT, "data of state %s is NULL", name);
    *ret = found->storage;
    return ATTNCL_OK;
}

attncl_status attncl_graph_state_read(attncl_graph *g, const char *name, void *data, size_t bytes)
{
    struct program *p = NULL;
    struct storage *s = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    TRY(find_state(p, name, data, bytes, &s));
    TRY(attncl__check_state_defined(p));
    return attncl__run_note_wait(p, bytes ? attncl__buffer_read(p->ctx, s->mem, 0, data, bytes)
                                          : attncl__queue_finish(p->ctx));
}

attncl_status attncl_graph_state_write(attncl_graph *g, const char *name, const void *data,
                                       size_t bytes)
{
    struct program *p = NULL;
    struct storage *s = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    TRY(find_state(p, name, data, bytes, &s));
    return bytes ? attncl__buffer_write(p->ctx, s->mem, 0, data, bytes) : ATTNCL_OK;
}

static struct buffer_rows get_entry_rows(const struct state *s, int64_t entry, int64_t first)
{
    const size_t row_bytes = attncl_dtype_bytes(s->desc.dtype) * (size_t)s->desc.dim[2];
    const size_t pitch = (size_t)s->desc.dim[1] * row_bytes;
    return (struct buffer_rows){s->storage->mem, (size_t)first * pitch + (size_t)entry * row_bytes,
                                pitch};
}

attncl_status attncl__graph_copy_rows(attncl_graph *source, int64_t from, attncl_graph *target,
                                      int64_t to, int64_t first, int64_t n)
{
    struct program *p = NULL, *q = NULL;

    TRY(attncl__get_runnable_program(source, &p));
    TRY(attncl__get_runnable_program(target, &q));
    assert(p->n_states == q->n_states);
    for (int i = 0; i < q->n_states && n > 0; ++i) {
        const struct state *s = &p->states[i], *t = &q->states[i];
        const bool wraps = first + n > s->desc.dim[0]; // a ring, which is copied whole
        const int64_t row = wraps ? 0 : first, n_rows = wraps ? s->desc.dim[0] : n;
        const struct buffer_rows rows = get_entry_rows(s, from, row),
                                 rows_ret = get_entry_rows(t, to, row);
        assert(strcmp(s->name, t->name) == 0 && s->desc.dim[2] == t->desc.dim[2]);
        TRY(attncl__buffer_copy_rows(q->ctx, &rows, &rows_ret, rows.pitch / (size_t)s->desc.dim[1],
                                     (size_t)n_rows));
    }
    return ATTNCL_OK;
}

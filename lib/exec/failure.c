// SPDX-License-Identifier: MIT
//
// Finds a graph's program, inputs and outputs, and records failed runs.
//
// After a failed run the outputs are undefined until the next run, and a graph that changes anything
// from run to run is unusable until it is reset.
//
// A run only enqueues, and any later wait for the queue may report a fault of its commands.  So a context
// counts failed waits, and each run that has not been waited for remembers the count when it began.

#include "exec/exec.h"

attncl_status attncl__get_program(const attncl_graph *g, struct program **ret)
{
    REQUIRE(g, ATTNCL_ERR_ARGUMENT, "graph is NULL");
    *ret = attncl__graph_program(g);
    REQUIRE(*ret, ATTNCL_ERR_STATE, "the graph is not compiled");
    return ATTNCL_OK;
}

struct io_binding *attncl__find_binding(const struct io_list *io, const char *name)
{
    const int i = attncl__name_find(io->names, name);
    return i < 0 ? NULL : &io->list[i];
}

attncl_status attncl__get_runnable_program(const attncl_graph *g, struct program **ret)
{
    TRY(attncl__get_program(g, ret));
    return attncl__context_check_usable((*ret)->ctx);
}

static bool has_bound_buffer(const struct io_list *io)
{
    for (int i = 0; i < io->n; ++i)
        if (io->list[i].bound.mem)
            return true;
    return false;
}

bool attncl__has_bound_buffers(const struct program *p)
{
    return has_bound_buffer(&p->inputs) || has_bound_buffer(&p->outputs);
}

// -- failed runs

// True when a run's effects outlast it.
static bool is_stateful(const struct program *p)
{
    return p->updates || attncl__has_bound_buffers(p);
}

// Marks the run as failed if a wait elsewhere has reported a fault since it began.
static void detect_async_fault(struct program *p)
{
    if (p->is_pending && atomic_load(&p->ctx->n_faults) != p->n_faults_before)
        attncl__run_mark_failed(p);
}

void attncl__run_mark_failed(struct program *p)
{
    p->outputs_undefined = true;
    p->needs_reset = is_stateful(p);
    p->is_pending = false;
}

// Sets the kernels' buffers again after a failed attncl_graph_bind().
static attncl_status repair_bindings(struct program *p, const struct io_list *io)
{
    for (int i = 0; p->args_stale && i < io->n; ++i)
        TRY(attncl__command_list_rebind(&p->command_list, io->list[i].storage));
    return ATTNCL_OK;
}

attncl_status attncl__run_begin(struct program *p)
{
    detect_async_fault(p);
    TRY(attncl__check_state_defined(p));
    TRY(repair_bindings(p, &p->inputs));
    TRY(repair_bindings(p, &p->outputs));
    p->args_stale = false;
    if (!p->is_pending)
        p->n_faults_before = atomic_load(&p->ctx->n_faults);
    p->is_pending = true;
    return ATTNCL_OK;
}

attncl_status attncl__run_end(struct program *p, attncl_status status)
{
    if (status == ATTNCL_OK)
        p->outputs_undefined = false;
    else
        attncl__run_mark_failed(p);
    return status;
}

attncl_status attncl__check_state_defined(struct program *p)
{
    detect_async_fault(p);
    REQUIRE(!p->needs_reset, ATTNCL_ERR_STATE,
            "a run of the graph has failed, and what it keeps is undefined: reset it");
    return ATTNCL_OK;
}

attncl_status attncl__check_outputs_defined(struct program *p)
{
    TRY(attncl__check_state_defined(p));
    REQUIRE(!p->outputs_undefined, ATTNCL_ERR_STATE,
            "the graph's last run has failed: there are no outputs");
    return ATTNCL_OK;
}

attncl_status attncl__run_note_wait(struct program *p, attncl_status status)
{
    if (status == ATTNCL_OK)
        p->is_pending = false;
    else
        detect_async_fault(p);
    return status;
}

attncl_status attncl__graph_check_state_defined(attncl_graph *g)
{
    struct program *p = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    return attncl__check_state_defined(p);
}

attncl_status attncl__graph_mark_run_failed(attncl_graph *g, attncl_status status)
{
    attncl__run_mark_failed(attncl__graph_program(g));
    return status;
}

// SPDX-License-Identifier: MIT
//
// Finds a graph's program and its inputs and outputs by name, and records failed runs.
//
// A failed run leaves undefined: outputs until the next run, and, in a graph that keeps
// something from run to run, everything until it is reset.
//
// A run only enqueues, and a fault of its commands may be told by any later wait for the queue.  So
// a context counts the waits that failed, and a run that has not been waited for notes the count.

#include "exec/exec.h"

attncl_status attncl__program_of(const attncl_graph *g, struct program **ret)
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

attncl_status attncl__program_ready(const attncl_graph *g, struct program **ret)
{
    TRY(attncl__program_of(g, ret));
    return attncl__context_usable((*ret)->ctx);
}

static bool has_bound(const struct io_list *io)
{
    for (int i = 0; i < io->n; ++i)
        if (io->list[i].bound.mem)
            return true;
    return false;
}

bool attncl__has_bound(const struct program *p)
{
    return has_bound(&p->inputs) || has_bound(&p->outputs);
}

// -- failed runs

// Whether runs leave something for the next.
static bool is_stateful(const struct program *p)
{
    return p->updates || attncl__has_bound(p);
}

// Notices a fault that another wait was told.
static void notice(struct program *p)
{
    if (p->is_pending && atomic_load(&p->ctx->n_faults) != p->n_faults_before)
        attncl__run_failed(p);
}

void attncl__run_failed(struct program *p)
{
    p->outputs_undefined = true;
    p->needs_reset = is_stateful(p);
    p->is_pending = false;
}

// Gives kernels the buffers that a failed attncl_graph_bind() may have left mixed up.
static attncl_status mend_bindings(struct program *p, const struct io_list *io)
{
    for (int i = 0; p->has_mixed && i < io->n; ++i)
        TRY(attncl__command_list_rebind(&p->command_list, io->list[i].storage));
    return ATTNCL_OK;
}

attncl_status attncl__run_begin(struct program *p)
{
    notice(p);
    TRY(attncl__state_defined(p));
    TRY(mend_bindings(p, &p->inputs));
    TRY(mend_bindings(p, &p->outputs));
    p->has_mixed = false;
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
        attncl__run_failed(p);
    return status;
}

attncl_status attncl__state_defined(struct program *p)
{
    notice(p);
    REQUIRE(!p->needs_reset, ATTNCL_ERR_STATE,
            "a run of the graph has failed, and what it keeps is undefined: reset it");
    return ATTNCL_OK;
}

attncl_status attncl__outputs_defined(struct program *p)
{
    TRY(attncl__state_defined(p));
    REQUIRE(!p->outputs_undefined, ATTNCL_ERR_STATE,
            "the graph's last run has failed: there are no outputs");
    return ATTNCL_OK;
}

attncl_status attncl__run_waited(struct program *p, attncl_status status)
{
    if (status == ATTNCL_OK)
        p->is_pending = false;
    else
        notice(p);
    return status;
}

attncl_status attncl__graph_state_defined(attncl_graph *g)
{
    struct program *p = NULL;

    TRY(attncl__program_ready(g, &p));
    return attncl__state_defined(p);
}

attncl_status attncl__graph_run_failed(attncl_graph *g, attncl_status status)
{
    attncl__run_failed(attncl__graph_program(g));
    return status;
}

// SPDX-License-Identifier: MIT
//
// Failed runs.  What one leaves is undefined: outputs until the next run, and, in a graph that keeps
// something from run to run, everything until it is reset.
//
// A run only enqueues, and a fault of its commands may be told by any later wait for the queue.  So
// a context counts the waits that failed, and a run that has not been waited for notes the count.

#include "exec/exec.h"

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

attncl_status attncl__run_begin(struct program *p)
{
    notice(p);
    TRY(attncl__state_defined(p));
    TRY(attncl__bindings_mend(p));
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

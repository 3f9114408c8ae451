// SPDX-License-Identifier: MIT
//
// Compiles a graph by a list of passes over a lowered copy.  The graph itself does not change.

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/log.h"
#include "base/struct.h"
#include "compile/probes.h"
#include "compile/program.h"

// A node is live when it updates state, or when an output or a live node reads one of its results.
static bool is_live(const struct lowered *p, const struct lowered_node *node)
{
    bool live = attncl__op_inputs(node->cls, STATE) != 0;

    for (int i = 0; i < node->cls->n_out; ++i) {
        const struct lowered_value *v = &p->values[node->outputs[i]];
        live = live || v->n_uses > 0 || v->is_output;
    }
    return live;
}

// Nodes are in topological order, so one backward traversal is enough.
void attncl__eliminate_dead(struct lowered *p)
{
    for (int n = p->n_nodes - 1; n >= 0; --n)
        if (!is_live(p, &p->nodes[n]))
            attncl__lowered_remove(p, n);
}

attncl_status attncl__plan(const attncl_graph *g, struct fit *fit, struct lowered *p)
{
    TRY(attncl__lower(g, fit, p));
    attncl__eliminate_dead(p);
    TRY(attncl__apply_probes(g->ctx, fit, p));
    TRY(attncl__fuse(p));
    TRY(attncl__schedule(p));
    TRY(attncl__find_lifetimes(p));
    return attncl__memory_plan(p->items, p->n_items, p->caps->align_bytes, &p->report.arena_bytes);
}

static attncl_status check_memory(const struct lowered *p, const attncl_compile_options *options)
{
    const struct device_caps *caps = p->caps;
    const attncl_memory_report *r = &p->report;
    uint64_t limit = caps->global_bytes;
    size_t total = 0;

    if (options->memory_limit && options->memory_limit < limit)
        limit = options->memory_limit;
    const bool fits = ckd_add_size(r->weights_bytes, r->state_bytes, &total) &&
                      ckd_add_size(total, r->io_bytes, &total) &&
                      ckd_add_size(total, r->arena_bytes, &total) && total <= limit;
    REQUIRE(fits, ATTNCL_ERR_DEVICE_MEMORY,
            "the graph needs %zu bytes of device memory, the limit is %" PRIu64,
            r->weights_bytes + r->state_bytes + r->io_bytes + r->arena_bytes, limit);
    REQUIRE(r->arena_bytes <= caps->max_buffer_bytes, ATTNCL_ERR_DEVICE_MEMORY,
            "the graph's activations need a buffer of %zu bytes, the device's largest is %" PRIu64,
            r->arena_bytes, caps->max_buffer_bytes);
    return ATTNCL_OK;
}

attncl_status attncl_graph_memory(const attncl_graph *g, attncl_memory_report *report_ret)
{
    attncl_status status = ATTNCL_OK;
    struct fit fit = {.probes = PROBE_LOOK_UP};
    bool again = false;

    REQUIRE(g && report_ret, ATTNCL_ERR_ARGUMENT, "graph or report_ret is NULL");
    TRY(attncl_graph_status(g));
    do {
        struct lowered p = {0};
        again = false;
        status = attncl__plan(g, &fit, &p);
        status = status == ATTNCL_OK ? STRUCT_WRITE(attncl_memory_report, report_ret, &p.report)
                                     : attncl__fit_reduce(&fit, &p.refused, status, p.caps, &again);
        attncl__lowered_free(&p);
    } while (again);
    attncl__fit_free(&fit);
    return status;
}

// *retry_ret: it failed, and `fit` now has smaller work-groups to try.
static attncl_status compile(attncl_graph *g, const attncl_compile_options *options,
                             struct fit *fit, bool *retry_ret)
{
    attncl_status status = ATTNCL_OK;
    struct lowered p = {0};
    struct program *program = attncl__alloc_zero(sizeof *program);

    *retry_ret = false;
    REQUIRE(program, ATTNCL_ERR_NO_MEMORY, "program of %d nodes", g->n_nodes);
    program->ctx = g->ctx;
    program->state_owner = g->state_owner ? g->state_owner->program : NULL;
    TRY_DONE(attncl__plan(g, fit, &p));
    TRY_DONE(check_memory(&p, options));
    TRY_DONE(attncl__allocate(&p, program));
    TRY_DONE(attncl__record(&p, program));
    attncl__log(ATTNCL_LOG_INFO,
                "graph: %d nodes, %zu commands%s, arena %zu bytes (%zu without reuse)", p.n_nodes,
                program->command_list.n_commands,
                program->command_list.n_queues > 1 ? " on several queues" : "",
                p.report.arena_bytes, p.report.unshared_bytes);
    program->state_owner = NULL;
    g->program = program;
    g->program_free = attncl__program_free;
    program = NULL; // ownership has passed to the graph
done:
    if (status != ATTNCL_OK)
        status = attncl__fit_reduce(fit, &p.refused, status, p.caps, retry_ret);
    attncl__program_free(program);
    attncl__lowered_free(&p);
    return status;
}

attncl_status attncl_graph_compile(attncl_graph *g, const attncl_compile_options *options)
{
    attncl_compile_options opts = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_status status = ATTNCL_OK;
    struct fit fit = {.probes = PROBE_RUN};
    bool again = false;

    REQUIRE(g, ATTNCL_ERR_ARGUMENT, "graph is NULL");
    if (options)
        TRY(STRUCT_READ(attncl_compile_options, &opts, options));
    TRY(attncl__check_precision(opts.precision));
    REQUIRE(opts.n_queues >= 0 && opts.n_queues <= MAX_QUEUES, ATTNCL_ERR_ARGUMENT,
            "n_queues is %d, it can be 0 to %d", opts.n_queues, MAX_QUEUES);
    fit.precision = opts.precision;
    fit.n_queues = opts.n_queues;
    TRY(attncl_graph_status(g));
    REQUIRE(!g->program, ATTNCL_ERR_STATE, "the graph is compiled already");
    assert(!g->in_loop);
    TRY(attncl__context_check_usable(g->ctx));
    attncl__programs_retry(g->ctx);
    do
        status = compile(g, &opts, &fit, &again);
    while (again);
    attncl__fit_free(&fit);
    return status;
}

struct program *attncl__graph_program(const attncl_graph *g)
{
    return g->program;
}

// SPDX-License-Identifier: MIT
//
// Compiling: persistent buffers, one arena for intermediates, and every op's commands appended
// once.

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/log.h"
#include "base/struct.h"
#include "graph/internal.h"

static attncl_status check_limits(const attncl_graph *g, const attncl_compile_options *options)
{
    const struct device_caps *caps = &g->ctx->caps;
    const attncl_memory_report *r = &g->report;
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

// A value with a dedicated buffer; with canaries it is a sub-buffer of a larger one.
static attncl_status allocate_dedicated(attncl_graph *g, struct value *v)
{
    const size_t bytes = attncl__desc_bytes(&v->desc);
    const size_t pad = g->canaries ? CANARY_BYTES : 0;
    attncl_status status = ATTNCL_OK;
    cl_mem whole = NULL;
    size_t padded;

    REQUIRE(ckd_add_size(bytes, 2 * pad + 4, &padded) && ckd_round_up(padded, 4, &padded),
            ATTNCL_ERR_DEVICE_MEMORY, "a value of %zu bytes", bytes);
    TRY(attncl__buffer_create(g->ctx, padded, &whole));
    if (pad && bytes)
        TRY_DONE(attncl__buffer_fill(g->ctx, whole, CANARY_WORD, 0, padded));
    if (v->kind != VALUE_RESULT) // inputs and state start as zeros
        TRY_DONE(attncl__buffer_fill(g->ctx, whole, 0, pad, (bytes + 3) & ~(size_t)3));
    if (pad && bytes)
        TRY_DONE(attncl__buffer_part(g->ctx, whole, pad, bytes, &v->storage.mem));
    else {
        v->storage.mem = whole;
        whole = NULL;
    }
    v->storage.bytes = bytes;
    v->canary_buffer = whole;
    whole = NULL;
done:
    attncl__buffer_release(&whole);
    return status;
}

static attncl_status allocate(attncl_graph *g)
{
    TRY(attncl__buffer_create(g->ctx, 4, &g->empty));
    if (g->report.arena_bytes) {
        TRY(attncl__buffer_create(g->ctx, g->report.arena_bytes, &g->arena));
        if (g->canaries)
            TRY(attncl__buffer_fill(g->ctx, g->arena, CANARY_WORD, 0, g->report.arena_bytes));
    }
    for (size_t i = 0; i < g->n_placements; ++i) {
        const struct placement *p = &g->placements[i];
        struct storage *s =
            p->value >= 0 ? &g->values[p->value].storage : &g->nodes[p->node].scratch;
        s->bytes = p->bytes;
        if (p->bytes)
            TRY(attncl__buffer_part(g->ctx, g->arena, p->offset, p->bytes, &s->mem));
        else {
            attncl__buffer_retain(g->empty);
            s->mem = g->empty;
        }
    }
    for (int i = 1; i < g->n_values; ++i) {
        struct value *v = &g->values[i];
        const bool result = v->kind == VALUE_RESULT && v->is_output && g->nodes[v->node].live;
        if (v->kind == VALUE_INPUT || v->kind == VALUE_STATE || result)
            TRY(allocate_dedicated(g, v));
    }
    for (int i = 0; i < g->n_inputs; ++i)
        g->inputs[i].own = g->values[g->inputs[i].value].storage.mem;
    for (int i = 0; i < g->n_outputs; ++i)
        g->outputs[i].own = g->values[g->values[g->outputs[i].value].base].storage.mem;
    return ATTNCL_OK;
}

static struct span span_of(attncl_graph *g, int value)
{
    struct value *base = &g->values[g->values[value].base];
    if (value == 0)
        return (struct span){0};
    return (struct span){base->kind == VALUE_TENSOR ? attncl__tensor_storage(base->tensor)
                                                    : &base->storage};
}

static attncl_status append_node(attncl_graph *g, struct launcher *l, int n)
{
    struct node *node = &g->nodes[n];
    struct op_call call = {0};
    bool empty = true;

    attncl__graph_sig(g, node, &call.sig);
    for (int i = 0; i < node->cls->n_in; ++i)
        call.in[i] = span_of(g, node->in[i]);
    for (int i = 0; i < node->cls->n_out; ++i) {
        call.out[i] = span_of(g, node->out[i]);
        if (attncl__desc_present(&call.sig.out[i]))
            empty &= attncl__desc_count(&call.sig.out[i]) == 0;
    }
    if (node->scratch_bytes)
        call.scratch = (struct span){&node->scratch};
    if (empty && !node->cls->state)
        return ATTNCL_OK;

    g->command_list.node = n;
    const attncl_status status = node->cls->launch(l, &call);
    if (status != ATTNCL_OK)
        attncl__graph_prefix(node);
    return status;
}

static attncl_status append_commands(attncl_graph *g)
{
    struct launcher l = {.caps = &g->ctx->caps,
                         .command_list = &g->command_list,
                         .gemm = attncl__context_env(g->ctx, ENV_GEMM)};

    TRY(attncl__command_list_begin(g->ctx, &g->command_list));
    TRY(attncl__command_list_begin(g->ctx, &g->copy_in));
    TRY(attncl__command_list_begin(g->ctx, &g->copy_out));
    size_t loop_start = 0;
    for (int n = 0; n < g->n_nodes; ++n) {
        const struct loop *loop = attncl__graph_loop_of(g, n);
        if (loop && loop->first == n)
            loop_start = g->command_list.n_commands;
        if (g->nodes[n].live && !(loop && loop->trip_count == 0))
            TRY(append_node(g, &l, n));
        if (loop && loop->last == n)
            attncl__command_list_loop(&g->command_list, loop_start, loop->trip_count);
    }
    return ATTNCL_OK;
}

void attncl__graph_release(attncl_graph *g)
{
    attncl__command_list_free(&g->command_list);
    attncl__command_list_free(&g->copy_in);
    attncl__command_list_free(&g->copy_out);
    struct io_binding *const sides[] = {g->inputs, g->outputs};
    const int counts[] = {g->n_inputs, g->n_outputs};
    for (int side = 0; side < 2; ++side)
        for (int i = 0; i < counts[side]; ++i) {
            struct io_binding *p = &sides[side][i];
            struct value *base = &g->values[g->values[p->value].base];
            if (p->own &&
                base->storage.mem != p->own) { // bound in place: a part or the buffer itself
                attncl__buffer_release(&base->storage.mem);
                base->storage.mem = p->own;
            }
            p->own = NULL;
            attncl__buffer_release(&p->bound);
        }
    for (int i = 1; i < g->n_values; ++i) {
        if (g->values[i].kind != VALUE_TENSOR)
            attncl__buffer_release(&g->values[i].storage.mem);
        attncl__buffer_release(&g->values[i].canary_buffer);
    }
    for (int n = 0; n < g->n_nodes; ++n)
        attncl__buffer_release(&g->nodes[n].scratch.mem);
    attncl__buffer_release(&g->arena);
    attncl__buffer_release(&g->empty);
    g->compiled = false;
}

attncl_status attncl_graph_compile(attncl_graph *g, const attncl_compile_options *options)
{
    attncl_compile_options o = ATTNCL_COMPILE_OPTIONS_INIT;
    REQUIRE(g, ATTNCL_ERR_ARGUMENT, "graph is NULL");
    if (options)
        TRY(STRUCT_READ(attncl_compile_options, &o, options));
    TRY(attncl_graph_status(g));
    REQUIRE(!g->compiled, ATTNCL_ERR_STATE, "the graph is compiled already");
    assert(!g->in_loop);
    TRY(attncl__context_usable(g->ctx));

    attncl_status status = ATTNCL_OK;
    TRY_DONE(attncl__graph_plan(g));
    TRY_DONE(check_limits(g, &o));
    TRY_DONE(allocate(g));
    TRY_DONE(append_commands(g));
    g->compiled = true;
    attncl__log(ATTNCL_LOG_INFO,
                "graph: %d nodes, %zu commands, arena %zu bytes (%zu without reuse)", g->n_nodes,
                g->command_list.n_commands, g->report.arena_bytes, g->report.unshared_bytes);
done:
    if (status != ATTNCL_OK)
        attncl__graph_release(g);
    return status;
}

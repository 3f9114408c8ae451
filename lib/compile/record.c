// SPDX-License-Identifier: MIT
//
// Recording: appends every live node's commands once, in execution order.

#include "compile/lowered.h"
#include "compile/program.h"

static struct span get_span(const struct lowered *p, struct program *program, int value)
{
    const struct value *base = p->values[p->values[value].base].origin;

    if (value == 0)
        return (struct span){0};
    return (struct span){base->kind == VALUE_TENSOR ? attncl__tensor_storage(base->tensor)
                                                    : &program->storages[p->values[value].base]};
}

static attncl_status append_node(const struct lowered *p, struct program *program,
                                 struct launcher *l, const struct op_sig *sig)
{
    const int n = l->command_list->node;
    const struct lowered_node *node = &p->nodes[n];
    struct span *const in = p->spans, *const out = in + node->cls->n_in;
    struct op_call call = {.sig = *sig, .in = in, .out = out};
    bool empty = true;

    for (int i = 0; i < node->cls->n_in; ++i)
        in[i] = get_span(p, program, node->inputs[i]);
    for (int i = 0; i < node->cls->n_out; ++i) {
        out[i] = get_span(p, program, node->outputs[i]);
        if (attncl__desc_present(&sig->out[i]))
            empty &= attncl__desc_count(&sig->out[i]) == 0;
    }
    if (node->scratch_bytes)
        call.scratch = (struct span){&program->storages[p->n_values + n]};
    if (empty && !attncl__op_inputs(node->cls, STATE))
        return ATTNCL_OK;

    l->caps = sig->caps;
    l->refusal = (struct launch_refusal){0};
    return attncl__lowered_prefix_failure(node, node->cls->launch(l, &call));
}

// A byte counts as eight operations: every GPU does at least that many per byte it moves.
static double estimate_seconds(const struct device_caps *caps, double flop, double bytes)
{
    enum { FLOP_PER_BYTE = 8 };

    return caps->flop_per_second > 0 ? (flop + FLOP_PER_BYTE * bytes) / caps->flop_per_second : 0;
}

static attncl_status record_node(const struct lowered *p, struct program *program,
                                 struct launcher *l, int n)
{
    const struct lowered_node *node = &p->nodes[n];
    const double times = node->loop < 0 ? 1 : (double)p->loops[node->loop].trip_count;
    const size_t first = l->command_list->n_commands;
    double flop = 0, bytes = 0;
    struct op_sig sig;

    if (node->dead)
        return ATTNCL_OK;
    attncl__lowered_fill_sig(p, node, &sig);
    attncl__op_cost(node->cls, &sig, &flop, &bytes);
    program->nodes[n] = (struct program_node){
        .op = node->cls->name, .scope = node->scope, .flop = flop * times, .bytes = bytes * times};
    if (times == 0)
        return ATTNCL_OK;
    l->seconds = estimate_seconds(&program->ctx->caps, flop, bytes);
    TRY(append_node(p, program, l, &sig));
    attncl__command_list_set_seconds(l->command_list, first, l->seconds);
    return ATTNCL_OK;
}

// Builds all programs that the nodes need, several at once.  Failures to build are ignored here: recording meets them
// again, before any other call of OpenCL, so that the first failure is the one reported.
static attncl_status build_programs(const struct lowered *p, struct program *program,
                                    struct launcher l)
{
    struct command_list list = {0};
    attncl_status status = attncl__command_list_begin(program->ctx, &list);

    l.command_list = &list;
    l.is_rehearsal = true;
    for (int n = 0; n < p->n_nodes && status == ATTNCL_OK; ++n) {
        list.node = n;
        status = record_node(p, program, &l, n);
        if (status == ATTNCL_ERR_UNSUPPORTED)
            status = ATTNCL_OK;
    }
    attncl__command_list_free(&list);
    TRY(status);
    attncl__programs_build(program->ctx);
    return ATTNCL_OK;
}

static int count_used_queues(const struct lowered *p)
{
    int n = 0;

    for (int q = 0; q < p->n_queues; ++q)
        n += p->end.node[q] >= 0;
    return n;
}

// Event slots: the nodes' signals, then one for the start, then one for the end of each queue but the first.
static attncl_status fork_queues(const struct lowered *p, struct program *program)
{
    struct command_list *list = &program->command_list;

    list->node = -1;
    TRY(attncl__command_list_use_queues(list, p->n_queues,
                                        (size_t)p->n_signals + (size_t)p->n_queues));
    TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, 0, p->n_signals));
    for (int q = 1; q < p->n_queues; ++q)
        if (p->end.node[q] >= 0)
            TRY(attncl__command_list_add_sync(list, COMMAND_WAIT, q, p->n_signals));
    return ATTNCL_OK;
}

static attncl_status join_queues(const struct lowered *p, struct program *program)
{
    struct command_list *list = &program->command_list;

    list->node = p->n_nodes;
    for (int q = 1; q < p->n_queues; ++q) {
        if (p->end.node[q] < 0)
            continue;
        TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, q, p->n_signals + q));
        TRY(attncl__command_list_add_sync(list, COMMAND_WAIT, 0, p->n_signals + q));
    }
    return ATTNCL_OK;
}

static attncl_status wait_for_others(const struct lowered *p, struct program *program, int n)
{
    for (int q = 0; q < p->n_queues; ++q) {
        const int node = p->waits[n].node[q];
        if (node >= 0)
            TRY(attncl__command_list_add_sync(&program->command_list, COMMAND_WAIT,
                                              p->nodes[n].queue, p->nodes[node].signal));
    }
    return ATTNCL_OK;
}

attncl_status attncl__record(struct lowered *p, struct program *program)
{
    struct joint_launch joint = {.n_parts = 0};
    struct launcher l = {.command_list = &program->command_list,
                         .gemm = attncl__context_env(program->ctx, ENV_GEMM),
                         .joint = &joint};
    size_t loop_start = 0;

    TRY(attncl__command_list_begin(program->ctx, &program->command_list));
    TRY(attncl__command_list_begin(program->ctx, &program->inputs.copies));
    TRY(attncl__command_list_begin(program->ctx, &program->outputs.copies));
    const bool several = count_used_queues(p) > 1;
    if (several)
        TRY(fork_queues(p, program));
    TRY(build_programs(p, program, l));
    for (int n = 0; n < p->n_nodes; ++n) {
        const struct loop *loop = p->nodes[n].loop < 0 ? NULL : &p->loops[p->nodes[n].loop];
        program->command_list.node = n;
        program->command_list.queue = p->nodes[n].queue;
        if (several)
            TRY(wait_for_others(p, program, n));
        if (loop && loop->first == n)
            loop_start = program->command_list.n_commands;
        const attncl_status status = record_node(p, program, &l, n);
        if (status == ATTNCL_ERR_UNSUPPORTED || status == ATTNCL_ERR_COMPILE)
            p->refused = (struct refused_op){p->nodes[n].cls, l.refusal};
        TRY(status);
        if (loop && loop->last == n)
            attncl__command_list_add_loop(&program->command_list, loop_start, loop->trip_count);
        if (several && p->nodes[n].signal >= 0)
            TRY(attncl__command_list_add_sync(&program->command_list, COMMAND_SIGNAL,
                                              p->nodes[n].queue, p->nodes[n].signal));
    }
    if (several)
        TRY(join_queues(p, program));
    return ATTNCL_OK;
}

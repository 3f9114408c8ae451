// SPDX-License-Identifier: MIT
//
// What an iteration of a loop reads and leaves, rows, stacks and sums one after another -> one node for eight of them, in
// the place of the last: each alone is a launch of a few thousand elements.

#include "compile/fuse.h"

_Static_assert((int)LOOP_COPIES_MAX <= (int)FUSION_MAX_NODES, "nodes of a fusion");

static const struct op_class *const classes[] = {
    [LOOP_COPY_ROW] = &attncl__op_loop_row_fwd,
    [LOOP_COPY_STACK] = &attncl__op_loop_stack_fwd,
    [LOOP_COPY_SUM] = &attncl__op_loop_sum_fwd,
};

enum { COPY_X, COPY_ITERATION };

// -1: another node.
static int kind_of(const struct lowered *p, int n)
{
    for (int kind = 0; kind < (int)(sizeof classes / sizeof *classes); ++kind)
        if (is_op(p, n, classes[kind]))
            return kind;
    return -1;
}

static int64_t rows_of(const struct lowered *p, int n, int kind)
{
    const struct lowered_node *node = &p->nodes[n];

    return p->values[kind == LOOP_COPY_ROW ? node->inputs[COPY_X] : node->outputs[0]].desc->dim[0];
}

static bool reads_result_of(const struct lowered *p, int n, int other)
{
    return p->values[input_of(p, n, COPY_X)].base == p->nodes[other].outputs[0];
}

// Whether node n can be one with those found, which are of params: the same iteration of the same loop, as many rows,
// and none reads the other's result.
static bool joins(const struct lowered *p, int n, const struct fusion *f,
                  struct fused_loop_copies_fwd_params *params)
{
    const int kind = kind_of(p, n), last = f->n_nodes ? f->node[0] : n;

    if (kind < 0 || p->nodes[n].loop < 0 || p->nodes[n].loop != p->nodes[last].loop ||
        input_of(p, n, COPY_ITERATION) != input_of(p, last, COPY_ITERATION))
        return false;
    for (int i = 0; i < f->n_nodes; ++i)
        if (reads_result_of(p, f->node[i], n) || reads_result_of(p, n, f->node[i]))
            return false;
    if (kind == LOOP_COPY_SUM) {
        const struct loop_sum_fwd_params *sum = p->nodes[n].params;
        if (params->first != -1 && params->first != sum->first)
            return false;
        params->first = sum->first;
    } else {
        const int64_t n_rows = rows_of(p, n, kind);
        if (n_rows > INT32_MAX || (params->n_rows != -1 && params->n_rows != n_rows))
            return false;
        params->n_rows = (int32_t)n_rows;
    }
    return true;
}

static int neighbour(const struct lowered *p, int n, int direction)
{
    do
        n += direction;
    while (n >= 0 && n < p->n_nodes && p->nodes[n].dead);
    return n < p->n_nodes ? n : -1;
}

// The node and those before it; where the next one joins them too, they wait for it, but for those that are complete.
static bool match_loop_copies(const struct lowered *p, int last, struct fusion *f)
{
    struct fused_loop_copies_fwd_params params = {.n_rows = -1, .first = -1};

    for (int n = last; n >= 0 && f->n_nodes < LOOP_COPIES_MAX && joins(p, n, f, &params);
         n = neighbour(p, n, -1))
        f->node[f->n_nodes++] = n;
    f->last = last;
    const int next = neighbour(p, last, 1);
    return f->n_nodes == LOOP_COPIES_MAX ||
           (f->n_nodes > 1 && !(next >= 0 && joins(p, next, f, &params)));
}

static bool loop_copies_are_profitable(const struct lowered *p, struct fusion *f)
{
    struct fused_loop_copies_fwd_params *params = (void *)f->params;

    _Static_assert(sizeof *params <= sizeof f->params, "parameters of loop copies");
    *params = (struct fused_loop_copies_fwd_params){.n = f->n_nodes};
    for (int i = 0; i < f->n_nodes; ++i) {
        const int n = f->node[i], kind = kind_of(p, n);
        params->kinds |= kind << LOOP_COPY_BITS * i;
        if (kind == LOOP_COPY_SUM)
            params->first = ((const struct loop_sum_fwd_params *)p->nodes[n].params)->first;
        else
            params->n_rows = (int32_t)rows_of(p, n, kind);
    }
    return true;
}

static attncl_status build_loop_copies(struct lowered *p, const struct fusion *f)
{
    const struct op_class *cls = &attncl__op_fused_loop_copies_fwd;
    void *params = attncl__lowered_alloc(p, cls->params_bytes);
    int in[N_LOOP_COPIES_INPUTS] = {0};

    REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of %s", cls->name);
    memcpy(params, f->params, cls->params_bytes);
    in[LOOP_COPIES_ITERATION] = input_of(p, f->last, COPY_ITERATION);
    for (int i = 0; i < f->n_nodes; ++i)
        in[LOOP_COPIES_X + i] = input_of(p, f->node[i], COPY_X);
    TRY(attncl__lowered_replace(p, f->last, cls, params, in));
    attncl__fusion_take_results(p, f);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_loop_copies = {match_loop_copies, NULL,
                                                     loop_copies_are_profitable, build_loop_copies};

// SPDX-License-Identifier: MIT
//
// A chain of nodes as two others, where an op's rule (struct op_rewrite) finds it, so that a step
// of a few rows takes fewer launches.

#include "base/alloc.h"
#include "graph/internal.h"

// Where a rule applies.
struct match {
    const struct op_rewrite *rule;
    int node[REWRITE_PARTS];
};

static int value_of(const attncl_graph *g, const struct match *m, const struct rewrite_ref *ref)
{
    const struct node *node = &g->nodes[m->node[ref->part]];

    return ref->kind == REWRITE_NONE  ? 0
           : ref->kind == REWRITE_OUT ? node->out[ref->index]
                                      : node->in[ref->index];
}

// How many live inputs are this value or a view of it, from node `first` on.
static int count_readers(const attncl_graph *g, int value, int first)
{
    int count = 0;

    for (int n = first; n < g->n_nodes; ++n)
        count += attncl__graph_count_reads(g, &g->nodes[n], value);
    return count;
}

// The live node of this class that made input `input` of `reader`; -1: there is none.
static int maker_of(const attncl_graph *g, const struct op_class *cls, const struct node *reader,
                    int input)
{
    const int id = reader->in[input];
    const struct value *v = &g->values[id];

    if (!id || v->kind != VALUE_RESULT)
        return -1;
    const struct node *maker = &g->nodes[v->node];
    return maker->live && maker->cls == cls && maker->out[0] == id && !maker->save_for_backward
               ? v->node
               : -1;
}

static bool find_parts(const attncl_graph *g, int n, struct match *m)
{
    const struct op_rewrite *rule = m->rule;
    const struct loop *loop = attncl__graph_loop_of(g, n);

    m->node[0] = n;
    for (int i = 1; i < rule->n_parts; ++i) {
        const struct node *reader = &g->nodes[m->node[rule->part[i].of]];
        m->node[i] = maker_of(g, rule->part[i].cls, reader, rule->part[i].input);
        if (m->node[i] < 0 || attncl__graph_loop_of(g, m->node[i]) != loop)
            return false;
        const int result = g->nodes[m->node[i]].out[0];
        if (i != rule->passed_on &&
            (g->values[result].is_output || count_readers(g, result, 0) != 1))
            return false;
    }
    for (int i = 0; i < REWRITE_REFS / 2; ++i)
        if (value_of(g, m, &rule->same[i][0]) != value_of(g, m, &rule->same[i][1]))
            return false;
    for (int i = 0; i < REWRITE_REFS; ++i)
        if (rule->absent[i].kind != REWRITE_NONE && value_of(g, m, &rule->absent[i]))
            return false;
    return true;
}

// Whether the first node made can stand where part[1] is: all it reads is there and still what the
// parts read, and its forwarded output has no earlier consumer.
static bool can_stand(const attncl_graph *g, const struct match *m)
{
    const int place = m->node[1], passed_on = m->rule->passed_on;

    for (int i = 0; i < OP_MAX_IN; ++i) {
        const int id = value_of(g, m, &m->rule->made[0].in[i]);
        const struct value *base = &g->values[g->values[id].base];
        if (id && base->kind == VALUE_RESULT && base->node >= place)
            return false;
    }
    for (int i = 2; i < m->rule->n_parts; ++i)
        for (int n = m->node[i] + 1; n < place; ++n)
            if (attncl__graph_overwrites(g, n, &g->nodes[m->node[i]]))
                return false;
    if (!passed_on)
        return true;
    // The parts themselves read it before; they will be gone.
    const int result = g->nodes[m->node[passed_on]].out[0];
    int early = count_readers(g, result, 0) - count_readers(g, result, place);
    for (int i = 1; i < m->rule->n_parts; ++i)
        if (m->node[i] < place)
            early -= attncl__graph_count_reads(g, &g->nodes[m->node[i]], result);
    return early == 0;
}

static void inputs_of(const attncl_graph *g, const struct match *m, int made, int in[OP_MAX_IN])
{
    for (int i = 0; i < OP_MAX_IN; ++i)
        in[i] = value_of(g, m, &m->rule->made[made].in[i]);
}

// The first node's parameters; NULL: not worth it, or no memory (then *status says so).
static void *prepare(const attncl_graph *g, const struct match *m, struct op_sig *sig,
                     const int in[OP_MAX_IN], attncl_status *status)
{
    const struct op_class *into = m->rule->made[0].into;
    const void *part_params[REWRITE_PARTS] = {NULL};
    void *params = attncl__alloc_zero(into->params_bytes);

    *sig = (struct op_sig){.caps = &g->ctx->caps, .params = params, .n_in = into->n_in};
    if (!params) {
        *status = FAIL(ATTNCL_ERR_NO_MEMORY, "node of %s", into->name);
        return NULL;
    }
    attncl__graph_sig_inputs(g, in, sig);
    for (int i = 0; i < m->rule->n_parts; ++i)
        part_params[i] = g->nodes[m->node[i]].params;
    if (m->rule->prepare(sig, part_params, params))
        return params;
    attncl__free(params);
    return NULL;
}

static attncl_status apply(attncl_graph *g, const struct match *m, const struct op_sig *sig,
                           void *params, const int first_in[OP_MAX_IN])
{
    const struct op_rewrite *rule = m->rule;
    int second_in[OP_MAX_IN];

    inputs_of(g, m, 1, second_in);
    for (int i = 0; i < rule->n_parts; ++i)
        TRY(attncl__graph_keep_as_built(g, m->node[i]));
    const int passed = rule->passed_on ? g->nodes[m->node[rule->passed_on]].out[0] : 0;
    struct node *first = &g->nodes[m->node[1]];

    for (int i = 1; i < rule->n_parts; ++i)
        g->nodes[m->node[i]].live = i == 1;
    attncl__graph_become(g, m->node[1], rule->made[0].into, params, first_in);
    g->values[first->out[0]].desc = sig->out[0];
    memset(first->out + 1, 0, sizeof first->out - sizeof first->out[0]);
    first->out[1] = passed;
    if (passed)
        g->values[passed].node = m->node[1];
    attncl__graph_become(g, m->node[0], rule->made[1].into, NULL, second_in);
    return ATTNCL_OK;
}

static attncl_status try_rule(attncl_graph *g, int n, const struct op_rewrite *rule, bool *done_ret)
{
    struct match m = {.rule = rule};
    struct op_sig sig;
    int in[OP_MAX_IN];
    attncl_status status = ATTNCL_OK;

    *done_ret = false;
    if (!find_parts(g, n, &m) || !can_stand(g, &m))
        return ATTNCL_OK;
    inputs_of(g, &m, 0, in);
    void *params = prepare(g, &m, &sig, in, &status);
    if (!params)
        return status;
    TRY_DONE(rule->made[0].into->infer(&sig));
    TRY_DONE(apply(g, &m, &sig, params, in));
    params = NULL; // ownership has passed to the node
    *done_ret = true;
done:
    attncl__free(params);
    return status;
}

attncl_status attncl__graph_rewrite(attncl_graph *g)
{
    for (int n = 0; n < g->n_nodes; ++n) {
        const struct op_class *cls = g->nodes[n].cls;
        bool done = !g->nodes[n].live || g->nodes[n].save_for_backward;
        for (int i = 0; !done && i < cls->n_rewrites; ++i)
            TRY(try_rule(g, n, cls->rewrites[i], &done));
    }
    return ATTNCL_OK;
}

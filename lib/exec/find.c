// SPDX-License-Identifier: MIT
//
// A graph's program, and its inputs and outputs by name.

#include "exec/exec.h"

attncl_status attncl__program_of(const attncl_graph *g, struct program **ret)
{
    REQUIRE(g, ATTNCL_ERR_ARGUMENT, "graph is NULL");
    *ret = attncl__graph_program(g);
    REQUIRE(*ret, ATTNCL_ERR_STATE, "the graph is not compiled");
    return ATTNCL_OK;
}

struct io_binding *attncl__program_input(const struct program *p, const char *name)
{
    const int i = attncl__name_find(p->input_names, name);
    return i < 0 ? NULL : &p->inputs[i];
}

struct io_binding *attncl__program_output(const struct program *p, const char *name)
{
    const int i = attncl__name_find(p->output_names, name);
    return i < 0 ? NULL : &p->outputs[i];
}

attncl_status attncl__program_ready(const attncl_graph *g, struct program **ret)
{
    TRY(attncl__program_of(g, ret));
    return attncl__context_usable((*ret)->ctx);
}

bool attncl__has_bound(const struct program *p)
{
    bool bound = false;

    for (int i = 0; i < p->n_inputs && !bound; ++i)
        bound = p->inputs[i].bound != NULL;
    for (int i = 0; i < p->n_outputs && !bound; ++i)
        bound = p->outputs[i].bound != NULL;
    return bound;
}

// SPDX-License-Identifier: MIT
//
// Operations on rows and elements.  All are cheap to define, so results are checked whole.

#include "graph/graph.h"
#include "harness/check.h"
#include "harness/trial.h"
#include "ref/ref.h"

static double by_n(const struct sizes *s)
{
    return (double)s->N;
}

static void build_softmax(struct trial *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = trial_input(t, "x", 4, DIMS(s->M, s->N));

    attncl_graph_output(t->graph, "y",
                        attncl__graph_add(t->graph, attncl__op_find("softmax_fwd"),
                                          &(struct softmax_fwd_params){0}, IN(x)));
}

static void check_softmax(const struct trial *t, struct check *c)
{
    struct host *want = host_like(trial_whole(t, "y"));

    ref_softmax_fwd(trial_whole(t, "x"), want);
    check_compare(c, trial_whole(t, "y"), want);
}

const struct family bench_softmax = {
    .name = "softmax", .build = build_softmax, .check = check_softmax, .sum_length = by_n};

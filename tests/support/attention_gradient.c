// SPDX-License-Identifier: MIT

#include "support/attention_gradient.h"

#include <math.h>

#include "attncl/kinds.h"
#include "support/compare.h"
#include "support/op_test.h"

static const double tiny = 1e-35; // size of what is below float's exponents

struct attention_problem attention_problem_random(struct attention_size n, struct ref_attention a,
                                                  bool time_first, bool weights)
{
    struct attention_problem p = {a, {0}, time_first};

    p.x.q = host_random(1, DIMS(n.batch, n.heads, n.queries, n.width));
    p.x.k = host_random(2, DIMS(n.batch, n.heads, n.keys, n.width));
    p.x.v = host_random(3, DIMS(n.batch, n.heads, n.keys, n.value_width));
    p.x.g = host_random(4, DIMS(time_first ? n.queries : n.batch, time_first ? n.batch : n.queries,
                                n.heads, n.value_width));
    if (weights)
        p.x.c = host_random(5, DIMS(n.batch, n.heads, n.queries, n.keys));
    if (a.scale == 0)
        p.a.scale = (float)(1 / sqrt((double)n.width));
    return p;
}

void attention_problem_forward(const struct attention_problem *p, struct host *y,
                               struct host *weights)
{
    struct host *dropped = host_like(weights);

    ref_attention_weights(&p->a, p->x.q, p->x.k, weights);
    host_set(dropped, weights->data);
    ref_attention_drop(&p->a, dropped);
    ref_attention_mix(dropped, p->x.v, p->time_first, y);
}

struct host *attention_problem_weights(const struct attention_problem *p)
{
    const struct host *q = p->x.q;
    return host_new(ATTNCL_F32, DIMS(q->dim[0], q->dim[1], q->dim[2], p->x.k->dim[2]));
}

struct host *attention_problem_rows(const struct host *q)
{
    return host_new(ATTNCL_F32, DIMS(q->dim[0], q->dim[1], q->dim[2], 2));
}

static struct attention_bwd_params params_of(const struct attention_problem *p)
{
    return (struct attention_bwd_params){
        {(float)p->a.scale,
         p->a.causal,
         p->a.window,
         p->time_first ? ATTNCL_LAYOUT_TIME_FIRST : ATTNCL_LAYOUT_BATCH_FIRST,
         false,
         {.p = p->a.dropout.p, .seed = p->a.dropout.seed, .site = p->a.dropout.site},
         (float)p->a.softcap,
         p->a.hard_lens}};
}

static struct host *step_of(const struct attention_problem *p)
{
    struct host *step = p->a.dropout.p > 0 ? host_new(ATTNCL_I32, 0, NULL) : NULL;
    if (step)
        step->data[0] = p->a.dropout.step;
    return step;
}

void attention_problem_run(const struct attention_problem *p, struct host *y, struct host *rows)
{
    const struct attention_bwd_params params = params_of(p);

    ck_ok(run_op_saving("attention_fwd", &params.attention,
                        HOSTS(p->x.q, p->x.k, p->x.v, (struct host *)p->a.mask,
                              (struct host *)p->a.valid_lens, (struct host *)p->a.bias,
                              (struct host *)p->a.slopes, NULL, step_of(p)),
                        HOSTS(y, NULL, rows)));
}

double attention_problem_check(const struct attention_problem *p, double tolerance)
{
    const struct ref_attention_data *x = &p->x;
    const struct attention_bwd_params params = params_of(p);
    struct host *mask = (struct host *)p->a.mask, *lens = (struct host *)p->a.valid_lens;
    struct host *bias = (struct host *)p->a.bias;
    struct host *y = host_like(x->g), *in[] = {x->q, x->k, x->v, bias};
    struct host *got[4] = {0}, *want[4] = {0}, *size[4] = {0};
    static const char *const names[] = {"dq", "dk", "dv", "dbias"};
    const int n = bias ? 4 : 3;
    struct worst worst = {0};

    for (int i = 0; i < n; ++i) {
        got[i] = host_like(in[i]);
        want[i] = host_like(in[i]);
        size[i] = host_like(in[i]);
    }
    struct host *weights = attention_problem_weights(p), *rows = attention_problem_rows(x->q);
    attention_problem_forward(p, y, weights);
    attention_problem_run(p, host_like(y), rows);
    ref_attention_bwd(&p->a, x, p->time_first, false, want[0], want[1], want[2], want[3]);
    ref_attention_bwd(&p->a, x, p->time_first, true, size[0], size[1], size[2], size[3]);
    struct host *const inputs[] = {x->q,
                                   x->k,
                                   x->v,
                                   mask,
                                   lens,
                                   bias,
                                   (struct host *)p->a.slopes,
                                   y,
                                   x->c ? weights : NULL,
                                   rows,
                                   x->g,
                                   x->c,
                                   step_of(p)};
    ck_ok(
        run_op("attention_bwd", &params, inputs, COUNT_OF(inputs), HOSTS(got[0], got[1], got[2])));
    if (bias)
        ck_ok(run_op("attention_bwd_bias", &params, inputs, COUNT_OF(inputs), HOSTS(got[3])));
    for (int i = 0; i < n; ++i) {
        ck_terms(got[i], want[i], size[i], tolerance, tiny, names[i]);
        for (int64_t j = 0; j < got[i]->count; ++j)
            worst_add(&worst, j, got[i]->data[j], want[i]->data[j], size[i]->data[j] + tiny);
    }
    return worst.ratio;
}

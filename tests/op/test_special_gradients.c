// SPDX-License-Identifier: MIT
// NaN and infinity in inputs and in the gradient of the result: where the reference of the gradients has a NaN, an
// infinity or a finite number, the device has the same.  include/attncl/gradient.h says so, and where NaN and infinity
// may stand for each other.

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/grad_test.h"
#include "support/special_inputs.h"

enum { MAX_IN = 6 };

enum {
    MEETS = 1, // infinities meet in sums: NaN and infinity stand for each other
    SPREADS =
        2, // NaN may reach gradients of keys and values whose weight is 0 too; if causal, of queries
    ROWS = 4, // and those of a row whose scores are all -inf
};

// dx[i]: the gradient of input i, NULL where it has none.
struct example {
    const char *op;
    int kind; // the activation, or causal
    unsigned flags;
    int (*inputs)(struct host **in, struct host **out);
    void (*gradient)(struct host *const *in, const struct host *dy, int kind,
                     struct host *const *dx);
    const void *params;
};

#define GRADIENT(name)                                                                             \
    static void name(struct host *const *in, const struct host *dy, int kind,                      \
                     struct host *const *dx)

GRADIENT(of_loss)
{
    ref_cross_entropy_bwd(in[0], in[1], dy, ATTNCL_REDUCE_NONE, kind, 0, dx[0]);
}

#define P(type, ...) (&(const struct type##_params){__VA_ARGS__})

static const struct example examples[] = {
    {"cross_entropy_fwd", -1, 0, inputs_scored, of_loss,
     P(cross_entropy_fwd, ATTNCL_REDUCE_NONE, -1, 0)},
    {"cross_entropy_fwd", 20, 0, inputs_scored, of_loss,
     P(cross_entropy_fwd, ATTNCL_REDUCE_NONE, 20, 0)},
};

static bool alike(const struct example *e, int input, double got, double want)
{
    if ((e->flags & MEETS) && !isfinite(want))
        return !isfinite(got);
    if ((e->flags & SPREADS) && (input > 0 || e->kind) && isnan(got))
        return true;
    if ((e->flags & ROWS) && want == 0 && isnan(got))
        return true;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return got == want;
    return fabs(got - want) <= 1e-4 * (1 + fabs(want));
}

struct problem {
    const struct example *e;
    struct host *in[MAX_IN], *dy, *want[MAX_IN], *got[MAX_IN];
    int n;
    struct op_graph *gradients;
};

static struct problem begin(const struct example *e)
{
    struct problem p = {.e = e};
    unsigned wanted = 0;

    p.n = e->inputs(p.in, &p.dy);
    p.dy = host_random(9, p.dy->rank, p.dy->dim);
    for (int i = 0; i < p.n; ++i) {
        const bool is_wanted = p.in[i] && p.in[i]->dtype == ATTNCL_F32;
        wanted |= (unsigned)is_wanted << i;
        p.want[i] = is_wanted ? host_like(p.in[i]) : NULL;
        p.got[i] = is_wanted ? host_like(p.in[i]) : NULL;
    }
    p.gradients = gradients_new(e->op, e->params, p.in, p.n, wanted);
    return p;
}

static int check(struct problem *p, const char *what)
{
    int n_wrong = 0;

    p->e->gradient(p->in, p->dy, p->e->kind, p->want);
    gradients_run(p->gradients, p->in, p->dy, p->got);
    for (int i = 0; i < p->n; ++i)
        for (int64_t j = 0; p->want[i] && j < p->want[i]->count; ++j) {
            if (alike(p->e, i, p->got[i]->data[j], p->want[i]->data[j]))
                continue;
            if (n_wrong++ == 0)
                fprintf(stderr, "%s %d: %s makes gradient %d [%lld] %g, expected %g\n", p->e->op,
                        p->e->kind, what, i, (long long)j, p->got[i]->data[j], p->want[i]->data[j]);
        }
    return n_wrong;
}

// Each special value in the first, a middle and the last element of each input, and of dy; on the simulator, which
// looks at accesses, one of them in each place.
TABLE_TEST(are_where_the_reference_has_them, examples)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    const int step = on_simulator() ? 4 : 1;
    struct problem p = begin(&examples[_i]);
    int n_wrong = check(&p, "nothing special");
    char what[64];

    for (int i = 0; i <= p.n; ++i) {
        struct host *x = i < p.n ? p.in[i] : p.dy;
        for (int s = 0; x && x->dtype == ATTNCL_F32 && s < 9; s += step) {
            double *at = &x->data[s / 3 * (x->count - 1) / 2];
            const double old = *at;
            *at = specials[s % 3];
            snprintf(what, sizeof what, "%g in %s %d, place %d", *at, i < p.n ? "input" : "dy",
                     i < p.n ? i : 0, s / 3);
            n_wrong += check(&p, what);
            *at = old;
        }
    }
    gradients_free(p.gradients);
    ck_assert_int_eq(n_wrong, 0);
}

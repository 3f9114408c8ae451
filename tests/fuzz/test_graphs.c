// SPDX-License-Identifier: MIT
// Random graphs against the definitions in double: results, and gradients by central differences.
// ATTNCL_FUZZ_SECONDS, ATTNCL_FUZZ_GRAPHS and ATTNCL_FUZZ_SEED say how many and from which on,
// ATTNCL_FUZZ_OP which op all begin with.

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "exec/exec.h"
#include "fuzz/graphs/plan.h"
#include "support/compare.h"
#include "support/op_test.h"

enum { N_GRAPHS = 1300, MAX_WANTED = MAX_VALUES, MAX_OPS = 64, UPDATES_PERCENT = 15 };
static const double largest_with_gradients = 1e4; // a rounding there moves a softmax
static const double too_large = 1e9;              // beyond it, float has lost what double still has

static struct counts {
    int64_t graphs, results, gradients, updates;
    int64_t steps[MAX_OPS]; // by ops
    struct measured measured;
} counts;

// True when it differs; what does is printed where the graph is said to.
static bool differs(attncl_graph *g, const struct wanted *w, uint64_t seed, bool says)
{
    struct host *got = host_like(w->h);
    float *bytes = host_pack(got);
    ck_ok(attncl_graph_read(g, w->name, bytes, host_bytes(got)));
    host_unpack(got, bytes);
    for (int64_t i = 0; i < got->count; ++i) {
        const double want = w->h->data[i]; // NaN: not measured
        if (isnan(want) ? isfinite(got->data[i])
                        : error_ratio(got->data[i], want, w->tolerance) <= 1)
            continue;
        if (says)
            fprintf(stderr, "graph %" PRIu64 ": %s[%" PRId64 "] is %.9g, expected %.9g +- %.2g\n",
                    seed, w->name, i, got->data[i], w->h->data[i], w->tolerance);
        return true;
    }
    return false;
}

static bool any_differs(attncl_graph *g, const struct wanted *w, int n, uint64_t seed, bool says)
{
    for (int i = 0; i < n; ++i)
        if (differs(g, &w[i], seed, says))
            return true;
    return false;
}

static attncl_status run(attncl_graph *g, const struct plan *p)
{
    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;
    options.n_queues = p->n_queues;
    attncl_status status = attncl_graph_compile(g, &options);
    if (status == ATTNCL_OK)
        ck_ok(program_write_inputs(p, g));
    for (int i = 0; i < p->n_runs && status == ATTNCL_OK; ++i)
        status = attncl_graph_run(g);
    return status != ATTNCL_OK ? status : attncl__graph_check_canaries(g);
}

static void count_steps(const struct plan *p)
{
    ck_assert_ptr_null(plan_op_at(MAX_OPS));
    for (int op = 0; plan_op_at(op); ++op)
        for (int i = 0; i < p->n_steps; ++i)
            counts.steps[op] += p->step[i].op == plan_op_at(op);
}

// A graph that begins with `op`, -1: with any.  False when it differs from its definition; then stderr has it.
static bool is_right(uint64_t seed, int op)
{
    static struct plan p;
    static struct question q;
    static struct wanted wanted[3 * MAX_WANTED];
    attncl_tensor *weights[MAX_VALUES] = {NULL};
    struct builder b = {.g = test_graph()};
    plan_draw(&p, seed, op, op < 0 ? op : op + 1);
    plan_ask(&p, &q);
    plan_evaluate(&p, ABSENT);
    struct host *copy[MAX_VALUES];
    for (int i = 0; i < p.n_values; ++i)
        copy[i] = host_copy(p.value[i].h);
    bool right = true;
    int n = 0;
    if (plan_largest(&p) > largest_with_gradients || plan_near_corners(&p))
        q.n_x = 0;
    updates_choose(&p, &q, UPDATES_PERCENT);
    if (q.n_y > 0 && !(plan_largest(&p) >= too_large)) { // NaN is no reason to skip
        n = want_results(&p, &q, copy, wanted);
        counts.results += n;
        const int n_gradients = want_gradients(&p, &q, copy, wanted + n, &counts.measured);
        const int n_updates = want_updates(&q, copy, wanted + n, wanted + n + n_gradients);
        counts.gradients += n_gradients;
        counts.updates += n_updates;
        n += n_gradients + n_updates;
        program_build(&b, test_context(), &p, &q, weights);
        const attncl_status status = run(b.g, &p);
        if (status != ATTNCL_OK)
            fprintf(stderr, "graph %" PRIu64 ": %s: %s\n", seed, attncl_status_name(status),
                    attncl_last_error());
        right = status == ATTNCL_OK && !any_differs(b.g, wanted, n, seed, false);
        if (!right && status == ATTNCL_OK) {
            widen_gradients(&p, &q, copy, wanted + q.n_y, n_gradients + n_updates);
            right = !any_differs(b.g, wanted, n, seed, true);
        }
        ++counts.graphs;
        count_steps(&p);
    }
    if (!right)
        plan_print(stderr, &p);
    attncl_graph_destroy(b.g);
    for (int i = 0; i < MAX_VALUES; ++i)
        attncl_tensor_destroy(weights[i]);
    host_reset();
    return right;
}

static int64_t asked(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

// The index of ATTNCL_FUZZ_OP, or -1.
static int asked_op(void)
{
    const char *name = getenv("ATTNCL_FUZZ_OP");
    for (int i = 0; name && *name; ++i) {
        ck_assert_msg(plan_op_at(i) != NULL, "ATTNCL_FUZZ_OP is %s, which graphs do not have",
                      name);
        if (strcmp(plan_op_at(i)->name, name) == 0)
            return i;
    }
    return -1;
}

TEST(random_graphs)
{
    const int op = asked_op();
    const int64_t seconds = asked("ATTNCL_FUZZ_SECONDS", 0), first = asked("ATTNCL_FUZZ_SEED", 1);
    const int64_t n = asked("ATTNCL_FUZZ_GRAPHS", seconds          ? INT32_MAX
                                                  : on_simulator() ? 30
                                                                   : N_GRAPHS);
    const time_t end = time(NULL) + (seconds ? (time_t)seconds : 1000000);
    int64_t wrong = 0;
    counts = (struct counts){0};
    for (int64_t i = 0; i < n && time(NULL) < end && wrong < 5; ++i)
        wrong += !is_right((uint64_t)(first + i), op);
    printf("%" PRId64 " graphs, %" PRId64 " results, %" PRId64 " gradients and %" PRId64
           " updates; %" PRId64 " of %" PRId64 " differences are at a corner\n",
           counts.graphs, counts.results, counts.gradients, counts.updates, counts.measured.skipped,
           counts.measured.elements);
    ck_assert_msg(wrong == 0, "%" PRId64 " graphs differ from their definitions", wrong);
    if (n >= N_GRAPHS && !seconds) { // else most would be left out unseen
        ck_assert_int_ge(counts.graphs, n * 9 / 10);
        ck_assert_int_ge(counts.updates, n / 20);
        ck_assert_int_le(counts.measured.skipped, counts.measured.elements / 10);
        for (int i = 0; plan_op_at(i) && op < 0; ++i)
            ck_assert_msg(counts.steps[i] >= 10, "%s is in %" PRId64 " graphs", plan_op_at(i)->name,
                          counts.steps[i]);
    }
}

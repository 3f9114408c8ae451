// SPDX-License-Identifier: MIT
// Random graphs against the definitions in double: results, and gradients by central differences.
// ATTNCL_FUZZ_SECONDS, ATTNCL_FUZZ_GRAPHS and ATTNCL_FUZZ_SEED say how many and from which on.

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "exec/exec.h"
#include "fuzz/graphs/plan.h"
#include "ref/ref.h"
#include "support/derivative.h"
#include "support/directory.h"
#include "support/op_test.h"

enum { N_GRAPHS = 1000, N_MOVED = 3, MAX_MEASURED = 8, MAX_WANTED = MAX_VALUES };
static const double rounding = 2.4e-7;            // some roundings to float
static const double largest_with_gradients = 1e4; // a rounding there moves a softmax
static const double too_large = 1e9;              // beyond it, float has lost what double still has

static struct counts {
    int64_t graphs, results, gradients, elements, skipped;
} counts;

static double random_sign(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / 4503599627370496.0 - 1;
}

static bool same_leaf(const struct plan_value *v)
{
    return v->source == RESULT || v->h->dtype != ATTNCL_F32;
}

// Moves a tensor's elements as rounding might.
static void move(struct host *h, uint64_t *state)
{
    const double all = host_largest(h) * rounding * 0.1;
    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] += random_sign(state) * (fabs(h->data[i]) * rounding + all) * (h->data[i] != 0);
}

static void evaluate_moved(const struct plan *p, uint64_t *state)
{
    for (int i = 0; i < p->n_steps; ++i) {
        p->step[i].op->evaluate(p, &p->step[i]);
        if (!p->value[p->step[i].out].is_view)
            move(p->value[p->step[i].out].h, state);
    }
}

static struct host **copies(const struct plan *p)
{
    static struct host *copy[MAX_VALUES];
    for (int i = 0; i < p->n_values; ++i)
        copy[i] = host_copy(p->value[i].h);
    return copy;
}

static void restore(const struct plan *p, struct host *const *copy)
{
    for (int i = 0; i < p->n_values; ++i)
        host_set(p->value[i].h, copy[i]->data);
}

static double distance(const struct host *a, const struct host *b)
{
    double largest = 0;
    for (int64_t i = 0; i < a->count; ++i)
        largest = fmax(largest, fabs(a->data[i] - b->data[i]));
    return largest;
}

static void move_leaves(const struct plan *p, uint64_t *state)
{
    for (int i = 0; i < p->n_values; ++i)
        if (!same_leaf(&p->value[i]))
            for (int64_t k = 0; k < p->value[i].h->count; ++k)
                p->value[i].h->data[k] *= 1 + random_sign(state) * rounding;
}

// -- what is asked

// Every result that no step takes, and a gradient for each of them; leaves and one result between.
static void ask(struct plan *p, struct question *q)
{
    const int n = p->n_values;
    *q = (struct question){.n_y = 0};
    for (int i = 0; i < n; ++i)
        if (p->value[i].source == RESULT && !p->value[i].is_used) {
            q->y[q->n_y] = i;
            q->dy[q->n_y++] = p->n_values;
            p->value[p->n_values] =
                (struct plan_value){.h = host_random((unsigned)plan_number(p, 0, 1 << 30),
                                                     p->value[i].h->rank, p->value[i].h->dim),
                                    .source = INPUT,
                                    .is_used = true};
            ++p->n_values;
        }
    for (int i = 0; i < n; ++i) {
        const struct plan_value *v = &p->value[i];
        if (v->h->dtype != ATTNCL_F32 || !v->is_used || v->is_view)
            continue;
        if (v->source != RESULT || plan_chance(p, 15))
            q->x[q->n_x++] = i;
    }
}

static double loss(const struct plan *p, const struct question *q, int kept)
{
    double sum = 0;
    plan_evaluate(p, kept);
    for (int i = 0; i < q->n_y; ++i)
        sum += host_dot(p->value[q->y[i]].h, p->value[q->dy[i]].h);
    return sum;
}

// Of the loss as a function of one element, from points at distance h on both sides.
struct slope {
    double middle;
    double bend; // the right one less the left one: it halves with h, except at a corner
};

static struct slope slope(const struct plan *p, const struct question *q, int x, int64_t i,
                          double h)
{
    double *at = &p->value[x].h->data[i];
    const double before = *at, here = loss(p, q, x);
    *at = before + h;
    const double high = loss(p, q, x);
    *at = before - h;
    const double low = loss(p, q, x);
    *at = before;
    return (struct slope){(high - low) / (2 * h), (high - 2 * here + low) / h};
}

// ReLU at 0: the definition has two slopes, the library one of them.
static bool at_corner(struct slope far, struct slope near)
{
    return fabs(far.bend) > 1e-4 * (1e-3 + fabs(far.middle)) &&
           fabs(near.bend) > 0.75 * fabs(far.bend);
}

// Some elements of the gradient at x; NaN: not measured, or there is a corner.  `worst` grows to the
// largest error that the differences may have.
static struct host *differences(const struct plan *p, const struct question *q, int x,
                                double *worst)
{
    struct host *d = host_like(p->value[x].h);
    const int64_t stride = 1 + d->count / MAX_MEASURED;
    for (int64_t i = 0; i < d->count; ++i) {
        d->data[i] = NAN;
        if (i % stride != 0)
            continue;
        const double h = 2e-5 * fmax(1e-1, fabs(p->value[x].h->data[i]));
        const struct slope far = slope(p, q, x, i, h), near = slope(p, q, x, i, h / 2);
        ++counts.elements;
        if (at_corner(far, near)) {
            ++counts.skipped;
            continue;
        }
        *worst = fmax(*worst, 2 * fabs(far.middle - near.middle));
        d->data[i] = near.middle;
    }
    return d;
}

static double largest_known(const struct host *h)
{
    double largest = 0;
    for (int64_t i = 0; i < h->count; ++i)
        if (!isnan(h->data[i]))
            largest = fmax(largest, fabs(h->data[i]));
    return largest;
}

// The largest movement of any measured element when values move.
static double known_distance(const struct host *a, const struct host *b)
{
    double largest = 0;
    for (int64_t i = 0; i < a->count; ++i)
        if (!isnan(a->data[i]) && !isnan(b->data[i]))
            largest = fmax(largest, fabs(a->data[i] - b->data[i]));
    return largest;
}

// -- what is wanted

// Large values saturate softmaxes and activations: what is left are differences of what was read, and
// no evaluation in double shows how few of their digits a float keeps.
static double largest_of_all(const struct plan *p)
{
    double largest = 0;
    for (int i = 0; i < p->n_values; ++i)
        largest = fmax(largest, host_largest(p->value[i].h));
    return largest;
}

static bool is_saturated(const struct plan *p)
{
    return largest_of_all(p) > 20;
}

static double largest_read(const struct plan *p, int value)
{
    double largest = 0;
    for (int i = 0; i < p->n_steps; ++i)
        for (int k = 0; k < MAX_OPERANDS && p->step[i].out == value; ++k)
            if (p->step[i].in[k] != ABSENT)
                largest = fmax(largest, host_largest(operand(p, &p->step[i], k)));
    return largest;
}

static double largest_asked(const struct plan *p, const struct question *q)
{
    double largest = 0;
    for (int i = 0; i < q->n_y; ++i)
        largest = fmax(largest, host_largest(p->value[q->dy[i]].h));
    return largest;
}

static int want_results(const struct plan *p, const struct question *q, struct host *const *copy,
                        struct wanted *w)
{
    uint64_t state = p->seed;
    for (int i = 0; i < q->n_y; ++i) {
        snprintf(w[i].name, sizeof w[i].name, "y%d", q->y[i]);
        for (int64_t k = 0; k < copy[q->y[i]]->count; ++k) // NaN would pass unseen
            ck_assert(isfinite(copy[q->y[i]]->data[k]));
        w[i].h = copy[q->y[i]];
        w[i].tolerance = 2e-6 * host_largest(w[i].h) + 1e-30;
        w[i].tolerance += 3e-7 * largest_read(p, q->y[i]);
        if (!is_saturated(p))
            w[i].tolerance += 3e-8 * largest_of_all(p);
    }
    for (int k = 0; k < N_MOVED; ++k) {
        move_leaves(p, &state);
        evaluate_moved(p, &state);
        for (int i = 0; i < q->n_y; ++i)
            w[i].tolerance =
                fmax(w[i].tolerance, 12 * distance(p->value[q->y[i]].h, copy[q->y[i]]));
        restore(p, copy);
    }
    return q->n_y;
}

static int want_gradients(const struct plan *p, const struct question *q, struct host *const *copy,
                          struct wanted *w)
{
    struct host *base[MAX_VALUES];
    double all = 0, errors[MAX_VALUES] = {0};
    uint64_t state = p->seed + 1;
    for (int i = 0; i < q->n_x; ++i) {
        snprintf(w[i].name, sizeof w[i].name, "d%d", q->x[i]);
        w[i].h = base[i] = differences(p, q, q->x[i], &errors[i]);
        restore(p, copy);
        all = fmax(all, largest_known(w[i].h));
    }
    for (int i = 0; i < q->n_x; ++i)
        w[i].tolerance = errors[i] + (is_saturated(p) ? 2e-3 * all + 1e-5 * largest_asked(p, q)
                                                      : 3e-5 * all + 1e-6 * largest_asked(p, q));
    move_leaves(p, &state);
    struct counts kept = counts;
    for (int i = 0; i < q->n_x; ++i) {
        double unused = 0;
        plan_evaluate(p, ABSENT);
        const struct host *moved = differences(p, q, q->x[i], &unused);
        w[i].tolerance = fmax(w[i].tolerance, 20 * known_distance(moved, base[i]));
    }
    counts = kept;
    restore(p, copy);
    return q->n_x;
}

// -- one graph

// True when it differs; what does is printed.
static bool differs(attncl_graph *g, const struct wanted *w, uint64_t seed)
{
    struct host *got = host_like(w->h);
    float *bytes = host_pack(got);
    ck_ok(attncl_graph_read(g, w->name, bytes, host_bytes(got)));
    host_unpack(got, bytes);
    for (int64_t i = 0; i < got->count; ++i) {
        if (isnan(w->h->data[i]))
            continue;
        if (fabs(got->data[i] - w->h->data[i]) <= w->tolerance)
            continue;
        fprintf(stderr, "graph %" PRIu64 ": %s[%" PRId64 "] is %.9g, expected %.9g +- %.2g\n", seed,
                w->name, i, got->data[i], w->h->data[i], w->tolerance);
        return true;
    }
    return false;
}

static attncl_status run(attncl_graph *g, const struct plan *p)
{
    const attncl_status status = attncl_graph_compile(g, NULL);
    if (status != ATTNCL_OK)
        return status;
    ck_ok(program_write_inputs(p, g));
    const attncl_status ran = attncl_graph_run(g);
    return ran != ATTNCL_OK ? ran : attncl__graph_check_canaries(g);
}

// False when the graph differs from its definition; then `text`, or where it is NULL stderr, has it
// as a program.
static bool is_right(uint64_t seed, FILE *text)
{
    static struct plan p;
    static struct question q;
    static struct wanted wanted[2 * MAX_WANTED];
    attncl_tensor *weights[MAX_VALUES] = {NULL};
    struct builder b = {.g = test_graph()};
    plan_draw(&p, seed);
    ask(&p, &q);
    plan_evaluate(&p, ABSENT);
    struct host **copy = copies(&p);
    bool right = true;
    int n = 0;
    if (largest_of_all(&p) > largest_with_gradients)
        q.n_x = 0;
    if (q.n_y > 0 && largest_of_all(&p) < too_large) {
        n = want_results(&p, &q, copy, wanted);
        counts.results += n;
        const int n_gradients = want_gradients(&p, &q, copy, wanted + n);
        counts.gradients += n_gradients;
        n += n_gradients;
        program_build(&b, test_context(), &p, &q, weights);
        const attncl_status status = run(b.g, &p);
        if (status != ATTNCL_OK)
            fprintf(stderr, "graph %" PRIu64 ": %s: %s\n", seed, attncl_status_name(status),
                    attncl_last_error());
        right = status == ATTNCL_OK;
        for (int i = 0; i < n && right; ++i)
            right = !differs(b.g, &wanted[i], seed);
        ++counts.graphs;
    }
    if (text || !right)
        program_print(text ? text : stderr, &p, &q, wanted, n);
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

TEST(random_graphs)
{
    const int64_t seconds = asked("ATTNCL_FUZZ_SECONDS", 0), first = asked("ATTNCL_FUZZ_SEED", 1);
    const int64_t n = asked("ATTNCL_FUZZ_GRAPHS", seconds          ? INT32_MAX
                                                  : on_simulator() ? 30
                                                                   : N_GRAPHS);
    const time_t end = time(NULL) + (seconds ? (time_t)seconds : 1000000);
    int64_t wrong = 0;
    counts = (struct counts){0};
    for (int64_t i = 0; i < n && time(NULL) < end && wrong < 5; ++i)
        wrong += !is_right((uint64_t)(first + i), NULL);
    printf("%" PRId64 " graphs, %" PRId64 " results and %" PRId64 " gradients; %" PRId64
           " of %" PRId64 " differences are at a corner\n",
           counts.graphs, counts.results, counts.gradients, counts.skipped, counts.elements);
    ck_assert_msg(wrong == 0, "%" PRId64 " graphs differ from their definitions", wrong);
    if (n >= N_GRAPHS && !seconds) { // else most would be left out unseen
        ck_assert_int_ge(counts.graphs, n * 9 / 10);
        ck_assert_int_le(counts.skipped, counts.elements / 10);
    }
}

#ifdef FUZZ_CC
// What a graph that differs is printed as: it compiles, passes where the graph does, and says so where
// it does not.
static int run_program(const char *path)
{
    char command[2048];
    const char *program = IN_DIRECTORY("graph");
    snprintf(command, sizeof command,
             FUZZ_CC " -std=c11 -Wall -Werror -Wno-missing-braces -I" FUZZ_INCLUDE
                     " %s -o %s -L" FUZZ_LIBRARY " -Wl,-rpath," FUZZ_LIBRARY " -lattncl -lm",
             path, program);
    ck_assert_msg(system(command) == 0, "%s", command);
    snprintf(command, sizeof command, "%s >%s.out 2>&1", program, program);
    return WEXITSTATUS(system(command));
}

FIXTURE_ONCE(device_up, device_down);
FIXTURE(directory_begin, directory_down);

LOOP_TEST(a_program_repeats_a_graph, 2, 6)
{
    char path[FILE_BYTES];
    directory_path("graph.c", path);
    FILE *text = fopen(path, "w+");
    ck_assert_ptr_nonnull(text);
    ck_assert(is_right((uint64_t)_i, text));
    fclose(text);
    ck_assert_int_eq(run_program(path), 0);

    text = fopen(path, "r+"); // one result is wanted to be something else
    char line[4096];
    long at = 0;
    while (fgets(line, sizeof line, text) && !strstr(line, "want0[] = {"))
        at = ftell(text);
    fseek(text, at + (long)(strstr(line, "{") - line) + 1, SEEK_SET);
    fputc('9', text);
    fclose(text);
    ck_assert_int_eq(run_program(path), 1);
}
#endif

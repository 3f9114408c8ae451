// SPDX-License-Identifier: MIT
// Random graphs against the definitions in double: results, and gradients by central differences.
// ATTNCL_FUZZ_SECONDS, ATTNCL_FUZZ_GRAPHS and ATTNCL_FUZZ_SEED say how many and from which on,
// ATTNCL_FUZZ_OP which op all begin with.

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "exec/exec.h"
#include "fuzz/graphs/plan.h"
#include "support/compare.h"
#include "support/directory.h"
#include "support/op_test.h"

enum { N_GRAPHS = 1000, MAX_WANTED = MAX_VALUES, MAX_OPS = 64 };
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

// Of random graphs: they begin with ops first_op to end_op - 1.
struct draw {
    int first_op, end_op;
    bool without_gradients;
    int updates_percent;
};

// False when the graph differs from its definition; then `text`, or where it is NULL stderr, has it
// as a program.
static bool is_right(uint64_t seed, struct draw draw, FILE *text)
{
    static struct plan p;
    static struct question q;
    static struct wanted wanted[3 * MAX_WANTED];
    attncl_tensor *weights[MAX_VALUES] = {NULL};
    struct builder b = {.g = test_graph()};
    plan_draw(&p, seed, draw.first_op, draw.end_op);
    plan_ask(&p, &q);
    plan_evaluate(&p, ABSENT);
    struct host *copy[MAX_VALUES];
    for (int i = 0; i < p.n_values; ++i)
        copy[i] = host_copy(p.value[i].h);
    bool right = true;
    int n = 0;
    if (draw.without_gradients || plan_largest(&p) > largest_with_gradients ||
        plan_near_corners(&p))
        q.n_x = 0;
    updates_choose(&p, &q, draw.updates_percent);
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

// One context for both tests: it has the kernels of the programs' graphs.
FIXTURE(directory_begin, directory_down);

TEST(random_graphs)
{
    const int op = asked_op();
    const struct draw draw = {op, op < 0 ? op : op + 1, false, 15};
    const int64_t seconds = asked("ATTNCL_FUZZ_SECONDS", 0), first = asked("ATTNCL_FUZZ_SEED", 1);
    const int64_t n = asked("ATTNCL_FUZZ_GRAPHS", seconds          ? INT32_MAX
                                                  : on_simulator() ? 30
                                                                   : N_GRAPHS);
    const time_t end = time(NULL) + (seconds ? (time_t)seconds : 1000000);
    int64_t wrong = 0;
    counts = (struct counts){0};
    for (int64_t i = 0; i < n && time(NULL) < end && wrong < 5; ++i)
        wrong += !is_right((uint64_t)(first + i), draw, NULL);
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

#ifdef FUZZ_CC
// What a graph that differs is printed as: programs that have every op.  Each compiles alone; all are
// linked to one, a bit of whose exit status says whether each differs.
enum { OPS_OF_PROGRAM = 16 };

static const char compile_one[] =
    FUZZ_CC " -std=c11 -Wall -Werror -Wno-missing-braces -I" FUZZ_INCLUDE;
static const char link_all[] =
    FUZZ_CC " *.o -o all -L" FUZZ_LIBRARY " -Wl,-rpath," FUZZ_LIBRARY " -lattncl -lm";

static int shell(const char *format, ...)
{
    char command[2048] = "cd ";
    va_list arguments;
    va_start(arguments, format);
    directory_path("", command + 3);
    strcat(command, " && ");
    vsnprintf(command + strlen(command), sizeof command - FILE_BYTES, format, arguments);
    va_end(arguments);
    return WEXITSTATUS(system(command));
}

static FILE *open_file(const char *name, const char *mode)
{
    FILE *file = fopen(IN_DIRECTORY(name), mode);
    ck_assert_ptr_nonnull(file);
    return file;
}

static void compile(int program)
{
    ck_assert_int_eq(shell("%s -Dmain=graph%d -c graph%d.c", compile_one, program, program), 0);
}

// A seed whose graph has just these ops, and gradients to measure.
static uint64_t seed_of_ops(int first_op, int end_op)
{
    static struct plan p;
    for (uint64_t seed = 1;; ++seed) {
        ck_assert_msg(seed < 1000, "no graph has ops %d to %d", first_op, end_op - 1);
        plan_draw(&p, seed, first_op, end_op);
        plan_evaluate(&p, ABSENT);
        const bool fits = p.n_steps == end_op - first_op && !p.mood && !plan_near_corners(&p) &&
                          plan_largest(&p) <= largest_with_gradients;
        host_reset();
        if (fits)
            return seed;
    }
}

static void write_program(int program, struct draw draw)
{
    char name[40];
    snprintf(name, sizeof name, "graph%d.c", program);
    FILE *text = open_file(name, "w");
    ck_assert(is_right(seed_of_ops(draw.first_op, draw.end_op), draw, text));
    fclose(text);
}

// One result of the program is wanted to be something else.
static void spoil(int program)
{
    char name[40], line[1 << 14];
    snprintf(name, sizeof name, "graph%d.c", program);
    FILE *text = open_file(name, "r+");
    long at = 0;
    while (fgets(line, sizeof line, text) && !strstr(line, "want0[] = {"))
        at = ftell(text);
    fseek(text, at + (long)(strstr(line, "{") - line) + 1, SEEK_SET);
    fputc('9', text);
    fclose(text);
}

static int run_programs(int n_programs)
{
    FILE *all = open_file("all.c", "w");
    fprintf(all, "int main(void)\n{\n    int n = 0;\n");
    for (int i = 0; i < n_programs; ++i)
        fprintf(all, "    int graph%d(void);\n    n |= graph%d() << %d;\n", i, i, i);
    fprintf(all, "    return n;\n}\n");
    fclose(all);
    ck_assert_int_eq(shell("%s -c all.c && %s", compile_one, link_all), 0);
    return shell("./all >out 2>&1");
}

TEST(programs_repeat_graphs)
{
    const int64_t updates = counts.updates;
    int n = 0, n_ops = 0;
    while (plan_op_at(n_ops))
        ++n_ops;
    for (int op = 0; op < n_ops; op += OPS_OF_PROGRAM)
        write_program(n++,
                      (struct draw){op, op + OPS_OF_PROGRAM < n_ops ? op + OPS_OF_PROGRAM : n_ops,
                                    .without_gradients = true});
    write_program(n++, (struct draw){0, 2, false, 100});
    write_program(n, (struct draw){0, 1, false, 0});
    ck_assert_int_gt(counts.updates, updates); // a program has some
    spoil(n);
    for (int i = 0; i <= n; ++i)
        compile(i);
    ck_assert_int_eq(run_programs(n + 1), 1 << n);
}
#endif

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
#include "support/directory.h"
#include "support/op_test.h"

enum { N_GRAPHS = 1000, MAX_WANTED = MAX_VALUES };
static const double largest_with_gradients = 1e4; // a rounding there moves a softmax
static const double too_large = 1e9;              // beyond it, float has lost what double still has

static struct counts {
    int64_t graphs, results, gradients;
    struct measured measured;
} counts;

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
    plan_ask(&p, &q);
    plan_evaluate(&p, ABSENT);
    struct host *copy[MAX_VALUES];
    for (int i = 0; i < p.n_values; ++i)
        copy[i] = host_copy(p.value[i].h);
    bool right = true;
    int n = 0;
    if (plan_largest(&p) > largest_with_gradients)
        q.n_x = 0;
    if (q.n_y > 0 && plan_largest(&p) < too_large) {
        n = want_results(&p, &q, copy, wanted);
        counts.results += n;
        const int n_gradients = want_gradients(&p, &q, copy, wanted + n, &counts.measured);
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
           counts.graphs, counts.results, counts.gradients, counts.measured.skipped,
           counts.measured.elements);
    ck_assert_msg(wrong == 0, "%" PRId64 " graphs differ from their definitions", wrong);
    if (n >= N_GRAPHS && !seconds) { // else most would be left out unseen
        ck_assert_int_ge(counts.graphs, n * 9 / 10);
        ck_assert_int_le(counts.measured.skipped, counts.measured.elements / 10);
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

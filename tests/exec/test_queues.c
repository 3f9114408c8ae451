// SPDX-License-Identifier: MIT
// Several queues: branches go to different ones, results are those of one queue bit for bit, memory is
// not reused while another queue may use it, and a run keeps no event.

#include <stdlib.h>
#include <string.h>

#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "attncl/profile.h"
#include "base/alloc.h"
#include "compile/lowered.h"
#include "compile/program.h"
#include "support/directory.h"
#include "support/test.h"

enum { ROWS = 96, N = ROWS * ROWS, N_BRANCHES = 3, DEPTH = 4 };

static attncl_value add(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(a, b));
}

// Branches of products and sums that one sum joins, after a first and before a last node; in the second
// half of them a loop.
static attncl_graph *branches(void)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS});
    const attncl_value first = attncl_softmax(g, x, -1);
    attncl_value sum = first;

    for (int b = 0; b < N_BRANCHES; ++b) {
        attncl_value y = first;
        if (b == 1)
            attncl__graph_loop_begin(g, 3, false);
        for (int i = 0; i < DEPTH; ++i)
            y = i % 2 ? add(g, y, x)
                      : attncl_softmax(g, attncl_linear(g, y, first, ATTNCL_NONE_VALUE), -1);
        if (b == 1)
            attncl__graph_loop_end(g);
        sum = add(g, sum, y);
    }
    attncl_graph_output(g, "y", attncl_softmax(g, sum, -1));
    attncl_graph_output(g, "sum", sum);
    return g;
}

static void fill(float *x, int run)
{
    for (int i = 0; i < N; ++i)
        x[i] = (float)((i * 37 + run * 11) % 101) / 50 - 1;
}

static attncl_graph *compiled(int n_queues)
{
    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_graph *g = branches();

    options.n_queues = n_queues;
    ck_ok(attncl_graph_compile(g, &options));
    return g;
}

static void run(attncl_graph *g, int i, float *y)
{
    static float x[N];

    fill(x, i);
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, sizeof x));
}

static int n_queues_used(const attncl_graph *g)
{
    const struct command_list *list = &attncl__graph_program(g)->command_list;
    bool used[MAX_QUEUES] = {false};
    int n = 0;

    for (size_t i = 0; i < list->n_commands; ++i)
        if (!attncl__command_is_sync(&list->commands[i]))
            used[list->commands[i].queue] = true;
    for (int q = 0; q < MAX_QUEUES; ++q)
        n += used[q];
    return n;
}

LOOP_TEST(results_are_those_of_one_queue, 2, MAX_QUEUES + 1)
{
    static float want[N], got[N];
    const int n_runs = test_has_full_sizes() ? 20 : 8;
    attncl_graph *one = compiled(1), *several = compiled(_i);

    ck_assert_int_eq(n_queues_used(one), 1);
    ck_assert_int_eq(n_queues_used(several), _i < N_BRANCHES ? _i : N_BRANCHES);
    for (int i = 0; i < n_runs; ++i) {
        run(one, i, want);
        run(several, i, got);
        ck_assert_mem_eq(got, want, sizeof want);
    }
    attncl_graph_destroy(several);
    attncl_graph_destroy(one);
}

// One queue by default; ATTNCL_QUEUES where the options name none.
TEST(the_environment_names_a_number)
{
    attncl_graph *plain = compiled(0);
    setenv("ATTNCL_QUEUES", "3", 1);
    attncl_graph *several = compiled(0), *one = compiled(1);
    unsetenv("ATTNCL_QUEUES");

    ck_assert_int_eq(n_queues_used(plain), 1);
    ck_assert_int_eq(n_queues_used(several), 3);
    ck_assert_int_eq(n_queues_used(one), 1);
    attncl_graph_destroy(one);
    attncl_graph_destroy(several);
    attncl_graph_destroy(plain);
}

TEST(a_run_keeps_no_event_and_creates_nothing_else)
{
    static float y[N];
    struct object_counts before, after;
    attncl_graph *g = compiled(3);

    run(g, 0, y);
    attncl__objects_count(&before);
    run(g, 1, y);
    attncl__objects_count(&after);
    ck_assert_mem_eq(after.live, before.live, sizeof after.live);
    // Whatever is signalled is waited for.
    const struct command_list *list = &attncl__graph_program(g)->command_list;
    for (size_t i = 0; i < list->n_commands; ++i) {
        const struct command *c = &list->commands[i], *end = list->commands + list->n_commands;
        if (c->kind == COMMAND_SIGNAL) {
            const struct command *later = c + 1;
            while (later < end && (later->kind != COMMAND_WAIT || later->slot != c->slot))
                ++later;
            ck_assert_msg(later < end, "slot %d", c->slot);
        }
    }
    for (int i = 0; i < N_OBJECT_KINDS; ++i)
        ck_assert_int_eq(after.created[i] - before.created[i] > 0, i == OBJECT_EVENT);
    attncl_graph_destroy(g);
}

TEST(too_many_queues_are_refused)
{
    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_graph *g = branches();

    options.n_queues = MAX_QUEUES + 1;
    ck_fails(attncl_graph_compile(g, &options), ATTNCL_ERR_ARGUMENT, "n_queues is 5");
    options.n_queues = -1;
    ck_fails(attncl_graph_compile(g, &options), ATTNCL_ERR_ARGUMENT, "n_queues is -1");
    attncl_graph_destroy(g);
}

// Whether everything that uses item a is complete when item b is first written, by the order on a queue and the events.
static bool ends_before(const struct lowered *p, size_t a, size_t b)
{
    const struct plan_item *old = &p->items[a];
    const int next = p->items[b].node;
    const struct use *use = old->value ? p->values[old->value].first_use : NULL;
    int node = old->node;

    for (;;) {
        const int last = attncl__find_unit_end(p, node), queue = p->nodes[node].queue;
        const bool same_loop =
            p->nodes[node].loop >= 0 && p->nodes[node].loop == p->nodes[next].loop;
        const bool repeats =
            p->nodes[node].loop >= 0 && p->nodes[node].loop != p->nodes[old->node].loop;
        const int end =
            repeats ? last : node; // a loop reads what comes from outside in each iteration
        if (queue == p->nodes[next].queue || same_loop ? end >= next
                                                       : last > p->complete[next].node[queue])
            return false;
        if (!use)
            return true;
        node = use->node;
        use = use->next;
    }
}

LOOP_TEST(memory_is_not_shared_by_what_may_overlap, 1, MAX_QUEUES + 1)
{
    struct fit fit = {.n_queues = _i};
    attncl_graph *g = branches();
    struct lowered p;
    size_t n_shared = 0;

    g->canaries = false;
    ck_ok(attncl__plan(g, &fit, &p));
    for (size_t a = 0; a < p.n_items; ++a)
        for (size_t b = 0; b < p.n_items; ++b) {
            const struct plan_item *x = &p.items[a], *y = &p.items[b];
            const bool share =
                a != b && x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
            ck_assert(!share || ends_before(&p, a, b) || ends_before(&p, b, a));
            n_shared += share;
        }
    ck_assert(n_shared > 0);
    ck_assert((p.complete == NULL) == (_i == 1));
    attncl__lowered_free(&p);
    attncl_graph_destroy(g);
}

// Whether a node begins after another has ended.
static bool follows(const struct lowered *p, int node, int earlier)
{
    const int queue = p->nodes[earlier].queue;
    return queue == p->nodes[node].queue || p->complete[node].node[queue] >= earlier;
}

TEST(writers_of_weights_wait_for_readers_and_readers_for_writers)
{
    enum { READ, OTHER, WRITE, READ_AGAIN, N_NODES };
    struct fit fit = {.n_queues = 2};
    static const int64_t shape[] = {ROWS, ROWS};
    attncl_tensor *weight = NULL;
    struct lowered p;
    attncl_graph *g = test_graph();

    ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 2, shape, ATTNCL_F32, NULL, &weight));
    const attncl_value w = attncl_graph_tensor(g, weight);
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape);
    const attncl_value read = attncl_linear(g, x, w, ATTNCL_NONE_VALUE);
    const attncl_value other = attncl_softmax(g, x, -1); // goes to the other queue
    attncl_accumulate(g, w, other);
    attncl_graph_output(g, "read", read);
    attncl_graph_output(g, "again", add(g, read, w));
    ck_ok(attncl__plan(g, &fit, &p));
    ck_assert_int_eq(p.n_nodes, N_NODES);
    ck_assert_int_ne(p.nodes[READ].queue, p.nodes[OTHER].queue);
    ck_assert(follows(&p, WRITE, READ));
    ck_assert(follows(&p, WRITE, OTHER));
    ck_assert(follows(&p, READ_AGAIN, WRITE));
    attncl__lowered_free(&p);
    attncl_graph_destroy(g);
    attncl_tensor_destroy(weight);
}

static int events_of_a_run(attncl_graph *g)
{
    struct object_counts before, after;

    attncl__objects_count(&before);
    ck_ok(attncl_graph_run(g));
    attncl__objects_count(&after);
    return after.created[OBJECT_EVENT] - before.created[OBJECT_EVENT];
}

// Bound buffers may overlap, and calls know queue 0 alone: only one queue makes that harmless.
TEST(callers_buffers_make_it_one_queue)
{
    static float x[N], want[N], got[N];
    cl_int code;
    attncl_graph *g = compiled(3);
    struct command_list *list = &attncl__graph_program(g)->command_list;

    run(g, 1, want);
    ck_assert_int_gt(events_of_a_run(g), 0);
    list->has_calls = true;
    ck_assert_int_eq(events_of_a_run(g), 0);
    list->has_calls = false;
    fill(x, 1);
    cl_mem mem = clCreateBuffer(test_context()->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                sizeof x, x, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_ok(attncl_graph_bind(g, "x", mem, 0));
    ck_assert(list->has_callers_buffers);
    ck_assert_int_eq(events_of_a_run(g), 0);
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_mem_eq(got, want, sizeof want);
    ck_ok(attncl_graph_bind(g, "x", NULL, 0));
    ck_assert(!list->has_callers_buffers);
    clReleaseMemObject(mem);
    attncl_graph_destroy(g);
}

// Events of a run with several queues: the wait list before it, the event after it.
TEST(a_run_waits_and_gives_an_event)
{
    static float want[N], got[N];
    cl_event first = NULL, second = NULL;
    attncl_graph *g = compiled(2);

    run(g, 0, want);
    ck_ok(attncl_graph_enqueue(g, 0, NULL, &first));
    ck_ok(attncl_graph_enqueue(g, 1, &first, &second));
    ck_assert_int_eq(clWaitForEvents(1, &second), CL_SUCCESS);
    clReleaseEvent(first);
    clReleaseEvent(second);
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_mem_eq(got, want, sizeof want);
    attncl_graph_destroy(g);
}

TEST(a_trace_has_a_row_for_each_queue)
{
    attncl_context_options how = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    attncl_graph *g = NULL;
    char path[300], text[1 << 16];

    how.profile = 1;
    options.n_queues = 2;
    ck_ok(attncl_context_create(&how, &ctx));
    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS});
    attncl_graph_output(g, "y", attncl_softmax(g, x, -1));
    attncl_graph_output(g, "z", attncl_linear(g, x, x, ATTNCL_NONE_VALUE));
    ck_ok(attncl_graph_compile(g, &options));
    ck_ok(attncl_graph_run_profiled(g));
    snprintf(path, sizeof path, "%s/trace.json", directory_up());
    ck_ok(attncl_graph_write_trace(g, path));
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    directory_down();
    ck_assert_ptr_nonnull(strstr(text, "\"tid\":1,"));
    ck_assert_ptr_nonnull(strstr(text, "\"tid\":2,"));
    ck_assert_ptr_null(strstr(text, "\"tid\":3,"));
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

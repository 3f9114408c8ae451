// SPDX-License-Identifier: MIT
// Small ops of one kind, eight at a time in one launch: what an iteration of a loop reads and leaves, updates.  None that
// reads another's result; the same numbers.

#include <math.h>
#include <string.h>

#include "attncl/ops.h"
#include "attncl/optim.h"
#include "compile/program.h"
#include "device/context.h"
#include "exec/exec.h"
#include "graph/nodes.h"
#include "support/test.h"

enum { ROUNDS = 4, C = 5, MAX_COPIES = 20 };

// launches: of rows, stacks and sums.
static const struct form {
    const char *name;
    int n_rows, n_stacks, n_sums;
    bool other_length; // the second half of the rows have one more
    bool of_rows; // stacks and sums are of rows, at once, in place of what is computed from them
    bool other_first; // the second half of the sums start in another iteration
    int launches;
} forms[] = {
    {"one of each", 1, 1, 0, .launches = 2},
    {"a stack and a sum", 1, 1, 1, .launches = 2},
    {"as many as there can be", 8, 8, 0, .launches = 2},
    {"one more", 9, 9, 0, .launches = 4},
    {"full launches and a rest", 18, 10, 9, .launches = 6},
    {"rows of two lengths", 6, 1, 0, .other_length = true, .launches = 2},
    {"sums that start apart", 1, 0, 6, .other_first = true, .launches = 2},
    {"results of rows", 3, 1, 2, .of_rows = true, .launches = 2},
};
struct built {
    attncl_graph *g;
    attncl_value stack[MAX_COPIES], sum[MAX_COPIES];
};

static float element(int which, int row, int c)
{
    return (float)((which * 7 + row * 3 + c) % 11) - 4.0f;
}

static attncl_value rows_of(attncl_graph *g, int which, int n)
{
    float data[(ROUNDS + 1) * C];
    for (int i = 0; i < n * C; ++i)
        data[i] = element(which, i / C, i % C);
    return attncl_graph_constant(g, ATTNCL_F32, 2, (int64_t[]){n, C}, data);
}

static const char *name_of(const char *kind, int i)
{
    static char name[24];
    snprintf(name, sizeof name, "%s%d", kind, i);
    return name;
}

static void build(const struct form *f, struct built *b)
{
    const struct loop_stack_fwd_params stacks = {ROUNDS};
    attncl_value x[MAX_COPIES], row[MAX_COPIES], twice[MAX_COPIES];

    ck_ok(attncl_graph_create(test_context(), &b->g));
    attncl_graph *g = b->g;
    for (int i = 0; i < f->n_rows; ++i)
        x[i] = rows_of(g, i, ROUNDS + (f->other_length && i >= f->n_rows / 2));
    const attncl_value at = attncl__graph_loop_begin(g, ROUNDS, false);
    for (int i = 0; i < f->n_rows; ++i)
        row[i] = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x[i], at));
    for (int i = 0; i < f->n_rows && !f->of_rows; ++i)
        twice[i] = attncl_add(g, row[i], row[i]);
    const attncl_value *const from = f->of_rows ? row : twice;
    for (int i = 0; i < f->n_stacks; ++i)
        b->stack[i] =
            attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stacks, IN(from[i % f->n_rows], at));
    for (int i = 0; i < f->n_sums; ++i) {
        const struct loop_sum_fwd_params sums = {f->other_first && i >= f->n_sums / 2};
        b->sum[i] =
            attncl__graph_add(g, &attncl__op_loop_sum_fwd, &sums, IN(from[i % f->n_rows], at));
    }
    attncl__graph_loop_end(g);
    for (int i = 0; i < f->n_stacks; ++i)
        attncl_graph_output(g, name_of("stack", i), b->stack[i]);
    for (int i = 0; i < f->n_sums; ++i)
        attncl_graph_output(g, name_of("sum", i), b->sum[i]);
    for (int i = 0; i < f->n_rows; ++i) // all rows are wanted
        attncl_graph_output(g, name_of("last", i), from[i]);
}

static void check_results(const struct form *f, attncl_graph *g)
{
    for (int i = 0; i < f->n_stacks; ++i) {
        const char *name = name_of("stack", i);
        float got[ROUNDS * C];
        ck_ok(attncl_graph_read(g, name, got, sizeof got));
        for (int j = 0; j < ROUNDS * C; ++j)
            ck_assert_msg(got[j] == (f->of_rows ? 1 : 2) * element(i % f->n_rows, j / C, j % C),
                          "%s, %s[%d] is %g", f->name, name, j, (double)got[j]);
    }
    for (int i = 0; i < f->n_sums; ++i) {
        const int first = f->other_first && i >= f->n_sums / 2;
        const char *name = name_of("sum", i);
        float got[C];
        ck_ok(attncl_graph_read(g, name, got, sizeof got));
        for (int c = 0; c < C; ++c) {
            float want = 0;
            for (int t = first; t < ROUNDS; ++t)
                want += (f->of_rows ? 1 : 2) * element(i % f->n_rows, t, c);
            ck_assert_msg(got[c] == want, "%s, %s[%d] is %g, want %g", f->name, name, c,
                          (double)got[c], (double)want);
        }
    }
}

static int count_launches(const attncl_graph *g, const char *kernel)
{
    const struct command_list *list = &attncl__graph_program(g)->command_list;
    int n = 0;
    for (size_t i = 0; i < list->n_commands; ++i)
        n += strcmp(list->commands[i].name, kernel) == 0;
    return n;
}

TABLE_TEST(eight_copies_at_a_time, forms)
{
    const struct form *f = &forms[_i];
    struct built b;

    build(f, &b);
    ck_ok(attncl_graph_compile(b.g, NULL));
    const int launches = count_launches(b.g, "loop_copies_fwd");
    ck_assert_msg(launches == f->launches, "%s: %d launches, want %d", f->name, launches,
                  f->launches);
    for (int run = 0; run < 2; ++run) {
        ck_ok(attncl_graph_run(b.g));
        ck_ok(attncl__graph_check_canaries(b.g));
        check_results(f, b.g);
    }
    attncl_graph_destroy(b.g);
}

// What row 2 leaves lies where u did, which is dead behind the stack: the two are no launch.
TEST(a_result_in_the_memory_of_what_is_read)
{
    const struct loop_stack_fwd_params stacks = {ROUNDS};
    const struct loop_sum_fwd_params sums = {0};
    attncl_graph *g = test_graph();
    g->canaries = false; // with which nothing shares memory
    const attncl_value x1 = rows_of(g, 1, ROUNDS), x2 = rows_of(g, 2, ROUNDS);
    const attncl_value at = attncl__graph_loop_begin(g, ROUNDS, false);
    const attncl_value row1 = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x1, at));
    const attncl_value u = attncl_add(g, row1, row1);
    const attncl_value stack = attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stacks, IN(u, at));
    const attncl_value row2 = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x2, at));
    const attncl_value sum =
        attncl__graph_add(g, &attncl__op_loop_sum_fwd, &sums, IN(attncl_add(g, row1, row2), at));
    attncl__graph_loop_end(g);
    attncl_graph_output(g, "stack", stack);
    attncl_graph_output(g, "sum", sum);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(count_launches(g, "loop_copies_fwd"), 4);
    attncl_graph_destroy(g);
}

// -- updates

enum { N_WEIGHTS = 9 };

static const int64_t lengths[N_WEIGHTS] = {1, 5, 0, 37, 2100, 16, 3, 4099, 8};
static attncl_tensor *weights[N_WEIGHTS];

static void create_weights(void)
{
    for (int i = 0; i < N_WEIGHTS; ++i)
        ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 1, &lengths[i], ATTNCL_F32, NULL,
                                   &weights[i]));
}

static void ck_weight(int i, float want)
{
    static float data[4099];
    ck_ok(attncl_tensor_read(weights[i], data, (size_t)lengths[i] * sizeof *data));
    for (int64_t k = 0; k < lengths[i]; ++k)
        ck_assert_msg(fabsf(data[k] - want) <= 1e-6f * fabsf(want),
                      "weight %d, element %lld is %g, want %g", i, (long long)k, (double)data[k],
                      (double)want);
}

static void run(attncl_graph *g)
{
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
}

static void end(attncl_graph *g)
{
    attncl_graph_destroy(g);
    for (int i = 0; i < N_WEIGHTS; ++i)
        attncl_tensor_destroy(weights[i]);
}

static attncl_value all(attncl_graph *g, int i, float x)
{
    static float data[4099];
    for (int64_t k = 0; k < lengths[i]; ++k)
        data[k] = x;
    return attncl_graph_constant(g, ATTNCL_F32, 1, &lengths[i], data);
}

// Gradient i is i + 1 everywhere and is clipped to a quarter of their norm; w -= 2 g / 4.
TEST(a_step_of_all_weights)
{
    attncl_sgd_desc sgd = ATTNCL_SGD_DESC_INIT;
    attncl_value grads[N_WEIGHTS];
    double sum = 0;
    attncl_graph *g = test_graph();

    create_weights();
    for (int i = 0; i < N_WEIGHTS; ++i) {
        grads[i] = all(g, i, (float)(i + 1));
        sum += (double)lengths[i] * (i + 1) * (i + 1);
    }
    sgd.learning_rate = 2;
    attncl_graph_output(
        g, "norm",
        attncl_clip_grad_norm(g, N_WEIGHTS, grads, (float)sqrt(sum) / 4, ATTNCL_CLIP_EXACT, grads));
    const attncl_value rates = attncl_sgd_rates(
        g, &sgd, ATTNCL_NONE_VALUE, attncl_graph_constant(g, ATTNCL_I32, 0, NULL, &(int32_t){0}));
    for (int i = 0; i < N_WEIGHTS; ++i)
        attncl_sgd_update(g, &sgd, rates, grads[i],
                          &(attncl_sgd_values){.struct_size = sizeof(attncl_sgd_values),
                                               .param = attncl_graph_tensor(g, weights[i])});
    run(g);
    ck_assert_int_eq(count_launches(g, "update_squares_fwd"), 2);
    ck_assert_int_eq(count_launches(g, "update_scale_fwd"), 0);
    ck_assert_int_eq(count_launches(g, "sgd_step_fwd"), 1); // of the 8 that have elements
    for (int i = 0; i < N_WEIGHTS; ++i)
        ck_weight(i, -(float)(i + 1) / 2);
    end(g);
}

// Weight 0 gets 1 and then 2, which are two launches, as are other factors, and what a loop repeats.
TEST(what_does_not_join)
{
    attncl_graph *g = test_graph();

    create_weights();
    const attncl_value w[] = {attncl_graph_tensor(g, weights[0]),
                              attncl_graph_tensor(g, weights[1]),
                              attncl_graph_tensor(g, weights[3])};
    attncl_accumulate(g, w[0], all(g, 0, 1));
    attncl_accumulate(g, w[0], all(g, 0, 2));
    attncl__graph_loop_begin(g, 3, false);
    attncl_accumulate(g, w[1], all(g, 1, 1));
    attncl__graph_loop_end(g);
    attncl_accumulate(g, w[2], all(g, 3, 1));
    attncl_average_update(g, attncl_graph_tensor(g, weights[4]), all(g, 4, 4), 0.75);
    run(g);
    ck_assert_int_eq(count_launches(g, "update_accumulate_fwd"), 5);
    ck_weight(0, 3);
    ck_weight(1, 3);
    ck_weight(3, 1);
    ck_weight(4, 1);
    end(g);
}

FIXTURE_ONCE(device_up, device_down);

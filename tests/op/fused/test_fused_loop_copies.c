// SPDX-License-Identifier: MIT
// Rows, stacks and sums of a loop's iteration at once: exactly what each is by itself.
// Reference: what they must give is computed in the tests.

#include "op/fused/fused.h"
#include "support/op_test.h"

// A part's x, what y holds before, and what it must hold; count: of what is moved.
struct part {
    int kind;
    int64_t count;
};

enum { N_ROWS = 5 };

static void check(const struct part *parts, int n, double iteration)
{
    struct fused_loop_copies_fwd_params params = {.n = n, .n_rows = N_ROWS, .first = 3};
    struct host *in[N_LOOP_COPIES_INPUTS] = {host_index(iteration)}, *out[LOOP_COPIES_MAX] = {0};
    struct host *want[LOOP_COPIES_MAX];
    const int64_t row = iteration < 0 ? 0 : iteration >= N_ROWS ? N_ROWS - 1 : (int64_t)iteration;

    for (int i = 0; i < n; ++i) {
        const int64_t count = parts[i].count, rows[2] = {N_ROWS, count};
        const int kind = parts[i].kind;
        params.kinds |= kind << LOOP_COPY_BITS * i;
        struct host *x = in[LOOP_COPIES_X + i] = kind == LOOP_COPY_ROW
                                                     ? host_random((unsigned)i, 2, rows)
                                                     : host_random((unsigned)i, 1, &count);
        out[i] = kind == LOOP_COPY_STACK ? host_new(ATTNCL_F32, 2, rows)
                                         : host_new(ATTNCL_F32, 1, &count);
        want[i] = host_like(out[i]);
        for (int64_t c = 0; c < count; ++c)
            want[i]->data[kind == LOOP_COPY_STACK ? row * count + c : c] =
                x->data[kind == LOOP_COPY_ROW ? row * count + c : c];
    }
    ck_ok(run_op("fused_loop_copies_fwd", &params, in, 1 + n, out, n));
    for (int i = 0; i < n; ++i) {
        const int kind = parts[i].kind;
        // The other rows of a stack stay what they were.
        const int64_t first = kind == LOOP_COPY_STACK ? row * parts[i].count : 0;
        for (int64_t c = first; c < first + parts[i].count; ++c)
            ck_assert_msg((float)out[i]->data[c] == (float)want[i]->data[c],
                          "part %d, y[%lld] is %g, want %g", i, (long long)c, out[i]->data[c],
                          want[i]->data[c]);
    }
}

// Sums start in iteration 3.
TEST(parts_of_all_kinds_and_sizes)
{
    static const struct part all[] = {
        {LOOP_COPY_ROW, 1},   {LOOP_COPY_STACK, 7},  {LOOP_COPY_SUM, 33},    {LOOP_COPY_ROW, 2000},
        {LOOP_COPY_STACK, 1}, {LOOP_COPY_SUM, 5000}, {LOOP_COPY_STACK, 129}, {LOOP_COPY_ROW, 16},
    };
    check(all, 8, 3);
    for (int n = 1; n < 8; ++n)
        check(all, n, 3);
}

TEST(an_iteration_outside_counts_as_the_nearest)
{
    static const struct part moved[] = {{LOOP_COPY_ROW, 5}, {LOOP_COPY_STACK, 3}};
    static const double iterations[] = {-5, 0, 1, 4, 5, 100};
    for (size_t i = 0; i < COUNT_OF(iterations); ++i)
        check(moved, 2, iterations[i]);
}

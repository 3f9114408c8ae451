// SPDX-License-Identifier: MIT
// Copies of views of all kinds, exact.

#include "base/alloc.h"
#include "graph/graph.h"
#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

// Views of a base of 2 * 3 * 5 * 70 elements.
static const struct tensor_desc views[] = {
    {.rank = 0, .start = 5},
    {.rank = 1, .dim = {2100}, .stride = {1}},
    {.rank = 1, .dim = {700}, .stride = {3}, .start = 1},
    {.rank = 2, .dim = {30, 33}, .stride = {70, 1}, .start = 37},    // a slice of rows
    {.rank = 2, .dim = {70, 30}, .stride = {1, 70}},                 // transposed
    {.rank = 3, .dim = {30, 2, 35}, .stride = {70, 35, 1}},          // heads, in place
    {.rank = 3, .dim = {2, 30, 35}, .stride = {35, 70, 1}},          // heads in front
    {.rank = 4, .dim = {5, 2, 70, 3}, .stride = {70, 1050, 1, 350}}, // all axes moved
    {.rank = 3, .dim = {4, 3, 17}, .stride = {0, 0, 1}, .start = 1}, // repeated
    {.rank = 8, .dim = {2, 1, 3, 1, 5, 7, 2, 5}, .stride = {1050, 9, 350, 9, 70, 10, 1, 2}},
    {.rank = 3, .dim = {2, 0, 4}, .stride = {1, 1, 1}},              // empty
    {.rank = 2, .dim = {3, 6}, .stride = {700, -100}, .start = 600}, // backwards
};

static attncl_status run_copy(struct host *base, struct tensor_desc view, struct host *y)
{
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;
    const size_t bytes = attncl_dtype_bytes(base->dtype);
    // suffices.
    uint32_t *words = calloc((size_t)base->count + 1, sizeof *words);

    view.dtype = base->dtype;
    TRY_DONE(attncl_graph_create(test_context(), &g));
    const attncl_value x = attncl_graph_input(g, "x", base->dtype, base->rank, base->dim);
    const attncl_value v = attncl__graph_view(g, x, &view);
    attncl_graph_output(g, "y", attncl__graph_add(g, &attncl__op_copy_fwd, NULL, IN(v)));
    TRY_DONE(attncl_graph_compile(g, NULL));
    for (int64_t i = 0; i < base->count; ++i) {
        if (bytes == 1)
            ((uint8_t *)words)[i] = (uint8_t)base->data[i];
        else
            words[i] = (uint32_t)base->data[i];
    }
    TRY_DONE(attncl_graph_write(g, "x", words, (size_t)base->count * bytes));
    TRY_DONE(attncl_graph_run(g));
    TRY_DONE(attncl_graph_read(g, "y", words, (size_t)y->count * bytes));
    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = bytes == 1 ? ((uint8_t *)words)[i] : words[i];
done:
    attncl_graph_destroy(g);
    free(words);
    return status;
}

static void check(attncl_dtype dtype, int high)
{
    for (int i = 0; i < (int)COUNT_OF(views); ++i) {
        struct host *base = host_ints(5, 0, high, DIMS(2100));
        struct host *got = host_new(dtype, views[i].rank, views[i].dim);
        struct host *want = host_like(got);
        base->dtype = dtype;
        ref_copy_fwd(base, &views[i], want);
        ck_ok(run_copy(base, views[i], got));
        ck_near(got, want, 0, 0);
    }
}

TEST(words)
{
    check(ATTNCL_F32, 1 << 30); // also patterns that are signalling NaN as floats
    check(ATTNCL_I32, 1 << 30);
}

TEST(bytes)
{
    check(ATTNCL_U8, 256);
}

TEST(long_rows_are_cut)
{
    const struct tensor_desc every_second = {.rank = 1, .dim = {9001}, .stride = {2}};
    struct host *base = host_ints(5, 0, 1 << 20, DIMS(18001));
    struct host *got = host_new(ATTNCL_I32, DIMS(9001)), *want = host_like(got);

    ref_copy_fwd(base, &every_second, want);
    ck_ok(run_copy(base, every_second, got));
    ck_near(got, want, 0, 0);
}

// The nearest value of 16 bits, beyond the largest infinity.
static double rounded(double x, attncl_dtype dtype)
{
    const double largest = dtype == ATTNCL_F16 ? 65519 : 3.396e38; // the next ones round up
    struct host *one = host_new(ATTNCL_F32, DIMS(1));

    if (!isfinite(x) || fabs(x) > largest)
        return isnan(x) ? x : copysign(INFINITY, x);
    one->data[0] = x;
    return host_stored(one, dtype)->data[0];
}

static void check_stored(const struct host *got, int64_t at, double want)
{
    const double x = got->data[at];
    ck_assert_msg(isnan(want) ? isnan(x) : x == want && !signbit(x) == !signbit(want),
                  "element %d is %.9g, expected %.9g", (int)at, x, want);
}

// State of 16 bits: rounded to nearest, ties to even; the result is what the state then has.
TEST(store_rows_rounds_to_16_bits)
{
    static const attncl_dtype dtypes[] = {ATTNCL_F16, ATTNCL_BF16};
    static const double special[] = {
        0,           -0.0,          NAN,          INFINITY,    -INFINITY,    65504,
        65519,       65520,         -70000,       1e38,        3.4028234e38, 0x1p-14,
        0x1.ffcp-15, 0x1p-24,       0x1p-25,      0x1.8p-25,   -0x1.8p-24,   0x1p-26,
        0x1p-126,    0x1p-140,      1 + 0x1p-11,  1 + 0x3p-11, 1 + 0x1p-8,   1 + 0x3p-8,
        -1 - 0x1p-8, 1 + 0x1.02p-8, 0x1.fffffep0, 0x1.ffffp15};
    enum { N = COUNT_OF(special), ROWS = 5 };

    for (size_t d = 0; d < COUNT_OF(dtypes); ++d) {
        struct host *x = host_random(3, DIMS(3, 2, 21)), *state = host_random(4, DIMS(ROWS, 2, 21));
        struct host *y = host_like(x);
        for (int i = 0; i < N; ++i)
            x->data[i] = (float)special[i];
        for (int i = N; i < 2 * N; ++i) // in another place of a vector
            x->data[i] = (float)special[2 * N - 1 - i];
        host_stored(state, dtypes[d]);
        const struct host *before = host_copy(state);
        ck_ok(run_op("store_rows_fwd", NULL, HOSTS(host_view(x), state), HOSTS(y)));
        for (int64_t i = 0; i < x->count; ++i) {
            check_stored(state, i, rounded(x->data[i], dtypes[d]));
            check_stored(y, i, rounded(x->data[i], dtypes[d]));
        }
        for (int64_t i = x->count; i < state->count; ++i)
            check_stored(state, i, before->data[i]);
    }
}

// Of a NaN of ones alone rounding would make -0.
TEST(a_bfloat16_keeps_every_nan)
{
    const struct round_fwd_params params = {ATTNCL_BF16};
    struct host *x = host_new(ATTNCL_F32, DIMS(1)), *y = host_like(x);

    memset(x->data, 0xff, sizeof x->data[0]);
    ck_ok(run_op("round_fwd", &params, HOSTS(x), HOSTS(y)));
    ck_assert(isnan(y->data[0]));
}

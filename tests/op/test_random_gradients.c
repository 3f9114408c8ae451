// SPDX-License-Identifier: MIT
// Gradients against central differences of their references in double, at random shapes and sizes of inputs: extents of
// 1, odd ones, those around a vector and above a work-group.

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/grad_test.h"

enum { N_SHAPES = 6, MAX_IN = 6 };

static uint32_t state;

// In [low, high], by a linear congruential generator.
static int64_t draw(int low, int high)
{
    state = state * 1664525u + 1013904223u;
    return low + (int64_t)(state >> 8) % (high - low + 1);
}

// Of size 1, tiny or of some units.
static struct host *numbers(int rank, const int64_t *dim)
{
    static const double sizes[] = {1, 1e-3, 4};
    struct host *x = host_random((unsigned)draw(1, 1 << 20), rank, dim);

    host_scale(x, sizes[draw(0, 2)]);
    return x;
}

struct problem {
    const char *op;
    const void *params;
    ref_forward forward;
    struct host *in[MAX_IN];
    int n_in;
    unsigned wanted;
};

#define FORWARD(name)                                                                              \
    static void name(const void *params, struct host *const *in, struct host *const *out)

static const struct cross_entropy_fwd_params loss_params = {ATTNCL_REDUCE_MEAN, 1, 0.1};

FORWARD(cross_entropy)
{
    (void)params;
    ref_cross_entropy_fwd(in[0], in[1], ATTNCL_REDUCE_MEAN, 1, 0.1, out[0]);
}

static struct problem of_cross_entropy(void)
{
    const int64_t rows = draw(2, 9), width = draw(3, 70);
    struct host *targets = host_ints((unsigned)draw(1, 99), 0, (int)width, DIMS(rows));

    targets->data[0] = 2; // not all are padding
    return (struct problem){"cross_entropy_fwd",
                            &loss_params,
                            cross_entropy,
                            {numbers(DIMS(rows, width)), targets},
                            2,
                            1};
}

static struct problem (*const problems[])(void) = {
    of_cross_entropy,
};

// Float rounding of sums whose terms cancel; a wrong term is some tenths.
TABLE_TEST(meet_finite_differences, problems)
{
    for (int i = 0; i < (on_simulator() ? 1 : N_SHAPES); ++i) {
        state = 7919u * (unsigned)_i + 104729u * (unsigned)i + 1u;
        const struct problem p = problems[_i]();
        ck_gradients(p.op, p.params, p.in, p.n_in, p.wanted, p.forward, 5e-5);
    }
}

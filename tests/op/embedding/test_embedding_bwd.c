// SPDX-License-Identifier: MIT
// The gradient of an embedding's table against its reference (tests/ref/embedding_bwd.c) and
// against finite differences.

#include <math.h>

#include "ref/ref.h"
#include "support/grad_test.h"

static const struct embedding_fwd_params params = {1.5f};

static void check(struct host *tokens, int64_t n_tokens, int64_t width)
{
    const struct embedding_bwd_params p = {1.5f};
    int64_t dim[ATTNCL_MAX_RANK] = {0};

    memcpy(dim, tokens->dim, sizeof dim);
    dim[tokens->rank] = width;
    struct host *dy = host_random(3, tokens->rank + 1, dim);
    struct host *weight = host_new(ATTNCL_F32, DIMS(n_tokens, width));
    struct host *got = host_like(weight), *want = host_like(weight);
    ref_embedding_bwd(tokens, dy, 1.5, want);
    ck_ok(run_op("embedding_bwd", &p, HOSTS(tokens, weight, dy), HOSTS(got)));
    // Sums of at most that many terms of size up to 6, each rounded.
    ck_near(got, want, 1e-6, 6 * 6e-8 * sqrt((double)tokens->count) * 4);
}

TEST(matches_the_reference)
{
    check(host_ints(1, 0, 7, DIMS(3, 5)), 7, 19);
    check(host_ints(2, 0, 65, DIMS(700)), 65, 33);   // every token several times
    check(host_ints(2, 0, 3000, DIMS(40)), 3000, 5); // few are there
    check(host_ints(2, 4, 5, DIMS(300)), 9, 16);     // always the same
}

static void forward(const void *p, struct host *const *in, struct host *const *out)
{
    (void)p;
    ref_embedding_fwd(in[0], in[1], 1.5, out[0]);
}

TEST(meets_finite_differences)
{
    struct host *tokens = host_ints(4, 0, 5, DIMS(4, 3)), *weight = host_random(5, DIMS(6, 5));

    ck_gradients("embedding_fwd", &params, HOSTS(tokens, weight), 2, forward, 1e-5);
}

TEST(refusals)
{
    struct host *tokens = host_ints(4, 0, 5, DIMS(4)), *weight = host_random(5, DIMS(6, 5));
    struct host *dy = host_new(ATTNCL_F32, DIMS(4, 6));

    ck_refused("embedding_bwd", &params, HOSTS(tokens, weight, dy), ATTNCL_ERR_SHAPE,
               "dy is [4, 6]");
}

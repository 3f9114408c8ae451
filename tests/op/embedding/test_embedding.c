// SPDX-License-Identifier: MIT
// Embedding against its reference (tests/ref/embedding.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

static void check(struct host *tokens, struct host *weight, float scale)
{
    const struct embedding_fwd_params params = {scale};
    int64_t dim[ATTNCL_MAX_RANK];

    memcpy(dim, tokens->dim, sizeof dim);
    dim[tokens->rank] = weight->dim[1];
    struct host *got = host_new(ATTNCL_F32, tokens->rank + 1, dim), *want = host_like(got);
    ref_embedding_fwd(tokens, weight, (double)scale, want);
    ck_ok(run_op("embedding_fwd", &params, HOSTS(tokens, weight), HOSTS(got)));
    ck_near(got, want, 6e-8, 0); // one rounding
}

TEST(matches_the_reference)
{
    check(host_ints(1, 0, 11, DIMS(5, 3)), host_random(2, DIMS(11, 37)), 1.0f);
    check(host_ints(1, 0, 11, DIMS(400)), host_random(2, DIMS(11, 5)), 22.627417f);
    check(host_ints(1, 0, 3, 0, NULL), host_random(2, DIMS(3, 1000)), 0.5f);
    check(host_new(ATTNCL_I32, DIMS(2, 3, 4)), host_random(2, DIMS(1, 1)), 1.0f);
    check(host_new(ATTNCL_I32, DIMS(0)), host_random(2, DIMS(3, 4)), 1.0f);
}

TEST(tokens_may_be_a_view)
{
    check(host_view(host_ints(1, 0, 11, DIMS(5, 3))), host_random(2, DIMS(11, 37)), 1.0f);
    check(host_view(host_ints(1, 0, 11, DIMS(7))), host_random(2, DIMS(11, 8)), 2.0f);
    check(host_view(host_ints(1, 0, 3, DIMS(2, 1, 40))), host_random(2, DIMS(3, 5)), 1.0f);
}

TEST(tables_of_16_bits)
{
    static const attncl_dtype types[] = {ATTNCL_F16, ATTNCL_BF16};

    for (int i = 0; i < 2; ++i) {
        check(host_ints(1, 0, 11, DIMS(5, 3)), host_stored(host_random(2, DIMS(11, 37)), types[i]),
              1.0f);
        check(host_ints(1, 0, 11, DIMS(40)), host_stored(host_random(2, DIMS(11, 64)), types[i]),
              22.6f);
        check(host_ints(1, 0, 3, 0, NULL), host_stored(host_random(2, DIMS(3, 5)), types[i]), 0.5f);
    }
}

TEST(a_token_outside_reads_no_other_memory)
{
    const struct embedding_fwd_params params = {1};
    struct host *tokens = host_new(ATTNCL_I32, DIMS(3)), *weight = host_random(2, DIMS(4, 6));
    struct host *got = host_new(ATTNCL_F32, DIMS(3, 6));
    const double outside[] = {-1, 4, 2147483647};

    host_set(tokens, outside);
    ck_ok(run_op("embedding_fwd", &params, HOSTS(tokens, weight), HOSTS(got)));
    for (int c = 0; c < 6; ++c) {
        ck_assert(got->data[c] == weight->data[c]);
        ck_assert(got->data[6 + c] == weight->data[18 + c]);
        ck_assert(got->data[12 + c] == weight->data[18 + c]);
    }
}

TEST(refusals)
{
    const struct embedding_fwd_params params = {1};
    struct host *tokens = host_new(ATTNCL_I32, DIMS(3)), *floats = host_new(ATTNCL_F32, DIMS(3));
    struct host *weight = host_new(ATTNCL_F32, DIMS(4, 6)),
                *no_row = host_new(ATTNCL_F32, DIMS(0, 6));

    ck_refused("embedding_fwd", &params, HOSTS(floats, weight), ATTNCL_ERR_DTYPE, "tokens is F32");
    ck_refused("embedding_fwd", &params, HOSTS(tokens, floats), ATTNCL_ERR_SHAPE, "weight [3]");
    ck_refused("embedding_fwd", &params, HOSTS(tokens, no_row), ATTNCL_ERR_SHAPE, "[0, 6]");
}

// SPDX-License-Identifier: MIT
// Embedding against its reference (tests/ref/embedding.c).

#include "ref/ref.h"
#include "support/op_test.h"

TEST(a_token_outside_reads_no_other_memory)
{
    const struct embedding_fwd_params params = {1, 0};
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

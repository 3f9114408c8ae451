// SPDX-License-Identifier: MIT
// Feedback attention against its reference (tests/ref/feedback_attention.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

struct shape {
    int64_t n, batch, n_heads, width, n_places; // S, B, H, D, P
};

static struct ref_feedback random_operands(struct shape s, bool split)
{
    return (struct ref_feedback){
        .q = host_random(1, DIMS(s.batch, s.n_heads * s.width)),
        .k = host_random(2, DIMS(s.n, s.batch, s.n_heads, s.width)),
        .v = host_random(3, DIMS(s.n, s.batch, s.n_heads, s.width)),
        .places = host_random(4, DIMS(s.n_places, s.n_heads, s.width)),
        .u = host_random(5, DIMS(s.n_heads, s.width)),
        .place_bias = split ? host_random(6, DIMS(s.n_places, s.n_heads)) : NULL,
    };
}

static struct host *step_of(const struct ref_dropout *d)
{
    struct host *step = host_new(ATTNCL_I32, 0, NULL);
    step->data[0] = d->step;
    return step;
}

// position: NULL or how many memories there are.
static void check(const struct ref_feedback *x, struct host *position)
{
    struct host *got = host_like(x->q), *want = host_like(x->q), *bound = host_like(x->q);
    const int64_t n = x->k->dim[0];
    const int64_t count = !position               ? n
                          : position->data[0] < 0 ? 0
                          : position->data[0] > n ? n
                                                  : (int64_t)position->data[0];

    const struct feedback_attention_fwd_params params = {
        .dropout = {.p = x->dropout.p, .seed = x->dropout.seed, .site = x->dropout.site}};

    ref_feedback_attention_fwd(x, count, want, NULL, bound);
    ck_ok(run_op("feedback_attention_fwd", &params,
                 HOSTS(x->q, x->k, x->v, x->places, x->u, x->place_bias, position, NULL,
                       x->dropout.p > 0 ? step_of(&x->dropout) : NULL),
                 HOSTS(got)));
    ck_terms(got, want, bound, 1, 0, "y");
}

LOOP_TEST(matches_the_reference, 0, 2)
{
    // Blocks of 64 and 256 memories are left, met and passed; heads narrower and wider than a
    // vector.
    static const struct shape shapes[] = {
        {1, 1, 1, 1, 1},   {2, 3, 2, 5, 4},    {17, 2, 3, 16, 17},   {63, 1, 2, 8, 64},
        {64, 1, 1, 7, 64}, {65, 1, 1, 33, 90}, {300, 1, 1, 19, 301}, {5, 1, 1, 130, 9},
    };
    for (size_t i = 0; i < COUNT_OF(shapes); ++i) {
        const struct ref_feedback x = random_operands(shapes[i], _i);
        check(&x, NULL);
    }
}

LOOP_TEST(views_are_read_as_they_lie, 0, 2)
{
    const struct ref_feedback x = random_operands((struct shape){9, 2, 2, 6, 9}, _i);
    host_view(x.q);
    host_view(x.k);
    host_view(x.v);
    check(&x, NULL);
}

LOOP_TEST(a_growing_memory_is_read_up_to_its_position, 0, 2)
{
    const double positions[] = {-3, 0, 1, 2, 6, 7, 8, 2147483647};
    for (size_t i = 0; i < COUNT_OF(positions); ++i) {
        struct ref_feedback x = random_operands((struct shape){7, 2, 2, 5, 11}, _i);
        for (int64_t j = 0; j < x.k->count; ++j) // what is to come is not looked at
            if ((double)(j / 20) >= positions[i])
                x.k->data[j] = x.v->data[j] = NAN;
        struct ref_feedback seen = x;
        check(&seen, host_index(positions[i]));
    }
}

// Parts of the memories that are full, cut short, and not there yet.
LOOP_TEST(parts_of_a_growing_memory_add_up, 0, 2)
{
    static const int64_t widths[] = {8, 33};
    for (int i = 0; i < 2; ++i) {
        const struct ref_feedback x =
            random_operands((struct shape){400, 1, 2, widths[i], 410}, _i);
        for (int position = 31; position <= 400; position += on_simulator() ? 200 : 41)
            check(&x, host_index(position));
    }
}

// Slots of a cache of 16 bits, with and without dropout, which another kernel computes on GPUs.
LOOP_TEST(memories_of_16_bits_are_read_as_they_are, 0, 2)
{
    static const struct shape shapes[] = {
        {1, 1, 1, 1, 1}, {9, 3, 2, 5, 11}, {130, 2, 3, 16, 140}, {70, 1, 1, 33, 90}};
    for (size_t i = 0; i < COUNT_OF(shapes); ++i) {
        struct ref_feedback x = random_operands(shapes[i], _i);
        host_stored(x.k, i % 2 ? ATTNCL_F16 : ATTNCL_BF16);
        host_stored(x.v, i % 2 ? ATTNCL_F16 : ATTNCL_BF16);
        check(&x, host_index((double)shapes[i].n));
        x.grows = true;
        x.dropout = (struct ref_dropout){0.3, 0x123456789u, 5, 77};
        check(&x, host_index((double)(shapes[i].n - 1)));
    }
}

LOOP_TEST(weights_are_dropped_before_they_meet_the_values, 0, 2)
{
    static const struct shape shapes[] = {
        {1, 1, 1, 1, 1}, {2, 3, 2, 5, 4}, {66, 2, 3, 16, 66}, {323, 1, 2, 19, 330}};
    for (size_t i = 0; i < COUNT_OF(shapes); ++i) {
        struct ref_feedback x = random_operands(shapes[i], _i);
        x.dropout = (struct ref_dropout){0.3, 0x123456789u, 5, 77};
        check(&x, NULL);
        x.grows = true;
        check(&x, host_index((double)(shapes[i].n - 1)));
        x.dropout.p = 1;
        check(&x, host_index((double)shapes[i].n));
    }
}

LOOP_TEST(no_memory_gives_zeros, 0, 2)
{
    const struct ref_feedback x = random_operands((struct shape){0, 2, 2, 3, 4}, _i);
    check(&x, NULL);
}

LOOP_TEST(scores_of_any_size, 0, 2)
{
    struct ref_feedback x = random_operands((struct shape){70, 1, 2, 4, 70}, _i);
    host_scale(x.k, 1e4);
    check(&x, NULL);
    host_scale(x.q, 1e4);
    check(&x, NULL);

    // One memory outdoes all, at the block's edge; and -inf beside it weighs nothing.
    x = random_operands((struct shape){70, 1, 1, 1, 70}, true);
    for (int j = 0; j < 70; ++j)
        x.place_bias->data[j] = j == 64 ? 1e5 : j % 2 ? -INFINITY : -1e5;
    struct host *want = host_like(x.q);
    want->data[0] = x.v->data[64];
    ck_op("feedback_attention_fwd", NULL, HOSTS(x.q, x.k, x.v, x.places, x.u, x.place_bias),
          HOSTS(want), 1e-6, 0);
}

static const struct feedback_attention_fwd_params with_weights = {.want_weights = true};

LOOP_TEST(weights_on_demand, 0, 2)
{
    static const struct shape shapes[] = {{1, 1, 1, 1, 2}, {5, 2, 3, 4, 5}, {131, 1, 2, 6, 140}};
    for (size_t i = 0; i < COUNT_OF(shapes); ++i) {
        const struct shape s = shapes[i];
        const struct ref_feedback x = random_operands(s, _i);
        struct host *got = host_like(x.q), *want = host_like(x.q), *bound = host_like(x.q);
        struct host *weights = host_new(ATTNCL_F32, DIMS(s.n, s.batch, s.n_heads));
        struct host *want_weights = host_like(weights);
        ref_feedback_attention_fwd(&x, s.n, want, want_weights, bound);
        ck_ok(run_op("feedback_attention_fwd", &with_weights,
                     HOSTS(x.q, x.k, x.v, x.places, x.u, x.place_bias), HOSTS(got, weights)));
        ck_terms(got, want, bound, 1, 0, "y");
        // Scores below 30 in size, of at most 6 terms: an exponential is off by 2^-24 of that.
        ck_near(weights, want_weights, 2e-5, 1e-9);
    }
}

TEST(refusals)
{
    const struct ref_feedback x = random_operands((struct shape){5, 2, 2, 3, 6}, true);
    const struct ref_feedback few = random_operands((struct shape){7, 2, 2, 3, 6}, true);
    const struct ref_feedback wide = random_operands((struct shape){5, 3, 2, 4, 6}, true);
    const char *name = "feedback_attention_fwd";

    ck_refused(name, NULL, HOSTS(x.q, few.k, few.v, x.places, x.u), ATTNCL_ERR_SHAPE,
               "7 memories, key_pos_embeddings has positions for 6");
    ck_refused(name, NULL, HOSTS(x.q, x.k, few.v, x.places, x.u), ATTNCL_ERR_SHAPE,
               "key is [5, 2, 2, 3], value is [7, 2, 2, 3]");
    ck_refused(name, NULL, HOSTS(wide.q, x.k, x.v, x.places, x.u), ATTNCL_ERR_SHAPE,
               "key has B = 2, query has B = 3");
    ck_refused(name, NULL, HOSTS(x.q, x.k, x.v, wide.places, x.u), ATTNCL_ERR_SHAPE,
               "key_pos_embeddings is [6, 2, 4]");
    ck_refused(name, NULL, HOSTS(x.q, x.k, x.v, x.places, wide.u), ATTNCL_ERR_SHAPE,
               "query_pos_bias is [2, 4]");
    ck_refused(name, NULL, HOSTS(x.q, x.k, x.v, x.places, x.u, x.u), ATTNCL_ERR_SHAPE,
               "key_pos_bias is [2, 3]");
    ck_refused(name, NULL, HOSTS(x.q, x.k, x.v, x.places, x.u, NULL, x.u), ATTNCL_ERR_DTYPE,
               "position is F32");
    struct host *narrow = host_stored(host_copy(x.k), ATTNCL_F16);
    ck_refused(name, NULL, HOSTS(x.q, narrow, narrow, x.places, x.u), ATTNCL_ERR_DTYPE,
               "key is F16"); // no cache's
    ck_refused(name, NULL, HOSTS(x.q, narrow, x.v, x.places, x.u, NULL, host_index(2)),
               ATTNCL_ERR_DTYPE, "value is F32");
    ck_refused(name, &with_weights, HOSTS(x.q, x.k, x.v, x.places, x.u, NULL, host_index(2)),
               ATTNCL_ERR_ARGUMENT, "weights of a memory that grows");
}

// SPDX-License-Identifier: MIT
// Beam search beside what golden files show: ties, scores that are not finite, ends.

#include <math.h>

#include "model/beam.h"
#include "support/test.h"

enum { N_VOCAB = 4, N_STEPS = 3 };

static struct beams begin(int64_t n_batch, int64_t n_each, int64_t eos, double length_penalty)
{
    struct beams b = {.n_batch = n_batch,
                      .n_each = n_each,
                      .n_steps = N_STEPS,
                      .n_vocab = N_VOCAB,
                      .eos = eos,
                      .length_penalty = length_penalty};
    ck_ok(attncl__beams_create(&b));
    return b;
}

// Scores and the token that a greedy step takes.
static const struct greedy {
    float logits[N_VOCAB];
    int32_t token;
    double score;
} greedy[] = {
    {{1, 2, 2, 1}, 1, -1.006409}, // the first among equals
    {{NAN, 0, NAN, 0}, 1, -0.693147},
    {{NAN, NAN, NAN, NAN}, 0, -INFINITY},
    {{-INFINITY, -INFINITY, -3, -INFINITY}, 2, 0},
    {{0, INFINITY, 3, INFINITY}, 1, 0},
    {{-INFINITY, -INFINITY, -INFINITY, -INFINITY}, 0, 0},
    {{3e38f, -3e38f, 0, 0}, 0, 0},
};

TABLE_TEST(the_likeliest_token_is_taken, greedy)
{
    struct beams b = begin(1, 1, -1, 0);
    ck_assert(attncl__beams_advance(&b, 0, greedy[_i].logits));
    const struct beam *best = attncl__beams_best(&b, 0);
    ck_assert_int_eq(best->tokens[0], greedy[_i].token);
    ck_assert(best->score == greedy[_i].score || fabs(best->score - greedy[_i].score) < 1e-5);
    attncl__beams_free(&b);
}

// Two sequences, two beams each: token 3 ends.
static const float first[4][N_VOCAB] = {{2, 0, 0, 1}, {9, 9, 9, 9}, {0, 3, 2, 0}, {9, 9, 9, 9}};
static const float second[4][N_VOCAB] = {{0, 0, 0.5f, 0}, {9, 0, 0, 0}, {0, 0, 0, 9}, {0, 0, 0, 1}};

TEST(finished_beams_stay_and_others_go_on)
{
    struct beams b = begin(2, 2, 3, 0);
    ck_assert(attncl__beams_advance(&b, 0, first[0]));
    ck_assert_int_eq(b.list[0].tokens[0], 0); // of the first beam alone
    ck_assert_int_eq(b.list[1].tokens[0], 3);
    ck_assert(b.list[1].is_finished && !b.list[0].is_finished);
    const double ended = b.list[1].score;
    ck_assert(attncl__beams_advance(&b, 1, second[0]));
    ck_assert_int_eq(b.list[0].from, 1); // the end is likelier than 0 2
    ck_assert(b.list[0].score == ended);
    ck_assert_int_eq(b.list[0].length, 1);
    ck_assert_int_eq(b.list[1].tokens[1], 2);
    ck_assert_int_eq(b.list[2].tokens[1], 3);
    ck_assert_int_eq(b.list[2].length, 2);
    ck_assert_int_eq(b.list[2].from, 2);
    attncl__beams_free(&b);
}

TEST(no_beam_goes_on_when_all_have_ended)
{
    static const float ends[N_VOCAB] = {0, 0, 0, 50};
    struct beams b = begin(1, 1, 3, 0);
    ck_assert(!attncl__beams_advance(&b, 0, ends));
    for (int t = 0; t < N_STEPS; ++t)
        ck_assert_int_eq(attncl__beams_best(&b, 0)->tokens[t], 3);
    attncl__beams_free(&b);
}

TEST(a_length_penalty_favours_longer_ones)
{
    for (int penalty = 0; penalty < 2; ++penalty) {
        struct beams b = begin(1, 2, 3, penalty);
        attncl__beams_advance(&b, 0, first[0]);
        attncl__beams_advance(&b, 1, second[0]);
        ck_assert_int_eq(attncl__beams_best(&b, 0)->length, 1 + penalty);
        attncl__beams_free(&b);
    }
}

TEST(too_many_beams_are_refused)
{
    struct beams b = {.n_batch = INT32_MAX, .n_each = 9, .n_steps = N_STEPS, .n_vocab = N_VOCAB};
    ck_fails(attncl__beams_create(&b), ATTNCL_ERR_SHAPE,
             "2147483647 sequences of 9 beams are too many");
    attncl__beams_free(&b);
}

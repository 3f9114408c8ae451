// SPDX-License-Identifier: MIT
// The nearest known word.

#include <stdint.h>
#include <string.h>

#include "base/suggest.h"
#include "support/test.h"

NO_DEVICE;

TEST(edits_are_counted)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {
        {"", "", 0},           {"", "abc", 3},           {"heads", "heads", 0},
        {"head", "heads", 1},  {"haeds", "heads", 1},    {"Heads", "heads", 0},
        {"sigma", "delta", 4}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        ck_assert_uint_eq(attncl__edit_distance(rows[i].a, rows[i].b), rows[i].distance);
        ck_assert_uint_eq(attncl__edit_distance(rows[i].b, rows[i].a), rows[i].distance);
    }
}

TEST(a_long_word_is_far_from_everything)
{
    char longest[65] = "", longer[66] = "";
    memset(longest, 'a', sizeof longest - 1);
    memset(longer, 'a', sizeof longer - 1);
    ck_assert_uint_eq(attncl__edit_distance(longest, longest), 0);
    ck_assert_uint_eq(attncl__edit_distance(longest, longer), SIZE_MAX);
}

TEST(the_nearest_is_named_when_it_is_near)
{
    static const char *const known[] = {"d_model", "heads", "d_ff", "eps", "n_layers"};
    static const struct {
        const char *word, *text;
    } rows[] = {
        {"dmodel", ", nearest: d_model; keys: d_model, heads, d_ff, eps, n_layers"},
        {"num_heads", ", nearest: heads; keys: d_model, heads, d_ff, eps, n_layers"},
        {"epsilon", ", nearest: eps; keys: d_model, heads, d_ff, eps, n_layers"},
        {"ep", ", nearest: eps; keys: d_model, heads, d_ff, eps, n_layers"},
        {"d_f", ", nearest: d_ff; keys: d_model, heads, d_ff, eps, n_layers"},
        {"dm", ", nearest: d_model; keys: d_model, heads, d_ff, eps, n_layers"},
        {"dx", "; keys: d_model, heads, d_ff, eps, n_layers"},
        {"h", "; keys: d_model, heads, d_ff, eps, n_layers"},
        {"zzz", "; keys: d_model, heads, d_ff, eps, n_layers"},
        {"", "; keys: d_model, heads, d_ff, eps, n_layers"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        struct suggestion s = {.word = rows[i].word};
        for (size_t k = 0; k < COUNT_OF(known); ++k)
            attncl__suggestion_add(&s, known[k]);
        ck_assert_str_eq(attncl__suggestion_text(&s, "keys"), rows[i].text);
    }
}

TEST(of_words_equally_near_the_one_that_begins_alike_is_named)
{
    struct suggestion s = {.word = "lmm"};
    attncl__suggestion_add(&s, "bmm");
    attncl__suggestion_add(&s, "lm");
    ck_assert_str_eq(attncl__suggestion_text(&s, "archs"), ", nearest: lm; archs: bmm, lm");
}

TEST(a_long_list_is_cut_between_words)
{
    struct suggestion s = {.word = "x"};
    ck_assert_str_eq(attncl__suggestion_text(&s, "keys"), "; keys: none");
    for (int i = 0; i < 500; ++i)
        attncl__suggestion_add(&s, "sequence");
    const char *text = attncl__suggestion_text(&s, "keys");
    ck_assert_uint_lt(strlen(text), sizeof s.text - 64);
    ck_assert_str_eq(text + strlen(text) - 13, "sequence, ...");
}

// SPDX-License-Identifier: MIT
// The comparison that all tests use (tests/support/compare.h), and the library's own.

#include <math.h>

#include "base/worst_error.h"
#include "support/compare.h"
#include "support/test.h"

NO_DEVICE;

static double poison(void)
{
    const uint32_t bits = CANARY_WORD;
    float word;

    memcpy(&word, &bits, sizeof word);
    return word;
}

TEST(a_ratio_forgets_nothing)
{
    ck_assert(error_ratio(1, 1, 0) == 0 && error_ratio(NAN, NAN, 0) == 0);
    ck_assert(error_ratio(INFINITY, INFINITY, 0) == 0 && error_ratio(2, 1, 2) == 0.5);
    ck_assert(isinf(error_ratio(NAN, 1, 1e9)) && isinf(error_ratio(1, NAN, 1e9)));
    ck_assert(isinf(error_ratio(INFINITY, 1, INFINITY)) &&
              isinf(error_ratio(-INFINITY, INFINITY, 1)));
    ck_assert(isinf(error_ratio(1, 1, NAN)) && isinf(error_ratio(1, 2, 0)) &&
              isinf(error_ratio(1, 2, INFINITY)));
    ck_assert(isinf(error_ratio(poison(), NAN, 1)) &&
              isinf(error_ratio(CANARY_WORD, CANARY_WORD, 1)));
}

TEST(the_worst_stays_whatever_comes_after_it)
{
    static const double bad[] = {NAN, INFINITY, 3};

    for (int place = 0; place < 3; ++place)
        for (int k = 0; k < 3; ++k) {
            struct worst w = {0};
            for (int i = 0; i < 3; ++i)
                worst_add(&w, i, i == place ? bad[k] : 1, 1, 1);
            ck_assert(w.ratio > 1 && w.at == place && w.n == 3);
        }
}

TEST(the_library_forgets_nothing)
{
    const double bad[] = {NAN, -INFINITY, 3, poison()};
    char text[WORST_ERROR_BYTES];

    for (int place = 0; place < 3; ++place)
        for (int k = 0; k < 4; ++k) {
            struct worst_error w = {0};
            for (int i = 0; i < 3; ++i)
                attncl__worst_error_add(&w, i, i == place ? bad[k] : 1, 1, 1);
            ck_assert(!attncl__error_is_within(&w, 1) && w.at == place && w.largest == 1);
            ck_assert(attncl__error_is_within(&w, 2) == (k == 2));
            attncl__format_worst_error(&w, text);
            ck_assert(!strstr(text, "never written") == (k < 3));
        }
    const struct worst_error none = {0};
    ck_assert(!attncl__error_is_within(&none, 1));
    struct worst_error w = {0};
    attncl__worst_error_add(&w, 0, 1, NAN, 1);
    ck_assert(!attncl__error_is_within(&w, 1e9) && w.largest == 0);
    w = (struct worst_error){0};
    attncl__worst_error_add(&w, 0, 1, 1, NAN);
    ck_assert(!attncl__error_is_within(&w, 1e9) && !attncl__error_is_within(&w, INFINITY));
}

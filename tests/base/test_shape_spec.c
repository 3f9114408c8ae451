// SPDX-License-Identifier: MIT
// Declared shapes: what matches, what letters stand for then, and what refusals say.

#include <string.h>

#include "base/shape_spec.h"
#include "support/test.h"

NO_DEVICE;

// First x [2, 3, 4] of shape `x`, then the value of shape `y`; the message that must be there, NULL: none.
static const struct {
    const char *x, *y;
    int rank;
    int64_t dim[3];
    const char *message;
} rows[] = {
    {"A B C", "C A", 2, {4, 2}, NULL},
    {"A B C", "C A", 2, {4, 3}, "y is [4, 3], must be [C, A] with A = 2 as x [2, 3, 4]"},
    {"A B C", "C A", 1, {4}, "y is [4], must be [C, A]"},
    {"A B C", "N N", 2, {5, 5}, NULL},
    {"A B C", "N N", 2, {5, 6}, "y is [5, 6], must be [N, N] with N = 5"},
    {"A B C", "2 C", 2, {2, 4}, NULL},
    {"A B C", "12 C", 2, {2, 4}, "y is [2, 4], must be [12, C]"},
    {"A B C", "A|1 C", 2, {1, 4}, NULL},
    {"A B C", "A|1 C", 2, {2, 4}, NULL},
    {"A B C", "A C", 2, {1, 4}, "y is [1, 4], must be [A, C] with A = 2 as x"},
    {"A B C", "A|1 C", 2, {3, 4}, "must be [A or 1, C] with A = 2"},
    {"A B C", "A B?", 1, {2}, NULL},
    {"A B C", "A B?", 2, {2, 3}, NULL},
    {"A B C", "A B?", 2, {2, 4}, "must be [A, B or none] with B = 3"},
    {"A B C", "A B?", 3, {2, 3, 1}, "y is [2, 3, 1], must be [A, B or none]"},
    {"A B C", "1? C", 1, {4}, NULL},
    {"A B C", "1? C", 2, {1, 4}, NULL},
    {"A B C", "1? C", 2, {2, 4}, "y is [2, 4], must be [1 or none, C]"},
    {"... C", "...", 2, {2, 3}, NULL},
    {"... C", "N ...", 3, {7, 2, 3}, NULL},
    {"... C", "...", 2, {3, 2}, "y is [3, 2], must be [...] where x [2, 3, 4] is [..., C]"},
    {"... C", "... C", 1, {4}, "y is [4], must be [..., C] as x [2, 3, 4]"},
    {"... C", "... C", 0, {0}, "y is [], must be [..., C]"},
    {"", "", 0, {0}, "x is [2, 3, 4], must be []"},
};

TABLE_TEST(shapes_match_or_are_refused, rows)
{
    const struct tensor_desc x = CK_DESC(2, 3, 4), y = ck_desc(rows[_i].rank, rows[_i].dim);
    struct axes axes;

    attncl__axes_init(&axes);
    const attncl_status first = attncl__axes_match(&axes, rows[_i].x, "x", &x);
    const attncl_status status = first ? first : attncl__axes_match(&axes, rows[_i].y, "y", &y);
    if (rows[_i].message)
        ck_fails(status, ATTNCL_ERR_SHAPE, rows[_i].message);
    else
        ck_ok(status);
}

TEST(letters_describe_other_shapes)
{
    const struct tensor_desc x = CK_DESC(2, 3, 4), expected = CK_DESC(5, 2, 3, 7, 4);
    struct tensor_desc y;
    struct axes axes;

    attncl__axes_init(&axes);
    ck_ok(attncl__axes_match(&axes, "... C", "x", &x));
    ck_assert_int_eq(axes.of['C'], 4);
    ck_assert_int_eq(axes.of['.'], 6);
    ck_assert_int_eq(axes.of['T'], -1);
    axes.of['T'] = 7;
    ck_ok(attncl__axes_make(&axes, "5 ... T C", ATTNCL_I32, &y));
    ck_assert(attncl__desc_same_shape(&y, &expected) && y.dtype == ATTNCL_I32);
    axes.of['T'] = INT64_C(1) << 48;
    ck_fails(attncl__axes_make(&axes, "... T", ATTNCL_F32, &y), ATTNCL_ERR_SHAPE, "2^48");
}

// SPDX-License-Identifier: MIT
// Structs of callers compiled against older and newer headers.

#include <string.h>

#include "base/struct.h"
#include "support/test.h"

NO_DEVICE;

// A struct as this library knows it, as an older and as a newer header has it.
struct known {
    size_t struct_size;
    int64_t a, b;
};
struct older {
    size_t struct_size;
    int64_t a;
};
struct newer {
    size_t struct_size;
    int64_t a, b, c;
};

static const struct known defaults = {sizeof defaults, 7, 8};

TEST(an_older_struct_leaves_the_rest_at_its_defaults)
{
    const struct older given = {sizeof given, 1};
    struct known got = defaults;
    ck_ok(STRUCT_READ(struct known, &got, &given));
    ck_assert(got.struct_size == sizeof got && got.a == 1 && got.b == 8);
}

TEST(a_newer_struct_is_accepted_where_the_rest_is_zero)
{
    struct newer given = {sizeof given, 1, 2, 0};
    struct known got = defaults;
    ck_ok(STRUCT_READ(struct known, &got, &given));
    ck_assert(got.struct_size == sizeof got && got.a == 1 && got.b == 2);

    given = (struct newer){sizeof given, 3, 4, 1ll << 40};
    ck_fails(STRUCT_READ(struct known, &got, &given), ATTNCL_ERR_ARGUMENT,
             "struct known has struct_size 32, this library knows 24: byte 29 is set, must be 0");
    given.c = 1;
    ck_fails(STRUCT_READ(struct known, &got, &given), ATTNCL_ERR_ARGUMENT, "byte 24 is set");
    ck_assert(got.a == 1 && got.b == 2);
}

TEST(sizes_that_were_never_set_are_refused)
{
    struct known got = defaults, given = {0};
    ck_fails(STRUCT_READ(struct known, &got, NULL), ATTNCL_ERR_ARGUMENT, "struct known is NULL");
    ck_fails(STRUCT_READ(struct known, &got, &given), ATTNCL_ERR_ARGUMENT,
             "struct known has struct_size 0, expected 24");
    given.struct_size = SIZE_MAX;
    ck_fails(STRUCT_READ(struct known, &got, &given), ATTNCL_ERR_ARGUMENT, "struct known has");
    ck_fails(STRUCT_WRITE(struct known, &given, &got), ATTNCL_ERR_ARGUMENT, "struct known has");
    ck_assert(got.a == 7 && got.b == 8);
}

TEST(a_struct_is_filled_as_far_as_the_caller_has_it)
{
    struct {
        struct older given;
        int64_t beyond;
    } small = {{sizeof small.given, 0}, -1};
    struct newer large = {sizeof large, 0, 0, -1};
    ck_ok(STRUCT_WRITE(struct known, &small.given, &defaults));
    ck_assert(small.given.struct_size == sizeof small.given && small.given.a == 7);
    ck_assert(small.beyond == -1);
    ck_ok(STRUCT_WRITE(struct known, &large, &defaults));
    ck_assert(large.struct_size == sizeof large && large.a == 7 && large.b == 8 && large.c == 0);
}

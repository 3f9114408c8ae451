// SPDX-License-Identifier: MIT
// Tensor descriptions: creating, counting, folding into rows, and their text.

#include <string.h>

#include "base/desc.h"
#include "support/test.h"

NO_DEVICE;

TEST(strides_are_row_major)
{
    const struct tensor_desc d = CK_DESC(2, 3, 4);
    ck_assert(d.stride[0] == 12 && d.stride[1] == 4 && d.stride[2] == 1 && d.start == 0);
    ck_assert(attncl__desc_count(&d) == 24 && attncl__desc_bytes(&d) == 96);
    ck_assert(attncl__desc_contiguous(&d) && attncl__desc_present(&d));

    const struct tensor_desc scalar = ck_desc(0, NULL);
    ck_assert(attncl__desc_count(&scalar) == 1 && attncl__desc_contiguous(&scalar));
    const struct tensor_desc empty = CK_DESC(2, 0, 4);
    ck_assert(attncl__desc_count(&empty) == 0 && attncl__desc_contiguous(&empty));
    const struct tensor_desc none = {.dtype = ATTNCL_DTYPE_NONE};
    ck_assert(!attncl__desc_present(&none));
}

TEST(shapes_beyond_the_limits_are_refused)
{
    struct tensor_desc d = {.rank = 77};
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    ck_fails(attncl__desc_make(ATTNCL_DTYPE_NONE, 1, nine, &d), ATTNCL_ERR_DTYPE,
             "type 0 is unknown");
    ck_fails(attncl__desc_make(ATTNCL_F32, 9, nine, &d), ATTNCL_ERR_SHAPE, "rank 9, at most 8");
    ck_fails(attncl__desc_make(ATTNCL_F32, -1, nine, &d), ATTNCL_ERR_SHAPE, "rank -1");
    ck_fails(attncl__desc_make(ATTNCL_F32, 2, (int64_t[]){2, -3}, &d), ATTNCL_ERR_SHAPE,
             "axis 1 has extent -3");
    ck_fails(attncl__desc_make(ATTNCL_F32, 2, (int64_t[]){INT64_C(1) << 32, INT64_C(1) << 32}, &d),
             ATTNCL_ERR_SHAPE, "more than 2^48 elements");
    ck_fails(
        attncl__desc_make(ATTNCL_F32, 3, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40, 0}, &d),
        ATTNCL_ERR_SHAPE, "more than 2^48 elements");
    ck_fails(attncl__desc_make(ATTNCL_F32, 1, (int64_t[]){(INT64_C(1) << 48) + 1}, &d),
             ATTNCL_ERR_SHAPE, "more than 2^48 elements");
    ck_assert_int_eq(d.rank, 77); // untouched
    ck_ok(attncl__desc_make(ATTNCL_F32, 1, (int64_t[]){INT64_C(1) << 48}, &d));
}

TEST(same_shape_looks_at_rank_and_extents)
{
    const struct tensor_desc a = CK_DESC(2, 3), b = CK_DESC(2, 3), c = CK_DESC(3, 2),
                             d = CK_DESC(2, 3, 1);
    const struct tensor_desc s = ck_desc(0, NULL);
    ck_assert(attncl__desc_same_shape(&a, &b));
    ck_assert(!attncl__desc_same_shape(&a, &c));
    ck_assert(!attncl__desc_same_shape(&a, &d));
    ck_assert(attncl__desc_same_shape(&s, &s));
}

TEST(views_with_gaps_are_not_contiguous)
{
    struct tensor_desc d = CK_DESC(4, 6);
    d.dim[1] = 3; // columns 0 .. 2
    ck_assert(!attncl__desc_contiguous(&d));
    d.dim[0] = 1; // one row of it
    ck_assert(attncl__desc_contiguous(&d));
    d.dim[0] = 0; // nothing of it
    ck_assert(attncl__desc_contiguous(&d));
}

static void swap_axes(struct tensor_desc *d, int a, int b)
{
    const int64_t dim = d->dim[a], stride = d->stride[a];
    d->dim[a] = d->dim[b], d->stride[a] = d->stride[b];
    d->dim[b] = dim, d->stride[b] = stride;
}

#define IS(r, c, w, s) ck_assert((r).count == (c) && (r).width == (w) && (r).stride == (s))

TEST(leading_axes_fold_into_rows)
{
    struct rows r;
    struct tensor_desc d = CK_DESC(2, 3, 5);
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 6, 5, 5);

    d.dim[2] = 4; // columns 0 .. 3 of 5
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 6, 4, 5);

    d.dim[1] = 2; // rows 0 .. 1 of 3: no common stride
    ck_assert(!attncl__desc_rows(&d, &r));
    d.dim[0] = 1;
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 2, 4, 5);

    d = CK_DESC(2, 3, 5);
    swap_axes(&d, 0, 1); // [3, 2, 5]
    ck_assert(!attncl__desc_rows(&d, &r));
    d = CK_DESC(1, 3, 5);
    swap_axes(&d, 0, 1); // [3, 1, 5]: the axis of 1 does not matter
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 3, 5, 5);

    d = CK_DESC(3, 5);
    swap_axes(&d, 0, 1); // the last axis has gaps
    ck_assert(!attncl__desc_rows(&d, &r));

    d = ck_desc(0, NULL);
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 1, 1, 1);
    d = CK_DESC(7);
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 1, 7, 7);
}

TEST(an_empty_tensor_always_folds)
{
    struct rows r;
    struct tensor_desc d = CK_DESC(4, 0, 3, 5);
    swap_axes(&d, 0, 2);
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 0, 5, 5);
    d = CK_DESC(4, 0);
    ck_assert(attncl__desc_rows(&d, &r));
    IS(r, 4, 0, 0);
}

TEST(shapes_have_a_text)
{
    const struct tensor_desc d = CK_DESC(2, 3, 4), s = ck_desc(0, NULL);
    ck_assert_str_eq(SHAPE(&d), "[2, 3, 4]");
    ck_assert_str_eq(SHAPE(&s), "[]");
    struct tensor_desc longest = {.rank = ATTNCL_MAX_RANK};
    for (int i = 0; i < ATTNCL_MAX_RANK; ++i)
        longest.dim[i] = INT64_MIN;
    const char *text = SHAPE(&longest);
    ck_assert_int_eq(text[strlen(text) - 1], ']');
}

// SPDX-License-Identifier: MIT
// Zeros, and views scattered into their base, against the reference (tests/ref/view_scatter_add.c).

#include "ref/ref.h"
#include "support/op_test.h"

// Each element is a sum of at most three floats.
static const double near = 2e-7;

static struct tensor_desc part(const struct tensor_desc *base, int axis, int64_t begin, int64_t end)
{
    struct tensor_desc d = *base;

    d.start += begin * d.stride[axis];
    d.dim[axis] = end - begin;
    return d;
}

static struct tensor_desc swapped(struct tensor_desc d, int a, int b)
{
    const int64_t dim = d.dim[a], stride = d.stride[a];

    d.dim[a] = d.dim[b];
    d.stride[a] = d.stride[b];
    d.dim[b] = dim;
    d.stride[b] = stride;
    return d;
}

static void check(const struct tensor_desc *base, const struct tensor_desc *views, int n)
{
    struct view_scatter_add_fwd_params params = {.count = attncl__desc_count(base)};
    struct host *x[VIEW_SCATTER_ADD_MAX_IN];
    struct host *want = host_new(ATTNCL_F32, 1, &params.count);

    for (int i = 0; i < n; ++i) {
        params.view[i] = views[i];
        x[i] = host_random(3u + (unsigned)i, views[i].rank, views[i].dim);
    }
    ref_view_scatter_add_fwd(x, views, n, want);
    ck_op("view_scatter_add_fwd", &params, x, n, HOSTS(want), near, near);
}

TEST(parts_of_rows)
{
    struct tensor_desc base;
    ck_ok(attncl__desc_make(ATTNCL_F32, DIMS(5, 3, 42), &base));
    const struct tensor_desc v[] = {part(&base, 2, 0, 14), part(&base, 2, 14, 28),
                                    part(&base, 2, 28, 42)};

    check(&base, v, 3); // they fill it
    check(&base, v, 2); // a gap
    check(&base, v + 1, 1);
}

TEST(overlapping_and_turned)
{
    struct tensor_desc base;
    ck_ok(attncl__desc_make(ATTNCL_F32, DIMS(4, 6, 19), &base));
    const struct tensor_desc middle = part(&base, 1, 1, 5);
    const struct tensor_desc v[] = {base, swapped(middle, 0, 1),
                                    swapped(part(&base, 0, 1, 4), 1, 2)};

    check(&base, v, 3);
    check(&base, v + 1, 1);
    check(&base, v + 2, 1);
}

TEST(as_many_as_there_can_be)
{
    struct tensor_desc base, v[VIEW_SCATTER_ADD_MAX_IN];
    ck_ok(attncl__desc_make(ATTNCL_F32, DIMS(2 * VIEW_SCATTER_ADD_MAX_IN, 2503), &base));

    for (int i = 0; i < VIEW_SCATTER_ADD_MAX_IN; ++i)
        v[i] = part(&base, 0, 2 * i, 2 * i + 2);
    check(&base, v, VIEW_SCATTER_ADD_MAX_IN);
}

TEST(zeros)
{
    struct zeros_fwd_params params;
    struct host *got = host_new(ATTNCL_F32, DIMS(3, 1035)), *want = host_like(got);

    ck_ok(attncl__desc_make(ATTNCL_F32, 2, got->dim, &params.shape));
    ck_op("zeros_fwd", &params, NULL, 0, HOSTS(want), 0, 0);
}

TEST(refusals)
{
    struct view_scatter_add_fwd_params params = {.count = 5};
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3));

    ck_ok(attncl__desc_make(ATTNCL_F32, 2, x->dim, &params.view[0]));
    ck_refused("view_scatter_add_fwd", &params, HOSTS(x), ATTNCL_ERR_SHAPE, "ends at 6");
    params.view[0].dim[0] = 1;
    ck_refused("view_scatter_add_fwd", &params, HOSTS(x), ATTNCL_ERR_SHAPE, "[1, 3]");
}

// SPDX-License-Identifier: MIT
// On a device with an iteration cap (caps->max_loop_iterations), ops refuse shapes that exceed it and
// launch others.  The device is only described.

#include "op/op.h"
#include "support/launch_mock.h"
#include "support/test.h"

NO_DEVICE;

static int n_launched;

static attncl_status launch(const struct kspec *spec, const struct grid *grid)
{
    (void)spec;
    (void)grid;
    ++n_launched;
    return ATTNCL_OK;
}

enum { MAX_IN = 8, MAX_ARITY = 16, N = -1 }; // N: the row's own length

struct shape {
    int rank;
    int64_t dim[3];
};
#define F32(...)                                                                                   \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct attention_pooling_fwd_params gaussian = {0, 1, 0};
static const struct attention_step_fwd_params step = {.scale = 1, .n_heads = 1};
static const struct additive_attention_fwd_params additive = {0};
static const struct aft_fwd_params narrow = {.window = 8}, wide = {.window = 1 << 20};
static const struct aft_step_fwd_params short_ring = {.window = 40}, ring = {.window = 40000};

static const struct row {
    const char *op;
    const void *params[2]; // of what is launched; of what is refused
    int64_t n[2];
    struct shape in[MAX_IN];
} rows[] = {
#define ROW(op, launched, n_launched, refused, n_refused, ...)                                     \
    {                                                                                              \
        op "_fwd", {&(launched), &(refused)}, {n_launched, n_refused},                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    ROW("attention_pooling", gaussian, 300, gaussian, 30000, F32(N), F32(N), F32(4)),
    ROW("attention_step", step, 90, step, 90000, F32(1, 64), F32(1, 64), F32(1, 64), F32(1),
        F32(N, 1, 64), F32(N, 1, 64)),
    ROW("additive_attention", additive, 90, additive, 9000, F32(1, 1, 64), F32(1, N, 64),
        F32(1, N, 64), F32(64)),
    ROW("aft", narrow, 4000, wide, 4000, F32(N, 1, 64), F32(N, 1, 64), F32(N, 1, 64), F32(N, N)),
    ROW("aft_step", short_ring, 40000, ring, 40000, F32(1, 64), F32(1, 64), F32(1, 64), F32(N, N),
        F32(1), F32(3, 1, 64), F32(N, 1, 64), F32(N, 1, 64)),
};

LOOP_TEST(long_loops_are_refused, 0, 2 * (int)COUNT_OF(rows))
{
    const struct row *row = &rows[_i / 2];
    const int refused = _i % 2;
    const struct op_class *cls = attncl__op_find(row->op);
    struct tensor_desc in[MAX_ARITY] = {{0}}, out[MAX_ARITY] = {{0}};
    const struct span spans[MAX_ARITY] = {{0}};
    struct op_call call = {
        .sig = {.params = row->params[refused], .in = in, .out = out}, .in = spans, .out = spans};

    ck_assert(cls != NULL);
    for (int variant = VARIANT_CPU; variant <= VARIANT_GPU; ++variant) {
        const struct device_caps caps = {.variant = (enum kernel_variant)variant,
                                         .compute_units = 2,
                                         .max_group = 1,
                                         .local_bytes = 1 << 20,
                                         .vector_width = variant == VARIANT_CPU ? 8 : 4,
                                         .group_multiple = 1,
                                         .max_loop_iterations = 65535};
        static const struct launch_mock mock = {.launch = launch};
        struct launcher l = {.caps = &caps};

        call.sig.caps = &caps;
        call.sig.n_in = cls->n_in;
        call.sig.n_out = cls->n_out;
        for (int i = 0; i < MAX_IN && row->in[i].rank; ++i) {
            struct shape x = row->in[i];
            for (int axis = 0; axis < x.rank; ++axis)
                x.dim[axis] = x.dim[axis] == N ? row->n[refused] : x.dim[axis];
            ck_ok(attncl__desc_make(ATTNCL_F32, x.rank, x.dim, &call.sig.in[i]));
        }
        call.sig.out[0] = call.sig.in[0];
        n_launched = 0;
        launch_mock_set(&mock);
        if (refused)
            ck_fails(cls->launch(&l, &call), ATTNCL_ERR_UNSUPPORTED, "the device stops at 65535");
        else
            ck_ok(cls->launch(&l, &call));
        ck_assert_int_eq(n_launched > 0, !refused);
    }
}

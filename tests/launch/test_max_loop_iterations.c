// SPDX-License-Identifier: MIT
// On a device with an iteration cap (caps->max_loop_iterations), ops refuse shapes that exceed it and
// launch others.  The device is only described.

#include "op/op.h"
#include "support/launch_mock.h"
#include "support/test.h"

NO_DEVICE;

static int n_launched;

static attncl_status launch(void *user, const struct kspec *spec, const struct grid *grid,
                            size_t local_arg_bytes)
{
    (void)user;
    (void)spec;
    (void)grid;
    (void)local_arg_bytes;
    ++n_launched;
    return ATTNCL_OK;
}

struct shape {
    attncl_dtype dtype;
    int rank;
    int64_t dim[4];
};
#define F32(...)                                                                                   \
    {                                                                                              \
        ATTNCL_F32, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define POSITION                                                                                   \
    {                                                                                              \
        ATTNCL_I32, 1,                                                                             \
        {                                                                                          \
            1                                                                                      \
        }                                                                                          \
    }

static const struct attention_pooling_fwd_params gaussian = {0, 1, 0};
static const struct attention_step_fwd_params step = {1, 1};
static const struct additive_attention_fwd_params additive = {0};
static const struct aft_fwd_params wide = {.window = 1 << 20}, narrow = {.window = 8};
static const struct aft_step_fwd_params ring = {.window = 40000}, short_ring = {.window = 40};

static const struct row {
    const char *op;
    const void *params;
    bool refused;
    struct shape in[6];
} rows[] = {
    {"attention_pooling_fwd", &gaussian, true, {F32(30000), F32(30000), F32(4)}},
    {"attention_pooling_fwd", &gaussian, false, {F32(300), F32(300), F32(4)}},
    {"attention_step_fwd",
     &step,
     true,
     {F32(1, 64), F32(1, 64), F32(1, 64), POSITION, F32(90000, 1, 64), F32(90000, 1, 64)}},
    {"attention_step_fwd",
     &step,
     false,
     {F32(1, 64), F32(1, 64), F32(1, 64), POSITION, F32(90, 1, 64), F32(90, 1, 64)}},
    {"additive_attention_fwd",
     &additive,
     true,
     {F32(1, 1, 64), F32(1, 9000, 64), F32(1, 9000, 64), F32(64)}},
    {"additive_attention_fwd",
     &additive,
     false,
     {F32(1, 1, 64), F32(1, 90, 64), F32(1, 90, 64), F32(64)}},
    {"aft_fwd",
     &wide,
     true,
     {F32(4000, 1, 64), F32(4000, 1, 64), F32(4000, 1, 64), F32(4000, 4000)}},
    {"aft_fwd",
     &narrow,
     false,
     {F32(4000, 1, 64), F32(4000, 1, 64), F32(4000, 1, 64), F32(4000, 4000)}},
    {"aft_step_fwd",
     &ring,
     true,
     {F32(1, 64), F32(1, 64), F32(1, 64), F32(40000, 40000), POSITION, F32(3, 1, 64)}},
    {"aft_step_fwd",
     &short_ring,
     false,
     {F32(1, 64), F32(1, 64), F32(1, 64), F32(40000, 40000), POSITION, F32(3, 1, 64)}},
};
enum { N_ROWS = COUNT_OF(rows), MAX_ARITY = 16 };

LOOP_TEST(long_loops_are_refused, 0, N_ROWS)
{
    const struct row *row = &rows[_i];
    const struct op_class *cls = attncl__op_find(row->op);
    struct tensor_desc in[MAX_ARITY] = {{0}}, out[MAX_ARITY] = {{0}};
    const struct span spans[MAX_ARITY] = {{0}};
    struct op_call call = {
        .sig = {.params = row->params, .in = in, .out = out}, .in = spans, .out = spans};

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
        for (int i = 0; i < 6 && row->in[i].rank; ++i)
            ck_ok(attncl__desc_make(row->in[i].dtype, row->in[i].rank, row->in[i].dim,
                                    &call.sig.in[i]));
        if (strcmp(row->op, "aft_step_fwd") == 0) // its rings
            for (int i = 6; i < 8; ++i)
                ck_ok(attncl__desc_make(ATTNCL_F32, 3, (int64_t[]){40000, 1, 64}, &call.sig.in[i]));
        call.sig.out[0] = call.sig.in[0];
        n_launched = 0;
        launch_mock_set(&mock);
        if (row->refused)
            ck_fails(cls->launch(&l, &call), ATTNCL_ERR_UNSUPPORTED, "the device stops at 65535");
        else
            ck_ok(cls->launch(&l, &call));
        ck_assert_int_eq(n_launched > 0, !row->refused);
    }
}

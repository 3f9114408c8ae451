// SPDX-License-Identifier: MIT
// What recurrent layers refuse, and lengths.  Golden models have their results and those of the decoder (tests/model).

#include "attncl/ops.h"
#include "attncl/recurrent.h"
#include "support/layer_test.h"

enum { T = 11, B = 3, I = 5, H = 6 };

static attncl_gru_params make_params(struct rig *b, struct host *lens)
{
    return (attncl_gru_params){
        .struct_size = sizeof(attncl_gru_params),
        .weight_ih = rig_in(b, host_random(10, DIMS(3 * H, I))),
        .bias_ih = rig_in(b, host_random(20, DIMS(3 * H))),
        .weight_hh = rig_in(b, host_random(30, DIMS(3 * H, H))),
        .bias_hh = rig_in(b, host_random(40, DIMS(3 * H))),
        .lens = rig_in(b, lens),
    };
}

// Within an entry's length nothing changes, beyond it the output is 0; the last state is the last one within.
TEST(lengths)
{
    static const int n[B] = {4, 0, T};
    struct host *x = host_random(1, DIMS(T, B, I)), *lens = host_new(ATTNCL_I32, DIMS(B));
    struct host *y[2], *last[2];
    attncl_value state;

    for (int b = 0; b < B; ++b)
        lens->data[b] = n[b];
    for (int i = 0; i < 2; ++i) {
        struct rig b;
        rig_open(&b);
        y[i] = host_new(ATTNCL_F32, DIMS(T, B, H));
        last[i] = host_new(ATTNCL_F32, DIMS(B, H));
        const attncl_gru_params params = make_params(&b, i ? lens : NULL);
        rig_out(&b,
                attncl_gru(b.g, &params, rig_in(&b, x), ATTNCL_NONE_VALUE, ATTNCL_LAYOUT_TIME_FIRST,
                           &state),
                y[i]);
        rig_out(&b, state, last[i]);
        rig_run_once(&b);
    }
    for (int64_t k = 0; k < y[1]->count; ++k)
        ck_assert_double_eq(y[1]->data[k], k / (B * H) < n[k / H % B] ? y[0]->data[k] : 0);
    for (int64_t k = 0; k < last[1]->count; ++k)
        ck_assert_double_eq(last[1]->data[k],
                            n[k / H] ? y[0]->data[(n[k / H] - 1) * B * H + k] : 0);
}

TEST(refusals)
{
    struct host *x = host_random(1, DIMS(T, B, I)), *none = host_new(ATTNCL_F32, DIMS(0, B, I));
    struct host *h0 = host_random(2, DIMS(B, H + 1)), *flat = host_random(3, DIMS(B, I));
    attncl_value state = ATTNCL_NONE_VALUE;

    for (int i = 0; i < 5; ++i) {
        static const char *const words[] = {
            "x is [0, 3, 5], T must be at least 1",
            "x has shape [3, 5], expected [T, B, I]",
            "h0 is [3, 7], must be [B, H] with H = 6 as weight_hh",
            "0 recurrent layers, must be at least 1",
            "value 1 is [3, 5], value 0 is [11, 3, 5]: only axis 0 may differ",
        };
        struct rig b;
        rig_open(&b);
        const attncl_gru_params params = make_params(&b, NULL);
        struct host *in = i == 0 ? none : i == 1 ? flat : x;
        const attncl_value v = rig_in(&b, in);
        if (i < 3)
            attncl_gru(b.g, &params, v, i == 2 ? rig_in(&b, h0) : ATTNCL_NONE_VALUE,
                       ATTNCL_LAYOUT_TIME_FIRST, NULL);
        else if (i == 3)
            attncl_gru_layers(b.g, &params, 0, v, ATTNCL_LAYOUT_TIME_FIRST, &state);
        else
            attncl_concat(b.g, 2, (const attncl_value[]){v, rig_in(&b, flat)}, 0);
        ck_rig_fails(&b, i == 3 ? ATTNCL_ERR_ARGUMENT : ATTNCL_ERR_SHAPE, words[i]);
    }
}

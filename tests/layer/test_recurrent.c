// SPDX-License-Identifier: MIT
// Recurrent layers, the attention decoder and what they are joined by, against their reference.

#include <string.h>

#include "attncl/ops.h"
#include "attncl/recurrent.h"
#include "ref/layers.h"
#include "support/layer_test.h"

enum { T = 11, B = 3, I = 5, H = 6, S = 4, N = 7, E = 5, L = 2 };

// States within [-1, 1], weights below 2: a gate's argument has at most 14 products and rounds as
// often at 2^-24 of values up to 20; errors of a step reach later ones through weights whose rows
// sum to about 2 times an update of a half.
static const double absolute = 14 * 20 * 6e-8 * 4, relative = 1e-5;

static struct host *small(unsigned seed, int rank, const int64_t *dim)
{
    struct host *h = host_random(seed, rank, dim);
    host_scale(h, 0.4);
    return h;
}

static void random_layers(struct ref_gru *layers, int64_t n_input)
{
    for (int k = 0; k < L; ++k)
        layers[k] = (struct ref_gru){
            .weight_ih = small(10u + (unsigned)k, DIMS(3 * H, k ? H : n_input)),
            .bias_ih = small(20u + (unsigned)k, DIMS(3 * H)),
            .weight_hh = small(30u + (unsigned)k, DIMS(3 * H, H)),
            .bias_hh = small(40u + (unsigned)k, DIMS(3 * H)),
        };
}

static void feed(struct rig *b, const struct ref_gru *layers, attncl_gru_params *ret)
{
    for (int k = 0; k < L; ++k)
        ret[k] = (attncl_gru_params){
            .struct_size = sizeof(attncl_gru_params),
            .weight_ih = rig_in(b, layers[k].weight_ih),
            .bias_ih = rig_in(b, layers[k].bias_ih),
            .weight_hh = rig_in(b, layers[k].weight_hh),
            .bias_hh = rig_in(b, layers[k].bias_hh),
        };
}

static void check_layers(int64_t n_steps, bool time_first, bool from_zeros)
{
    const int64_t first = time_first ? n_steps : B, second = time_first ? B : n_steps;
    struct host *x = host_random(1, DIMS(first, second, I)), *h0[L], *want_last[L], *last[L];
    struct host *y = host_new(ATTNCL_F32, DIMS(first, second, H)), *want = host_like(y);
    struct ref_gru ref[L];
    attncl_gru_params params[L];
    attncl_value states[L];
    struct rig b;

    random_layers(ref, I);
    rig_open(&b);
    feed(&b, ref, params);
    for (int k = 0; k < L; ++k) {
        h0[k] = from_zeros ? host_new(ATTNCL_F32, DIMS(B, H))
                           : host_random(50u + (unsigned)k, DIMS(B, H));
        states[k] = from_zeros ? ATTNCL_NONE_VALUE : rig_in(&b, h0[k]);
        want_last[k] = host_copy(h0[k]);
        last[k] = host_like(h0[k]);
    }
    ref_gru_layers(ref, L, x, time_first, want_last, want);
    const attncl_layout layout = time_first ? ATTNCL_LAYOUT_TIME_FIRST : ATTNCL_LAYOUT_BATCH_FIRST;
    rig_out(&b, attncl_gru_layers(b.g, params, L, rig_in(&b, x), layout, states), y);
    for (int k = 0; k < L; ++k)
        rig_out(&b, states[k], last[k]);
    ck_ok(rig_compile(&b));
    rig_run(&b);
    rig_run(&b); // nothing is kept from run to run
    rig_close(&b);
    ck_near(y, want, relative, absolute);
    for (int k = 0; k < L; ++k)
        ck_near(last[k], want_last[k], relative, absolute);
}

TEST(layers)
{
    check_layers(T, true, true);
    check_layers(T, false, true);
    check_layers(T, true, false);
    check_layers(T, false, false);
    check_layers(1, true, false);
    check_layers(1, false, true);
}

// More steps than are joined at once.
static void check_decoder(int64_t n_steps, struct host *lens, bool with_weights)
{
    struct host *source = host_random(60, DIMS(B, S, H)), *e = host_random(61, DIMS(B, n_steps, E));
    struct host *y = host_new(ATTNCL_F32, DIMS(B, n_steps, H)), *want = host_like(y);
    struct host *p = host_new(ATTNCL_F32, DIMS(B, n_steps, S)), *want_p = host_like(p);
    struct host *want_last[L], *last[L];
    struct ref_gru ref[L];
    struct ref_bahdanau ref_decoder = {.query_weight = small(62, DIMS(N, H)),
                                       .key_weight = small(63, DIMS(N, H)),
                                       .score_weight = host_random(64, DIMS(1, N)),
                                       .layers = ref,
                                       .n_layers = L};
    attncl_gru_params params[L];
    attncl_value states[L], weights;
    struct rig b;

    random_layers(ref, H + E);
    rig_open(&b);
    feed(&b, ref, params);
    const attncl_bahdanau_params decoder = {.struct_size = sizeof(attncl_bahdanau_params),
                                            .query_weight = rig_in(&b, ref_decoder.query_weight),
                                            .key_weight = rig_in(&b, ref_decoder.key_weight),
                                            .score_weight = rig_in(&b, ref_decoder.score_weight),
                                            .layers = params,
                                            .n_layers = L};
    for (int k = 0; k < L; ++k) {
        want_last[k] = host_uniform(70u + (unsigned)k, -1, 1, DIMS(B, H));
        states[k] = rig_in(&b, host_copy(want_last[k]));
        last[k] = host_like(want_last[k]);
    }
    ref_bahdanau_decoder(&ref_decoder, source, lens, e, want_last, want, want_p);
    attncl_bahdanau_source attended = ATTNCL_BAHDANAU_SOURCE_INIT;
    attncl_bahdanau_attend(b.g, &decoder, rig_in(&b, source), rig_in(&b, lens), &attended);
    rig_out(&b,
            attncl_bahdanau_decoder(b.g, &decoder, &attended, rig_in(&b, e), states,
                                    with_weights ? &weights : NULL),
            y);
    for (int k = 0; k < L; ++k)
        rig_out(&b, states[k], last[k]);
    if (with_weights)
        rig_out(&b, weights, p);
    rig_run_once(&b);
    ck_near(y, want, relative, absolute);
    for (int k = 0; k < L; ++k)
        ck_near(last[k], want_last[k], relative, absolute);
    if (with_weights)
        ck_near(p, want_p, relative, absolute);
}

TEST(decoder)
{
    struct host *lens = host_with(ATTNCL_I32, (const double[]){0, 3, 9}, DIMS(B));

    check_decoder(T, NULL, true);
    check_decoder(T, lens, true);
    check_decoder(1, lens, false);
}

TEST(refusals)
{
    struct host *x = host_random(1, DIMS(T, B, I)), *none = host_new(ATTNCL_F32, DIMS(0, B, I));
    struct host *h0 = host_random(2, DIMS(B, H + 1)), *flat = host_random(3, DIMS(B, I));
    struct ref_gru ref[L];
    attncl_gru_params params[L];
    attncl_value states[L] = {{0}, {0}};

    random_layers(ref, I);
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
        feed(&b, ref, params);
        struct host *in = i == 0 ? none : i == 1 ? flat : x;
        const attncl_value v = rig_in(&b, in);
        if (i < 3)
            attncl_gru(b.g, &params[0], v, i == 2 ? rig_in(&b, h0) : ATTNCL_NONE_VALUE,
                       ATTNCL_LAYOUT_TIME_FIRST, NULL);
        else if (i == 3)
            attncl_gru_layers(b.g, params, 0, v, ATTNCL_LAYOUT_TIME_FIRST, states);
        else
            attncl_concat(b.g, 2, (const attncl_value[]){v, rig_in(&b, flat)}, 0);
        ck_rig_fails(&b, i == 3 ? ATTNCL_ERR_ARGUMENT : ATTNCL_ERR_SHAPE, words[i]);
    }
}

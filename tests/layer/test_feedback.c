// SPDX-License-Identifier: MIT
// Feedback transformers whose layers have keys and values of their own, against the same weights stacked; what feedback
// layers refuse.  Golden models have results and gradients of stacked ones (tests/model), with steps by decoders.

#include "attncl/feedback.h"
#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "support/layer_test.h"

enum { B = 2, C = 6, H = 3, D = C / H, P = 5, L = 2, MAX_STEPS = 6 };

struct fed {
    attncl_value key[L], value[L], bias;
    attncl_feedback_params attn[L];
    attncl_ffn_params ffn;
    attncl_feedback_layer_params layers[L];
};

static struct host *matrix(unsigned seed)
{
    struct host *h = host_random(seed, DIMS(C, C));
    host_scale(h, 0.4);
    return h;
}

// Layers that differ in their maps of keys and values.
static attncl_feedback_transformer_params feed(struct rig *b, bool own, struct fed *f)
{
    const attncl_value square = rig_in(b, matrix(1)), row = rig_in(b, host_random(2, DIMS(C))),
                       places = rig_in(b, host_random(3, DIMS(P, H, D))),
                       u = rig_in(b, host_random(4, DIMS(H, D))), none = ATTNCL_NONE_VALUE;

    f->bias = rig_in(b, host_random(5, DIMS(C)));
    f->ffn = (attncl_ffn_params){.struct_size = sizeof f->ffn,
                                 .layer1_weight = square,
                                 .layer1_bias = row,
                                 .layer2_weight = square,
                                 .layer2_bias = row};
    for (unsigned i = 0; i < L; ++i) {
        f->key[i] = rig_in(b, matrix(10 + i));
        f->value[i] = rig_in(b, matrix(20 + i));
        f->attn[i] = (attncl_feedback_params){.struct_size = sizeof f->attn[i],
                                              .query_weight = square,
                                              .key_weight = own ? f->key[i] : none,
                                              .value_weight = own ? f->value[i] : none,
                                              .value_bias = own ? f->bias : none,
                                              .output_weight = square,
                                              .output_bias = row,
                                              .key_pos_embeddings = places,
                                              .query_pos_bias = u};
        f->layers[i] = (attncl_feedback_layer_params){.struct_size = sizeof f->layers[i],
                                                      .norm_attn_weight = row,
                                                      .norm_attn_bias = row,
                                                      .attn = &f->attn[i],
                                                      .norm_ffn_weight = row,
                                                      .norm_ffn_bias = row,
                                                      .ffn = &f->ffn};
    }
    return (attncl_feedback_transformer_params){.struct_size =
                                                    sizeof(attncl_feedback_transformer_params),
                                                .layers = f->layers,
                                                .n_layers = L,
                                                .n_heads = H,
                                                .weights = rig_in(b, host_random(6, DIMS(L + 1))),
                                                .norm_weight = row,
                                                .norm_bias = row};
}

// y, the memories, and the gradients of x, and of a key's and a value's map.
enum { N_RESULTS = 5 };
static void run(int64_t n_steps, bool own, struct host *results[N_RESULTS])
{
    struct host *x = host_random(30, DIMS(n_steps, B, C));
    attncl_value y[2], dx[3];
    struct fed f;
    struct rig b;

    rig_open(&b);
    attncl_feedback_transformer_params p = feed(&b, own, &f);
    if (!own) {
        const attncl_value zero = rig_in(&b, host_new(ATTNCL_F32, DIMS(C)));
        p.key_value_weight =
            attncl_concat(b.g, 4, (attncl_value[]){f.key[0], f.value[0], f.key[1], f.value[1]}, 0);
        p.key_value_bias = attncl_concat(b.g, 4, (attncl_value[]){zero, f.bias, zero, f.bias}, 0);
    }
    const attncl_value in = rig_in(&b, x), of[] = {in, f.key[1], f.value[0]},
                       dy[] = {rig_in(&b, host_random(31, DIMS(n_steps, B, C))),
                               rig_in(&b, host_random(32, DIMS(n_steps, B, C)))};
    y[0] = attncl_feedback_transformer(b.g, &p, in, &y[1]);
    attncl_graph_gradient(b.g, 2, y, dy, 3, of, dx);
    for (int i = 0; i < N_RESULTS; ++i) {
        results[i] = i < 3 ? host_like(x) : host_new(ATTNCL_F32, DIMS(C, C));
        rig_out(&b, i < 2 ? y[i] : dx[i - 2], results[i]);
    }
    rig_run_once(&b);
}

// Few steps, which are not worth stacking, and more.
LOOP_TEST(own_keys_and_values_are_those_stacked, 0, 2)
{
    struct host *got[N_RESULTS], *want[N_RESULTS];

    run(_i ? MAX_STEPS : 3, true, got);
    run(_i ? MAX_STEPS : 3, false, want);
    for (int i = 0; i < N_RESULTS; ++i)
        ck_near(got[i], want[i], 1e-5, 1e-5 * host_largest(want[i]));
}

// What is wrong, and the words that say so.
enum mistake { LONG_SEQUENCE, LONG_MEMORY, HEADS, OTHER_BATCH, STACK, N_MISTAKES };
static const char *const words[N_MISTAKES] = {
    "7 steps have 6 memories, key_pos_embeddings has positions for 5",
    "key has S = 6, key_pos_embeddings has P = 5",
    "C = 6 cannot be cut into H = 4 heads",
    "with B = 2 as query [2, 6]",
    "key_value_weight has shape [6, 6], expected [2 N C, C] with C = 6, N = 1 or 2",
};

LOOP_TEST(refusals, 0, N_MISTAKES)
{
    const enum mistake mistake = (enum mistake)_i;
    struct fed f;
    struct rig b;

    rig_open(&b);
    attncl_feedback_transformer_params p = feed(&b, true, &f);
    const int64_t n = mistake == LONG_MEMORY ? 6 : 2, batch = mistake == OTHER_BATCH ? 3 : B;
    const attncl_value x = rig_in(&b, host_new(ATTNCL_F32, DIMS(B, C)));
    const attncl_value memory = rig_in(&b, host_new(ATTNCL_F32, DIMS(n, batch, C)));
    if (mistake == STACK)
        p.key_value_weight = f.key[0];
    if (mistake == LONG_SEQUENCE || mistake == STACK)
        attncl_feedback_transformer(b.g, &p, rig_in(&b, host_new(ATTNCL_F32, DIMS(7, B, C))), NULL);
    else
        attncl_feedback_layer(b.g, &f.layers[0], mistake == HEADS ? 4 : H, x, memory);
    ck_fails(attncl_graph_status(b.g), ATTNCL_ERR_SHAPE, words[mistake]);
    rig_close(&b);
}

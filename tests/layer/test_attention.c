// SPDX-License-Identifier: MIT
// Attention of any view, and what its parts refuse.  Golden models have results of multi-head attention (tests/model), with
// steps by decoders.

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/feedback.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/layer_test.h"

enum { T = 7, B = 2, C = 12, H = 3 };

// An average of 7 terms, each rounding at 2^-24 of values up to about 10; the softmax turns an error of its scores into as
// large a relative one.
static const double absolute = 3e-5, relative = 1e-5;

// Values whose last axis has gaps are copied; a head of another order is merged by a copy.
TEST(any_view)
{
    struct host *bias = host_random(41, DIMS(1, H, 1, T)), *slopes = host_random(42, DIMS(H));
    struct host *lens = host_with(ATTNCL_I32, (const double[]){2, T}, DIMS(B));
    const struct ref_attention a = {.scale = 0.25,
                                    .window = 3,
                                    .bias = bias,
                                    .slopes = slopes,
                                    .valid_lens = lens,
                                    .hard_lens = true};
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    struct host *x = host_random(40, DIMS(T, 5, B, H)),
                *y = host_new(ATTNCL_F32, DIMS(B, T, H * 5));
    struct host *heads = host_new(ATTNCL_F32, DIMS(B, H, T, 5)), *want = host_like(y);
    struct host *p = host_new(ATTNCL_F32, DIMS(B, H, T, T));
    const int order[] = {2, 3, 0, 1};
    struct rig b;

    for (int64_t i = 0; i < x->count; ++i) { // [T, D, B, H] to [B, H, T, D]
        const int64_t h = i % H, n = i / H % B, d = i / (H * B) % 5, t = i / (H * B * 5);
        heads->data[((n * H + h) * T + t) * 5 + d] = x->data[i];
    }
    ref_attention_weights(&a, heads, heads, p);
    ref_attention_mix(p, heads, false, want);
    rig_open(&b);
    desc.scale = 0.25f;
    desc.window = 3;
    desc.hard_lens = 1;
    desc.slopes = rig_in(&b, slopes);
    const attncl_value v = attncl_permute(b.g, rig_in(&b, x), order);
    const attncl_attention_inputs in = {.struct_size = sizeof in,
                                        .query = v,
                                        .key = v,
                                        .value = v,
                                        .valid_lens = rig_in(&b, lens),
                                        .bias = rig_in(&b, bias)};
    const attncl_value z = attncl_attention(b.g, &desc, &in, NULL);
    rig_out(&b, attncl_merge_heads(b.g, z, ATTNCL_LAYOUT_BATCH_FIRST), y);
    rig_run_once(&b);
    ck_near(y, want, relative, absolute);
}

TEST(refusals)
{
    struct host *x = host_random(50, DIMS(T, B, C));
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    struct rig b;

    rig_open(&b);
    attncl_split_heads(b.g, rig_in(&b, x), 5, ATTNCL_LAYOUT_TIME_FIRST);
    ck_rig_fails(&b, ATTNCL_ERR_SHAPE, "C = 12 cannot be cut into H = 5 heads");

    rig_open(&b);
    attncl_split_heads(b.g, rig_in(&b, x), 4, (attncl_layout)2);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "layout 2 is unknown");

    rig_open(&b);
    attncl_merge_heads(b.g, attncl_split_heads(b.g, rig_in(&b, x), 4, ATTNCL_LAYOUT_TIME_FIRST),
                       (attncl_layout)7);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "layout 7 is unknown");

    rig_open(&b);
    desc.struct_size = 1;
    in.query = in.key = in.value =
        attncl_split_heads(b.g, rig_in(&b, x), 4, ATTNCL_LAYOUT_TIME_FIRST);
    attncl_attention(b.g, &desc, &in, NULL);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "struct_size 1");

    rig_open(&b);
    desc = (attncl_attention_desc)ATTNCL_ATTENTION_DESC_INIT;
    in.query = in.key = in.value = desc.rotary =
        attncl_split_heads(b.g, rig_in(&b, x), 4, ATTNCL_LAYOUT_TIME_FIRST);
    attncl_attention(b.g, &desc, &in, NULL); // multi-head attention turns its inputs
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "rotary is given, this layer has none");

    rig_open(&b);
    attncl_alibi_slopes(b.g, 0, 8);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "n_heads is 0, at least 1; max is 8");

    rig_open(&b);
    const attncl_aft_params aft = ATTNCL_AFT_PARAMS_INIT;
    in = (attncl_attention_inputs)ATTNCL_ATTENTION_INPUTS_INIT;
    in.bias = rig_in(&b, x);
    attncl_aft(b.g, NULL, &aft, &in);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "bias is given, this layer has none");

    rig_open(&b);
    const attncl_feedback_params feedback = ATTNCL_FEEDBACK_PARAMS_INIT;
    in = (attncl_attention_inputs)ATTNCL_ATTENTION_INPUTS_INIT;
    in.bias = rig_in(&b, x);
    attncl_feedback_attention(b.g, &feedback, 3, &in, NULL);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "bias is given, this layer has none");
}

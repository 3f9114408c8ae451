// SPDX-License-Identifier: MIT

#include "kernels/gpu_cases.h"

#include "attncl/kinds.h"
#include "gemm/gemm_native.h"
#include "launch/command_list.h"

// No launch of ours reads or writes it.
static struct storage nothing;

static attncl_status run_op(struct launcher *l, const struct resource_case *c)
{
    const struct op_class *cls = attncl__op_find(c->op);
    struct tensor_desc descs[2][RESOURCE_MAX_IN] = {{{0}}};
    struct span in[RESOURCE_MAX_IN] = {{0}}, out[RESOURCE_MAX_IN] = {{0}};
    struct op_call call = {.sig = {.params = c->params,
                                   .n_in = cls->n_in,
                                   .n_out = cls->n_out,
                                   .in = descs[0],
                                   .out = descs[1]},
                           .in = in,
                           .out = out};
    size_t scratch = 0;

    for (int i = 0; i < cls->n_in; ++i) {
        if (c->in[i].rank == 0 && !c->in[i].dtype)
            continue;
        TRY(attncl__desc_make(c->in[i].dtype ? c->in[i].dtype : ATTNCL_F32, c->in[i].rank,
                              c->in[i].dim, &call.sig.in[i]));
        for (int axis = 0; axis + 1 < c->in[i].rank; ++axis) {
            const int64_t width = c->in[i].dim[c->in[i].rank - 1];
            call.sig.in[i].stride[axis] += call.sig.in[i].stride[axis] / width * c->in[i].gap;
        }
        in[i].storage = &nothing;
    }
    TRY(cls->infer(&call.sig));
    for (int i = 0; i < cls->n_out; ++i)
        out[i].storage = &nothing;
    call.sig.caps = l->caps;
    if (cls->scratch)
        TRY(cls->scratch(&call.sig, &scratch));
    call.scratch.storage = &nothing;
    return cls->launch(l, &call);
}

static attncl_status run_gemm(struct launcher *l, const struct resource_case *c)
{
    struct gemm g = c->gemm;
    char how[GEMM_HOW_BYTES];

    g.a.span.storage = g.b.span.storage = g.c.span.storage = &nothing;
    if (c->skinny)
        return attncl__gemm_skinny(l, &g, how);
    g.a.ld = g.trans_a ? g.m : g.k;
    g.b.ld = g.trans_b ? g.k : g.n;
    g.c.ld = g.n;
    g.scratch.storage = &nothing;
    g.scratch_bytes = attncl__gemm_scratch(l->caps, &g);
    return attncl__gemm_tiles(l, &g, how);
}

attncl_status resource_case_run(struct launcher *l, const struct resource_case *c)
{
    return c->op ? run_op(l, c) : run_gemm(l, c);
}

// The forms of one size that differ in code.
#define GEMMS(name, m, n, k)                                                                       \
    GEMM(name " NN", m, n, k, .trans_a = false),                                                   \
        GEMM(name " NT GELU", m, n, k, .trans_b = true, .activation = GEMM_ACT_GELU),              \
        GEMM(name " TN", m, n, k, .trans_a = true),                                                \
        GEMM(name " NN unaligned", m, n, (k) + 1, .trans_a = false)

// With weights of 16 bits.
#define STORED(name, m, type)                                                                      \
    GEMM(name " NN", m, 4096, 4096, .b_dtype = ATTNCL_##type),                                     \
        GEMM(name " NT", m, 4096, 4096, .b_dtype = ATTNCL_##type, .trans_b = true),                \
        GEMM(name " NT unaligned", m, 4096, 4095, .b_dtype = ATTNCL_##type, .trans_b = true)

#define NORM_LINEAR(name, rows, kind, type)                                                        \
    OP_CASE("layer norm and linear map " name, fused_norm_linear_fwd,                              \
            VALUES({.activation = (kind)}, {.eps = 1e-5f}), DIM(rows, 512),                        \
            EXTENTS(type, 512, 512), ABSENT, ABSENT, ABSENT, DIM(512), DIM(512))

#define QKV_MAPS(name, rows, type, ...)                                                            \
    OP_CASE("maps of query, key and value " name, fused_qkv_fwd, VALUES({.eps = 1e-5f}),           \
            DIM(rows, 512), EXTENTS(type, 512, 512), EXTENTS(type, 512, 512),                      \
            EXTENTS(type, 512, 512), DIM(512), DIM(512), DIM(512), __VA_ARGS__)

#define ATTENTION(name, cls, values, t, s, d)                                                      \
    OP_CASE(name, cls, VALUES values, HEADS(t, d), HEADS(s, d), HEADS(s, d))
#define WIDTH(name, t, s, d) ATTENTION(name " D " #d, attention_fwd, (.scale = 1), t, s, d)
#define WIDTHS(t, s, name)                                                                         \
    WIDTH(name, t, s, 32), WIDTH(name, t, s, 64), WIDTH(name, t, s, 96), WIDTH(name, t, s, 128),   \
        WIDTH(name, t, s, 192), WIDTH(name, t, s, 256), WIDTH(name, t, s, 320)

enum { MANY = 1 << 16 };
#define ROWS(name, width)                                                                          \
    OP_CASE("softmax " name, softmax_fwd, VALUES(0), DIM(MANY, width)),                            \
        OP_CASE("softmax gradient " name, softmax_bwd, VALUES(0), DIM(MANY, width),                \
                DIM(MANY, width)),                                                                 \
        OP_CASE("masked softmax " name, masked_softmax_fwd, VALUES(0), DIM(16, MANY / 16, width),  \
                EXTENTS(I32, 16)),                                                                 \
        OP_CASE("layer norm " name, layer_norm_fwd, VALUES(.eps = 1e-5f), DIM(MANY, width),        \
                DIM(width), DIM(width)),                                                           \
        OP_CASE("layer norm gradient " name, layer_norm_bwd, VALUES(.eps = 1e-5f),                 \
                DIM(MANY, width), DIM(width), DIM(MANY, width)),                                   \
        OP_CASE("argmax " name, argmax_fwd, VALUES(0), DIM(MANY, width)),                          \
        OP_CASE("sample " name, sample_fwd, VALUES(0), DIM(MANY, width), EXTENTS(I32, 4),          \
                EXTENTS(I32, 1)),                                                                  \
        OP_CASE("cross entropy " name, cross_entropy_fwd, VALUES(.pad = -1), DIM(MANY, width),     \
                EXTENTS(I32, MANY)),                                                               \
        OP_CASE("cross entropy gradient " name, cross_entropy_bwd,                                 \
                VALUES(.loss = {.reduction = ATTNCL_REDUCE_NONE, .pad = -1}), DIM(MANY, width),    \
                EXTENTS(I32, MANY), DIM(MANY))

const struct resource_case resource_general[] = {
    GEMMS("4096 x 4096 x 4096", 4096, 4096, 4096),
    GEMM("4096 x 4096 x 4096 causal", 4096, 4096, 4096, .causal = true),
    GEMM("4096 x 4096 x 4096 NT causal", 4096, 4096, 4096, .trans_b = true, .causal = true),
    GEMMS("1024 x 1024 x 1024", 1024, 1024, 1024),
    GEMMS("256 x 256 x 256", 256, 256, 256),
    STORED("4096 x 4096 x 4096 F16", 4096, F16),
    STORED("4096 x 4096 x 4096 BF16", 4096, BF16),
    STORED("8 x 4096 x 4096 F16", 8, F16),
    GEMMS("32 x 512 x 512", 32, 512, 512),
    GEMMS("16 x 512 x 512", 16, 512, 512),
    GEMMS("8 x 512 x 512", 8, 512, 512),
    GEMMS("64 x 64 x 65536", 64, 64, 65536),
    SKINNY("1 row NN", 1, .trans_b = false),
    SKINNY("4 rows NN", 4, .trans_b = false),
    SKINNY("1 row of F16 NN", 1, .b_dtype = ATTNCL_F16),
    SKINNY("4 rows of BF16 NN", 4, .b_dtype = ATTNCL_BF16),
    SKINNY("1 row NT", 1, .trans_b = true),
    SKINNY("4 rows NT GELU", 4, .trans_b = true, .activation = GEMM_ACT_GELU),
    QKV_MAPS("1 row", 1, F32, DIM(512), DIM(512)),
    QKV_MAPS("1 row plain", 1, F32, ABSENT, ABSENT),
    QKV_MAPS("4 rows of F16", 4, F16, DIM(512), DIM(512)),
    QKV_MAPS("32 rows", 32, F32, DIM(512), DIM(512)),
    QKV_MAPS("8 rows of BF16, plain", 8, BF16, ABSENT, ABSENT),
    NORM_LINEAR("1 row", 1, 0, F32),
    NORM_LINEAR("4 rows GELU", 4, ATTNCL_GELU, F32),
    NORM_LINEAR("32 rows GELU", 32, ATTNCL_GELU, F32),
    NORM_LINEAR("8 rows of F16", 8, 0, F16),
    NORM_LINEAR("1 row of F16", 1, 0, F16),
    NORM_LINEAR("4 rows of BF16", 4, 0, BF16),

    WIDTHS(2048, 2048, "attention"),
    WIDTHS(1, 8192, "decoding"),
    ATTENTION("attention D 63", attention_fwd, (.scale = 1), 2048, 2048, 63),
    ATTENTION("attention D 127", attention_fwd, (.scale = 1), 2048, 2048, 127),
    ATTENTION("causal D 64", attention_fwd, (.scale = 1, .causal = 1), 2048, 2048, 64),
    OP_CASE("mask D 128", attention_fwd, VALUES(.scale = 1), HEADS(2048, 128), HEADS(2048, 128),
            HEADS(2048, 128), EXTENTS(U8, 2048, 2048, 1)),
    OP_CASE("lengths D 128", attention_fwd, VALUES(.scale = 1), HEADS(2048, 128), HEADS(2048, 128),
            HEADS(2048, 128), ABSENT, EXTENTS(I32, 1)),
    OP_CASE("lengths D 256", attention_fwd, VALUES(.scale = 1), HEADS(2048, 256), HEADS(2048, 256),
            HEADS(2048, 256), ABSENT, EXTENTS(I32, 1)),
    ATTENTION("weights D 64", attention_fwd, (.scale = 1, .want_weights = 1), 512, 512, 64),
    ATTENTION("weights D 128", attention_fwd, (.scale = 1, .want_weights = 1), 512, 512, 128),

    OP_CASE("dropout D 64", attention_fwd, VALUES(.scale = 1, .dropout = {.p = 0.1}),
            HEADS(2048, 64), HEADS(2048, 64), HEADS(2048, 64), ABSENT, ABSENT, INDEX),

    OP_CASE("dropout D 64, gradients", attention_bwd,
            VALUES(.attention = {.scale = 1, .dropout = {.p = 0.1}}), HEADS(2048, 64),
            HEADS(2048, 64), HEADS(2048, 64), ABSENT, ABSENT, DIM(2048, 1, 16, 64), ABSENT,
            HEADS(2048, 2), DIM(2048, 1, 16, 64), ABSENT, INDEX),

    OP_CASE("AFT-local", aft_fwd, VALUES(.window = 64), QKV(4096, 8), DIM(4096, 4096)),
    OP_CASE("AFT-local, short", aft_fwd, VALUES(.window = 64), QKV(256, 1), DIM(256, 256)),
    OP_CASE("AFT-simple", aft_fwd, VALUES(0), QKV(4096, 8)),
    OP_CASE("AFT-simple, causal", aft_fwd, VALUES(.causal = 1), QKV(4096, 8)),
    OP_CASE("AFT-local, mask", aft_fwd, VALUES(.window = 64), QKV(4096, 1), DIM(4096, 4096),
            EXTENTS(U8, 4096, 4096, 1)),
    OP_CASE("AFT-local, gradients", aft_bwd, VALUES(.forward = {.window = 64}), QKV(4096, 8),
            DIM(4096, 4096), ABSENT, QKV(4096, 8)),
    OP_CASE("AFT-conv", aft_fwd, VALUES(.per_head = 1), DIM(4096, 8, 512), DIM(4096, 8, 8),
            DIM(4096, 8, 512), DIM(8, 63)),

    ROWS("of 64", 64),
    ROWS("of 1024", 1024),
    ROWS("of 1023", 1023),
    ROWS("of 50257", 50257),

    OP_CASE("GELU", activation_fwd, VALUES(.kind = GEMM_ACT_GELU), DIM(1 << 20)),
    OP_CASE("tanh", activation_fwd, VALUES(.kind = GEMM_ACT_TANH), DIM(1 << 20)),
    OP_CASE("SiLU", activation_fwd, VALUES(.kind = GEMM_ACT_SILU), DIM(1 << 20)),
    OP_CASE("GELU by tanh", activation_fwd, VALUES(.kind = GEMM_ACT_GELU_TANH), DIM(1 << 20)),
    OP_CASE("bias + GELU", bias_activation_fwd, VALUES(.kind = GEMM_ACT_GELU), DIM(4096, 1024),
            DIM(1024)),
    OP_CASE("bias + GELU of 63", bias_activation_fwd, VALUES(.kind = GEMM_ACT_GELU), DIM(4096, 63),
            DIM(63)),
    OP_CASE("add", add_fwd, VALUES(0), DIM(1 << 20), DIM(1 << 20)),
    OP_CASE("dropout", dropout_fwd, VALUES(.p = 0.1), DIM(4096, 1024), INDEX),
    OP_CASE("dropout of 63 + residual", dropout_fwd, VALUES(.p = 0.1), DIM(4096, 63), INDEX, ABSENT,
            DIM(4096, 63)),
    OP_CASE("multiply", mul_fwd, VALUES(0), DIM(1 << 20), DIM(1 << 20)),
};
const size_t n_resource_general = sizeof resource_general / sizeof resource_general[0];

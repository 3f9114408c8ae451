// SPDX-License-Identifier: MIT

#include "resources/cases.h"

#include "attncl/kinds.h"
#include "gemm/gemm_native.h"
#include "launch/command_list.h"

// No launch of ours reads or writes it.
static struct storage nothing;

static attncl_status run_op(struct launcher *l, const struct resource_case *c)
{
    const struct op_class *cls = attncl__op_find(c->op);
    struct op_call call = {.sig = {.params = c->params, .n_in = cls->n_in}};
    size_t scratch = 0;

    for (int i = 0; i < cls->n_in; ++i) {
        if (c->in[i].rank == 0)
            continue;
        TRY(attncl__desc_make(c->in[i].dtype ? c->in[i].dtype : ATTNCL_F32, c->in[i].rank,
                              c->in[i].dim, &call.sig.in[i]));
        call.in[i].storage = &nothing;
    }
    TRY(cls->infer(&call.sig));
    for (int i = 0; i < cls->n_out; ++i)
        call.out[i].storage = &nothing;
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
    g.a.ld = g.trans_a ? g.m : g.k;
    g.b.ld = g.trans_b ? g.k : g.n;
    g.c.ld = g.n;
    g.scratch.storage = &nothing;
    g.scratch_bytes = attncl__gemm_scratch(l->caps, &g);
    return attncl__gemm_tiles(l, &g, how);
}

static attncl_status run_gemv(struct launcher *l, const struct resource_case *c)
{
    struct gemm g = c->gemm;
    char how[GEMM_HOW_BYTES];

    g.a.span.storage = g.b.span.storage = g.c.span.storage = &nothing;
    return attncl__gemm_skinny(l, &g, how);
}

#define GEMM(name, n_batch, rows, columns, terms, ...)                                             \
    {                                                                                              \
        .label = name, .run = run_gemm,                                                            \
        .gemm = {.batch = (n_batch), .m = (rows), .n = (columns), .k = (terms), __VA_ARGS__},      \
    }
// The forms of one size that differ in code.
#define GEMMS(name, batch, m, n, k)                                                                \
    GEMM(name " NN", batch, m, n, k, .trans_a = false),                                            \
        GEMM(name " NT GELU", batch, m, n, k, .trans_b = true, .activation = GEMM_ACT_GELU),       \
        GEMM(name " TN", batch, m, n, k, .trans_a = true),                                         \
        GEMM(name " NN unaligned", batch, m, n, (k) + 1, .trans_a = false)

#define OP_CASE(name, cls, values, ...)                                                            \
    {                                                                                              \
        .label = name, .run = run_op, .op = #cls, .params = &(const struct cls##_params)values,    \
        .in = {__VA_ARGS__},                                                                       \
    }
#define VALUES(...)                                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define DIM1(a)                                                                                    \
    {                                                                                              \
        ATTNCL_F32, 1,                                                                             \
        {                                                                                          \
            a                                                                                      \
        }                                                                                          \
    }
#define DIM2(a, b)                                                                                 \
    {                                                                                              \
        ATTNCL_F32, 2,                                                                             \
        {                                                                                          \
            a, b                                                                                   \
        }                                                                                          \
    }
#define DIM3(a, b, c)                                                                              \
    {                                                                                              \
        ATTNCL_F32, 3,                                                                             \
        {                                                                                          \
            a, b, c                                                                                \
        }                                                                                          \
    }
#define DIM4(a, b, c, d)                                                                           \
    {                                                                                              \
        ATTNCL_F32, 4,                                                                             \
        {                                                                                          \
            a, b, c, d                                                                             \
        }                                                                                          \
    }
#define MASK3(a, b, c)                                                                             \
    {                                                                                              \
        ATTNCL_U8, 3,                                                                              \
        {                                                                                          \
            a, b, c                                                                                \
        }                                                                                          \
    }
#define INTS1(a)                                                                                   \
    {                                                                                              \
        ATTNCL_I32, 1,                                                                             \
        {                                                                                          \
            a                                                                                      \
        }                                                                                          \
    }
#define ABSENT                                                                                     \
    {                                                                                              \
        ATTNCL_F32, 0,                                                                             \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

#define HEADS(t, d) DIM4(1, 16, t, d)
#define ATTENTION(name, cls, values, t, s, d)                                                      \
    OP_CASE(name, cls, VALUES values, HEADS(t, d), HEADS(s, d), HEADS(s, d))
#define WIDTHS(t, s, name)                                                                         \
    ATTENTION(name " D 32", attention_fwd, (.scale = 1), t, s, 32),                                \
        ATTENTION(name " D 64", attention_fwd, (.scale = 1), t, s, 64),                            \
        ATTENTION(name " D 96", attention_fwd, (.scale = 1), t, s, 96),                            \
        ATTENTION(name " D 128", attention_fwd, (.scale = 1), t, s, 128),                          \
        ATTENTION(name " D 192", attention_fwd, (.scale = 1), t, s, 192),                          \
        ATTENTION(name " D 256", attention_fwd, (.scale = 1), t, s, 256),                          \
        ATTENTION(name " D 320", attention_fwd, (.scale = 1), t, s, 320)

enum { MANY = 1 << 16 };
#define ROWS(name, width)                                                                          \
    OP_CASE("softmax " name, softmax_fwd, VALUES(0), DIM2(MANY, width)),                           \
        OP_CASE("softmax gradient " name, softmax_bwd, VALUES(0), DIM2(MANY, width),               \
                DIM2(MANY, width)),                                                                \
        OP_CASE("masked softmax " name, masked_softmax_fwd, VALUES(0), DIM3(16, MANY / 16, width), \
                INTS1(16)),                                                                        \
        OP_CASE("layer norm " name, layer_norm_fwd, VALUES(.eps = 1e-5f), DIM2(MANY, width),       \
                DIM1(width), DIM1(width)),                                                         \
        OP_CASE("layer norm gradient " name, layer_norm_bwd, VALUES(.eps = 1e-5f),                 \
                DIM2(MANY, width), DIM1(width), DIM2(MANY, width)),                                \
        OP_CASE("argmax " name, argmax_fwd, VALUES(0), DIM2(MANY, width)),                         \
        OP_CASE("cross entropy " name, cross_entropy_fwd, VALUES(.pad = -1), DIM2(MANY, width),    \
                INTS1(MANY)),                                                                      \
        OP_CASE("cross entropy gradient " name, cross_entropy_bwd,                                 \
                VALUES(.reduction = ATTNCL_REDUCE_NONE, .pad = -1), DIM2(MANY, width),             \
                INTS1(MANY), DIM1(MANY))

const struct resource_case resource_cases[] = {
    GEMMS("4096 x 4096 x 4096", 1, 4096, 4096, 4096),
    GEMM("4096 x 4096 x 4096 causal", 1, 4096, 4096, 4096, .causal = true),
    GEMM("4096 x 4096 x 4096 NT causal", 1, 4096, 4096, 4096, .trans_b = true, .causal = true),
    GEMMS("1024 x 1024 x 1024", 1, 1024, 1024, 1024),
    GEMMS("256 x 256 x 256", 1, 256, 256, 256),
    GEMMS("32 x 512 x 512", 1, 32, 512, 512),
    GEMMS("64 x 64 x 65536", 1, 64, 64, 65536),
    {.label = "1 row NN", .run = run_gemv, .gemm = {.batch = 1, .m = 1, .n = 4096, .k = 4096}},
    {.label = "4 rows NN", .run = run_gemv, .gemm = {.batch = 1, .m = 4, .n = 4096, .k = 4096}},
    {.label = "1 row NT",
     .run = run_gemv,
     .gemm = {.batch = 1, .m = 1, .n = 4096, .k = 4096, .trans_b = true}},
    {.label = "4 rows NT GELU",
     .run = run_gemv,
     .gemm = {.batch = 1, .m = 4, .n = 4096, .k = 4096, .trans_b = true, .activation = 1}},

    WIDTHS(2048, 2048, "attention"),
    WIDTHS(1, 8192, "decoding"),
    ATTENTION("causal D 64", attention_fwd, (.scale = 1, .causal = 1), 2048, 2048, 64),
    OP_CASE("mask D 128", attention_fwd, VALUES(.scale = 1), HEADS(2048, 128), HEADS(2048, 128),
            HEADS(2048, 128), MASK3(2048, 2048, 1)),
    OP_CASE("lengths D 128", attention_fwd, VALUES(.scale = 1), HEADS(2048, 128), HEADS(2048, 128),
            HEADS(2048, 128), ABSENT, INTS1(1)),
    OP_CASE("lengths D 256", attention_fwd, VALUES(.scale = 1), HEADS(2048, 256), HEADS(2048, 256),
            HEADS(2048, 256), ABSENT, INTS1(1)),
    ATTENTION("weights D 64", attention_fwd, (.scale = 1, .want_weights = 1), 512, 512, 64),
    ATTENTION("weights D 128", attention_fwd, (.scale = 1, .want_weights = 1), 512, 512, 128),

    OP_CASE("AFT-local", aft_fwd, VALUES(.window = 64), DIM3(4096, 8, 512), DIM3(4096, 8, 512),
            DIM3(4096, 8, 512), DIM2(4096, 4096)),
    OP_CASE("AFT-local, short", aft_fwd, VALUES(.window = 64), DIM3(256, 1, 512), DIM3(256, 1, 512),
            DIM3(256, 1, 512), DIM2(256, 256)),
    OP_CASE("AFT-local, mask", aft_fwd, VALUES(.window = 64), DIM3(4096, 1, 512),
            DIM3(4096, 1, 512), DIM3(4096, 1, 512), DIM2(4096, 4096), MASK3(4096, 4096, 1)),
    OP_CASE("AFT-local, gradients", aft_bwd, VALUES(.forward = {.window = 64}), DIM3(4096, 8, 512),
            DIM3(4096, 8, 512), DIM3(4096, 8, 512), DIM2(4096, 4096), ABSENT, DIM3(4096, 8, 512),
            DIM3(4096, 8, 512), DIM3(4096, 8, 512)),
    OP_CASE("AFT-conv", aft_fwd, VALUES(.per_head = 1), DIM3(4096, 8, 512), DIM3(4096, 8, 8),
            DIM3(4096, 8, 512), DIM2(8, 63)),

    ROWS("of 64", 64),
    ROWS("of 1024", 1024),
    ROWS("of 1023", 1023),
    ROWS("of 50257", 50257),

    OP_CASE("GELU", activation_fwd, VALUES(.kind = GEMM_ACT_GELU), DIM1(1 << 20)),
    OP_CASE("tanh", activation_fwd, VALUES(.kind = GEMM_ACT_TANH), DIM1(1 << 20)),
    OP_CASE("SiLU", activation_fwd, VALUES(.kind = GEMM_ACT_SILU), DIM1(1 << 20)),
    OP_CASE("bias + GELU", bias_activation_fwd, VALUES(.kind = GEMM_ACT_GELU), DIM2(4096, 1024),
            DIM1(1024)),
    OP_CASE("bias + GELU of 63", bias_activation_fwd, VALUES(.kind = GEMM_ACT_GELU), DIM2(4096, 63),
            DIM1(63)),
    OP_CASE("add", add_fwd, VALUES(0), DIM1(1 << 20), DIM1(1 << 20)),
    OP_CASE("multiply", mul_fwd, VALUES(0), DIM1(1 << 20), DIM1(1 << 20)),
};
const size_t n_resource_cases = sizeof resource_cases / sizeof resource_cases[0];

// SPDX-License-Identifier: MIT
//
// A language model in double precision, of one batch entry:
//   logits = projection(LN(layers(embedding(tokens) sqrt(C) + sinusoids)))

#include <math.h>
#include <string.h>

#include "cases/define.h"
#include "cases/lm.h"

static struct host *param(const struct trial *t, int64_t layer, const char *name, const char *part)
{
    char text[LM_NAME_BYTES];

    return trial_whole(t, lm_name(layer, name, part, text));
}

static struct host *map(const struct trial *t, int64_t layer, const char *name,
                        const struct host *x)
{
    return define_linear(x, param(t, layer, name, "weight"), param(t, layer, name, "bias"));
}

static struct host *norm(const struct trial *t, int64_t layer, const char *name,
                         const struct host *x)
{
    return define_layer_norm(x, param(t, layer, name, "weight"), param(t, layer, name, "bias"));
}

static struct host *gmlp_layer(const struct trial *t, int64_t layer, const struct host *x)
{
    struct host *h = map(t, layer, "proj1", norm(t, layer, "norm", x));

    h = define_spatial_gate(define_activation(h, ATTNCL_GELU),
                            param(t, layer, "sgu.norm", "weight"),
                            param(t, layer, "sgu.norm", "bias"), param(t, layer, "sgu", "weight"),
                            param(t, layer, "sgu", "bias"), true);
    return define_add(x, map(t, layer, "proj2", h));
}

static struct host *aft_layer(const struct trial *t, int64_t layer, const struct host *x)
{
    struct host *n = norm(t, layer, "norm_self_attn", x);
    struct host *h =
        define_aft(map(t, layer, "self_attn.query", n), map(t, layer, "self_attn.key", n),
                   map(t, layer, "self_attn.value", n), param(t, layer, "self_attn", "pos_bias"),
                   ATTNCL_AFT_LOCAL, t->c->sizes.window, true);

    h = define_add(x, map(t, layer, "self_attn.output", h));
    n = map(t, layer, "feed_forward.layer1", norm(t, layer, "norm_ff", h));
    return define_add(h, map(t, layer, "feed_forward.layer2", define_activation(n, ATTNCL_RELU)));
}

static struct host *embed(const struct trial *t, const struct host *tokens)
{
    const struct sizes *s = &t->c->sizes;
    const struct host *weight = trial_whole(t, "src_embed.linear.weight");
    struct host *x = host_new(ATTNCL_F32, DIMS(tokens->dim[0], 1, s->C));

    for (int64_t p = 0; p < tokens->dim[0]; ++p)
        for (int64_t c = 0; c < s->C; ++c) {
            const double angle = (double)p / pow(10000.0, (double)(c / 2 * 2) / (double)s->C);
            x->data[p * s->C + c] =
                weight->data[(int64_t)tokens->data[p] * s->C + c] * sqrt((double)s->C) +
                (c % 2 ? cos(angle) : sin(angle));
        }
    return x;
}

struct host *lm_define(const struct trial *t, const struct host *tokens)
{
    const struct sizes *s = &t->c->sizes;
    struct host *x = embed(t, tokens);

    for (int64_t layer = 0; layer < s->layers; ++layer)
        x = strcmp(s->layer, "gmlp") == 0 ? gmlp_layer(t, layer, x) : aft_layer(t, layer, x);
    x = define_layer_norm(x, trial_whole(t, "encoder.norm.weight"),
                          trial_whole(t, "encoder.norm.bias"));
    return define_linear(x, trial_whole(t, "generator.projection.weight"),
                         trial_whole(t, "generator.projection.bias"));
}

# SPDX-License-Identifier: MIT
"""Language models: the whole text, and sampling as the published code does it, which computes the
whole prefix again for every token."""
import math
from types import SimpleNamespace

import torch
from torch.nn import functional as f

from . import aft, attention, feedback, gmlp
from .registry import causal_mask, dense, formulation, layer_norm

BIAS = 0.5  # the spread of biases in bench/cases/lm_model.c


def gmlp_layer(c, prefix, reference):
    p, sgu = gmlp.block_parameters(c, prefix, BIAS), gmlp.gate_parameters(c, f"{prefix}sgu")
    sgu.norm = c.norm(f"{prefix}sgu.norm", c.F // 2, BIAS)
    mask, best = causal_mask(c.T, c.device).unsqueeze(-1), gmlp.prepared(sgu, True)

    def run(x):
        n = len(x)
        if reference:
            return gmlp.block(x, p, lambda z: gmlp.labml_gate(z, sgu, mask[:n, :n]))
        return gmlp.block(x, p, lambda z: gmlp.gemm_gate(z, best))
    return run


def aft_mixing(c, prefix, reference):
    """(q, k, v) -> y for at most T positions."""
    mask = causal_mask(c.T, c.device).unsqueeze(-1)
    if c.layer == "aft_conv":
        w = c.uniform(f"{prefix}self_attn.w", 1, c.heads, c.window)
        taps = aft.prepared_filter(w, c.C // c.heads, True), aft.prepared_filter(w, 1, True)
        return lambda q, k, v: aft.conv_mix(q, k, v, *taps, True)
    if c.layer == "aft_simple" and not reference:
        return lambda q, k, v: aft.simple_mix(q, k, v, True)
    if c.layer == "aft_simple":
        w = torch.zeros(c.T, c.T, device=c.device)
    else:
        w = c.uniform(f"{prefix}self_attn.pos_bias", 1, c.T, c.T)
    window = aft.window_of(c, c.T)
    if reference:
        return lambda q, k, v: aft.labml_mix(q, k, v, w[:len(q), :len(q)], window[:len(q), :len(q)],
                                             mask[:len(q), :len(q)])
    exp_bias = aft.prepared_bias(w, window, True)
    return lambda q, k, v: aft.gemm_mix(q, k, v, exp_bias[:len(q), :len(q)])


def aft_attention(c, prefix, reference):
    keys = c.heads if c.layer == "aft_conv" else c.C
    q, k, v, output = (c.linear(f"{prefix}self_attn.{name}", n, c.C, BIAS) for name, n in
                       (("query", c.C), ("key", keys), ("value", c.C), ("output", c.C)))
    mix = aft_mixing(c, prefix, reference)
    return lambda x: dense(mix(dense(x, q), dense(x, k), dense(x, v)), output)


def softmax_attention(c, prefix, reference):
    maps = [c.linear(f"{prefix}self_attn.{name}", c.C, c.C, BIAS)
            for name in ("query.linear", "key.linear", "value.linear", "output")]
    mask = causal_mask(c.T, c.device).unsqueeze(-1)
    if reference:
        return lambda x: attention.labml_mha(x, maps, c.heads, mask[:len(x), :len(x)])
    return lambda x: attention.fused_mha(x, maps, c.heads, True)


def encoder_layer(c, prefix, reference):
    if c.layer == "gmlp":
        return gmlp_layer(c, prefix, reference)
    make = softmax_attention if c.layer == "transformer" else aft_attention
    attend = make(c, prefix, reference)
    norm1, norm2 = (c.norm(f"{prefix}{name}", c.C, BIAS) for name in ("norm_self_attn", "norm_ff"))
    layer1 = c.linear(f"{prefix}feed_forward.layer1", c.F, c.C, BIAS)
    layer2 = c.linear(f"{prefix}feed_forward.layer2", c.C, c.F, BIAS)

    def run(x):
        x = x + attend(layer_norm(x, norm1))
        return x + dense(torch.relu(dense(layer_norm(x, norm2), layer1)), layer2)
    return run


def sinusoids(c):
    angle = (torch.arange(c.T, dtype=torch.float64)[:, None]
             / 10000.0 ** (torch.arange(0, c.C, 2, dtype=torch.float64) / c.C))
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[:, None].float().to(c.device)


def encoder_model(c, reference):
    """tokens [at most T, B] -> logits."""
    layers = [encoder_layer(c, f"encoder.layers.{i}.", reference) for i in range(c.layers)]
    embed, positions = c.map("src_embed.linear.weight", c.V, c.C), sinusoids(c)
    norm = c.norm("encoder.norm", c.C, BIAS)
    projection = c.linear("generator.projection", c.V, c.C, BIAS)

    def run(tokens):
        x = f.embedding(tokens, embed) * math.sqrt(c.C) + positions[:len(tokens)]
        for layer in layers:
            x = layer(x)
        return dense(layer_norm(x, norm), projection)
    return run


def feedback_layer(c, i):
    prefix = f"transformer.layers.{i}."
    p = feedback.layer_parameters(c, prefix, BIAS)
    if c.layer == "feedback":
        p.key = c.map(f"{prefix}attn.key.linear.weight", c.C, c.C)
        value = c.linear(f"{prefix}attn.value.linear", c.C, c.C, BIAS)
        p.value, p.value_bias = value.weight, value.bias
        return p
    p.key, p.value = (c.map(f"transformer.{name}.linear.weight", c.C, c.C)
                      for name in ("key", "value"))
    p.value_bias, p.place_bias = None, c.uniform(f"{prefix}attn.key_pos_bias", 1, c.T, c.heads)
    return p


def feedback_model(c, reference):
    model = SimpleNamespace(layers=[feedback_layer(c, i) for i in range(c.layers)],
                            weights=c.uniform("transformer.weights", 1, c.layers + 1),
                            norm=c.norm("transformer.norm", c.C, BIAS),
                            shared=c.layer == "feedback_kv")
    embed, projection = c.uniform("src_embed.weight", 1, c.V, c.C), c.linear("generator", c.V, c.C, BIAS)
    sequence = feedback.labml_sequence if reference else feedback.cached_sequence
    return lambda tokens: dense(sequence(f.embedding(tokens, embed), model), projection)


def model_of(c, reference):
    return (feedback_model if c.layer.startswith("feedback") else encoder_model)(c, reference)


def forward(c, reference):
    tokens, model = c.indices("tokens", 0, c.V, c.T, c.B), model_of(c, reference)
    return lambda: model(tokens)


def decode(c, reference):
    """A text of T tokens, each read from the logits of its prefix; the last logits are the check."""
    tokens, model = c.indices("tokens", 0, c.V, c.T, c.B), model_of(c, reference)

    def run():
        logits = [model(tokens[:t])[-1] for t in range(1, c.T + 1)]
        return torch.stack(logits)
    return run


@formulation("lm", "published code", reference=True)
def lm(c):
    return forward(c, True)


@formulation("lm", "best layers", packed=True)
def lm_best(c):
    return forward(c, False)


@formulation("lm_decode", "prefix computed again (published code)", reference=True, compiles=False)
def lm_decode(c):
    return decode(c, True)


@formulation("lm_decode", "prefix computed again, best layers", compiles=False)
def lm_decode_best(c):
    return decode(c, False)

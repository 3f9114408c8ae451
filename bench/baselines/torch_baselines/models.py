# SPDX-License-Identifier: MIT
"""The Feedback Transformer and language models: the whole text, and sampling as the published code does it, which
computes the whole prefix again for every token."""
import math

import torch
from torch.nn import functional as f
from torch_models.feedback import Feedback, FeedbackLM
from torch_models.transformer import LM

from .layers import use_best, use_conv1d
from .registry import formulation

BIAS = 0.5  # the spread of biases in bench/cases/lm_model.c


# -- the Feedback Transformer with keys and values kept: labml's projects every memory again in every step

def attend(x, keys, values, attn):
    """keys, values [B, H, S, D]: two batched GEMMs; positions are shared by the batch."""
    n, split = keys.shape[2], attn.key_pos_bias is not None
    q = attn.query(x)
    biased = q + attn.query_pos_bias
    positions = attn.key_pos_embeddings[-n:].transpose(0, 1)  # [H, S, D]
    scores = torch.matmul(keys, biased.unsqueeze(-1)).squeeze(-1)
    queries = q if split else biased
    scores = scores + torch.bmm(queries.transpose(0, 1), positions.transpose(1, 2)).transpose(0, 1)
    if split:
        scores = scores + attn.key_pos_bias[-n:].transpose(0, 1)
    weights = torch.softmax(scores / math.sqrt(q.shape[-1]), -1)
    return attn.output(torch.matmul(weights.unsqueeze(2), values).flatten(1))


def keep_keys(model):
    """Replaces a Feedback's forward: keys and values of a memory once, by one GEMM for all layers, appended in place."""
    sets = [model] if model.shared else [layer.attn for layer in model.layers]
    maps = [m.linear for s in sets for m in (s.key, s.value)]
    weight, heads = torch.cat([m.weight.data for m in maps]), model.layers[0].attn.query.heads
    zeros = weight.new_zeros(len(maps[0].weight))
    bias = torch.cat([zeros if m.bias is None else m.bias.data for m in maps])

    def forward(x_seq):
        n, batch, width = x_seq.shape
        cache = x_seq.new_empty(len(maps), batch, heads, n, width // heads)
        share, results = torch.softmax(model.weights, 0), torch.empty_like(x_seq)
        for t, x in enumerate(x_seq):
            memory = share[0] * x
            for i, layer in enumerate(model.layers):
                if t:
                    keys, values = cache[0 if model.shared else 2 * i:][:2]
                    x = x + attend(layer.norm_self_attn(x), keys[:, :, :t], values[:, :, :t], layer.attn)
                x = x + layer.feed_forward(layer.norm_ff(x))
                memory = memory + share[i + 1] * x
            projected = f.linear(memory, weight, bias)
            cache[:, :, :, t] = projected.view(batch, len(cache), heads, -1).transpose(0, 1)
            results[t] = x
        return model.norm(results), None
    model.forward = forward


def feedback_model(c):
    """All layers' projections are rows of one weight; a key's bias would change nothing."""
    config = {"d_model": c.C, "heads": c.heads, "P": c.T, "d_ff": c.F, "n_layers": c.layers}
    model = c.fill(Feedback(config))
    weight = c.map("key_value.weight", 2 * c.layers * c.C, c.C).view(c.layers, 2, c.C, c.C)
    bias = c.uniform("key_value.bias", 1, 2 * c.layers * c.C).view(c.layers, 2, c.C)
    for layer, w, b in zip(model.layers, weight, bias):
        layer.attn.key.linear.weight.data, layer.attn.value.linear.weight.data = w
        layer.attn.value.linear.bias.data = b[1]
    return c.uniform("x", 1, c.T, c.B, c.C), model


@formulation("feedback", "every memory projected in every step (labml)", reference=True, compiles=False)
def feedback_reference(c):
    x, model = feedback_model(c)
    return lambda: model(x)[0]


@formulation("feedback", "keys and values kept", compiles=False)
def feedback_cached(c):
    x, model = feedback_model(c)
    keep_keys(model)
    return lambda: model(x)[0]


# -- language models

def model_of(c, reference):
    """tokens [at most T, B] -> logits."""
    c.causal = True
    config = {"layer": c.layer, "n_vocab": c.V, "d_model": c.C, "n_layers": c.layers, "seq_len": c.T, "P": c.T,
              "local_window_size": c.window, "heads": c.heads, "d_ff": c.F, "d_ffn": c.F,
              "score": "split" if c.layer == "feedback_kv" else "joint"}
    if c.layer.startswith("feedback"):
        prepare = None if reference else lambda model: keep_keys(model.transformer)
        return c.fill(FeedbackLM(config), bias=BIAS, prepare=prepare)
    model = use_conv1d(c, c.fill(LM(config), bias=BIAS))
    return model if reference else use_best(c, model)


def forward(c, reference):
    tokens, model = c.indices("tokens", 0, c.V, c.T, c.B), model_of(c, reference)
    return lambda: model(tokens)


def decode(c, reference):
    """A text of T tokens, each read from the logits of its prefix; the last logits are the check."""
    tokens, model = c.indices("tokens", 0, c.V, c.T, c.B), model_of(c, reference)
    return lambda: torch.stack([model(tokens[:t])[-1] for t in range(1, c.T + 1)])


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

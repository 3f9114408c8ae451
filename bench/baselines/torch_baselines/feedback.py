# SPDX-License-Identifier: MIT
"""The Feedback Transformer: labml's step, which projects every memory again, and one that keeps keys
and values."""
import math
from types import SimpleNamespace

import torch

from .registry import dense, formulation, layer_norm


def layer_parameters(c, prefix, bias=1):
    """Without the keys' and values' projections."""
    width = c.C // c.heads
    return SimpleNamespace(
        norm1=c.norm(f"{prefix}norm_self_attn", c.C, bias), norm2=c.norm(f"{prefix}norm_ff", c.C, bias),
        query=c.map(f"{prefix}attn.query.linear.weight", c.C, c.C),
        output=c.linear(f"{prefix}attn.output", c.C, c.C, bias),
        places=c.uniform(f"{prefix}attn.key_pos_embeddings", 1, c.T, c.heads, width),
        u=c.uniform(f"{prefix}attn.query_pos_bias", 1, c.heads, width), place_bias=None,
        layer1=c.linear(f"{prefix}feed_forward.layer1", c.F, c.C, bias),
        layer2=c.linear(f"{prefix}feed_forward.layer2", c.C, c.F, bias))


def own_projections(c):
    """Of the case `feedback`: all layers' rows in one weight; a key's bias would change nothing."""
    weight = c.map("key_value.weight", 2 * c.layers * c.C, c.C).view(c.layers, 2, c.C, c.C)
    bias = c.uniform("key_value.bias", 1, 2 * c.layers * c.C).view(c.layers, 2, c.C)
    return [SimpleNamespace(key=w[0], value=w[1], value_bias=b[1]) for w, b in zip(weight, bias)]


def model_parameters(c):
    layers = []
    for i, projections in enumerate(own_projections(c)):
        p = layer_parameters(c, f"layers.{i}.")
        p.key, p.value, p.value_bias = projections.key, projections.value, projections.value_bias
        layers.append(p)
    return SimpleNamespace(layers=layers, weights=c.uniform("weights", 1, c.layers + 1),
                           norm=c.norm("norm", c.C))


def after_attention(x, p):
    return x + dense(torch.relu(dense(layer_norm(x, p.norm2), p.layer1)), p.layer2)


def labml_attend(x, memory, p):
    """x [B, C], memory [S, B, C]."""
    heads = p.u.shape[0]
    q = torch.nn.functional.linear(layer_norm(x, p.norm1), p.query).unflatten(-1, (heads, -1))
    k = torch.nn.functional.linear(memory, p.key).unflatten(-1, (heads, -1))
    v = torch.nn.functional.linear(memory, p.value, p.value_bias).unflatten(-1, (heads, -1))
    places = p.places[-len(memory):].unsqueeze(1)
    if p.place_bias is None:
        scores = torch.einsum("bhd,jbhd->jbh", q + p.u, k + places)
    else:
        scores = (torch.einsum("bhd,jbhd->jbh", q + p.u, k)
                  + torch.einsum("bhd,jhd->jbh", q, places.squeeze(1))
                  + p.place_bias[-len(memory):].unsqueeze(1))
    attn = torch.softmax(scores / math.sqrt(q.shape[-1]), 0)
    return x + dense(torch.einsum("jbh,jbhd->bhd", attn, v).flatten(1), p.output)


def labml_sequence(x_seq, model):
    """x_seq [T, B, C]; every layer projects all memories in every step."""
    memories, results = [], []
    for x in torch.unbind(x_seq):
        outputs = [x]
        memory = torch.stack(memories) if memories else None
        for p in model.layers:
            if memory is not None:
                x = labml_attend(x, memory, p)
            x = after_attention(x, p)
            outputs.append(x)
        memories.append(torch.einsum("lbd,l->bd", torch.stack(outputs), torch.softmax(model.weights, 0)))
        results.append(x)
    return layer_norm(torch.stack(results), model.norm)


def cached_attend(x, keys, values, p):
    """keys, values [B, H, S, D]: two batched GEMMs; places are shared by the batch."""
    heads, n = p.u.shape[0], keys.shape[2]
    q = torch.nn.functional.linear(layer_norm(x, p.norm1), p.query).unflatten(-1, (heads, -1))
    biased = q + p.u
    places = p.places[-n:].transpose(0, 1)  # [H, S, D]
    scores = torch.matmul(keys, biased.unsqueeze(-1)).squeeze(-1)
    queries = biased if p.place_bias is None else q
    scores = scores + torch.bmm(queries.transpose(0, 1), places.transpose(1, 2)).transpose(0, 1)
    if p.place_bias is not None:
        scores = scores + p.place_bias[-n:].transpose(0, 1)
    attn = torch.softmax(scores / math.sqrt(q.shape[-1]), -1)
    return x + dense(torch.matmul(attn.unsqueeze(2), values).flatten(1), p.output)


def cached_sequence(x_seq, model):
    """Keys and values of a memory once, by one GEMM for all layers, appended in place."""
    n, batch, width = x_seq.shape
    heads, layers = model.layers[0].u.shape[0], model.layers
    shared = getattr(model, "shared", False)
    sets = layers[:1] if shared else layers
    weight = torch.cat([w for p in sets for w in (p.key, p.value)])
    bias = None
    if sets[0].value_bias is not None:
        bias = torch.cat([b for p in sets for b in (torch.zeros_like(p.value_bias), p.value_bias)])
    cache = x_seq.new_empty(2 * len(sets), batch, heads, n, width // heads)
    share, results = torch.softmax(model.weights, 0), torch.empty_like(x_seq)
    for t in range(n):
        x = x_seq[t]
        memory = share[0] * x
        for i, p in enumerate(layers):
            if t:
                at = 0 if shared else 2 * i
                x = cached_attend(x, cache[at, :, :, :t], cache[at + 1, :, :, :t], p)
            x = after_attention(x, p)
            memory = memory + share[i + 1] * x
        projected = torch.nn.functional.linear(memory, weight, bias)
        cache[:, :, :, t] = projected.view(batch, len(cache), heads, -1).transpose(0, 1)
        results[t] = x
    return layer_norm(results, model.norm)


@formulation("feedback", "every memory projected in every step (labml)", reference=True, compiles=False)
def feedback_reference(c):
    x, model = c.uniform("x", 1, c.T, c.B, c.C), model_parameters(c)
    return lambda: labml_sequence(x, model)


@formulation("feedback", "keys and values kept", compiles=False)
def feedback_cached(c):
    x, model = c.uniform("x", 1, c.T, c.B, c.C), model_parameters(c)
    return lambda: cached_sequence(x, model)

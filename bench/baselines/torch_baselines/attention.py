# SPDX-License-Identifier: MIT
"""Softmax attention: labml's and d2l's formulations, and scaled_dot_product_attention."""
import math

import torch
from torch.nn import functional as f

from .registry import causal_mask, dense, formulation
from .rows import sequence_softmax


def heads_of_ours(y):
    """[B, H, T, D] as the library's [B, T, H D]."""
    return y.transpose(1, 2).flatten(2)


def operands(c):
    width = c.C // c.heads
    return [c.uniform(name, 2, c.B, c.heads, c.T, width) for name in "qkv"]


@formulation("attention", "scaled_dot_product_attention")
def attention(c):
    q, k, v = operands(c)
    return (lambda: f.scaled_dot_product_attention(q, k, v, is_causal=c.causal)), heads_of_ours


def labml_attention(q, k, v, mask):
    """[T, B, H, D], mask [T, T, 1]: every pair's score lies in memory."""
    scores = torch.einsum("ibhd,jbhd->ijbh", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask.unsqueeze(-1) == 0, -math.inf)
    return torch.einsum("ijbh,jbhd->ibhd", torch.softmax(scores, 1), v)


@formulation("attention", "einsum (labml)", reference=True)
def attention_einsum(c):
    q, k, v = (x.permute(2, 0, 1, 3).contiguous() for x in operands(c))
    mask = causal_mask(c.T, c.device).unsqueeze(-1) if c.causal else None
    return (lambda: labml_attention(q, k, v, mask)), lambda y: y.transpose(0, 1).flatten(2)


def labml_parameters(c):
    return [c.linear(name, c.C, c.C) for name in ("query", "key", "value", "output")]


@formulation("mha_labml", "einsum (labml)", reference=True)
def mha_einsum(c):
    x, maps = c.uniform("x", 1, c.T, c.B, c.C), labml_parameters(c)
    mask = causal_mask(c.T, c.device).unsqueeze(-1) if c.causal else None
    return lambda: labml_mha(x, maps, c.heads, mask)


def labml_mha(x, maps, heads, mask):
    q, k, v = (dense(x, m).unflatten(-1, (heads, -1)) for m in maps[:3])
    return dense(labml_attention(q, k, v, mask).flatten(2), maps[3])


def fused_mha(x, maps, heads, causal):
    """x [T, B, C]."""
    q, k, v = (dense(x, m).unflatten(-1, (heads, -1)).permute(1, 2, 0, 3) for m in maps[:3])
    y = f.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return dense(y.permute(2, 0, 1, 3).flatten(2), maps[3])


@formulation("mha_labml", "scaled_dot_product_attention", packed=True)
def mha_fused(c):
    x, maps = c.uniform("x", 1, c.T, c.B, c.C), labml_parameters(c)
    return lambda: fused_mha(x, maps, c.heads, c.causal)


def d2l_parameters(c):
    return [c.dense_of(c.map(f"{name}.weight", c.C, c.C), None)
            for name in ("query", "key", "value", "output")]


@formulation("mha_d2l", "bmm (d2l)", reference=True)
def mha_bmm(c):
    x, maps = c.uniform("x", 1, c.B, c.T, c.C), d2l_parameters(c)
    lens = c.indices("valid_lens", 1, c.T + 1, c.B)

    def split(y):
        return y.unflatten(-1, (c.heads, -1)).transpose(1, 2).flatten(0, 1)

    def run():
        q, k, v = (split(dense(x, m)) for m in maps[:3])
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        y = torch.bmm(sequence_softmax(scores, lens.repeat_interleave(c.heads)), v)
        return dense(y.unflatten(0, (-1, c.heads)).transpose(1, 2).flatten(2), maps[3])
    return run


@formulation("mha_d2l", "scaled_dot_product_attention", packed=True)
def mha_d2l_fused(c):
    x, maps = c.uniform("x", 1, c.B, c.T, c.C), d2l_parameters(c)
    lens = c.indices("valid_lens", 1, c.T + 1, c.B)
    seen = torch.arange(c.T, device=c.device) < lens[:, None, None, None]

    def run():
        q, k, v = (dense(x, m).unflatten(-1, (c.heads, -1)).transpose(1, 2) for m in maps[:3])
        y = f.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return dense(y.transpose(1, 2).flatten(2), maps[3])
    return run


def additive(queries, keys, values, lens, w_q, w_k, w_v):
    """d2l: all sums of a query and a key in memory, [B, T, S, N]."""
    features = torch.tanh(f.linear(queries, w_q).unsqueeze(2) + f.linear(keys, w_k).unsqueeze(1))
    return torch.bmm(sequence_softmax(f.linear(features, w_v).squeeze(-1), lens), values)


@formulation("additive_attention", "tanh of all sums (d2l)", reference=True)
def additive_attention(c):
    queries, keys = c.uniform("queries", 1, c.B, c.T, c.C), c.uniform("keys", 1, c.B, c.S, c.C)
    values, lens = c.uniform("values", 1, c.B, c.S, c.C), c.indices("valid_lens", 1, c.S + 1, c.B)
    maps = c.map("W_q", c.C, c.C), c.map("W_k", c.C, c.C), c.map("w_v", 1, c.C)
    return lambda: additive(queries, keys, values, lens, *maps)


def points(c):
    return c.uniform("x_train", 5, c.N), c.uniform("y_train", 2, c.N), c.uniform("x_val", 5, c.M)


@formulation("attention_pooling", "kernel over its sum (d2l)", reference=True)
def attention_pooling(c):
    x, y, at = points(c)

    def run():
        k = torch.exp(-(x.reshape(-1, 1) - at.reshape(1, -1)) ** 2 / 2)
        return y @ (k / k.sum(0))
    return run


@formulation("attention_pooling", "softmax")
def attention_pooling_softmax(c):
    x, y, at = points(c)
    return lambda: torch.softmax(-(at[:, None] - x) ** 2 / 2, -1) @ y

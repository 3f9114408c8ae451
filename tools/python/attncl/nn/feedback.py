# SPDX-License-Identifier: MIT
"""Feedback Transformer: each position attends to a mix of all layers of the positions before it."""
from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .layer import Heads, Layer, check_heads, check_length
from .transformer import FeedForward


class FeedbackAttention(nn.Module):
    """Attention of one position to S memories; row P - j of the position tables belongs to the j-th newest."""

    def __init__(self, d_model: int, heads: int, P: int, score: str, shares_kv: bool, dropout: float):
        super().__init__()
        depth = d_model // heads
        self.query = Heads(d_model, heads, False)
        if not shares_kv:
            self.key, self.value = Heads(d_model, heads, False), Heads(d_model, heads, True)
        self.output = nn.Linear(d_model, d_model)
        self.key_pos_embeddings = nn.Parameter(torch.zeros(P, heads, depth))
        self.query_pos_bias = nn.Parameter(torch.zeros(heads, depth))
        if score == "split":
            self.key_pos_bias = nn.Parameter(torch.zeros(P, heads))
        self.split, self.dropout = score == "split", nn.Dropout(dropout)

    def forward(self, query: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """query [B, C], keys and values [S, B, H, D]."""
        n = len(k)
        q = self.query(query)
        shifted, positions = q + self.query_pos_bias, self.key_pos_embeddings[-n:]
        scores = torch.einsum("bhd,jbhd->jbh", shifted, k)
        scores = scores + torch.einsum("bhd,jhd->jbh", q if self.split else shifted, positions)
        if self.split:
            scores = scores + self.key_pos_bias[-n:, None]
        weights = self.dropout((scores / math.sqrt(q.shape[-1])).softmax(0))
        return self.output(torch.einsum("jbh,jbhd->bhd", weights, v).flatten(1))


class FeedbackLayer(nn.Module):
    def __init__(self, attn: FeedbackAttention, feed_forward: FeedForward, d_model: int, eps: float, dropout: float):
        super().__init__()
        self.attn, self.feed_forward = attn, feed_forward
        self.norm_self_attn, self.norm_ff = (nn.LayerNorm(d_model, eps=eps) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, k: Tensor | None, v: Tensor | None) -> Tensor:
        if k is not None and v is not None:
            x = x + self.dropout(self.attn(self.norm_self_attn(x), k, v))
        return x + self.dropout(self.feed_forward(self.norm_ff(x)))


class FeedbackTransformer(Layer):
    """Layers that attend to a memory of all earlier positions' layers (arXiv 2002.09402), position by position:
    x_seq [T, B, d_model] to the same shape.  `score` is "joint", the default, or "split": labml.ai's first and later version."""
    arch = "feedback_transformer"
    shares_kv = False

    def __init__(self, d_model: int, heads: int, d_ff: int, n_layers: int, P: int = 4096, score: str | None = None,
                 activation: str = "relu", is_gated: bool = False, bias1: bool = True, bias2: bool = True,
                 bias_gate: bool = True, layer_norm_eps: float = 1e-5, dropout: float = 0.0):
        check_heads("FeedbackTransformer", d_model, heads)
        score = score or ("split" if self.shares_kv else "joint")
        if score not in ("joint", "split"):
            raise ValueError(f"{type(self).__name__}: score {score!r} is none of joint, split")

        def feed_forward() -> FeedForward:
            return FeedForward(d_model, d_ff, activation, is_gated, bias1, bias2, bias_gate, dropout)
        super().__init__(**feed_forward().config, heads=heads, n_layers=n_layers, P=P, score=score, layer_norm_eps=layer_norm_eps)
        self.layers = nn.ModuleList(
            FeedbackLayer(FeedbackAttention(d_model, heads, P, score, self.shares_kv, dropout), feed_forward(), d_model,
                          layer_norm_eps, dropout) for _ in range(n_layers))
        if self.shares_kv:
            self.key, self.value = Heads(d_model, heads, False), Heads(d_model, heads, False)
        self.norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.weights = nn.Parameter(torch.ones(n_layers + 1))

    def forward(self, x_seq: Tensor) -> Tensor:
        check_length(self, len(x_seq), self.config["P"] + 1)
        share = self.weights.softmax(0)
        maps = [self] if self.shares_kv else [layer.attn for layer in self.layers]
        keys: list[list[Tensor]] = [[] for _ in maps]
        values: list[list[Tensor]] = [[] for _ in maps]
        results = []
        for x in x_seq:
            of_layers = [x]
            seen = [(torch.stack(k), torch.stack(v)) if k else (None, None) for k, v in zip(keys, values)]
            for layer, (k, v) in zip(self.layers, seen * len(self.layers) if self.shares_kv else seen):
                x = layer(x, k, v)
                of_layers.append(x)
            results.append(x)
            memory = torch.einsum("l,lbc->bc", share, torch.stack(of_layers))
            for of_map, of_keys, of_values in zip(maps, keys, values):  # a memory's keys and values are computed once
                of_keys.append(of_map.key(memory))
                of_values.append(of_map.value(memory))
        return self.norm(torch.stack(results))


class FeedbackTransformerKV(FeedbackTransformer):
    """A FeedbackTransformer whose layers share the keys and values of memories; `score` is "split" by default."""
    arch = "feedback_transformer_kv"
    shares_kv = True

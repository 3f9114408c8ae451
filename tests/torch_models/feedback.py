# SPDX-License-Identifier: MIT
"""The Feedback Transformer, time first."""
import math

import torch
from torch import nn

from .transformer import feed_forward_of


class Heads(nn.Module):
    """A linear map whose result is split into heads."""

    def __init__(self, d_model, heads, bias):
        super().__init__()
        self.heads, self.linear = heads, nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x):
        return self.linear(x).reshape(*x.shape[:-1], self.heads, -1)


class FeedbackAttention(nn.Module):
    """One query [B, d] to memories [S, B, d]; row P - distance of the tables belongs to a distance."""

    def __init__(self, c, precomputed=False):
        super().__init__()
        d, h, n = c["d_model"], c["heads"], c.get("P", 4096)
        self.query = Heads(d, h, False)
        self.precomputed = precomputed
        if not precomputed:
            self.key, self.value = Heads(d, h, False), Heads(d, h, True)
        self.output = nn.Linear(d, d)
        score = c.get("score", "split" if precomputed else "joint")
        self.key_pos_embeddings = nn.Parameter(torch.randn(n, h, d // h))
        self.query_pos_bias = nn.Parameter(torch.randn(h, d // h))
        self.key_pos_bias = nn.Parameter(torch.randn(n, h)) if score == "split" else None
        self.drop = nn.Identity()

    def forward(self, query, key, value):
        q = self.query(query)
        k, v = (key, value) if self.precomputed else (self.key(key), self.value(value))
        n = k.shape[0]
        positions = self.key_pos_embeddings[-n:]
        if self.key_pos_bias is None:
            s = torch.einsum("bhc,jbhc->jbh", q + self.query_pos_bias, k + positions[:, None])
        else:
            s = torch.einsum("bhc,jbhc->jbh", q + self.query_pos_bias, k)
            s = s + torch.einsum("bhc,jhc->jbh", q, positions) + self.key_pos_bias[-n:][:, None]
        p = torch.softmax(s / math.sqrt(q.shape[-1]), 0)
        return self.output(torch.einsum("jbh,jbhc->bhc", self.drop(p), v).flatten(1)), p


class FeedbackLayer(nn.Module):
    def __init__(self, c, precomputed=False):
        super().__init__()
        self.attn = FeedbackAttention(c, precomputed)
        self.feed_forward = feed_forward_of(c)
        self.norm_self_attn, self.norm_ff = nn.LayerNorm([c["d_model"]]), nn.LayerNorm([c["d_model"]])
        self.drop_attn, self.drop_ff = nn.Identity(), nn.Identity()

    def forward(self, x, key, value):
        if key is not None:
            x = x + self.drop_attn(self.attn(self.norm_self_attn(x), key, value)[0])
        return x + self.drop_ff(self.feed_forward(self.norm_ff(x)))


class Feedback(nn.Module):
    """shared: one projection of keys and values for all layers.  Every step projects all memories again."""

    def __init__(self, c, shared=False):
        super().__init__()
        self.layers = nn.ModuleList([FeedbackLayer(c, shared) for _ in range(c["n_layers"])])
        self.norm = nn.LayerNorm([c["d_model"]])
        self.weights = nn.Parameter(torch.randn(c["n_layers"] + 1))
        self.shared = shared
        if shared:
            self.key, self.value = Heads(c["d_model"], c["heads"], False), Heads(c["d_model"], c["heads"], False)

    def forward(self, x_seq):
        results, memory = [], []
        for x in x_seq:
            k = v = torch.stack(memory) if memory else None
            if memory and self.shared:
                k, v = self.key(k), self.value(v)
            values = [x]
            for layer in self.layers:
                values.append(layer(values[-1], k, v))
            results.append(values[-1])
            memory.append(torch.einsum("l,lbc->bc", torch.softmax(self.weights, 0), torch.stack(values)))
        return self.norm(torch.stack(results)), torch.stack(memory)


class FeedbackLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.src_embed = nn.Embedding(c["n_vocab"], c["d_model"])
        self.transformer = Feedback(c, c["layer"] == "feedback_kv")
        self.scale = c.get("embed_scale", 1)
        self.src_embed.norm = nn.LayerNorm([c["d_model"]]) if c.get("embed_norm") else nn.Identity()
        has_bias = c.get("generator_bias", not c.get("tie_generator"))
        self.generator = nn.Linear(c["d_model"], c["n_vocab"], bias=has_bias)
        if c.get("tie_generator"):
            self.generator.weight = self.src_embed.weight

    def forward(self, tokens):
        x = self.src_embed.norm(self.src_embed(tokens) * self.scale)
        return self.generator(self.transformer(x)[0])

# SPDX-License-Identifier: MIT
"""Softmax attention: labml's, time first with a mask, and d2l's, batch first with valid lengths."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def open_blind_rows(mask, dim):
    """The mask with rows that see nothing opened, which keeps a softmax finite, and these rows: their result is 0.
    None where there are none."""
    blind = ~mask.any(dim, keepdim=True)
    return (mask | blind, blind) if blind.any() else (mask, None)


def masked_softmax(x, lens):
    """d2l: scores at or beyond the lengths, [B] or [B, Q], become -1e6 by an indexed write to x, then softmax."""
    rows = x.reshape(-1, x.shape[-1])
    lens = lens.repeat_interleave(x.shape[1]) if lens.dim() == 1 else lens.reshape(-1)
    mask = torch.arange(x.shape[-1], dtype=torch.float32, device=x.device)[None] < lens[:, None]
    rows[~mask] = -1e6
    return torch.softmax(rows.reshape(x.shape), -1)


def attend(q, k, v, lens=None, scale=None):
    """softmax(q k^T scale) v and the weights."""
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    p = torch.softmax(scores, -1) if lens is None else masked_softmax(scores, lens)
    return p @ v, p


def additive(queries, keys, values, lens, w_q, w_k, w_v):
    """d2l: all sums of a query and a key in memory, [B, T, S, N].  The result and the weights."""
    features = torch.tanh(F.linear(queries, w_q).unsqueeze(2) + F.linear(keys, w_k).unsqueeze(1))
    p = masked_softmax(F.linear(features, w_v).squeeze(-1), lens)
    return torch.bmm(p, values), p


def einsum_attention(q, k, v, mask=None):
    """labml: q [T, B, H, D], mask [T, S, B].  The result and the weights [T, S, B, H]."""
    scores, blind = torch.einsum("ibhd,jbhd->ijbh", q, k) / math.sqrt(q.shape[-1]), None
    if mask is not None:
        mask, blind = open_blind_rows(mask, 1)
        scores = scores.masked_fill(~mask.unsqueeze(-1), -math.inf)
    p = torch.softmax(scores, 1)
    if blind is not None:
        p = p.masked_fill(blind.unsqueeze(-1), 0)
    return torch.einsum("ijbh,jbhd->ibhd", p, v), p


class MHA(nn.Module):
    """Multi-head attention, time first; values and output always have a bias."""

    def __init__(self, d_model, heads, bias=True, n_kv_heads=None):
        super().__init__()
        self.heads, self.shared = heads, heads // (n_kv_heads or heads)
        for name in ("query", "key", "value"):
            setattr(self, name, nn.Module())
            width = d_model if name == "query" else d_model // self.shared
            getattr(self, name).linear = nn.Linear(d_model, width, bias=bias or name == "value")
        self.output = nn.Linear(d_model, d_model)
        self.core = einsum_attention

    def weighted(self, query, key, value, mask):
        """The result and the weights, which are detached, as published."""
        pairs = ((self.query, query), (self.key, key), (self.value, value))
        q, k, v = (m.linear(x).unflatten(-1, (-1, query.shape[-1] // self.heads)) for m, x in pairs)
        k, v = (x.repeat_interleave(self.shared, 2) for x in (k, v))
        y, p = self.core(q, k, v, None if mask is None else mask != 0)
        return self.output(y.flatten(2)), p.detach()

    def forward(self, query, key, value, mask):
        return self.weighted(query, key, value, mask)[0]


class AdditiveScores(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.W_q, self.W_k = nn.Linear(width, size, bias=False), nn.Linear(width, size, bias=False)
        self.w_v = nn.Linear(size, 1, bias=False)

    def forward(self, q, k, v, lens):
        return additive(q, k, v, lens, self.W_q.weight, self.W_k.weight, self.w_v.weight)


class BatchFirstMHA(nn.Module):
    def __init__(self, num_hiddens, num_heads, bias=False, query_size=None, key_size=None, value_size=None,
                 additive_size=None):
        super().__init__()
        self.heads = num_heads
        self.W_q = nn.Linear(query_size or num_hiddens, num_hiddens, bias=bias)
        self.W_k = nn.Linear(key_size or num_hiddens, num_hiddens, bias=bias)
        self.W_v = nn.Linear(value_size or num_hiddens, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.attention = AdditiveScores(num_hiddens // num_heads, additive_size) if additive_size else None

    def split(self, x):  # [B, T, C] -> [B H, T, C / H]
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, queries, keys, values, lens):
        q, k, v = self.split(self.W_q(queries)), self.split(self.W_k(keys)), self.split(self.W_v(values))
        lens = lens.repeat_interleave(self.heads, 0)
        if self.attention:
            y, p = self.attention(q, k, v, lens)
        else:
            p = masked_softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), lens)
            y = torch.bmm(p, v)
        return self.W_o(y.unflatten(0, (-1, self.heads)).transpose(1, 2).flatten(2)), p

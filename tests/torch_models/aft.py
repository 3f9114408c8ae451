# SPDX-License-Identifier: MIT
"""Attention-free layers, time first."""
import math

import torch
from torch import nn

from .attention import open_blind_rows


def mix(q, k, v, w, mask=None):
    """y_i = sigmoid(q_i) sum_j softmax_j(w_ij + k_j) v_j.  q, k, v [T, B, C], w [T, T], mask [T, T, B] or None."""
    w, blind = w.unsqueeze(-1), None
    if mask is not None:
        mask, blind = open_blind_rows(mask, 1)
        w = w.masked_fill(~mask, -math.inf)
    exp_key = torch.exp(k - k.max(dim=0, keepdim=True)[0])
    exp_bias = torch.exp(w - w.max(dim=1, keepdim=True)[0])
    num = torch.einsum("ijb,jbd->ibd", exp_bias, exp_key * v)
    den = torch.einsum("ijb,jbd->ibd", exp_bias, exp_key)
    y = torch.sigmoid(q) * num / den
    return y if blind is None else y.masked_fill(blind.transpose(1, 2), 0)


class AFT(nn.Module):
    """kind: aft_full, aft_local, aft_simple, aft_conv.  A row that sees nothing gives 0."""

    def __init__(self, kind, d_model, seq_len=0, window=0, bias=True, heads=0):
        super().__init__()
        self.kind = kind
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, heads or d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model)
        if kind == "aft_conv":
            self.w = nn.Parameter(torch.randn(heads, window))
        elif kind != "aft_simple":
            self.pos_bias = nn.Parameter(torch.randn(seq_len, seq_len))
        if kind == "aft_local":
            i = torch.arange(seq_len)
            self.register_buffer("local_mask", (i[:, None] - i[None, :]).abs() < window)

    def forward(self, query, key, value, mask):
        mask = None if mask is None else mask != 0
        return self.output(self.core(self.query(query), self.key(key), self.value(value), mask))

    def core(self, q, k, v, mask):
        n = len(q)
        if self.kind == "aft_conv":
            return torch.sigmoid(q) * self.convolve(k, v, mask)
        w = q.new_zeros(n, n) if self.kind == "aft_simple" else self.pos_bias[:n, :n]
        if self.kind == "aft_local":
            w = w * self.local_mask[:n, :n]
        return mix(q, k, v, w, mask)

    def convolve(self, k, v, mask):
        """Eq. 6 of the paper as a matrix: conv1d(e^K V, e^w - 1) + sum e^K V, divided by the same of e^K."""
        (n, b, d), h, s = v.shape, k.shape[2], self.w.shape[1]
        heads = torch.exp(k)[..., None]  # [T, B, H, 1]
        tap = torch.arange(n)[None] - torch.arange(n)[:, None] + (s - 1) // 2  # [T, T]
        weight = torch.exp(self.w)[:, tap.clamp(0, s - 1)]
        kernel = torch.where((tap >= 0) & (tap < s), weight - 1, torch.zeros_like(weight)) + 1
        kernel = kernel[:, :, :, None].expand(h, n, n, b)
        if mask is not None:
            kernel = kernel * mask
        num = torch.einsum("hijb,jbhc->ibhc", kernel, heads * v.reshape(n, b, h, d // h))
        den = torch.einsum("hijb,jbhc->ibhc", kernel, heads)
        return (num / torch.where(den > 0, den, torch.ones_like(den))).reshape(n, b, d)

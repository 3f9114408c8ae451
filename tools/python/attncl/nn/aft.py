# SPDX-License-Identifier: MIT
"""Attention Free Transformer layers: sigmoid(Q) * sum_j exp(w_ij + K_j) V_j / sum_j exp(w_ij + K_j)."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from .layer import Layer, check_length, visible_pairs

_TINY = 1e-30  # denominators below it may have lost terms to underflow


def _weighted_mean(w: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """sum_j exp(w_ij + k_j) v_j / sum_j exp(w_ij + k_j): w [H, T or 1, S, B or 1], k [S, B, H, 1 or D], v [S, B, H, D];
    a row whose w are all -inf gives 0."""
    top_w, top_k = w.amax(2, keepdim=True).detach(), k.amax(0, keepdim=True).detach()
    a, b = (w - top_w.masked_fill(top_w == -math.inf, 0)).exp(), (k - top_k).exp()
    denominator = torch.einsum("hijb,jbhc->ibhc", a, b)
    seen = (top_w > -math.inf).permute(1, 3, 0, 2)  # [T or 1, B or 1, H, 1]
    if (seen & (denominator < _TINY)).any():  # the largest w and the largest k lie far apart
        scores = w.permute(1, 2, 3, 0)[..., None] + k  # [T or 1, S, B, H, 1 or D]
        scores = torch.where(seen[:, None], scores, 0)
        return torch.where(seen, (scores.softmax(1) * v).sum(1), 0)
    return torch.where(seen, torch.einsum("hijb,jbhc->ibhc", a, b * v) / torch.where(seen, denominator, 1), 0)


class _AFT(Layer):
    """The base of the four AFT layers: projections, sigmoid(query) and the weighted mean of values."""

    def __init__(self, d_model: int, n_keys: int, bias: bool, **config: Any):
        super().__init__(d_model=d_model, **config, bias=bias)
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, n_keys, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model)

    def _position_weights(self, length: int) -> Tensor:
        """The position biases, [H, T or 1, T]."""
        raise NotImplementedError

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                mask: Tensor | None = None) -> Tensor:
        """query, key and value [T, B, d_model]; key defaults to query, value to key."""
        key = query if key is None else key
        value = key if value is None else value
        if not query.shape == key.shape == value.shape:
            raise ValueError(f"{type(self).__name__}: query {list(query.shape)}, key {list(key.shape)}, "
                             f"value {list(value.shape)}: expected one shape [T, B, {self.config['d_model']}]")
        length, batch, _ = query.shape
        visible = visible_pairs(mask, query, length, type(self).__name__)
        w = self._position_weights(length)[..., None]
        if visible is not None:
            w = w.masked_fill(~visible, -math.inf)
        n_heads = w.shape[0]
        k, v = (linear(x).view(length, batch, n_heads, -1) for linear, x in ((self.key, key), (self.value, value)))
        mean = _weighted_mean(w, k, v).flatten(2)
        return self.output(torch.sigmoid(self.query(query)) * mean)


class AFTFull(_AFT):
    """An Attention Free Transformer's layer (arXiv 2105.14103): `pos_bias` weighs each pair of positions."""
    arch = "aft_full"

    def __init__(self, d_model: int, seq_len: int, bias: bool = True):
        super().__init__(d_model, d_model, bias, seq_len=seq_len)
        self.pos_bias = nn.Parameter(torch.zeros(seq_len, seq_len))

    def _position_weights(self, length: int) -> Tensor:
        check_length(self, length, self.config["seq_len"])
        return self.pos_bias[None, :length, :length]


class AFTLocal(_AFT):
    """AFT whose `pos_bias` counts where positions are less than `local_window_size` apart, labml.ai's AFTLocal."""
    arch = "aft_local"

    def __init__(self, d_model: int, seq_len: int, local_window_size: int, bias: bool = True):
        super().__init__(d_model, d_model, bias, seq_len=seq_len, local_window_size=local_window_size)
        self.pos_bias = nn.Parameter(torch.zeros(seq_len, seq_len))
        i = torch.arange(seq_len)
        self.local_mask: Tensor
        self.register_buffer("local_mask", (i[:, None] - i).abs() < local_window_size)

    def _position_weights(self, length: int) -> Tensor:
        check_length(self, length, self.config["seq_len"])
        return (self.pos_bias[:length, :length] * self.local_mask[:length, :length])[None]


class AFTSimple(_AFT):
    """AFT without position biases."""
    arch = "aft_simple"

    def __init__(self, d_model: int, bias: bool = True):
        super().__init__(d_model, d_model, bias)

    def _position_weights(self, length: int) -> Tensor:
        return self.output.weight.new_zeros(1, 1, length)


class AFTConv(_AFT):
    """AFT whose position biases are a window `w` for each head, and whose keys are one channel for each head."""
    arch = "aft_conv"

    def __init__(self, d_model: int, heads: int, window_size: int, bias: bool = True):
        if d_model % heads or window_size % 2 == 0:
            raise ValueError(f"AFTConv: d_model {d_model} must be divisible by heads {heads}, window_size {window_size} odd")
        super().__init__(d_model, heads, bias, heads=heads, window_size=window_size)
        self.w = nn.Parameter(torch.zeros(heads, window_size))

    def _position_weights(self, length: int) -> Tensor:
        i = torch.arange(length, device=self.w.device)
        at = i - i[:, None] + self.config["window_size"] // 2  # [T, T], indices of the window
        inside = (at >= 0) & (at < self.config["window_size"])
        return self.w[:, at.clamp(0, self.config["window_size"] - 1)] * inside

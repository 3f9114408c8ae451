# SPDX-License-Identifier: MIT
"""The AFT mixing: labml's einsum, and what PyTorch can do better."""
import math

import torch
from torch.nn import functional as f

from .registry import causal_mask, formulation


def window_of(c, n):
    """Where a position bias counts."""
    if c.layer == "aft_full" or c.family == "aft_full":
        return torch.ones(n, n, dtype=torch.bool, device=c.device)
    i = torch.arange(n, device=c.device)
    return (i[:, None] - i).abs() < c.window


def labml_mix(q, k, v, pos_bias, window, mask):
    """labml's AFTLocal.forward between its linear maps; mask [T, T, 1]."""
    w = (pos_bias * window).unsqueeze(-1)
    w = w.masked_fill(~mask, -math.inf)
    exp_key = torch.exp(k - k.max(dim=0, keepdim=True)[0])
    exp_bias = torch.exp(w - w.max(dim=1, keepdim=True)[0])
    num = torch.einsum("ijb,jbd->ibd", exp_bias, exp_key * v)
    den = torch.einsum("ijb,jbd->ibd", exp_bias, exp_key)
    return torch.sigmoid(q) * num / den


def prepared_bias(pos_bias, window, causal):
    """exp(w - max w) of each row, which does not change from call to call."""
    w = pos_bias * window
    if causal:
        w = w.masked_fill(~causal_mask(len(w), w.device), -math.inf)
    return torch.exp(w - w.amax(1, keepdim=True))


def gemm_mix(q, k, v, exp_bias):
    """One product for both sums."""
    exp_key = torch.exp(k - k.amax(0, keepdim=True))
    sums = exp_bias @ torch.stack((exp_key * v, exp_key)).flatten(2).transpose(0, 1).flatten(1)
    num, den = sums.view(len(q), 2, *q.shape[1:]).unbind(1)
    return torch.sigmoid(q) * num / den


def operands(c):
    return [c.uniform(name, 2, c.T, c.B, c.C) for name in "qkv"]


def bias_of(c):
    if c.family == "aft_simple":
        return torch.zeros(c.T, c.T, device=c.device)
    return c.uniform("pos_bias", 1, c.T, c.T)


@formulation(("aft_local", "aft_full", "aft_simple"), "einsum (labml)", reference=True)
def mix_einsum(c):
    q, k, v = operands(c)
    w, window = bias_of(c), window_of(c, c.T)
    mask = causal_mask(c.T, c.device) if c.causal else torch.ones_like(window)
    return lambda: labml_mix(q, k, v, w, window, mask.unsqueeze(-1))


@formulation(("aft_local", "aft_full"), "one product, bias prepared")
def mix_gemm(c):
    q, k, v = operands(c)
    exp_bias = prepared_bias(bias_of(c), window_of(c, c.T), c.causal)
    return lambda: gemm_mix(q, k, v, exp_bias)


def simple_mix(q, k, v, causal):
    if not causal:
        return torch.sigmoid(q) * (torch.softmax(k, 0) * v).sum(0, keepdim=True)
    exp_key = torch.exp(k - k.amax(0, keepdim=True))
    return torch.sigmoid(q) * (exp_key * v).cumsum(0) / exp_key.cumsum(0)


@formulation("aft_simple", "softmax or cumsum")
def mix_simple(c):
    q, k, v = operands(c)
    return lambda: simple_mix(q, k, v, c.causal)


def prepared_filter(w, width, causal):
    """exp(w) - 1 for each channel, as conv1d takes it."""
    taps = torch.exp(w) - 1
    if causal:
        taps = taps * (torch.arange(w.shape[1], device=w.device) <= (w.shape[1] - 1) // 2)
    return taps.repeat_interleave(width, 0).unsqueeze(1)


def conv_mix(q, k, v, taps, head_taps, causal):
    """The paper's eq. 6: a convolution of exp(w) - 1 beside the sum over all positions."""
    def sums(x, w):
        y = x.permute(1, 2, 0)
        total = y.cumsum(-1) if causal else y.sum(-1, keepdim=True)
        y = f.conv1d(y, w, padding=w.shape[-1] // 2, groups=len(w)) + total
        return y.permute(2, 0, 1)

    width = q.shape[2] // k.shape[2]
    exp_key = torch.exp(k - k.amax(0, keepdim=True))
    num = sums(exp_key.repeat_interleave(width, 2) * v, taps)
    return torch.sigmoid(q) * num / sums(exp_key, head_taps).repeat_interleave(width, 2)


@formulation("aft_conv", "conv1d", reference=True)
def mix_conv(c):
    q, v = c.uniform("q", 2, c.T, c.B, c.C), c.uniform("v", 2, c.T, c.B, c.C)
    k, w = c.uniform("k", 2, c.T, c.B, c.heads), c.uniform("pos_bias", 1, c.heads, c.window)
    taps = prepared_filter(w, c.C // c.heads, c.causal)
    head_taps = prepared_filter(w, 1, c.causal)
    return lambda: conv_mix(q, k, v, taps, head_taps, c.causal)

# SPDX-License-Identifier: MIT
"""gMLP, time first."""
import math

import torch
from torch import nn


class SGU(nn.Module):
    """The spatial gating unit."""

    def __init__(self, d_z, seq_len):
        super().__init__()
        self.norm = nn.LayerNorm([d_z // 2])
        self.weight = nn.Parameter(torch.randn(seq_len, seq_len) / math.sqrt(seq_len))
        self.bias = nn.Parameter(torch.ones(seq_len) + 0.1 * torch.randn(seq_len))

    def forward(self, z, mask):
        z1, z2 = torch.chunk(z, 2, dim=-1)
        return z1 * self.core(self.norm(z2), mask)

    def core(self, u, mask):
        n = len(u)
        w = self.weight[:n, :n]
        if mask is not None:
            w = w * mask[:, :, 0]
        return torch.einsum("ij,jbd->ibd", w, u) + self.bias[:n, None, None]


class GMLP(nn.Module):
    def __init__(self, d_model, d_ffn, seq_len):
        super().__init__()
        self.norm = nn.LayerNorm([d_model])
        self.proj1 = nn.Linear(d_model, d_ffn)
        self.activation = nn.GELU()
        self.sgu = SGU(d_ffn, seq_len)
        self.proj2 = nn.Linear(d_ffn // 2, d_model)

    def forward(self, x, mask):
        return x + self.proj2(self.sgu(self.activation(self.proj1(self.norm(x))), mask))

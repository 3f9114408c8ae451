# SPDX-License-Identifier: MIT
"""gMLP: x + W2 (z1 * (W u + b)), z1 and u the halves of GELU(W1 LN(x))."""
from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .layer import Layer, check_length, visible_pairs


class SpatialGatingUnit(Layer):
    """gMLP's gate (arXiv 2105.08050), labml.ai's SpacialGatingUnit: z [T, B, d_z] to [T, B, d_z / 2]."""
    arch = "spatial_gating_unit"

    def __init__(self, d_z: int, seq_len: int, layer_norm_eps: float = 1e-5):
        if d_z % 2:
            raise ValueError(f"SpatialGatingUnit: d_z {d_z} is odd, its halves are gate and input")
        super().__init__(d_z=d_z, seq_len=seq_len, layer_norm_eps=layer_norm_eps)
        self.norm = nn.LayerNorm(d_z // 2, eps=layer_norm_eps)
        self.weight = nn.Parameter(torch.empty(seq_len, seq_len).uniform_(-0.01, 0.01))
        self.bias = nn.Parameter(torch.ones(seq_len))

    def forward(self, z: Tensor, mask: Tensor | None = None) -> Tensor:
        length = z.shape[0]
        check_length(self, length, self.config["seq_len"])
        visible = visible_pairs(mask, z[:, :1], length, "SpatialGatingUnit")
        weight = self.weight[:length, :length]
        if visible is not None:
            weight = weight * visible[:, :, 0]
        x, u = z.chunk(2, -1)
        return x * (torch.einsum("ij,jbc->ibc", weight, self.norm(u)) + self.bias[:length, None, None])


class GMLPBlock(Layer):
    """A gMLP block with its residual connection."""
    arch = "gmlp_block"

    def __init__(self, d_model: int, d_ffn: int, seq_len: int, layer_norm_eps: float = 1e-5):
        super().__init__(d_model=d_model, d_ffn=d_ffn, seq_len=seq_len, layer_norm_eps=layer_norm_eps)
        self.norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.proj1 = nn.Linear(d_model, d_ffn)
        self.sgu = SpatialGatingUnit(d_ffn, seq_len, layer_norm_eps)
        self.proj2 = nn.Linear(d_ffn // 2, d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x + self.proj2(self.sgu(F.gelu(self.proj1(self.norm(x))), mask))

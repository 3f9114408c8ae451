# SPDX-License-Identifier: MIT
"""Operations on rows and elements."""
import math

import torch
from torch.nn import functional as f

from .registry import formulation


@formulation("softmax", "softmax")
def softmax(c):
    x = c.uniform("x", 4, c.M, c.N)
    return lambda: torch.softmax(x, -1)


def sequence_softmax(x, lens):
    """d2l: the rows' scores beyond a length become -1e6 by an indexed write, then softmax."""
    rows = x.reshape(-1, x.shape[-1])
    lens = lens.repeat_interleave(x.shape[1]) if lens.dim() == 1 else lens.reshape(-1)
    mask = torch.arange(x.shape[-1], dtype=torch.float32, device=x.device)[None] < lens[:, None]
    rows[~mask] = -1e6
    return torch.softmax(rows.reshape(x.shape), -1)


@formulation("masked_softmax", "indexed write (d2l)", reference=True)
def masked_softmax_d2l(c):
    x, lens = c.uniform("x", 4, c.B, c.M, c.N), c.indices("valid_lens", 0, c.N + 1, c.B, c.M)
    x = x.clone()  # it is overwritten; writing the same again changes nothing
    return lambda: sequence_softmax(x, lens)


@formulation("masked_softmax", "masked_fill")
def masked_softmax(c):
    x, lens = c.uniform("x", 4, c.B, c.M, c.N), c.indices("valid_lens", 0, c.N + 1, c.B, c.M)
    place = torch.arange(c.N, device=c.device)
    return lambda: torch.softmax(x.masked_fill(place >= lens[..., None], -1e6), -1)


@formulation("layer_norm", "layer_norm")
def layer_norm(c):
    x, w = c.uniform("x", 2, c.M, c.N), c.uniform("weight", 1, c.N)
    b = c.uniform("bias", 1, c.N)
    return lambda: f.layer_norm(x, (c.N,), w, b)


@formulation("gelu", "gelu")
def gelu(c):
    x = c.uniform("x", 4, c.M, c.N)
    return lambda: f.gelu(x)


@formulation("bias_gelu", "gelu(x + b)")
def bias_gelu(c):
    x, b = c.uniform("x", 4, c.M, c.N), c.uniform("bias", 1, c.N)
    return lambda: f.gelu(x + b)


@formulation("embedding", "embedding")
def embedding(c):
    tokens, w = c.indices("tokens", 0, c.V, c.M), c.uniform("weight", 1, c.V, c.C)
    return lambda: f.embedding(tokens, w) * math.sqrt(c.C)


@formulation("cross_entropy", "cross_entropy")
def cross_entropy(c):
    x, y = c.uniform("logits", 4, c.M, c.V), c.indices("targets", 0, c.V, c.M)
    return lambda: f.cross_entropy(x, y, reduction="none")

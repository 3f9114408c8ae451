# SPDX-License-Identifier: MIT
"""Operations on rows and elements, GEMMs, and the networks that consist of little else."""
import math

import torch
from torch.nn import functional as f
from torch.utils import mkldnn

from torch_models.attention import masked_softmax
from torch_models.transformer import FeedForward

from .registry import formulation


@formulation("softmax", "softmax")
def softmax(c):
    x = c.uniform("x", 4, c.M, c.N)
    return lambda: torch.softmax(x, -1)


@formulation("masked_softmax", "indexed write (d2l)", reference=True)
def masked_softmax_d2l(c):
    x, lens = c.uniform("x", 4, c.B, c.M, c.N), c.indices("valid_lens", 0, c.N + 1, c.B, c.M)
    x = x.clone()  # it is overwritten; writing the same again changes nothing
    return lambda: masked_softmax(x, lens)


@formulation("masked_softmax", "masked_fill")
def masked_softmax_fill(c):
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


@formulation("gemm", "matmul", packed=True)
def gemm(c):
    a = c.uniform("a", 1, c.M, c.K)
    if c.transposed:
        layer = c.fill(torch.nn.Linear(c.K, c.N, bias=False), lambda _: "b")
        return lambda: layer(a)
    if c.packed:
        return None  # it packs weights as linear maps have them
    b = c.uniform("b", 1, c.K, c.N)
    return lambda: a @ b


@formulation("bmm", "bmm")
def bmm(c):
    a, b = c.uniform("a", 1, c.B, c.M, c.K), c.uniform("b", 1, c.B, c.K, c.N)
    return lambda: torch.bmm(a, b)


@formulation("linear", "linear", packed=True)
def linear(c):
    x, layer = c.uniform("x", 1, c.M, c.K), c.fill(torch.nn.Linear(c.K, c.N))
    return lambda: layer(x)


def ffn(c):
    return c.uniform("x", 1, c.M, c.C), c.fill(FeedForward(c.C, c.F, "GELU"))


@formulation("feed_forward", "linear, gelu, linear", packed=True)
def feed_forward(c):
    x, model = ffn(c)
    return lambda: model(x)


@formulation("feed_forward", "oneDNN tensors (torch.utils.mkldnn)", compiles=False)
def feed_forward_mkldnn(c):
    """Input and output are plain tensors, as everywhere."""
    if c.device != "cpu":
        return None
    x, model = ffn(c)
    layers = mkldnn.to_mkldnn(torch.nn.Sequential(model.layer1, model.activation, model.layer2))
    return lambda: layers(x.to_mkldnn()).to_dense()

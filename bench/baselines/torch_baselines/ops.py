# SPDX-License-Identifier: MIT
"""Operations on rows and elements, GEMMs, and the networks that consist of little else."""
import math

import torch
from torch.nn import functional as f
from torch.utils import mkldnn

from torch_models.attention import masked_softmax
from torch_models.transformer import FeedForward

from .registry import formulation


def call(function, *arguments, **settings):
    return lambda: function(*arguments, **settings)


formulation("softmax", "softmax")(lambda c: call(torch.softmax, c.uniform("x", 4, c.M, c.N), -1))
formulation("gelu", "gelu")(lambda c: call(f.gelu, c.uniform("x", 4, c.M, c.N)))
formulation("bias_gelu", "gelu(x + b)")(lambda c: call(
    lambda x, b: f.gelu(x + b), c.uniform("x", 4, c.M, c.N), c.uniform("bias", 1, c.N)))
formulation("embedding", "embedding")(lambda c: call(
    lambda *a: f.embedding(*a) * math.sqrt(c.C), c.indices("tokens", 0, c.V, c.M), c.uniform("weight", 1, c.V, c.C)))
formulation("layer_norm", "layer_norm")(lambda c: call(
    f.layer_norm, c.uniform("x", 2, c.M, c.N), (c.N,), c.uniform("weight", 1, c.N), c.uniform("bias", 1, c.N)))
formulation("cross_entropy", "cross_entropy")(lambda c: call(
    f.cross_entropy, c.uniform("logits", 4, c.M, c.V), c.indices("targets", 0, c.V, c.M), reduction="none"))
formulation("bmm", "bmm")(lambda c: call(
    torch.bmm, c.uniform("a", 1, c.B, c.M, c.K), c.uniform("b", 1, c.B, c.K, c.N)))


@formulation("masked_softmax", "indexed write (d2l)", reference=True)
def masked_softmax_d2l(c):
    x, lens = c.uniform("x", 4, c.B, c.M, c.N), c.indices("valid_lens", 0, c.N + 1, c.B, c.M)
    if c.backward:
        return None  # the write would change what gradients are computed of
    x = x.clone()  # it is overwritten; writing the same again changes nothing
    return lambda: masked_softmax(x, lens)


@formulation("masked_softmax", "masked_fill")
def masked_softmax_fill(c):
    x, lens = c.uniform("x", 4, c.B, c.M, c.N), c.indices("valid_lens", 0, c.N + 1, c.B, c.M)
    place = torch.arange(c.N, device=c.device)
    return lambda: torch.softmax(x.masked_fill(place >= lens[..., None], -1e6), -1)


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
    if c.device != "cpu" or c.backward:
        return None  # such tensors have no gradient by plain ones
    x, model = ffn(c)
    layers = mkldnn.to_mkldnn(torch.nn.Sequential(model.layer1, model.activation, model.layer2))
    return lambda: layers(x.to_mkldnn()).to_dense()

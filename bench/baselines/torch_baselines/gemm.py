# SPDX-License-Identifier: MIT
"""GEMMs and the networks that consist of little else."""
import torch
from torch.utils import mkldnn

from .registry import dense, formulation


@formulation("gemm", "matmul", packed=True)
def gemm(c):
    a = c.uniform("a", 1, c.M, c.K)
    if c.transposed:
        b = c.dense_of(c.map("b", c.N, c.K), None)
        return lambda: dense(a, b)
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
    x, p = c.uniform("x", 1, c.M, c.K), c.dense_of(c.map("weight", c.N, c.K), c.uniform("bias", 1, c.N))
    return lambda: dense(x, p)


@formulation("feed_forward", "linear, gelu, linear", packed=True)
def feed_forward(c):
    x = c.uniform("x", 1, c.M, c.C)
    layer1, layer2 = c.linear("layer1", c.F, c.C), c.linear("layer2", c.C, c.F)
    return lambda: dense(dense(x, layer1, gelu=True), layer2)


@formulation("feed_forward", "oneDNN tensors (torch.utils.mkldnn)", compiles=False)
def feed_forward_mkldnn(c):
    """Input and output are plain tensors, as everywhere."""
    if c.device != "cpu":
        return None
    x = c.uniform("x", 1, c.M, c.C)
    layers = torch.nn.Sequential(torch.nn.Linear(c.C, c.F), torch.nn.GELU(), torch.nn.Linear(c.F, c.C))
    for layer, name in ((layers[0], "layer1"), (layers[2], "layer2")):
        p = c.linear(name, *layer.weight.shape)
        layer.weight.data, layer.bias.data = p.weight, p.bias
    model = mkldnn.to_mkldnn(layers.eval())
    return lambda: model(x.to_mkldnn()).to_dense()

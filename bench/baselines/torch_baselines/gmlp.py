# SPDX-License-Identifier: MIT
"""gMLP: labml's einsum with the mask applied in each call, and one GEMM with a prepared weight.  And
the pre-norm encoder layer over AFT-local."""
from types import SimpleNamespace

import torch

from . import aft
from .registry import causal_mask, dense, formulation, layer_norm


def gate_parameters(c, name="sgu"):
    return SimpleNamespace(norm=c.norm(f"{name}.norm", c.F // 2),
                           weight=c.uniform(f"{name}.weight", 0.1, c.T, c.T),
                           bias=c.uniform(f"{name}.bias", 1, c.T))


def labml_gate(z, p, mask):
    """mask [T, T, 1] or None."""
    z1, z2 = torch.chunk(z, 2, dim=-1)
    u, n = layer_norm(z2, p.norm), len(z)
    w = p.weight[:n, :n]
    if mask is not None:
        w = w * mask[:, :, 0]
    return z1 * (torch.einsum("ij,jbd->ibd", w, u) + p.bias[:n, None, None])


def gemm_gate(z, p):
    """The weight is prepared; the bias goes in with the GEMM."""
    z1, z2 = torch.chunk(z, 2, dim=-1)
    u, n = layer_norm(z2, p.norm), len(z)
    s = torch.addmm(p.bias[:n, None], p.weight[:n, :n], u.flatten(1))
    return z1 * s.view_as(z1)


def prepared(p, causal):
    return SimpleNamespace(norm=p.norm, bias=p.bias, weight=p.weight.tril() if causal else p.weight)


def mask_of(c):
    return causal_mask(c.T, c.device).unsqueeze(-1) if c.causal else None


@formulation("spatial_gate", "einsum (labml)", reference=True)
def spatial_gate(c):
    z, p, mask = c.uniform("z", 2, c.T, c.B, c.F), gate_parameters(c), mask_of(c)
    return lambda: labml_gate(z, p, mask)


@formulation("spatial_gate", "addmm, weight prepared")
def spatial_gate_gemm(c):
    z, p = c.uniform("z", 2, c.T, c.B, c.F), prepared(gate_parameters(c), c.causal)
    return lambda: gemm_gate(z, p)


def block_parameters(c, prefix="", bias=1):
    return SimpleNamespace(norm=c.norm(f"{prefix}norm", c.C, bias),
                           proj1=c.linear(f"{prefix}proj1", c.F, c.C, bias),
                           proj2=c.linear(f"{prefix}proj2", c.C, c.F // 2, bias))


def block(x, p, gate):
    return x + dense(gate(dense(layer_norm(x, p.norm), p.proj1, gelu=True)), p.proj2)


@formulation("gmlp_block", "einsum (labml)", reference=True)
def gmlp_block(c):
    x, p = c.uniform("x", 1, c.T, c.B, c.C), block_parameters(c)
    sgu, mask = gate_parameters(c), mask_of(c)
    return lambda: block(x, p, lambda z: labml_gate(z, sgu, mask))


@formulation("gmlp_block", "addmm, weight prepared", packed=True)
def gmlp_block_gemm(c):
    x, p = c.uniform("x", 1, c.T, c.B, c.C), block_parameters(c)
    sgu = prepared(gate_parameters(c), c.causal)
    return lambda: block(x, p, lambda z: gemm_gate(z, sgu))


def encoder_parameters(c):
    maps = {name: c.linear(name, c.C, c.C) for name in ("query", "key", "value", "output")}
    return SimpleNamespace(
        **maps, pos_bias=c.uniform("pos_bias", 1, c.T, c.T), window=aft.window_of(c, c.T),
        norm1=c.norm("norm_self_attn", c.C), norm2=c.norm("norm_ff", c.C),
        layer1=c.linear("layer1", c.F, c.C), layer2=c.linear("layer2", c.C, c.F))


def encoder(x, p, mix):
    n = layer_norm(x, p.norm1)
    x = x + dense(mix(dense(n, p.query), dense(n, p.key), dense(n, p.value)), p.output)
    return x + dense(torch.relu(dense(layer_norm(x, p.norm2), p.layer1)), p.layer2)


@formulation("encoder_layer", "einsum (labml)", reference=True)
def encoder_layer(c):
    x, p = c.uniform("x", 1, c.T, c.B, c.C), encoder_parameters(c)
    mask = causal_mask(c.T, c.device).unsqueeze(-1)
    return lambda: encoder(x, p, lambda *qkv: aft.labml_mix(*qkv, p.pos_bias, p.window, mask))


@formulation("encoder_layer", "one product, bias prepared", packed=True)
def encoder_layer_gemm(c):
    x, p = c.uniform("x", 1, c.T, c.B, c.C), encoder_parameters(c)
    exp_bias = aft.prepared_bias(p.pos_bias, p.window, True)
    return lambda: encoder(x, p, lambda *qkv: aft.gemm_mix(*qkv, exp_bias))

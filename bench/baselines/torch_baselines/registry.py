# SPDX-License-Identifier: MIT
"""What PyTorch can run: a family's formulations, and the data they take.

    @formulation("attention", "einsum", reference=True)
    def attention_einsum(c): ...          # c: Case; returns the function that is timed

A reference is written as the published code is (labml, d2l); the others are the best PyTorch offers.
The function returns the result in the library's order of elements, or (run, as_ours) gives another
function that puts it so for the check.
"""
import math
from dataclasses import dataclass
from types import SimpleNamespace

import torch

from . import data


@dataclass
class Formulation:
    family: str
    name: str
    reference: bool
    compiles: bool  # False: not given to torch.compile, which would unroll its loop for minutes
    packed: bool    # linear maps by oneDNN, see dense()
    make: object


FORMULATIONS = []
PACKED = "oneDNN, packed weights (undocumented torch.ops.mkldnn)"


def formulation(family, name, reference=False, compiles=True, packed=False):
    """With `packed` the same is there once more, its linear maps by oneDNN."""
    def add(make):
        for f in (family,) if isinstance(family, str) else family:
            FORMULATIONS.append(Formulation(f, name, reference, compiles, False, make))
            if packed:
                FORMULATIONS.append(Formulation(f, PACKED, False, False, True, make))
        return make
    return add


def formulations(family):
    return [f for f in FORMULATIONS if f.family == family]


# Extents of struct sizes in bench/cases.h.
LETTERS = ("B", "T", "C", "F", "V", "M", "N", "K", "S", "E", "heads", "layers", "window")


class Case:
    """A case's sizes as attributes (c.T), and its arrays by name, the very numbers of attncl-bench."""

    def __init__(self, case, device="cpu", packed=False):
        sizes = case["sizes"]
        self.family = case["family"]
        self.device = device
        self.packed = packed
        self.causal = bool(sizes.get("causal"))
        self.transposed = bool(sizes.get("transposed"))
        self.layer = sizes.get("layer")
        for letter in LETTERS:
            setattr(self, letter, sizes.get(letter, 0))
        self.arrays = {}

    def uniform(self, name, spread, *shape):
        if name not in self.arrays:
            self.arrays[name] = torch.from_numpy(data.uniform(name, spread, shape)).to(self.device)
        return self.arrays[name]

    def indices(self, name, low, high, *shape):
        if name not in self.arrays:
            self.arrays[name] = torch.from_numpy(data.indices(name, low, high, shape)).to(self.device)
        return self.arrays[name]

    def map(self, name, n_out, n_in):
        """A linear map's weight [out, in]."""
        return self.uniform(name, math.sqrt(3.0 / n_in), n_out, n_in)

    def linear(self, name, n_out, n_in, bias=1):
        return self.dense_of(self.map(f"{name}.weight", n_out, n_in),
                             self.uniform(f"{name}.bias", bias, n_out))

    def dense_of(self, weight, bias):
        """What dense() takes."""
        p = SimpleNamespace(weight=weight, bias=bias, packed=None)
        if self.packed:
            rows = self.M or self.T * self.B
            p.packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        return p

    def norm(self, name, n, bias=1):
        return SimpleNamespace(weight=self.uniform(f"{name}.weight", 1, n),
                               bias=self.uniform(f"{name}.bias", bias, n))


def dense(x, p, gelu=False):
    """MKL's GEMM, which nn.Linear calls, does not use AVX-512 on every CPU that has it;
    oneDNN's, which torch.compile uses for other types, does."""
    if p.packed is not None:
        return torch.ops.mkldnn._linear_pointwise(x, p.packed, p.bias, "gelu" if gelu else "none", [],
                                                  "none" if gelu else "")
    y = torch.nn.functional.linear(x, p.weight, p.bias)
    return torch.nn.functional.gelu(y) if gelu else y


def layer_norm(x, p):
    return torch.nn.functional.layer_norm(x, p.weight.shape, p.weight, p.bias)


def causal_mask(n, device):
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()

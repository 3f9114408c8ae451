# SPDX-License-Identifier: MIT
"""What PyTorch can run: a family's formulations, and the data they take.

    @formulation("attention", "einsum", reference=True)
    def attention_einsum(c): ...          # c: Case; returns the function that is timed

The models are those of tests/torch_models.  A reference is written as the published code is (labml, d2l); the others are the best PyTorch offers.
The function returns the result in the library's order of elements, or (run, as_ours) gives another
function that puts it so for the check.
"""
import math
from dataclasses import dataclass

import torch

from . import data, faster


@dataclass
class Formulation:
    family: str
    name: str
    reference: bool
    compiles: bool  # False: not given to torch.compile, which would unroll its loop for minutes
    packed: bool    # linear maps by oneDNN, see Packed
    program: str    # --program of the worker that runs it
    make: object


FORMULATIONS = []
PACKED = "oneDNN, packed weights (undocumented torch.ops.mkldnn)"


def formulation(family, name, reference=False, compiles=True, packed=False, program="PyTorch"):
    """With `packed` the same is there once more, its linear maps by oneDNN."""
    def add(make):
        for f in (family,) if isinstance(family, str) else family:
            FORMULATIONS.append(Formulation(f, name, reference, compiles, False, program, make))
            if packed:
                FORMULATIONS.append(Formulation(f, PACKED, False, False, True, program, make))
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
        self.half = case["dtype"] == "f16"  # matrices hold numbers of F16
        self.causal = bool(sizes.get("causal"))
        self.transposed = bool(sizes.get("transposed"))
        self.backward = bool(sizes.get("backward"))
        self.trains = self.backward or self.family == "train_step"
        self.leaves = []  # what gradients are computed of
        self.layer = sizes.get("layer")
        for letter in LETTERS:
            setattr(self, letter, sizes.get(letter, 0))
        self.repeats = self.T - self.S if self.family == "lm_step" else 1  # of what is timed, in a run
        self.arrays = {}  # name: (how it was made, array)

    def array(self, make, name, *arguments):
        if name not in self.arrays:
            self.arrays[name] = arguments, torch.from_numpy(make(name, *arguments)).to(self.device)
        known, array = self.arrays[name]
        if known != arguments:
            raise ValueError(f"{name} has {known} already, not {arguments}: spread or range, shape")
        return array

    def uniform(self, name, spread, *shape):
        array = self.array(data.uniform, name, spread, tuple(shape))
        if self.backward and not any(array is leaf for leaf in self.leaves):
            self.leaves.append(array.requires_grad_())
        return array

    def with_gradients(self, run):
        """run() and the gradients of everything; that of the first array is the result."""
        dy = self.array(data.uniform, "dy", 1, tuple(run().shape))
        return lambda: torch.autograd.grad(run(), self.leaves, dy, allow_unused=True)[0]

    def indices(self, name, low, high, *shape):
        return self.array(data.indices, name, low, high, shape)

    def map(self, name, n_out, n_in):
        """A linear map's weight [out, in]."""
        return self.uniform(name, math.sqrt(3.0 / n_in), n_out, n_in)

    def fill(self, module, rename=str, bias=1, prepare=None):
        """The module with parameters as bench/cases/ has them; after prepare(module) its linear maps are packed, where
        the formulation says so."""
        for name, p in module.named_parameters():
            name = rename(name)
            array = self.array(data.uniform, name, spread_of(name, p, bias), tuple(p.shape))
            array = torch.from_numpy(data.as_half(array.cpu().numpy())).to(self.device) if self.half and p.dim() == 2 else array
            p.data = array.clone() if self.trains else torch.as_tensor(array)
        self.module = module = module.to(self.device).eval()
        if self.backward:
            self.leaves += module.parameters()
        if prepare:
            prepare(module)
        rows = self.B if self.family == "lm_step" else self.T * self.B
        return faster.pack(module, self.M or rows) if self.packed else module


def spread_of(name, p, bias):
    if name.endswith("sgu.weight"):
        return 0.1
    if name.startswith("rnn.bias"):
        return 0.5
    if name.endswith(".bias"):
        return 1 if name.endswith("sgu.bias") else bias
    is_map = p.dim() == 2 and (name == "b" or "weight" in name) and name != "src_embed.weight"
    return math.sqrt(3.0 / p.shape[1]) if is_map else 1

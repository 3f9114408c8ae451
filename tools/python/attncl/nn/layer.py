# SPDX-License-Identifier: MIT
"""Shared by the modules: the base class with an architecture's configuration, masks, heads."""
from __future__ import annotations

import inspect
from typing import Any, Callable, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Activations by the library's names.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "identity": lambda x: x,
}


class Layer(nn.Module):
    """A module that a model file can hold: `arch` names its architecture, `config` has the architecture's keys."""
    arch: ClassVar[str]

    def __init__(self, **config: Any):
        super().__init__()
        self.config: dict[str, Any] = config

    def extra_repr(self) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in self.config.items())

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """The module of a model file's configuration."""
        return make_layer(cls, config)


def make_layer(cls: type[Layer], config: dict[str, Any]) -> Layer:
    """A module of a class, from the keys that its constructor takes."""
    return cls(**{key: value for key, value in config.items() if key in inspect.signature(cls).parameters})


def check_length(module: Layer, length: int, limit: int) -> None:
    if length > limit:
        raise ValueError(f"{type(module).__name__}: a sequence of {length} positions, at most {limit} are possible")


def visible_pairs(mask: Tensor | None, x: Tensor, n_keys: int, name: str) -> Tensor | None:
    """A mask [T or 1, S, B or 1] as booleans."""
    if mask is None:
        return None
    length, batch = x.shape[:2]
    if mask.dim() != 3 or mask.shape[0] not in (1, length) or mask.shape[1] != n_keys or mask.shape[2] not in (1, batch):
        raise ValueError(f"{name}: mask is {list(mask.shape)}, expected [{length} or 1, {n_keys}, {batch} or 1]")
    return mask != 0


class Heads(nn.Module):
    """A linear map to heads: [..., C] to [..., H, D]; `kept`: the number of heads, if not `heads`."""

    def __init__(self, d_model: int, heads: int, bias: bool, kept: int | None = None):
        super().__init__()
        self.heads = heads if kept is None else kept
        self.linear = nn.Linear(d_model, d_model // heads * self.heads, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).unflatten(-1, (self.heads, -1))


def check_heads(name: str, d_model: int, heads: int) -> None:
    if d_model % heads:
        raise ValueError(f"{name}: d_model {d_model} is not divisible by heads {heads}")

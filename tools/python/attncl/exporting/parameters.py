# SPDX-License-Identifier: MIT
"""Conversion keeps track of a module's parameters: each is used, or named in an error or a note."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..decoders import ConversionError, refuse
from ..model import some
from ..nn.layer import ACTIVATIONS

__all__ = ["Conversion", "ConversionError", "activation_name", "only", "refuse", "some"]


class Conversion:
    """The content of a model file: `arch`, `config`, `tensors`, and `notes` for the user.

    take() reads a parameter or buffer of the module, put() writes a tensor of the file.
    """

    def __init__(self, module: torch.nn.Module):
        self.arch = ""
        self.config: dict[str, Any] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.notes: list[str] = []
        self._state = {name: tensor.detach().cpu() for name, tensor in module.state_dict().items()}
        self._unused = dict.fromkeys(self._state)
        self._from = self._to = ""

    @contextlib.contextmanager
    def scope(self, source: str = "", target: str = "") -> Iterator[None]:
        """Prefixes the names taken and put in the context."""
        kept = self._from, self._to
        self._from, self._to = self._from + source, self._to + target
        yield
        self._from, self._to = kept

    def has(self, name: str) -> bool:
        return self._from + name in self._state

    def take(self, name: str) -> torch.Tensor:
        full = self._from + name
        if full not in self._state:
            refuse(f"there is no parameter {full}; there are {some(self._state)}")
        self._unused.pop(full, None)
        return self._state[full]

    def put(self, name: str, tensor: torch.Tensor) -> None:
        self.tensors[self._to + name] = tensor.contiguous()

    def copy(self, source: str, target: str | None = None) -> None:
        self.put(target or source, self.take(source))

    def affine(self, source: str, target: str, like: Any = None) -> None:
        """Copies `weight` and, if the module has one, `bias`; else puts zeros of shape `like`, if given."""
        with self.scope(source, target):
            self.copy("weight")
            if self.has("bias"):
                self.copy("bias")
            elif like is not None:
                self.put("bias", torch.zeros(like, dtype=self.take("weight").dtype))

    def leave_out(self, why: str, *prefixes: str) -> None:
        """Leaves out, with a note, the unused parameters with these prefixes."""
        names = [name for name in self._unused if name.startswith(prefixes)]
        for name in names:
            del self._unused[name]
        if names:
            self.notes.append(f"{why}: {some(names)} left out")

    def finish(self) -> None:
        if self._unused:
            refuse(f"parameters that arch {self.arch} has no place for: {some(self._unused)}")


def only(setting: str, value: Any, expected: Any, why: str) -> None:
    """Refuses a setting whose value is not `expected`, the only one that a model file can express."""
    if value != expected:
        refuse(f"{setting}={value!r} cannot be expressed: {why}")


def activation_name(function: Callable[[Any], Any], where: str) -> str:
    """The library's name of an activation, found by its results, since modules, functions and lambdas have no common name."""
    x = torch.cat([torch.linspace(-30, 30, 601, dtype=torch.float64), torch.linspace(-1e-2, 1e-2, 21, dtype=torch.float64)])
    try:
        with torch.no_grad():
            y = function(x.clone())
    except Exception as error:  # anything callable may stand here
        refuse(f"{where} cannot be expressed: {function!r} does not take a tensor: {error}")
    for name, known in ACTIVATIONS.items():
        if isinstance(y, torch.Tensor) and y.shape == x.shape and torch.allclose(y.double(), known(x), rtol=1e-6, atol=1e-7):
            return name
    refuse(f"{where} cannot be expressed: {function!r} is none of {', '.join(ACTIVATIONS)}")

# SPDX-License-Identifier: MIT
"""libattncl from Python: runs model files on numpy arrays and torch tensors, trains, and writes PyTorch modules as model files.

attncl.nn, attncl.ops, export() and ConversionError need PyTorch, which is imported on their first use.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .c_api import AttnclError, Status, library
from .description import Entry, describe
from .model import Decoder, Device, Model, devices
from .tokenizer import Tokenizer
from .training import Trainer, train

if TYPE_CHECKING:
    from . import nn, ops
    from .exporting import ConversionError, export

__all__ = ["AttnclError", "ConversionError", "Decoder", "Device", "Entry", "Model", "Status", "Tokenizer", "Trainer", "describe",
           "devices", "export", "nn", "ops", "train", "version"]


def version() -> str:
    """The version of the loaded library."""
    return library().version().decode()


def __getattr__(name: str) -> Any:
    if name in ("nn", "ops"):
        return importlib.import_module(f".{name}", __name__)
    if name in ("export", "ConversionError"):
        return getattr(importlib.import_module(".exporting", __name__), name)
    raise AttributeError(f"module 'attncl' has no attribute '{name}'")

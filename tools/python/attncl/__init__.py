# SPDX-License-Identifier: MIT
"""libattncl from Python: model files on numpy arrays, and PyTorch modules as model files."""
from .c_api import AttnclError, Status, library
from .description import Entry, describe
from .model import Decoder, Device, Model, devices

__all__ = ["AttnclError", "ConversionError", "Decoder", "Device", "Entry", "Model", "Status", "describe", "devices",
           "export", "version"]


def version():
    """The version of the loaded library."""
    return library().version().decode()


def __getattr__(name):
    """export() and ConversionError need PyTorch: imported when they are asked for."""
    if name not in ("export", "ConversionError"):
        raise AttributeError(f"module 'attncl' has no attribute '{name}'")
    from . import convert
    return getattr(convert, name)

# SPDX-License-Identifier: MIT
"""safetensors files by the library's own reader and writer, which check every rule of the format."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .c_api import BFLOAT16, TEXT, c_arrays, c_texts, check_readable, library, numpy_array


def load(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a file by name, and its metadata."""
    lib, file = library(), ctypes.c_void_p()
    lib.safetensors_open(check_readable(path), ctypes.byref(file))
    try:
        arrays: dict[str, np.ndarray] = {}
        metadata: dict[str, str] = {}
        value = TEXT()
        while array := lib.safetensors_at(file, len(arrays)):
            arrays[array.contents.name.decode()] = numpy_array(array.contents)
        while (key := lib.safetensors_metadata_at(file, len(metadata), ctypes.byref(value))) is not None:
            metadata[key.decode()] = (value.value or b"").decode()
        return arrays, metadata
    finally:
        lib.safetensors_close(file)


def save(path: str | os.PathLike[str], arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a file in one step: an old one stays as it was if that fails."""
    c, _alive = c_arrays(arrays)
    library().safetensors_write(os.fsencode(path), c, len(arrays), c_texts(metadata))


__all__ = ["BFLOAT16", "load", "save"]

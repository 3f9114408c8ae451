# SPDX-License-Identifier: MIT
"""safetensors files by the library's own reader and writer, which check every rule of the format."""
from __future__ import annotations

import ctypes
import os
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .c_api import BFLOAT16, DTYPES, SOURCE, TEXT, Array, AttnclError, Status, c_arrays, c_texts, check_readable, library, numpy_array


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
    """Writes a file; if that fails, an old file stays unchanged."""
    c, _alive = c_arrays(arrays)
    library().safetensors_write(os.fsencode(path), c, len(arrays), c_texts(metadata))


def save_from(path: str | os.PathLike[str], tensors: Mapping[str, tuple[str, tuple[int, ...]]], read: Callable[[str], np.ndarray],
              metadata: Mapping[str, str] | None = None) -> None:
    """save() for tensors that are not in memory at once.  `tensors` has the type, "F32", "Q8" ..., and the shape of each; read(name) is
    called for each in the file's order and returns the tensor, for Q8 and Q4 as bytes."""
    lib, names, failed, alive = library(), list(tensors), [], []
    arrays = (Array * max(len(names), 1))()
    for array, (name, (kind, shape)) in zip(arrays, tensors.items()):
        array.name, array.dtype, array.rank = name.encode(), lib.dtype_of_name[kind], len(shape)
        array.dim[:len(shape)] = shape
        array.bytes = math.prod(shape) * np.dtype(DTYPES[kind]).itemsize if kind in DTYPES else lib.quantised_bytes(array.dtype, *shape)

    @SOURCE
    def give(_: Any, i: int, data_ret: Any) -> int:
        alive.clear()  # frees the previous tensor before reading the next
        try:
            value = np.ascontiguousarray(read(names[i]))
            if value.nbytes != arrays[i].bytes:
                raise ValueError(f"tensor {names[i]} has {value.nbytes} bytes, expected {arrays[i].bytes}")
            alive.append(value)
            data_ret[0] = value.ctypes.data
            return Status.OK
        except BaseException as error:  # an exception must not pass through C
            failed.append(error)
            return Status.ERR_STATE

    try:
        lib.safetensors_write_from(os.fsencode(path), arrays, len(names), c_texts(metadata), give, None)
    except AttnclError as error:
        raise failed[0] if failed else error


__all__ = ["BFLOAT16", "load", "save", "save_from"]

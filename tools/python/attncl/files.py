# SPDX-License-Identifier: MIT
"""safetensors files by the library's own reader and writer, which check every rule of the format."""
import ctypes
import os

from .c_api import BFLOAT16, TEXT, c_arrays, c_texts, library, numpy_array


def load(path):
    """The arrays of a file by name, and its metadata."""
    lib, file = library(), ctypes.c_void_p()
    lib.safetensors_open(os.fsencode(path), ctypes.byref(file))
    try:
        arrays, metadata, value = {}, {}, TEXT()
        while array := lib.safetensors_at(file, len(arrays)):
            arrays[array.contents.name.decode()] = numpy_array(array.contents)
        while (key := lib.safetensors_metadata_at(file, len(metadata), ctypes.byref(value))) is not None:
            metadata[key.decode()] = value.value.decode()
        return arrays, metadata
    finally:
        lib.safetensors_close(file)


def save(path, arrays, metadata=None):
    """Writes a file in one step: an old one stays as it was if that fails."""
    c, _alive = c_arrays(arrays)
    library().safetensors_write(os.fsencode(path), c, len(arrays), c_texts(metadata))


__all__ = ["BFLOAT16", "load", "save"]

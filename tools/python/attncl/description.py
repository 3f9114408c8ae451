# SPDX-License-Identifier: MIT
"""The parameters, inputs and outputs of an architecture, without a file or a device."""
import collections
import ctypes
import json

from .c_api import library

_KINDS = ("parameter", "buffer", "input", "output", "extra")
Entry = collections.namedtuple("Entry", "kind name type shape optional")


def describe(arch, config=None):
    """Entries of kind "parameter", "buffer", "input" and "output"; the letters of a shape, "[T, B, 64]", are free axes."""
    lib, description = library(), ctypes.c_void_p()
    lib.description_create(arch.encode(), json.dumps(config or {}).encode(), ctypes.byref(description))
    try:
        found = (lib.description_at(description, i).contents for i in range(lib.description_count(description)))
        return [Entry(_KINDS[e.kind], e.name.decode(), e.type.decode(), e.shape.decode(), bool(e.optional)) for e in found]
    finally:
        lib.description_destroy(description)

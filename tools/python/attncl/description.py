# SPDX-License-Identifier: MIT
"""The keys, parameters, inputs and outputs of an architecture, without a file or a device."""
from __future__ import annotations

import ctypes
import json
from typing import Any, NamedTuple

from .c_api import library

_KINDS = ("key", "parameter", "buffer", "input", "output", "extra")


class Entry(NamedTuple):
    """A key, parameter, buffer, input or output of an architecture."""
    kind: str
    name: str
    type: str
    shape: str | None
    optional: bool
    default: str | None
    choices: str | None
    condition: str | None
    is_map: bool  # the weight of a linear map or an embedding, which may have 8 or 4 bits


def _text(value: bytes | None) -> Any:
    return None if value is None else value.decode()


def describe(arch: str, config: dict[str, Any] | None = None) -> list[Entry]:
    """The entries of an architecture, of kind "key", "parameter", "buffer", "input" and "output".

    Letters in a shape, "[T, B, 64]", are free axes.  Without a configuration, describes a small example with the names of
    its integers: "[T, B, d_model]".
    """
    lib, description = library(), ctypes.c_void_p()
    text = None if config is None else json.dumps(config).encode()
    lib.description_create(arch.encode(), text, config is None, ctypes.byref(description))
    try:
        found = (lib.description_at(description, i).contents for i in range(lib.description_count(description)))
        return [Entry(_KINDS[e.kind], _text(e.name), _text(e.type), _text(e.shape), bool(e.optional), _text(e.standard),
                      _text(e.choices), _text(e.condition), bool(e.is_map)) for e in found]
    finally:
        lib.description_destroy(description)

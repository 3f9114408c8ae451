# SPDX-License-Identifier: MIT
"""safetensors files for tests, by the standard library alone.  A tensor is (dtype, shape, values or bytes)."""
import json
import math
import struct

LETTERS = {"F64": "d", "F32": "f", "I64": "q", "I32": "i"}


def write(path, tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, values) in tensors.items():
        blob = values if isinstance(values, bytes) else struct.pack(f"<{len(values)}{LETTERS[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def load(path):
    """The tensors, with their bytes, and the metadata."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data, metadata = file.read(), header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}, metadata


def read(path, name):
    """A tensor's values."""
    dtype, shape, data = load(path)[0][name]
    return struct.unpack(f"<{math.prod(shape)}{LETTERS[dtype]}", data)

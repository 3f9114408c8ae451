# SPDX-License-Identifier: MIT
"""seeds.py DIRECTORY: writes the first inputs of fuzz_safetensors, good files and near misses."""
import json
import pathlib
import struct
import sys

BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
        "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}


def frame(header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def seeds():
    yield frame({})
    yield frame(b"  {}      ")
    for dtype, bits in BITS.items():
        yield frame({"w": entry(dtype, [2, 4], 0, bits)}, bytes(range(bits)))
    yield frame({"a": entry("F32", [], 0, 4), "b": entry("U8", [0, 3], 4, 4), "c": entry("U8", [3], 4, 7)}, bytes(7))
    yield frame({"__metadata__": {"attncl.arch": "lm", "attncl.config": json.dumps({"d_model": 8, "bias": True}),
                                  "attncl.vocab": "\n ab\u00e9\U0001f600"}, "w": entry("F64", [1], 0, 8)}, bytes(8))
    for shape in ([4294967296, 4294967296], [1 << 63, 2], [1 << 62, 4], [(1 << 48) - 1], [1 << 48]):
        yield frame({"w": entry("F32", shape, 0, 0)})
    yield frame({"w": entry("F32", [1], 4, 0)}, bytes(4))
    yield frame({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, bytes(3))
    yield frame(b'{"w":' + b"[" * 64 + b"]" * 64 + b"}")
    yield frame(b'{"a":{},"a":{}}')
    yield struct.pack("<Q", 1 << 63) + b"{}"
    yield b'{"heads": 8, "eps": 1e-5, "bias": false, "kind": "gelu", "shape": [4, 8], "sub": {"x": null}}'


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds()):
        (directory / f"seed-{i:02}").write_bytes(seed)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""differential.py LIBRARY [COUNT [SEED]]: the reader against a second, independent one.

Makes COUNT safetensors files, most of them damaged in one or a few places, and asks both readers: the library
(attncl_safetensors_parse) and read() below, written from the format's rules with Python's own JSON parser.  They must
accept the same files and find the same tensors and metadata in them.  Needs nothing but Python.
"""
import ctypes
import json
import random
import struct
import sys

BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
        "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}
MAX_ELEMENTS = (1 << 48) - 1


class Refused(Exception):
    pass


def must(condition, words):
    if not condition:
        raise Refused(words)


# -- the second reader --

def unique(pairs):
    for key, _ in pairs:
        must(not any(0xd800 <= ord(c) <= 0xdfff or c == "\0" for c in key), "key")
    must(len(dict(pairs)) == len(pairs), "double key")
    return dict(pairs)


def integer(text):
    must(text.isascii() and text.isdigit(), "a number with a sign")
    must(len(text) < 20, "a long number")
    return int(text)


def no_number(text):
    raise Refused("number " + text)


def check_text(text):
    must(isinstance(text, str), "no string")
    must(not any(0xd800 <= ord(c) <= 0xdfff or c == "\0" for c in text), "lone surrogate or zero")


def check_name(name):
    check_text(name)
    must(1 <= len(name.encode()) <= 4096, "length of the name")
    must(not any(ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0 for c in name), "control character")


def is_list_of_integers(x):
    return isinstance(x, list) and all(type(i) is int and i <= MAX_ELEMENTS for i in x)


def tensor_bytes(entry):
    must(isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}, "keys")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    must(isinstance(dtype, str) and dtype in BITS, "dtype")
    must(is_list_of_integers(shape) and len(shape) <= 8, "shape")
    must(is_list_of_integers(offsets) and len(offsets) == 2, "data_offsets")
    product = 1
    for extent in shape:
        product *= max(extent, 1)
    must(product <= MAX_ELEMENTS, "overflow")
    bits = 0 if 0 in shape else product * BITS[dtype]
    must(bits % 8 == 0, "broken byte")
    must(offsets[1] - offsets[0] == bits // 8, "offsets and shape")
    return offsets


def read(data):
    must(len(data) >= 8, "short")
    length = struct.unpack("<Q", data[:8])[0]
    must(length <= 100_000_000 and 8 + length <= len(data), "length")
    body = data[8 + length:]
    try:
        header = json.loads(data[8:8 + length].decode("utf-8", "strict"), object_pairs_hook=unique, parse_int=integer,
                            parse_float=no_number, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from error
    must(isinstance(header, dict), "no object")
    metadata = header.pop("__metadata__", {})
    must(isinstance(metadata, dict), "metadata")
    for key, value in metadata.items():
        check_text(key)
        check_text(value)
    places = []
    tensors = {}
    for name, entry in header.items():
        check_name(name)
        begin, end = tensor_bytes(entry)
        places.append((begin, end))
        tensors[name] = (entry["dtype"], tuple(entry["shape"]), body[begin:end])
    at = 0
    for begin, end in sorted(places):
        must(begin == at, "hole or overlap")
        at = end
    must(at == len(body), "length of the data")
    return tensors, metadata


# -- the library --

class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("dim", ctypes.c_int64 * 8),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Library:
    def __init__(self, path):
        lib = self.lib = ctypes.CDLL(path)
        lib.attncl_last_error.restype = ctypes.c_char_p
        lib.attncl_dtype_name.restype = ctypes.c_char_p
        lib.attncl_safetensors_parse.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
        lib.attncl_safetensors_close.argtypes = [ctypes.c_void_p]
        lib.attncl_safetensors_close.restype = None
        lib.attncl_safetensors_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        lib.attncl_safetensors_at.restype = ctypes.POINTER(Array)
        lib.attncl_safetensors_metadata_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t,
                                                       ctypes.POINTER(ctypes.c_char_p)]
        lib.attncl_safetensors_metadata_at.restype = ctypes.c_char_p

    def read(self, data):
        lib, file = self.lib, ctypes.c_void_p()
        if lib.attncl_safetensors_parse(data, len(data), ctypes.byref(file)) != 0:
            raise Refused(lib.attncl_last_error().decode("utf-8", "replace"))
        tensors, metadata = {}, {}
        for i in range(1 << 30):
            array = lib.attncl_safetensors_at(file, i)
            if not array:
                break
            a = array.contents
            tensors[a.name.decode()] = (lib.attncl_dtype_name(a.dtype).decode(), tuple(a.dim[:a.rank]),
                                        ctypes.string_at(a.data, a.bytes))
        value = ctypes.c_char_p()
        for i in range(1 << 30):
            key = lib.attncl_safetensors_metadata_at(file, i, ctypes.byref(value))
            if key is None:
                break
            metadata[key.decode()] = value.value.decode()
        lib.attncl_safetensors_close(file)
        return tensors, metadata


# -- files, good and damaged --

TOKENS = [b"0", b"1", b"8", b"-0", b"-1", b"1.0", b"1e3", b"01", b"4294967296", b"281474976710655", b"281474976710656",
          b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"null", b"true", b"NaN", b"[]",
          b"{}", b'""', b'"F32"', b'"F4"', b'"F33"', b'"U8"', b",", b":", b"[", b"]", b"{", b"}", b'"', b"\\", b" ",
          b"\n", b"\\u0000", b"\\ud800", b"\\ud83d\\ude00", b"\\u009b", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\0",
          b'"__metadata__"', b'"shape"', b'"dtype"', b'"data_offsets"', b'"x":1,']


def good(rng):
    header, body, entries = {}, b"", []
    for i in range(rng.randrange(4)):
        dtype = rng.choice(list(BITS))
        shape = [rng.choice([0, 1, 1, 2, 3, 4, 8]) for _ in range(rng.randrange(4))]
        count = 1
        for extent in shape:
            count *= extent
        if count * BITS[dtype] % 8:
            shape, count = shape + [4], count * 4
        bytes_ = count * BITS[dtype] // 8
        name = rng.choice(["w", "layers.0.weight", "\u00e9", "a\"b", "\U0001f600"]) + str(i)
        entries.append((name, {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + bytes_]}))
        body += rng.randbytes(bytes_)
    if rng.random() < 0.4:
        entries.append(("__metadata__", {"attncl.arch": "lm", "k\n": rng.choice(["", "v", "\n\u00e9\x7f"])}))
    rng.shuffle(entries)
    header = dict(entries)
    text = json.dumps(header, ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", ": ")]))
    return text.encode() + b" " * rng.randrange(9), body


def damage(rng, text, body):
    kind = rng.randrange(8)
    at = rng.randrange(len(text) + 1)
    if kind == 0:
        text = text[:at] + rng.choice(TOKENS) + text[at:]
    elif kind == 1:
        text = text[:at] + text[at + rng.randrange(1, 4):]
    elif kind == 2 and at < len(text):
        text = text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1:]
    elif kind in (3, 4):  # another number where a number is
        digits = [i for i, c in enumerate(text) if chr(c).isdigit()]
        if digits:
            begin = end = rng.choice(digits)
            while begin > 0 and chr(text[begin - 1]).isdigit():
                begin -= 1
            while end < len(text) and chr(text[end]).isdigit():
                end += 1
            near = int(text[begin:end]) + rng.choice([-1, 1, 4])
            text = text[:begin] + (rng.choice(TOKENS) if kind == 3 else str(near).encode()) + text[end:]
    elif kind == 5:
        body = body[:-1] if body and rng.random() < 0.5 else body + b"x"
    elif kind == 6:
        other = rng.randrange(len(text) + 1)
        text = text[:at] + text[min(at, other):max(at, other)] + text[at:]
    return text, body


def make(rng):
    text, body = good(rng)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        text, body = damage(rng, text, body)
    length = len(text)
    if rng.random() < 0.05:
        length = rng.choice([length + 1, max(length - 1, 0), 0, 1 << 63, (1 << 64) - 8, 100_000_001])
    data = struct.pack("<Q", length) + text + body
    return data[:rng.randrange(len(data))] if rng.random() < 0.03 else data


def ask(reader, data):
    try:
        return reader(data), ""
    except Refused as refusal:
        return None, str(refusal)


def main():
    library = Library(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    accepted = 0
    for i in range(count):
        data = make(rng)
        ours, our_words = ask(library.read, data)
        theirs, their_words = ask(read, data)
        if ours != theirs:
            print(f"file {i}: {data!r}\n  library: {ours} {our_words}\n  oracle:  {theirs} {their_words}")
            return 1
        accepted += ours is not None
    print(f"{count} files, {accepted} accepted and {count - accepted} refused by both readers")
    return 0 if count // 20 < accepted < count - count // 20 else 1


sys.exit(main())

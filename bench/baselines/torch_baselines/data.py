# SPDX-License-Identifier: MIT
"""The numbers of bench/harness/case.c: an array's name gives its data, on every side."""
import math

import numpy

CHUNK = 1 << 20


def seed_of(name):
    seed = 14695981039346656037  # FNV-1a
    for byte in name.encode():
        seed = (seed ^ byte) * 1099511628211 % (1 << 64)
    return seed


def unit(name, count):
    """`count` numbers of splitmix64 in [0, 1), chunk by chunk."""
    gamma = 0x9e3779b97f4a7c15
    seed = seed_of(name)
    for begin in range(0, count, CHUNK):
        n = min(CHUNK, count - begin)
        first = (seed + (begin + 1) * gamma) % (1 << 64)
        z = numpy.arange(n, dtype=numpy.uint64) * numpy.uint64(gamma) + numpy.uint64(first)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        yield begin, (z ^ (z >> numpy.uint64(31))) >> numpy.uint64(11)


def uniform(name, spread, shape):
    """In (-spread, spread), float32."""
    out = numpy.empty(int(numpy.prod(shape)), dtype=numpy.float32)
    for begin, bits in unit(name, out.size):
        u = bits.astype(numpy.float64) / 9007199254740992.0
        out[begin:begin + u.size] = spread * (2 * u - 1)
    return out.reshape(shape)


def indices(name, low, high, shape):
    """In [low, high), int64."""
    out = numpy.empty(int(numpy.prod(shape)), dtype=numpy.int64)
    for begin, bits in unit(name, out.size):
        u = bits.astype(numpy.float64) / 9007199254740992.0
        out[begin:begin + u.size] = low + ((high - low) * u).astype(numpy.int64)
    return out.reshape(shape)


def as_half(array):
    """The nearest numbers of F16."""
    return array.astype(numpy.float16).astype(numpy.float32)


def gpt2(sizes, half):
    """The weights of a GPT-2 case, [out, in], queries, keys and values as one map; HALF: matrices rounded to F16."""
    c, f, v, n = (sizes[letter] for letter in "CFVN")

    def of(name, *shape):
        x = uniform(name, 0.5 if name.endswith(".bias") else math.sqrt(3 / shape[1]) if len(shape) == 2 else 1, shape)
        return as_half(x) if half and len(shape) == 2 else x

    def both(name, *shape):
        return {"weight": of(name + ".weight", *shape), "bias": of(name + ".bias", shape[0])}
    layers = []
    for i in range(sizes["layers"]):
        at = f"encoder.layers.{i}."
        parts = [both(f"{at}self_attn.{name}.linear", c, c) for name in ("query", "key", "value")]
        layers.append({
            "norm_1": both(at + "norm_self_attn", c), "qkv": {k: numpy.concatenate([p[k] for p in parts]) for k in parts[0]},
            "out": both(at + "self_attn.output", c, c), "norm_2": both(at + "norm_ff", c),
            "up": both(at + "feed_forward.layer1", f, c), "down": both(at + "feed_forward.layer2", c, f)})
    return {"tokens": of("src_embed.linear.weight", v, c), "layers": layers, "norm": both("encoder.norm", c),
            "positions": of("src_embed.positional_encodings", n, 1, c)[:, 0]}

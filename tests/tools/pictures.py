#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pictures.py TOOL: attncl run --heatmap and attncl plot draw what they say.

Pictures are decoded and looked at: their size is the grid's, a strong bias has its colour and an absent one is white.
Standard library only.  Exit status 77 without gnuplot or a device.
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, TESTS)
from support import safetensors_file  # noqa: E402

PANEL = (380, 340)


def write(path, tensors, arch=None, config=None):
    safetensors_file.write(path, {name: ("F32", *t) for name, t in tensors.items()},
                           {"attncl.arch": arch, "attncl.config": json.dumps(config)} if arch else None)


def golden(name, path):
    """The model; its inputs but for cotangents go to `path`."""
    model = os.path.join(TESTS, "data", name + ".safetensors")
    tensors = safetensors_file.load(model)[0].items()
    safetensors_file.write(path, {name[6:]: t for name, t in tensors if name.startswith("input.") and ".cotangent." not in name})
    return model


def noise(rng, *shape):
    n = 1
    for extent in shape:
        n *= extent
    return (list(shape), [rng.gauss(0, 1) for _ in range(n)])


def undo(kind, line, above, step):
    """A PNG line without its filter."""
    out = bytearray(line)
    for i in range(len(out)):
        left, up, corner = out[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
        p = left + up - corner
        paeth = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
        out[i] = (out[i] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
    return out


def pixels(path):
    """Width, height and rows of (r, g, b)."""
    with open(path, "rb") as f:
        raw = f.read()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n", "no PNG file"
    at, data, head = 8, b"", None
    while at < len(raw):
        n, kind = struct.unpack(">I4s", raw[at:at + 8])
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", raw[at + 8:at + 8 + n])
        if kind == b"IDAT":
            data += raw[at + 8:at + 8 + n]
        at += 12 + n
    width, height, depth, colour, _, _, interlace = head
    assert depth == 8 and colour in (2, 6) and interlace == 0, "unexpected form of PNG: %s" % (head,)
    step, data = (3 if colour == 2 else 4), zlib.decompress(data)
    rows, above = [], bytearray(width * step)
    for y in range(height):
        line = data[y * (width * step + 1):(y + 1) * (width * step + 1)]
        above = undo(line[0], line[1:], above, step)
        rows.append([tuple(above[x * step:x * step + 3]) for x in range(width)])
    return width, height, rows


def strong(rows):
    """How many pixels are clearly red or clearly blue."""
    return sum(max(p) - min(p) > 100 for row in rows for p in row)


def main(tool, _root):
    if not shutil.which("gnuplot"):
        print("skipped: gnuplot is not installed")
        return 77
    found = subprocess.run([tool, "devices", "--json"], capture_output=True, text=True)
    if '"id"' not in found.stdout:
        print("skipped: no device")
        return 77
    failures, rng = [], random.Random(3)

    def check(ok, what):
        if not ok:
            failures.append(what)

    def run(*args, env=None):
        return subprocess.run([tool] + list(args), capture_output=True, text=True, env=env)

    with tempfile.TemporaryDirectory() as d:
        def at(name):
            return os.path.join(d, name)

        # Position biases: as wide as the window, nothing outside it.
        n = 9
        layer = {p + ".weight": noise(rng, 4, 4) for p in ("query", "key", "value", "output")}
        layer.update({p + ".bias": noise(rng, 4) for p in ("query", "key", "value", "output")})
        write(at("x"), {name: noise(rng, n, 1, 4) for name in ("query", "key", "value")})
        seen = []
        for window in (1, 6):
            model = dict(layer, pos_bias=([n, n], [2.0] * (n * n)))
            write(at("m"), model, "aft_local", {"d_model": 4, "seq_len": n, "local_window_size": window})
            ran = run("run", at("m"), at("x"), at("o"), "--heatmap", at("aft"))
            check(ran.returncode == 0, "aft_local: " + ran.stderr)
            width, height, rows = pixels(at("aft/pos_bias.png"))
            check((width, height) == PANEL, "pos_bias.png is %d x %d" % (width, height))
            seen.append(strong(rows))
        check(seen[1] > 3 * seen[0] > 0, "windows 1 and 6 have %s coloured pixels" % seen)

        # Attention weights: a panel per head across and batch entry down.
        heads, batch, width = 2, 3, 4
        model = {w + ".weight": noise(rng, width, width) for w in ("W_q", "W_k", "W_v", "W_o")}
        write(at("m"), model, "multi_head_attention", {"num_hiddens": width, "num_heads": heads})
        write(at("x"), {name: noise(rng, batch, 5, width) for name in ("queries", "keys", "values")})
        ran = run("run", at("m"), at("x"), at("o"), "--heatmap", at("mha"))
        check(ran.returncode == 0, "multi_head_attention: " + ran.stderr)
        if ran.returncode == 0:
            size = pixels(at("mha/attention_weights.png"))[:2]
            check(size == (heads * PANEL[0], batch * PANEL[1]), "attention_weights.png is %d x %d" % size)

        # Inside an encoder too, a picture per layer; the output file has the encoder's output alone.
        ran = run("run", golden("lm_transformer_no_pos", at("t")), at("t"), at("o"), "--heatmap", at("layers"))
        check(ran.returncode == 0, "lm: " + ran.stderr)
        if ran.returncode == 0:
            for i in range(2):
                size = pixels(at("layers/encoder.layers.%d.self_attn.attn.png" % i))[:2]
                check(size == (heads * PANEL[0], batch * PANEL[1]), "layer %d's picture is %d x %d" % (i, *size))
            with open(at("o"), "rb") as f:
                check(b"attn" not in f.read(), "the output file has the pictures' weights")

        write(at("m"), {}, "positional_encoding", {"layout": "d2l", "num_hiddens": 12})
        write(at("x"), {"x": noise(rng, 1, 20, 12)})
        ran = run("plot", at("m"), at("x"), at("pe.png"), "--columns", "2:4")
        check(ran.returncode == 0, "positional_encoding: " + ran.stderr)
        size = pixels(at("pe.png"))
        check(size[:2] == (2 * PANEL[0], PANEL[1]) and strong(size[2]) > 1000, "pe.png is %d x %d" % size[:2])
        ran = run("plot", at("m"), at("x"), at("no.png"), "--columns", "2:12")
        check(ran.returncode == 1 and "2:12" in ran.stderr and "12 columns" in ran.stderr, "columns: " + ran.stderr)

        ran = run("plot", golden("attention_pooling_gaussian_grad", at("px")), at("px"), at("pool.png"))
        check(ran.returncode == 0, "attention_pooling: " + ran.stderr)

        # What cannot be drawn is one line, and leaves neither picture nor output.
        ran = run("plot", at("m"), at("x"), at("none/pe.png"))
        check(ran.returncode == 1 and ran.stderr.count("\n") == 1 and "none/pe.png" in ran.stderr, "directory: " + ran.stderr)
        write(at("s"), {}, "softmax", {})
        ran = run("run", at("s"), at("x"), at("never"), "--heatmap", at("soft"))
        check(ran.returncode == 1 and "nothing to draw" in ran.stderr, "softmax: " + ran.stderr)
        ran = run("run", at("s"), at("x"), at("never"), "--heatmap", at("x"))
        check(ran.returncode == 1 and "expected a directory" in ran.stderr, "heatmap into a file: " + ran.stderr)
        check(not os.path.exists(at("soft")), "an empty directory of pictures was left")
        ran = run("plot", at("m"), at("x"), at("gone.png"), env=dict(os.environ, PATH=d))
        check(ran.returncode == 1 and "not installed" in ran.stderr, "without gnuplot: " + ran.stderr)
        for name in ("no.png", "gone.png", "gone.png.part", "never"):
            check(not os.path.exists(at(name)), name + " was left behind")

    for what in failures:
        print("FAIL", what.strip())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

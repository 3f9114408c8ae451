#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pictures.py TOOL ROOT: attncl run --heatmap and attncl plot draw what they say: the numbers of their outputs.

A program in place of gnuplot keeps what it is told as the picture; gnuplot itself, where it is installed, then draws all of
them.  Standard library only.  Exit status 77 without a device.
"""
import glob
import itertools
import os
import random
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import TESTS, load, main, read, write  # noqa: E402

PANEL = (380, 340)
GNUPLOT = shutil.which("gnuplot")


def golden(c, name):
    """The model; its inputs but for cotangents go to "in"."""
    model = os.path.join(TESTS, "data", name + ".safetensors")
    write(c.at("in"), {name[6:]: t for name, t in load(model)[0].items()
                       if name.startswith("input.") and ".cotangent." not in name})
    return model


def numbers(text):
    return [[float(x) for x in line.split()] for line in text.splitlines()]


def blocks(path, kind):
    """The data of a picture's panels or curves."""
    with open(path) as f:
        return [numbers(body) for body in re.findall(r"\$%s\d* << END_OF_\w+\n(.*?)END_OF" % kind, f.read(), re.S)]


def near(got, want):
    return len(got) == len(want) and all(len(a) == len(b) and all(abs(x - y) <= 1e-6 for x, y in zip(a, b))
                                         for a, b in zip(got, want))


def matrices(path, name, axes, heads=1):
    """A result's matrices [query][key], by batch entry and head."""
    values, shape = read(path, name), load(path)[0][name][1]
    if axes[0] == "m":
        axes, shape = "bh" + axes[1:], [shape[0] // heads, heads, *shape[1:]]
    extent = {**dict.fromkeys("bhqk", 1), **dict(zip(axes, shape))}

    def element(**at):
        place = 0
        for axis, n in zip(axes, shape):
            place = place * n + at[axis]
        return values[place]
    return [[[element(b=b, h=h, q=q, k=k) for k in range(extent["k"])] for q in range(extent["q"])]
            for b, h in itertools.product(range(extent["b"]), range(extent["h"]))]


def weights(c):
    """A panel per head across and batch entry down; more than eight of them on a page of their own."""
    for model, name, axes, heads in (
            ("mha_grad", "attn", "qkbh", 1), ("feedback_attention_joint_grad", "attn", "kbh", 1),
            ("basic_self_attention_2d", "attention_weights", "qk", 1), ("raschka_multi_head_grad", "attention_weights", "hqk", 1),
            ("additive_attention_grad", "attention_weights", "bqk", 1), ("attention_pooling_gaussian_grad", "attention_w", "kq", 1),
            ("multi_head_attention_grad", "attention_weights", "mqk", 3), ("seq2seq_bahdanau_grad", "attention_weights", "bqk", 1)):
        pictures = c.at(model)
        c.works("run", golden(c, model), c.at("in"), c.at("out"), "--heatmap", pictures)
        pages = sorted(glob.glob(os.path.join(pictures, name + "*.png")))
        want = matrices(c.at("out"), name, axes, heads)
        c.check(near(sum(sum((blocks(page, "panel") for page in pages), []), []), sum(want, [])), "panels of " + model)
        with open(pages[0]) as f:
            c.check("set cbrange [0:%.7g]" % max(map(max, sum(want, []))) in f.read(), "range of " + model)
    model, pictures = golden(c, "basic_self_attention_grad"), c.at("pages")
    write(c.at("in"), {"x": ("F32", (9, 2, 3), [0.1 * i for i in range(54)])})
    c.works("run", model, c.at("in"), c.at("out"), "--heatmap", pictures)
    c.check(sorted(os.listdir(pictures)) == ["attention_weights-batch%d-head0.png" % b for b in (0, 8)], str(os.listdir(pictures)))

    # Inside an encoder too, a picture per layer; the output file has the encoder's output alone.
    c.works("run", golden(c, "lm_transformer"), c.at("in"), c.at("out"), "--heatmap", c.at("layers"))
    for i in range(2):
        panels = blocks(c.at("layers/encoder.layers.%d.self_attn.attn.png" % i), "panel")
        c.check(len(panels) == 2 * 3 and all(abs(sum(row) - 1) < 1e-5 and not any(row[q + 1:]) for panel in panels
                                             for q, row in enumerate(panel)), "layer %d: no rows of causal weights" % i)
    c.check("attn" not in "".join(load(c.at("out"))[0]), "the output file has the pictures' weights")


def biases(c):
    """Of AFT: as wide as the window, nothing outside it; along the diagonals."""
    n, rng = 9, random.Random(3)
    noise = lambda *shape: ("F32", shape, [rng.gauss(0, 1) for _ in itertools.product(*map(range, shape))])  # noqa: E731
    layer = {p + ".weight": noise(4, 4) for p in ("query", "key", "value", "output")}
    layer.update({p + ".bias": noise(4) for p in ("query", "key", "value", "output")})
    write(c.at("in"), {name: noise(n, 1, 4) for name in ("query", "key", "value")})
    table = [[1.0 + n * i + j for j in range(n)] for i in range(n)]
    for window in (1, 6):
        write(c.at("m"), dict(layer, pos_bias=("F32", (n, n), sum(table, []))), {
            "attncl.arch": "aft_local", "attncl.config": '{"d_model": 4, "seq_len": 9, "local_window_size": %d}' % window})
        c.works("run", c.at("m"), c.at("in"), c.at("out"), "--heatmap", c.at("aft"))
        want = [[x if abs(i - j) < window else 0 for j, x in enumerate(row)] for i, row in enumerate(table)]
        c.check(near(blocks(c.at("aft/pos_bias.png"), "panel")[0], want), "window %d" % window)
    with open(c.at("aft/pos_bias.png")) as f:
        c.check("set cbrange [-81:81]" in f.read(), "biases are not as far below 0 as above")
    size, rows = 5, noise(2, 5)
    write(c.at("m"), {**layer, "w": rows, "key.weight": noise(2, 4), "key.bias": noise(2)}, {
        "attncl.arch": "aft_conv", "attncl.config": '{"d_model": 4, "heads": 2, "window_size": 5}'})
    c.works("run", c.at("m"), c.at("in"), c.at("out"), "--heatmap", c.at("conv"))
    want = [[[rows[2][size * h + j - i + 2] if -2 <= j - i <= 2 else 0 for j in range(2 * size)] for i in range(2 * size)]
            for h in range(2)]
    c.check(near(sum(blocks(c.at("conv/w.png"), "panel"), []), sum(want, [])), "AFT-conv's biases")


def plots(c):
    write(c.at("m"), {}, {"attncl.arch": "positional_encoding", "attncl.config": '{"layout": "d2l", "num_hiddens": 12}'})
    write(c.at("table"), {"x": ("F32", (1, 20, 12), [0.0] * 240)})
    c.works("run", c.at("m"), c.at("table"), c.at("out"))
    table = read(c.at("out"), "encoding")
    for columns, first, last in ((("--columns", "2:4"), 2, 4), ((), 6, 9)):
        c.works("plot", c.at("m"), c.at("table"), c.at("pe.png"), *columns)
        c.check(near(sum(blocks(c.at("pe.png"), "curve"), []),
                     [[t, table[12 * t + k]] for k in range(first, last + 1) for t in range(20)]), "columns %d:%d" % (first, last))
        c.check(near(blocks(c.at("pe.png"), "panel")[0], [table[12 * t:12 * t + 12] for t in range(20)]), "the table")
    c.refused("2:12: the encoding has 12 columns", "plot", c.at("m"), c.at("table"), c.at("no.png"), "--columns", "2:12")
    c.refused("none/pe.png", "plot", c.at("m"), c.at("table"), c.at("none/pe.png"))

    model = golden(c, "attention_pooling_gaussian_grad")
    c.works("run", model, c.at("in"), c.at("out"))
    c.works("plot", model, c.at("in"), c.at("pool.png"))
    pooled, points = ([list(pair) for pair in zip(read(c.at(a), x), read(c.at(b), y))]
                      for a, x, b, y in (("in", "x_val", "out", "y_hat"), ("in", "x_train", "in", "y_train")))
    got = blocks(c.at("pool.png"), "curve")
    c.check(near(got[0], pooled) and near(got[1], points), "curves of pooling")
    c.check(near(blocks(c.at("pool.png"), "panel")[0], matrices(c.at("out"), "attention_w", "kq")[0]), "weights of pooling")

    # Values of a key side by side, estimates above weights; the true curve is no input.
    truth, given = [[x, 0.5 * x] for x, _ in pooled], load(c.at("in"))[0]
    write(c.at("in"), {**given, "y_val": ("F32", (len(truth),), [y for _, y in truth])})
    c.works("plot", model, c.at("in"), c.at("varied.png"), "--vary", "sigma=0.5,2")
    curves, panels = blocks(c.at("varied.png"), "curve"), blocks(c.at("varied.png"), "panel")
    c.check(len(curves) == 6 and len(panels) == 2 and near(curves[2], truth) and near(curves[4], points), "curves of --vary")
    write(c.at("in"), given)
    for i, sigma in enumerate(("0.5", "2")):
        write(c.at("m2"), {}, {"attncl.arch": "attention_pooling", "attncl.config": '{"kernel": "gaussian", "sigma": %s}' % sigma})
        c.works("run", c.at("m2"), c.at("in"), c.at("out"))
        c.check(near(panels[i], matrices(c.at("out"), "attention_w", "kq")[0]), "weights of sigma " + sigma)
        c.check(near(curves[3 * i], [[x, y] for (x, _), y in zip(truth, read(c.at("out"), "y_hat"))]), "curve of sigma " + sigma)
    for vary, words in (("sigma", "'sigma' is not of the form KEY=VALUE"), ("sigma=", "is not of the form"), ("width=1", "key width is not known"),
                        ("kernel=box", "kernel box is not known"), ("sigma=" + "1," * 8 + "2", "more than 8 values")):
        c.refused(words, "plot", model, c.at("in"), c.at("no.png"), "--vary", vary)
    experiment = subprocess.run([sys.executable, os.path.join(c.root, "examples/experiments/attention_pooling.py"), c.tool, c.at("published")],
                                capture_output=True, text=True)
    c.check(experiment.returncode == 0 and len(re.findall(r" 0\.\d{4}\n", experiment.stdout)) == 8, experiment.stderr + experiment.stdout)
    for name in ("kernels.svg", "widths.svg"):
        c.check(len(blocks(c.at("published/" + name), "panel")) == 4 and len(blocks(c.at("published/" + name), "curve")) == 12, name)
    write(c.at("in"), {**given, "y_val": ("F32", (1,), [0.0])})
    c.refused("input y_val, the true curve, must be [n] as x_val is", "plot", model, c.at("in"), c.at("no.png"))
    c.refused("--vary is for arch attention_pooling", "plot", c.at("m"), c.at("table"), c.at("no.png"), "--vary", "sigma=1")


def save_npy(path, code, shape, data, order="False", version=b"\1\0"):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (code, order, "".join("%d, " % n for n in shape).rstrip(" "))
    length = struct.pack("<H" if version == b"\1\0" else "<I", len(header) + 1)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY" + version + length + header.encode() + b"\n" + data)


def arrays(c):
    """Of a file: a matrix, or a grid of them."""
    eye = [[float(i == j) for j in range(10)] for i in range(10)]
    flat = sum(eye, [])
    for code, letter, version in (("<f8", "d", b"\1\0"), ("<f4", "f", b"\3\0"), ("<i8", "q", b"\2\0"), ("|b1", "?", b"\1\0"), ("<u2", "H", b"\1\0")):
        kind = (float if letter in "df" else bool if letter == "?" else int)
        save_npy(c.at("eye.npy"), code, (10, 10), struct.pack("<100" + letter, *map(kind, flat)), version=version)
        c.works("plot", c.at("eye.npy"), c.at("eye.png"))
        c.check(near(blocks(c.at("eye.png"), "panel")[0], eye), "eye of " + code)
    with open(c.at("eye.png")) as f:
        c.check("set cbrange [0:1]" in f.read(), "the range of eye")

    values = [float(i - 20) for i in range(2 * 2 * 3 * 5)]
    grid = [[values[at + 5 * r:at + 5 * r + 5] for r in range(3)] for at in range(0, 60, 15)]
    write(c.at("a"), {"x": ("F32", (2, 2, 3, 5), values), "y": ("I64", (4,), [3, 1, 2, 0]), "none": ("F32", (0, 3), [])})
    c.works("plot", c.at("a"), c.at("grid.png"), "--array", "x")
    c.check(blocks(c.at("grid.png"), "panel") == grid, "the grid")
    with open(c.at("grid.png")) as f:
        text = f.read()
    c.check("set cbrange [-39:39]" in text and "layout 2,2" in text and "set title 'x 1 0'" in text, "the grid's layout")
    for index, want in (("1", grid[2:]), ("1,0", grid[2:3]), ("0,1,2", [[grid[1][2]]])):
        c.works("plot", c.at("a"), c.at("part.png"), "--array", "x", "--index", index)
        c.check(blocks(c.at("part.png"), "panel") == want, "index " + index)
    c.works("plot", c.at("a"), c.at("part.png"), "--array", "y")
    c.check(blocks(c.at("part.png"), "panel") == [[[3, 1, 2, 0]]], "a row")

    for words, name, *more in (
            ("--array is missing, one of none, x, y", "a"), ("no array z; there are none, x, y", "a", "--array", "z"),
            ("none has no element", "a", "--array", "none"), ("2 is not in 0 to 1, an axis of x", "a", "--array", "x", "--index", "0,2"),
            ("'0;1' is not of the form I,J", "a", "--array", "x", "--index", "0;1"), ("has fewer axes", "a", "--array", "y", "--index", "0,0"),
            ("y has 0 axes, expected 1 to 4; --index", "a", "--array", "y", "--index", "0")):
        c.refused(words, "plot", c.at(name), c.at("no.png"), *more)
    save_npy(c.at("bad.npy"), "<f4", (9, 1, 1), bytes(36))
    c.refused("has 1 x 9 matrices, at most 8 x 8", "plot", c.at("bad.npy"), c.at("no.png"))
    for words, code, shape, more in (
            ("in C order", "<f4", (1, 1), {"order": "True"}), ("type >f4', ", ">f4", (1, 1), {}), ("type <c8', ", "<c8", (1, 1), {}),
            ("does not fit", "<f4", (2, 1), {}), ("does not fit", "<f4", (2**62, 2**62), {}), ("does not fit", "<f4", (7, 7905747460161236407), {}), ("does not fit", "<f4", (1,) * 9, {})):
        save_npy(c.at("bad.npy"), code, shape, bytes(4), **more)
        c.refused(words, "plot", c.at("bad.npy"), c.at("no.png"))
    for data, words in ((b"", "not a .npy file"), (b"\x93NUMPY\1\0\xff\xff{", "a header of 65535 bytes")):
        with open(c.at("bad.npy"), "wb") as f:
            f.write(data)
        c.refused(words, "plot", c.at("bad.npy"), c.at("no.png"))
    c.refused("would overwrite", "plot", c.at("a"), c.at("a"), "--array", "x")
    os.mkfifo(c.at("pipe"))
    c.refused("pipe is no regular file, expected a file", "plot", c.at("a"), c.at("pipe"), "--array", "x")
    os.remove(c.at("pipe"))
    for command in (("plot", c.at("a"), c.at("link"), "--array", "y"), ("report", c.at("link"), "--fast", "--limit", "0.01")):
        with open(c.at("target"), "w"):
            os.symlink("target", c.at("link"))
        c.works(*command)
        c.check(os.path.islink(c.at("link")) and os.path.getsize(c.at("target")) > 0, command[0] + " to a link's target")
        os.remove(c.at("link"))
    c.refused("are for a file of arrays", "plot", c.at("m"), c.at("table"), c.at("no.png"), "--index", "0", status=2)
    c.refused("are for a model", "plot", c.at("a"), c.at("no.png"), "--columns", "1:2", status=2)


def failures(c):
    """What cannot be drawn is one line, and leaves neither picture nor output."""
    write(c.at("s"), {}, {"attncl.arch": "softmax", "attncl.config": "{}"})
    write(c.at("in"), {"x": ("F32", (2,), [1.0, 2.0])})
    c.refused("nothing to draw", "run", c.at("s"), c.at("in"), c.at("never"), "--heatmap", c.at("soft"))
    c.refused("expected a directory", "run", c.at("s"), c.at("in"), c.at("never"), "--heatmap", c.at("in"))
    c.refused("not installed", "plot", c.at("m"), c.at("table"), c.at("gone.png"), env=dict(os.environ, PATH=c.at(".")))
    for name in ("soft", "no.png", "gone.png", "gone.png.part", "never"):
        c.check(not os.path.exists(c.at(name)), name + " was left behind")


def real(c):
    """gnuplot draws all of them, in the size of their grid."""
    for path in GNUPLOT and glob.glob(c.at("**/*.png"), recursive=True) or ():
        with open(path) as f:
            text = f.read()
        done = subprocess.run([GNUPLOT], input=text, text=True, capture_output=True)
        with open(path + ".part", "rb") as f:  # the command renames it once gnuplot has ended well
            size = struct.unpack(">II", f.read(24)[16:]) if done.returncode == 0 else done.stderr
        rows, columns = map(int, re.search(r"layout (\d+),(\d+)", text).groups())
        c.check(size == (columns * PANEL[0], rows * PANEL[1]), "gnuplot: %s: %s" % (path, size))


def run(c):
    for part in (weights, biases, plots, arrays, failures, real):
        part(c)


if __name__ == "__main__":
    sys.exit(main(run))

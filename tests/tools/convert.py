#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert.py TOOL: attncl convert.  Matrices of trained parameters change their type and nothing else does; the converted
model computes as the same values in F32; what cannot be converted is refused without a file.  Standard library only.
Exit status 77 when there is no device.
"""
import json
import math
import os
import random
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import TESTS, load, main, write  # noqa: E402

TEXT = "abcabcbacbabcbabacabcb"
LM = os.path.join(TESTS, "data", "lm_transformer.safetensors")


# -- 8 and 4 bits: two layers of 32 and 96 channels, one map of a block, odd numbers of blocks and panels

SIZES = {"layer": "transformer", "heads": 2, "d_ff": 96, "d_model": 32, "n_layers": 2, "n_vocab": 11, "max_len": 40}


def floats_of(raw):
    return struct.unpack("<%df" % (len(raw) // 4), raw)


def widened(text, raw):
    """Rows of floats and of scales from bytes, as docs/model-files.md says."""
    bits = int(text[1])
    n, k = (int(x) for x in text[4:-1].split(","))
    pairs, pair_bytes = (k // 32 + 1) // 2, 64 + 128 * bits
    rows, scales = [], []
    for j in range(n):
        row = []
        for column in range(k):
            pair = (j // 16 * pairs + column // 64) * pair_bytes
            half, within = column // 32 % 2, column % 32
            d, = struct.unpack_from("<e", raw, pair + 32 * half + j % 16 * 2)
            group, inside = divmod(within, 32 // bits)
            byte = raw[pair + 64 + half * 64 * bits + group * 64 + j % 16 * 4 + inside % 4]
            q = byte - 128 if bits == 8 else (byte >> 4 * (inside // 4) & 15) - 8
            row.append(d * q)
            scales.append(abs(d))
        rows += row
    return rows, scales


def random_model(c):
    random.seed(1)
    config = json.dumps(SIZES)
    tensors = {}
    for t in json.loads(c.works("inspect", "--arch", "lm", "--config", config, "--json"))["tensors"]:
        shape = t["shape"]
        n = math.prod(shape)
        scale = 0.3 if len(shape) > 1 else 0.1
        base = 1.0 if "norm" in t["name"] and t["name"].endswith("weight") else 0.0
        tensors[t["name"]] = ("F32", shape, struct.pack("<%df" % n, *(random.gauss(base, scale) for _ in range(n))))
    return tensors, {"attncl.arch": "lm", "attncl.config": config, "attncl.vocab": "abcdefghijk"}


def check_quantised(c, name):
    at, check, works = c.at, c.check, c.works
    before, metadata = load(at("maps"))
    works("convert", at("maps"), at(name), "--dtype", name)
    works("convert", at(name), at("back"), "--dtype", "f32")
    works("convert", at("back"), at("again"), "--dtype", name)
    after, described = load(at(name))
    back, metadata_back = load(at("back"))
    check(load(at("again")) == (after, described), "%s: another rounding the second time" % name)
    check(metadata_back == metadata, "%s and back: metadata differ" % name)
    n_converted = 0
    for tensor, (kind, shape, old) in before.items():
        text = described.get("attncl.quantised." + tensor)
        check((text is not None) == (len(shape) == 2 and "pos" not in tensor), "%s: %s is %s" % (name, tensor, text))
        if text is None:
            check(after[tensor] == back[tensor] == before[tensor], "%s: %s changed" % (name, tensor))
            continue
        n_converted += 1
        check(text == "%s [%d, %d]" % (name, *shape), "%s is %s" % (tensor, text))
        values, scales = widened(text, after[tensor][2])
        check(list(floats_of(back[tensor][2])) == values, "%s: %s is not what the bytes say" % (name, tensor))
        off = [abs(x - y) / d for x, y, d in zip(floats_of(old), values, scales)]
        check(0 < max(off) <= (0.51 if name == "q8" else 1.6), "%s: %s is off by %g steps" % (name, tensor, max(off)))
    check(n_converted == 14, "%s: %d tensors were converted" % (name, n_converted))
    nll = [float(works("eval", at(file), at("text")).split()[1]) for file in (name, "back")]
    # CPUs round activations to 16 bits where weights have 8 or 4.
    check(abs(nll[0] - nll[1]) < 1e-4, "%s: %.7g, the same values in F32 %.7g" % (name, *nll))
    greedy = [works("sample", at(file), "--prompt", "ab", "--length", "30", "--temperature", "0") for file in (name, "back")]
    check(greedy[0] == greedy[1], "%s: writes %s instead of %s" % (name, *greedy))


def check_refusals(c):
    """Of files in 8 bits that are not right."""
    tensors, metadata = load(c.at("q8"))
    name = "generator.projection.weight"
    key = "attncl.quantised." + name
    kind, shape, raw = tensors[name]

    def refused(words, tensor, text):
        write(c.at("wrong"), {**tensors, name: tensor}, {**metadata, key: text})
        for command in (("eval", c.at("wrong"), c.at("text")), ("convert", c.at("wrong"), c.at("no"), "--dtype", "f32")):
            c.refused(words, *command)

    plain = tensors[name]
    refused("generator.projection.weight metadata says q5, it can be q8 or q4", plain, "q5 [11, 32]")
    refused('metadata says "q8 11", not for example "q8 [7, 64]"', plain, "q8 11")
    refused("has 1088 bytes or another shape, but q4 [11, 32] is [1, 1, 576]", plain, "q4 [11, 32]")
    refused("q8 [11, 33], but 33 is no multiple of 32", plain, "q8 [11, 33]")
    refused("has shape [12, 32], expected [11, 32]", plain, "q8 [12, 32]")
    infinite = (kind, shape, struct.pack("<e", math.inf) + raw[2:])
    refused("generator.projection.weight: the scale of block 0 of row 0 is inf, not finite", infinite, metadata[key])
    floats = struct.pack("<22f", *range(22))
    write(c.at("cotangents"), {"tokens": ("I64", [2, 1], struct.pack("<2q", 1, 2)), "cotangent.output": ("F32", [2, 1, 11], floats)}, {})
    c.refused("is in Q8, which has no gradient", "run", c.at("q8"), c.at("cotangents"), c.at("no"))
    write(c.at("step"), tensors, {**metadata, "attncl.arch": "train", "attncl.config": json.dumps(
        {"model": {"arch": "lm", **SIZES}, "optimizer": {"kind": "sgd", "learning_rate": 0.1}})})
    write(c.at("batches"), {n: ("I64", [1, 2, 1], struct.pack("<2q", 1, 2)) for n in ("tokens", "targets")}, {})
    c.refused("is in 8 or 4 bits, which are not trained", "run", c.at("step"), c.at("batches"), c.at("no"))
    write(c.at("wrong"), tensors, {k: v for k, v in metadata.items() if k != key})
    c.refused("generator.projection.weight has type U8, expected F32", "eval", c.at("wrong"), c.at("text"))


def check_memory(c):
    """Of a model of 97 MiB whose largest tensor has 4: a large file takes little more memory than a small one."""
    def peak(name, dtype):
        # Freed memory that a sanitizer holds back would count.
        options = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"}
        words = [c.tool, "convert", c.at(name), c.at("less"), "--dtype", dtype]
        _, status, usage = os.wait4(os.posix_spawn(c.tool, words, options), 0)
        c.check(status == 0, "%s: status %d" % (" ".join(words), status))
        return usage.ru_maxrss / 1024

    def empty(name, config):
        """A file of zeros, with a hole in the place of data."""
        config, header, end = json.dumps({**SIZES, **config}), {}, 0
        for t in json.loads(c.works("inspect", "--arch", "lm", "--config", config, "--json"))["tensors"]:
            begin, end = end, end + 4 * math.prod(t["shape"])
            header[t["name"]] = {"dtype": "F32", "shape": t["shape"], "data_offsets": [begin, end]}
        header["__metadata__"] = {"attncl.arch": "lm", "attncl.config": config}
        text = json.dumps(header).encode()
        with open(c.at(name), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            f.truncate(8 + len(text) + end)

    empty("little", {})
    empty("much", {"n_layers": 8, "d_model": 512, "d_ff": 2048, "heads": 8})
    for dtype in ("f16", "bf16", "q8", "q4", "f32"):
        more = peak("much", dtype) - peak("little", dtype)
        c.check(more < 30, "%s: %.0f MiB more than of a small file" % (dtype, more))


def run(c):
    at, check, works = c.at, c.check, c.works

    def refused(status, words, output, *command):
        c.refused(words, "convert", *command, status=status)
        check(not os.path.exists(output), "%s left %s" % (" ".join(command), output))

    tensors, metadata = load(LM)
    tensors = {n: t for n, t in tensors.items() if not n.startswith(("input.", "expected."))}
    metadata["attncl.vocab"] = "".join(chr(97 + i) for i in range(11))
    write(at("lm"), tensors, metadata)
    before, metadata_before = load(at("lm"))
    for name, dtype in (("f16", "F16"), ("bf16", "BF16")):
        works("convert", at("lm"), at(name), "--dtype", name)
        works("convert", at(name), at("back"), "--dtype", "f32")
        works("convert", at("back"), at("again"), "--dtype", name)
        after, metadata_after = load(at(name))
        back = load(at("back"))[0]
        check(metadata_after == metadata_before, "%s: metadata differ" % name)
        check({n: t[:2] for n, t in back.items()} == {n: t[:2] for n, t in before.items()}, "%s and back: not as before" % name)
        check(load(at("again"))[0] == after, "%s: another rounding the second time" % name)
        n_converted = 0
        for tensor, (kind, shape, old) in before.items():
            if after[tensor][0] == dtype:
                n_converted += 1
                check(len(shape) >= 2 and after[tensor][1] == shape, "%s is %s" % (tensor, after[tensor][:2]))
                pairs = zip(*(struct.unpack("<%df" % (len(old) // 4), b) for b in (old, back[tensor][2])))
                worst = max(abs(x - y) / max(abs(x), 2.0 ** -14) if math.isfinite(y) else math.inf for x, y in pairs)
                check(0 < worst <= 2.0 ** -(11 if dtype == "F16" else 8), "%s as %s: off by %g" % (tensor, dtype, worst))
            else:
                check(after[tensor] == before[tensor], "%s became %s" % (tensor, after[tensor][:2]))
        check(n_converted >= 10, "%s: %d tensors were converted" % (name, n_converted))

    refused(2, "--dtype is missing: f16, bf16, f32, q8 or q4", at("no"), at("lm"), at("no"))
    refused(2, "'F64' is not f16, bf16, f32, q8 or q4", at("no"), at("lm"), at("no"), "--dtype", "F64")
    refused(1, "No such file", at("no"), at("none"), at("no"), "--dtype", "f16")
    refused(1, "none/no: No such file", at("none/no"), at("lm"), at("none/no"), "--dtype", "f16")
    write(at("plain"), tensors, {})
    refused(1, "attncl.arch", at("no"), at("plain"), at("no"), "--dtype", "f16")
    large = dict(tensors)
    kind, shape, values = large["generator.projection.weight"]
    large["generator.projection.weight"] = (kind, shape, struct.pack("<f", 1e6) + values[4:])
    write(at("large"), large, metadata)
    refused(1, "generator.projection.weight: element 0 is 1e+06, which does not fit F16", at("no"), at("large"),
            at("no"), "--dtype", "f16")
    works("convert", at("large"), at("fits"), "--dtype", "bf16")

    with open(at("text"), "w") as f:
        f.write(TEXT)
    for name in ("f16", "bf16"):
        works("convert", at(name), at("back"), "--dtype", "f32")
        nll = [float(works("eval", at(file), at("text")).split()[1]) for file in (name, "back", "lm")]
        check(abs(nll[0] - nll[1]) < 5e-6, "%s: %g, the same values in F32 %g" % (name, nll[0], nll[1]))
        check(abs(nll[0] - nll[2]) < 0.02, "%s: %g, before %g" % (name, nll[0], nll[2]))
        greedy = [works("sample", at(file), "--prompt", "ab", "--length", "6", "--temperature", "0")
                  for file in (name, "back")]
        check(greedy[0] == greedy[1], "%s: writes %s instead of %s" % (name, *greedy))

    tensors, metadata = random_model(c)
    write(at("maps"), tensors, metadata)
    check_quantised(c, "q8")
    check_quantised(c, "q4")
    check_refusals(c)
    check_memory(c)
    write(at("odd"), {"weight": ("F32", [2, 33], bytes(264))}, {"attncl.arch": "linear", "attncl.config":
                                                               '{"in_features": 33, "out_features": 2, "bias": false}'})
    works("convert", at("odd"), at("odd16"), "--dtype", "q8")
    check(load(at("odd16"))[0]["weight"][:2] == ("F16", [2, 33]), "33 inputs are not F16")


if __name__ == "__main__":
    sys.exit(main(run))

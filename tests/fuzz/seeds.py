# SPDX-License-Identifier: MIT
"""seeds.py DIRECTORY: writes the first inputs of every target to DIRECTORY/TARGET, and the
words that its texts are made of to DIRECTORY/TARGET.dict."""
import json
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"


def frame(header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def arrays(**values):
    """A file of I64 arrays, each given as its shape and elements."""
    header, data = {}, b""
    for name, (shape, elements) in values.items():
        header[name] = entry("I64", shape, len(data), len(data) + 8 * len(elements))
        data += struct.pack(f"<{len(elements)}q", *elements)
    return frame(header, data)


def golden(path):
    """Header, arrays' bytes and configuration of a golden file."""
    data = path.read_bytes()
    n, = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + n]), data[8 + n:]


def goldens():
    """Without what is expected."""
    for path in sorted(DATA.glob("*.safetensors")):
        header, data = golden(path)
        kept, bytes_kept = {"__metadata__": header["__metadata__"]}, b""
        for name, value in header.items():
            if name != "__metadata__" and not name.startswith("expected."):
                begin, end = value["data_offsets"]
                kept[name] = entry(value["dtype"], value["shape"], len(bytes_kept), len(bytes_kept) + end - begin)
                bytes_kept += data[begin:end]
        if len(bytes_kept) < 6000:
            yield frame(kept, bytes_kept)


def train_config():
    for path in sorted(DATA.glob("train_*.safetensors")):
        yield golden(path)[0]["__metadata__"]["attncl.train"].encode()
    yield json.dumps({"arch": "encoder", "model": {"layer": "transformer", "d_model": 6, "heads": 2, "d_ff": 8, "n_layers": 1,
                                                   "pooling": "mean"}, "train": {
        "batch_size": 4, "seq_len": 8, "steps": 30, "grad_norm_clip": 0.5, "accumulate": 2,
        "schedule": {"kind": "cosine", "warmup": 3}, "dropout": 0.1, "label_smoothing": 0.1, "ema": 0.99,
        "valid_fraction": 0.1, "order": "shuffled", "eval_every": 10, "seed": 1}}).encode()


def dataset():
    text, tokens, pairs, batches = range(4)
    for how in (bytes([0, 1, 0, 0]), bytes([0, 12, 0x55, 3]), bytes([0, 6, 0xb3, 65])):
        yield bytes([text]) + how[1:] + "To be, or not to be, that is the question\u2014\u00e9\U0001f600\n".encode() * 3
        yield bytes([tokens]) + how[1:] + arrays(tokens=([20], [i % 7 for i in range(20)]))
        for form in range(3):
            target = ("va !", "noun", "NOUN VERB .")[form]
            yield bytes([pairs + 4 * form]) + how[1:] + f"Go now.\t{target}\nWho is?\t{target}\n\n".encode() * 4
        yield bytes([batches]) + how[1:] + arrays(tokens=([2, 3, 1], list(range(6))), targets=([2, 3, 1], list(range(6))))
        yield bytes([batches]) + how[1:] + arrays(enc_X=([2, 1, 3], list(range(6))), dec_X=([2, 1, 2], [1, 2, 3, 4]),
                                                  enc_valid_lens=([2, 1], [2, 3]), targets=([2, 1, 2], [1, 2, 3, 4]))
        yield bytes([batches + 4]) + how[1:] + arrays(tokens=([2, 1, 3], list(range(6))), targets=([2, 1], [1, 2]))


def inputs():
    models = [line.split('"')[1::2] for line in (ROOT / "tests/fuzz/fuzz_input.c").read_text().splitlines()
              if line.startswith('    "') and line.endswith('",')]
    for which, name in enumerate(sum(models, [])):
        header, data = golden(DATA / f"{name}.safetensors")
        kept, bytes_kept = {}, b""
        for key in header:
            if key.startswith("input."):
                begin, end = header[key]["data_offsets"]
                kept[key[6:]] = entry(header[key]["dtype"], header[key]["shape"], len(bytes_kept),
                                      len(bytes_kept) + end - begin)
                bytes_kept += data[begin:end]
        yield bytes([which]) + frame(kept, bytes_kept)


def tokenizers():
    """Golden tokenizers with a few of their tokens."""
    for path in sorted(DATA.glob("tokenizer_*.json")):
        file = json.loads(path.read_text(encoding="utf-8"))
        model = file["tokenizer"]["model"]
        named = {one["content"] for one in file["tokenizer"]["added_tokens"]} | {model["unk_token"], *"abc the"}
        pairs = [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"][:12]]
        kept = named.union(*(pair + ["".join(pair)] for pair in pairs), (f"<0x{i:02X}>" for i in (0xc3, 0xa9, 0xff)))
        model.update(merges=pairs, vocab={token: id for token, id in model["vocab"].items() if token in kept})
        yield json.dumps(file["tokenizer"], ensure_ascii=False).encode() + b"\0" + "The café <mask> a  b\n".encode()


TARGETS = {"safetensors": goldens, "tokenizer": tokenizers, "train_config": train_config, "dataset": dataset, "model": goldens, "input": inputs}


def words(path, pattern):
    return set(re.findall(pattern, (ROOT / path).read_text()))


def dictionary(target):
    keys = {f'"{word}"' for word in words("docs/architectures.md", r"`(\w+)`")}
    if target == "safetensors":
        types = words("include/attncl/dtype.h", r"X\((\w+), \d+, \d+\)")
        return {f'"{word}"' for word in types | {"dtype", "shape", "data_offsets", "__metadata__"}}
    if target == "tokenizer":
        return {f'"{word}"' for word in words("docs/model-files.md", r"`(\w+)`")} | words("lib/tokenizer/regex.c", r"\(\?[:=!<>]+")
    if target == "train_config":
        return keys | {f'"{word}"' for word in words("docs/training.md", r"`(\w+)`")}
    if target == "dataset":
        return {'"tokens"', '"targets"', '"enc_X"', '"dec_X"', '"enc_valid_lens"', '"valid_lens"', '"I64"', '"I32"', "\t", "\n"}
    return {'"F32"', '"I64"', '"BOOL"', '"shape"'} if target == "input" else keys


def main():
    for target, seeds in TARGETS.items():
        directory = pathlib.Path(sys.argv[1]) / target
        directory.mkdir(parents=True, exist_ok=True)
        for i, seed in enumerate(seeds()):
            (directory / f"seed-{i:03}").write_bytes(seed)
        quoted = ("".join(c if c.isalnum() or c in "_{}:." else f"\\x{ord(c):02x}" for c in word)
                  for word in sorted(dictionary(target)))
        directory.with_suffix(".dict").write_text("".join(f'"{word}"\n' for word in quoted))


main()

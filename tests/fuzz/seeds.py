# SPDX-License-Identifier: MIT
"""seeds.py DIRECTORY: writes the first inputs of every target, good files and near misses, to DIRECTORY/TARGET, and the
words that its texts are made of to DIRECTORY/TARGET.dict."""
import json
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
        "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}


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


def safetensors():
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


def config():
    seen = set()
    for path in sorted(DATA.glob("*.safetensors")):
        metadata = golden(path)[0]["__metadata__"]
        text = metadata["attncl.arch"] + " " + metadata.get("attncl.config", "{}")
        if text not in seen:
            seen.add(text)
            yield text.encode()


def train_config():
    for model in ({"layer": "gmlp", "d_model": 6, "d_ffn": 8, "seq_len": 8, "n_layers": 2},
                  {"layer": "transformer", "d_model": 6, "heads": 2, "d_ff": 8, "n_layers": 1, "pos": "learned", "max_len": 9},
                  {"layer": "aft_local", "d_model": 4, "n_layers": 1, "d_ff": 8, "seq_len": 8, "local_window_size": 3}):
        for optimizer in ({"kind": "adam", "learning_rate": 0.003, "amsgrad": True}, {"kind": "noam", "warmup": 10},
                          {"kind": "sgd", "momentum": 0.9, "nesterov": True}, {"kind": "adamw", "weight_decay": 0.01}):
            yield json.dumps({"arch": "lm", "model": model, "train": {
                "batch_size": 4, "seq_len": 8, "steps": 30, "optimizer": optimizer, "grad_norm_clip": 0.5, "accumulate": 2,
                "schedule": {"kind": "cosine", "warmup": 3}, "dropout": 0.1, "label_smoothing": 0.1, "ema": 0.99,
                "valid_fraction": 0.1, "order": "shuffled", "eval_every": 10, "seed": 1}}).encode()
    yield json.dumps({"arch": "seq2seq_bahdanau", "model": {"embed_size": 4, "num_hiddens": 6, "num_layers": 1},
                      "train": {"batch_size": 2, "min_frequency": 2, "pad": 1}}).encode()
    yield json.dumps({"arch": "encoder", "model": {"layer": "transformer", "d_model": 6, "heads": 2, "d_ff": 8, "n_layers": 1,
                                                   "pooling": "mean"}, "train": {"batch_size": 2}}).encode()


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


def tuning():
    first = "attncl-tune 1 0.1.0\n"
    device = "pthread-cpu\t3.1\t"
    yield first.encode()
    for line in ("gemm_cpu\tsmall\tTM=64 TN=64 TK=64", "gemm_gpu\tlarge\tBM=64 BN=64 BK=16 TX=4 TY=4",
                 "attention_cpu\tlong\tblock=64 tile=16", "rows_gpu\twide\tLS=128", "# a comment", ""):
        yield (first + device + line + "\n" + device.replace("3.1", "9") + line).encode()
    for path in sorted((ROOT / "tests/store").glob("*.txt")):
        yield path.read_bytes()


def cache():
    yield b"\0"
    yield b"\0ATTNCLPB" + bytes(56)
    yield b"\1"
    yield b"\1" + bytes(40) + b"\1"
    yield b"\3"


def model():
    for path in sorted(DATA.glob("*.safetensors")):
        header, data = golden(path)
        names = [name for name in header if name != "__metadata__" and not name.startswith("expected.")]
        kept, bytes_kept = {"__metadata__": header["__metadata__"]}, b""
        for name in names:
            begin, end = header[name]["data_offsets"]
            kept[name] = entry(header[name]["dtype"], header[name]["shape"], len(bytes_kept), len(bytes_kept) + end - begin)
            bytes_kept += data[begin:end]
        if len(bytes_kept) < 6000:
            yield frame(kept, bytes_kept)


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


TARGETS = {"safetensors": safetensors, "config": config, "train_config": train_config, "dataset": dataset, "tuning": tuning,
           "cache": cache, "model": model, "input": inputs}


def words(path, pattern):
    return set(re.findall(pattern, (ROOT / path).read_text()))


def dictionary(target):
    keys = {f'"{word}"' for word in words("docs/architectures.md", r"`(\w+)`")}
    if target == "safetensors":
        return {line[1:-1].replace('\\"', '"') for line in (ROOT / "tests/fuzz/safetensors.dict").read_text().splitlines()
                if line.startswith('"')}
    if target == "train_config":
        return keys | {f'"{word}"' for word in words("docs/training.md", r"`(\w+)`")}
    if target == "tuning":
        return words("lib/store/tuning_table.c", r'"(\w+)"')
    if target == "dataset":
        return {'"tokens"', '"targets"', '"enc_X"', '"dec_X"', '"enc_valid_lens"', '"valid_lens"', '"I64"', '"I32"', "\t", "\n"}
    return {"input": {'"F32"', '"I64"', '"BOOL"', '"shape"'}, "cache": {"ATTNCLPB"}}.get(target, keys)


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

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mistakes.py TOOL ROOT: what a user gets wrong, tried from outside.

Each row of MISTAKES is a command that must fail: with its exit status, one line on stderr that has the words, nothing
on stdout, and no file that was not there before.  Exit status 77 when there is no device.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, TESTS)
from support.safetensors_file import write  # noqa: E402

LINEAR = '{"in_features": 3, "out_features": 2}'
WEIGHT, BIAS = ("F32", [2, 3], [0.5] * 6), ("F32", [2], [0.5] * 2)
X = ("F32", [4, 3], [1.0] * 12)
LM = ('{"layer": "aft_simple", "d_model": 4, "d_ff": 4, "n_layers": 0, "n_vocab": 3, "max_len": 5}')

# Model files: name -> (arch, config, parameters).
MODELS = {
    "linear": ("linear", LINEAR, {"weight": WEIGHT, "bias": BIAS}),
    "no_bias": ("linear", LINEAR, {"weight": WEIGHT}),
    "no_parameters": ("linear", LINEAR, {}),
    "wrong_arch": ("liner", LINEAR, {"weight": WEIGHT, "bias": BIAS}),
    "torch_arch": ("nn.Linear", LINEAR, {"weight": WEIGHT, "bias": BIAS}),
    "embedding": ("embedding", '{"num_embeddings": 5, "embedding_dim": 2}', {"weight": ("F32", [5, 2], [0.5] * 10)}),
    "softmax": ("softmax", "{}", {}),
    "softmax_axis": ("softmax", '{"dim": 2}', {}),
    "mha": ("mha", '{"d_model": 2, "heads": 1, "bias": false}',
            {name: ("F32", [2, 2], [0.5] * 4) for name in
             ("query.linear.weight", "key.linear.weight", "value.linear.weight", "output.weight")} |
            {name: ("F32", [2], [0.5] * 2) for name in ("value.linear.bias", "output.bias")}),
    "lm": ("lm", LM, {"src_embed.linear.weight": ("F32", [3, 4], [0.5] * 12), "encoder.norm.weight": ("F32", [4], [1.0] * 4),
                      "encoder.norm.bias": ("F32", [4], [0.0] * 4),
                      "generator.projection.weight": ("F32", [3, 4], [0.5] * 12),
                      "generator.projection.bias": ("F32", [3], [0.0] * 3)}),
}
# Models of which only the configuration is wrong: name -> (arch, config).
CONFIGS = {
    "key": ("linear", '{"in_feature": 3, "out_features": 2}'),
    "inner_key": ("train", '{"model": {"arch": "lm", "n_vocb": 3}}'),
    "optimizer_key": ("train", '{"optimizer": {"kind": "adam", "lr": 0.1}}'),
    "huge": ("linear", '{"in_features": 99999999999, "out_features": 2}'),
    "python": ("linear", "{'in_features': 3, 'out_features': 2}"),
    "layer": ("encoder", '{"layer": "aft_locl", "d_model": 4, "d_ff": 4, "n_layers": 1}'),
    "pos": ("lm", '{"layer": "gmlp", "d_model": 4, "d_ffn": 4, "seq_len": 4, "n_layers": 1, "n_vocab": 3, '
                  '"pos": "learnd_pos"}'),
    "score": ("feedback_attention", '{"d_model": 4, "heads": 2, "score": "join"}'),
    "kernel": ("attention_pooling", '{"kernel": "gausian"}'),
}
# Input files: name -> tensors.
INPUTS = {
    "x": {"x": X},
    "x_upper": {"X": X},
    "x_and_mask": {"x": X, "mask": ("F32", [1], [1.0])},
    "nothing": {},
    "token_5": {"tokens": ("I64", [2], [1, 5])},
    "token_negative": {"tokens": ("I64", [2], [1, -1])},
    "token_float": {"tokens": ("F32", [2], [1.0, 2.0])},
    "query_only": {"query": ("F32", [1, 1, 2], [1.0] * 2)},
    "qkv_mask": {name: ("F32", [1, 1, 2], [1.0] * 2) for name in ("query", "key", "value")}
                | {"attn_mask": ("I32", [1, 1, 1], [1])},
}
FILES = {
    "empty": b"",
    "text": b"To be, or not to be",
    "long_text": b"To be, or not to be" * 40,
    "tuning": b"attncl-tune 1 0.1.0\n",
    "latin1": b"abc\xe9",
    "zero_byte": b"a\0b",
    "train.json": b'{"model": {"layer": "aft_simple", "d_model": 4, "d_ff": 4, "n_layers": 0, "seq_len": 4}}',
    "checkpoint.pt": b"PK\3\4" + bytes(26) + b"archive/data.pkl",
    "array.npy": b"\x93NUMPY\1\0v\0{'descr': '<f4'}",
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
}

MISTAKES = [
    # (exit status, words of the message, environment, command)
    *[(1, words, {}, ("run", model, "x", "out")) for model, words in {
        "no_file": "no_file: No such file or directory",
        ".": "is a directory",
        "empty": "empty: a file of 0 bytes",
        "text": "text: a header of",
        "checkpoint.pt": "a PyTorch checkpoint: convert it with attncl-convert, see docs/model-files.md",
        "array.npy": "a NumPy array (NPY)",
        "pointer": "a Git LFS pointer: get the file itself with git lfs pull",
        "cut": "data_offsets end at 32, the file has 29 bytes of data",
        "long": "the tensors take 32 bytes, the file has 35 bytes of data",
        "x": "metadata attncl.arch is missing: a file of weights becomes a model file by attncl-convert",
        "wrong_arch": "arch liner is not known, nearest: linear; archs: softmax, ",
        "torch_arch": "arch nn.Linear is not known, nearest: linear; archs: softmax, ",
        "no_bias": "parameter bias is missing",
        "no_parameters": "parameters weight, bias are missing\n",
    }.items()],
    *[(1, "attncl.config: " + words, {}, ("run", config, "x", "out")) for config, words in {
        "key": "key in_feature is not known, nearest: in_features; keys: in_features, out_features, bias",
        "inner_key": "model: key n_vocb is not known, nearest: n_vocab; keys: arch, layer, ",
        "optimizer_key": "optimizer: key lr is not known, nearest: learning_rate; keys: kind, learning_rate, ",
        "huge": "in_features is 99999999999, must be at most 2147483647",
        "python": "no valid JSON: string or '}' expected",
        "layer": "layer aft_locl is not known, nearest: aft_local; choices: aft_local, aft_full, ",
        "pos": "pos learnd_pos is not known, nearest: learned_pos; choices: fixed_pos, learned_pos, no_pos",
        "score": "score join is not known, nearest: joint; choices: joint, split",
        "kernel": "kernel gausian is not known, nearest: gaussian; choices: gaussian, boxcar, ",
    }.items()],
    *[(1, words, {}, ("run", model, given, "out")) for model, given, words in (
        ("linear", "no_file", "no_file: No such file or directory"),
        ("linear", "checkpoint.pt", "a PyTorch checkpoint"),
        ("linear", "array.npy", "a NumPy array (NPY): save it with safetensors.numpy.save_file()"),
        ("linear", "nothing", "input x is missing"),
        ("linear", "x_upper", "input X is not known, nearest: x; inputs: x"),
        ("linear", "x_and_mask", "input mask is not known; inputs: x"),
        ("linear", "linear", "is not known; inputs: x"),
        ("softmax_axis", "x", "dim is 2, input x has 2 axes"),
        ("embedding", "token_5", "tokens: element 1 is 5, allowed are 0 to 4"),
        ("embedding", "token_negative", "tokens: element 1 is -1, allowed are 0 to 4"),
        ("embedding", "token_float", "input tokens has type F32, expected I64 or I32"),
        ("mha", "query_only", "inputs key, value are missing"),
        ("mha", "qkv_mask", "input attn_mask is not known, nearest: mask; inputs: query, key, value, mask"),
    )],
    *[(1, f"environment variable {name} is {words}", {name: value}, ("run", "linear", "x", "out"))
      for name, value, words in (
        ("ATTNCL_CACHE", "yes", "yes, expected one of: rw, ro, off"),
        ("ATTNCL_GEMM", "blas", "blas, expected one of: native, clblast"),
        ("ATTNCL_VARIANT", "gpus", "gpus, expected one of: cpu, gpu"),
        ("ATTNCL_GUARD", "on", "on, expected one of: 0, 1"),
        ("ATTNCL_TUNE", "no", "no, expected off or a file"),
        ("ATTNCL_TUNE", "nowhere/tune.txt", "nowhere/tune.txt: there is no such file"),
        ("ATTNCL_TUNE", ".", "./., which is not read: no regular file"),
        ("ATTNCL_TUNE", "./linear", "./linear: no tuning file, which begins with attncl-tune"),
        ("ATTNCL_RANKS_TIMEOUT", "1.5", "1.5, expected whole seconds up to 999999999"),
        ("ATTNCL_CL_DIR", "nowhere", "nowhere, expected an existing directory"),
        ("ATTNCL_DUMP_CL", "nowhere", "nowhere, expected an existing directory"),
        ("ATTNCL_CACHE_DIR", "x", "x, expected a directory"),
        ("ATTNCL_DEVCE", "cpu", "not known, nearest: ATTNCL_DEVICE"),
    )],
    (1, 'no available device matches "vulkan"; there is 0:0 ', {"ATTNCL_DEVICE": "vulkan"}, ("run", "linear", "x", "out")),
    (1, 'no available device matches "9:9"; there is 0:0 ', {}, ("run", "linear", "x", "out", "--device", "9:9")),
    *[(1, 'the device is "", it can be gpu, cpu, PLATFORM:DEVICE or part of a name', {}, (*command, "--device", device))
      for device, command in (
        ("", ("run", "linear", "x", "out")),
        ("", ("eval", "lm_abc", "text")),
        ("", ("sample", "lm", "--tokens", "--prompt", "1")),
        ("", ("train", "train.json", "--data", "long_text", "--out", "out")),
        ("", ("plot", "softmax", "x", "out.png")),
        ("", ("tune", "--seconds", "0.1")),
        ("", ("selftest",)),
        (",0:0", ("train", "train.json", "--data", "long_text", "--out", "out")),
    )],
    (1, "nowhere/out: No such file or directory", {}, ("run", "linear", "x", "nowhere/out")),
    (1, "nowhere/out: No such file or directory", {}, ("report", "nowhere/out")),
    (1, ". is a directory, expected a file", {}, ("report", ".")),
    (2, "report: OUT.json is missing", {}, ("report", "--fast")),
    (2, "--limit: '0' is not a number from 0.01", {}, ("report", "out", "--limit", "0")),
    (1, "ATTNCL_GEMM is blas", {"ATTNCL_GEMM": "blas"}, ("report", "out")),
    (1, "--binaries: x: Not a directory", {}, ("report", "out", "--binaries", "x")),
    (1, "--binaries: nowhere/x: No such file or directory", {}, ("report", "out", "--binaries", "nowhere/x")),
    (2, "selftest: --precision is for --brief", {}, ("selftest", "--precision", "bf16")),
    (2, "selftest: --brief and --large exclude each other", {}, ("selftest", "--brief", "--large")),
    (1, "is a directory", {}, ("run", "linear", "x", ".")),
    (1, "would overwrite", {}, ("run", "linear", "x", "x")),
    (1, "would overwrite", {}, ("run", "linear", "x", "linear")),
    (1, "nowhere/trace: No such file or directory", {}, ("run", "linear", "x", "out", "--trace", "nowhere/trace")),
    *[(1, words, {}, command) for words, command in (
        ("x: the output would overwrite an input", ("run", "linear", "x", "out", "--trace", "x")),
        ("out: OUTPUT and the trace would be the same file", ("run", "linear", "x", "out", "--trace", "out")),
        ("linear: the output would overwrite an input", ("convert", "linear", "linear", "--dtype", "f16")),
        ("./linear: the output would overwrite an input", ("convert", "linear", "./linear", "--dtype", "f16")),
        ("x: the output would overwrite an input", ("plot", "linear", "x", "x")),
        ("--prompt: 'two' is not a token number", ("sample", "lm", "--tokens", "--prompt", "1 two 2")),
        ("text: 'To' is not a token number", ("eval", "lm", "text", "--tokens")),
        ("empty: holds no token number", ("eval", "lm", "empty", "--tokens")),
        ("latin1: is not UTF-8 at byte 3", ("eval", "lm_abc", "latin1")),
        ("zero_byte: character U+0000 at byte 1 is not in the model's vocabulary", ("eval", "lm_abc", "zero_byte")),
        ("text: character 'T' (U+0054) at byte 0 is not in the model's vocabulary", ("eval", "lm_abc", "text")),
        ("--index: '' is not of the form I,J", ("plot", "x", "out.png", "--index", "")),
        ("--index: '0,' is not of the form I,J", ("plot", "x", "out.png", "--index", "0,")),
        ("attncl: nowhere: No such file or directory",
         ("train", "train.json", "--data", "text", "--out", "out", "--tokenizer", "nowhere")),
        ("text: tokenizer.json: no valid JSON: ", ("train", "train.json", "--data", "text", "--out", "out", "--tokenizer", "text")),
        ("nowhere.json: No such file or directory", ("train", "nowhere.json", "--data", "text", "--out", "out")),
        ("linear: no valid JSON: line 1: ", ("train", "linear", "--data", "text", "--out", "out")),
        ("--prompt: character 'Z' (U+005A) at byte 1 is not in the model's vocabulary",
         ("train", "train.json", "--data", "long_text", "--out", "out", "--prompt", "TZ")),
        ("--prompt is empty", ("train", "train.json", "--data", "long_text", "--out", "out", "--prompt", "")),
    )],
    *[(2, words, {}, command) for words, command in (
        ("inspect: --symbols is for --arch, not for a file", ("inspect", "linear", "--symbols")),
        ("inspect: --config is for --arch, not for a file", ("inspect", "linear", "--config", LINEAR)),
        ("inspect: a file name or --arch is missing", ("inspect", "--json")),
        ("convert: --dtype is missing: f16, bf16, f32, q8 or q4", ("convert", "linear", "out")),
        ("train: --prompt is for a text in --data", ("train", "train.json", "--tokens", "--data", "x", "--out", "out", "--prompt", "a")),
    )],
    (1, "attncl.vocab", {}, ("sample", "lm", "--prompt", "To be")),
    (1, "lm", {}, ("eval", "linear", "text")),
    (1, "3 is not a token of the model, which has 0 to 2", {}, ("sample", "lm", "--tokens", "--prompt", "1,3")),
    (1, "'a' is not a token number", {}, ("sample", "lm", "--tokens", "--prompt", "1,a")),
    (1, "the model has 5", {}, ("sample", "lm", "--tokens", "--prompt", "1,2", "--length", "9")),
    (1, "arch linear has no plot; positional_encoding and attention_pooling have", {}, ("plot", "linear", "x", "out.png")),
    (1, "arch encodr is not known, nearest: encoder; archs: ", {}, ("inspect", "--arch", "encodr")),
    (1, "key in_feature is not known, nearest: in_features", {},
     ("inspect", "--arch", "linear", "--config", '{"in_feature": 3}')),
    (1, "./linear: no tuning file, which begins with attncl-tune", {"ATTNCL_TUNE": "./linear"}, ("tune", "--seconds", "0.1")),
    (1, "./linear: no tuning file, which begins with attncl-tune", {"ATTNCL_TUNE": "./linear"}, ("tune", "--import", "tuning")),
    (1, 'no kernel "gem_cpu" is tuned on this device, nearest: gemm_', {},
     ("tune", "--check", "--kernel", "gem_cpu")),
    (2, "unknown command 'rn'; there are devices, inspect, convert", {}, ("rn", "linear", "x", "out")),
    (2, '--precision is "fp8", it can be float32, tf32 or bf16', {}, ("run", "linear", "x", "out", "--precision", "fp8")),
    (2, "run: unknown option --devices; there are --device, ", {}, ("run", "linear", "x", "out", "--devices", "cpu")),
    (2, "run: unknown option --jso; there are --device, ", {}, ("run", "linear", "x", "out", "--jso")),
    (2, "run: unknown option --devic; there are --device, ", {}, ("run", "linear", "x", "out", "--devic", "cpu")),
    (2, "run: unknown option --devic=cpu; there are --device, ", {}, ("run", "linear", "x", "out", "--devic=cpu")),
    (2, "run: OUTPUT is missing", {}, ("run", "linear", "x")),
    (2, "--version: unexpected argument: x", {}, ("--version", "x")),
    (2, "--help: unexpected argument: run", {}, ("--help", "run")),
    (2, "run: unexpected argument: more", {}, ("run", "linear", "x", "out", "more")),
    (2, "--length: '1e3' is not a whole number from 0 to 2147483647", {}, ("sample", "lm", "--tokens", "--prompt", "1", "--length", "1e3")),
    (2, "--length: '2147483648' is not a whole number", {}, ("sample", "lm", "--tokens", "--prompt", "1", "--length", "2147483648")),
    (2, "--temperature: '-1' is not a number from 0 to", {}, ("sample", "lm", "--tokens", "--prompt", "1", "--temperature", "-1")),
]


def write_files(tmp):
    at = lambda name: os.path.join(tmp, name)
    for name, (arch, config, parameters) in MODELS.items():
        write(at(name), parameters, {"attncl.arch": arch} | ({"attncl.config": config} if config else {}))
    arch, config, parameters = MODELS["lm"]
    write(at("lm_abc"), parameters, {"attncl.arch": arch, "attncl.config": config, "attncl.vocab": "abc"})
    for name, (arch, config) in CONFIGS.items():
        write(at(name), {}, {"attncl.arch": arch, "attncl.config": config})
    for name, tensors in INPUTS.items():
        write(at(name), tensors)
    for name, data in FILES.items():
        with open(at(name), "wb") as file:
            file.write(data)
    with open(at("linear"), "rb") as file:
        data = file.read()
    for name, damaged in (("cut", data[:-3]), ("long", data + b"abc")):
        with open(at(name), "wb") as file:
            file.write(damaged)


def try_command(tool, tmp, row):
    """What is wrong with the tool's answer."""
    status, words, environment, command = row
    done = subprocess.run([tool, *command], cwd=tmp, env=os.environ | environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    error = done.stderr.decode()
    wrong = []
    if done.returncode != status:
        wrong.append(f"exit status {done.returncode}, expected {status}")
    if error.count("\n") != 1 or not error.startswith("attncl: "):
        wrong.append("stderr is not one line of attncl")
    if words not in error:
        wrong.append(f"lacks '{words}'")
    if done.stdout:
        wrong.append("printed on stdout")
    return [f"{environment or ''} attncl {' '.join(command)}: {', '.join(wrong)}: {error.strip()}"] if wrong else []


def contents(tmp):
    return {name: open(os.path.join(tmp, name), "rb").read() for name in os.listdir(tmp)}


def main(tool, _root):
    if subprocess.run([tool, "devices"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no device", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        write_files(tmp)
        before = contents(tmp)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failures = [line for lines in pool.map(lambda row: try_command(tool, tmp, row), MISTAKES) for line in lines]
        after = contents(tmp)
        failures += [f"{name} was left or changed" for name in after if after[name] != before.get(name)]
        # The files are right: with no mistake the command works.
        done = subprocess.run([tool, "run", "linear", "x", "out"], cwd=tmp, stdout=subprocess.DEVNULL)
        if done.returncode != 0 or not os.path.exists(os.path.join(tmp, "out")):
            failures.append("without a mistake there is no output")
    print(f"{len(MISTAKES)} mistakes")
    print("\n".join(failures), file=sys.stderr)
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2]))

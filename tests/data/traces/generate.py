#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the traces of this directory: what PyTorch's losses are over 300 steps of each experiment at a small size.

    python3 tests/data/traces/generate.py [NAME ...]

Weights and batches come from support/traces.py.  The losses are computed in float64, and in float32 to see how far apart
rounding alone drives them.  Needs torch.
"""
import json
import math
import pathlib
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import traces  # noqa: E402
from torch_models.model_file import load_model, model_of, tensors_of  # noqa: E402
from torch_models.twin import Twin  # noqa: E402

N_STEPS = 300
# GELU: rounding can carry an element over ReLU's bend, where its gradient leaps.
LM = {"n_vocab": 13, "d_model": 16, "n_layers": 2, "activation": "GELU"}
COSINE = {"kind": "cosine", "warmup": 30, "min_learning_rate": 0.0002}

TRACES = {
    "aft_local": ("lm", {"layer": "aft_local", "seq_len": 16, "local_window_size": 5, "d_ff": 24},
                  {"optimizer": {"kind": "adam", "learning_rate": 0.005, "optimized_update": False},
                   "schedule": COSINE}),
    "gmlp": ("lm", {"activation": None, "layer": "gmlp", "d_ffn": 40, "seq_len": 16},
             {"optimizer": {"kind": "adamw", "learning_rate": 0.004, "weight_decay": 0.1},
              "schedule": {"kind": "linear", "warmup": 20}, "clip": "d2l"}),
    "transformer": ("lm", {"layer": "transformer", "heads": 2, "d_ff": 32, "max_len": 16},
                    {"optimizer": {"kind": "noam", "learning_rate": 0.2, "d_model": 16, "warmup": 60},
                     "accumulate": 2, "label_smoothing": 0.1}),
    "feedback": ("lm", {"layer": "feedback", "heads": 2, "d_ff": 24, "P": 9},
                 {"optimizer": {"kind": "adam", "learning_rate": 0.004}, "seq_len": 10}),
    "feedback_kv": ("lm", {"layer": "feedback_kv", "heads": 2, "d_ff": 24, "P": 9, "tie_generator": True},
                    {"optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9}, "seq_len": 10,
                     "grad_value_clip": 0.05}),
    "classes": ("encoder", {"layer": "transformer", "heads": 2, "d_model": 16, "n_layers": 2, "d_ff": 24, "n_vocab": 13,
                            "max_len": 9, "n_classes": 2, "activation": "GELU"},
                {"optimizer": {"kind": "adam", "learning_rate": 0.002}, "label_smoothing": 0.2, "seq_len": 9,
                 "batch_size": 6}),
    "seq2seq_bahdanau": ("seq2seq_bahdanau",
                         {"src_vocab_size": 14, "tgt_vocab_size": 13, "embed_size": 12, "num_hiddens": 12, "num_layers": 2},
                         {"optimizer": {"kind": "adam", "learning_rate": 0.003, "optimized_update": False}, "clip": "d2l",
                          "pad": traces.PAD, "seq_len": 7, "batch_size": 6}),
}


def spread_of(name, p):
    """Middle and spread of a parameter: norms around 1, tables small, maps by their width."""
    if p.dim() == 1 and (name.endswith("weight") or name.endswith("sgu.bias")):
        return 1, 0.1
    return 0, 0.1 if p.dim() == 1 else round(1 / math.sqrt(p.shape[-1]), 3)


def losses_of(trace, directory, dtype):
    config, init, batches = trace["config"], directory / "init.safetensors", directory / "batches.safetensors"
    traces.write_weights(init, trace)
    traces.write_batches(batches, config)
    twin = Twin(load_model(config["arch"], config["model"], init, dtype), config["train"], config["model"].get("d_model"))
    return [line["loss"] for line in twin.run(tensors_of(batches))]


def make(name):
    arch, model, train = TRACES[name]
    if arch == "lm":
        model = {key: value for key, value in {**LM, **model}.items() if value is not None}
    train = {"batch_size": 4, "seq_len": 16, "steps": N_STEPS, **train}
    params = {n: [list(p.shape), *spread_of(n, p)] for n, p in model_of(arch, model).named_parameters()}
    trace = {"config": {"arch": arch, "model": model, "train": train}, "params": params}
    with tempfile.TemporaryDirectory() as directory:
        exact, rounded = (losses_of(trace, pathlib.Path(directory), t) for t in (torch.float64, torch.float32))
    apart = max(abs(a - b) / a for a, b in zip(exact, rounded))
    print(f"{name}: loss {exact[0]:.4f} to {exact[-1]:.4f}, float32 differs by {apart:.1e}")
    lines = [f'"config": {json.dumps(trace["config"])},\n"params": {{']
    lines.append(",\n".join(f'{json.dumps(n)}: {json.dumps(v)}' for n, v in params.items()))
    lines.append('},\n"losses": [' + ", ".join(f"{x:.7g}" for x in exact) + "]")
    (traces.DIRECTORY / (name + ".json")).write_text("{" + "\n".join(lines) + "}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for trace_name in sys.argv[1:] or TRACES:
        make(trace_name)

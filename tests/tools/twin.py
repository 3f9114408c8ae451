#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""twin.py TOOL ROOT: `attncl train` takes the steps that PyTorch takes from the same weights and batches, and its model loads there.

Each case has another layer with an odd size, another optimiser, schedule and way of clipping.  Skipped (77) without PyTorch or a device.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

LIMIT = 1e-4  # of a loss and a norm, relative: ten times less than over 300 steps
LM = {"d_model": 12, "n_layers": 2, "n_vocab": 11}
AFT = {**LM, "layer": "aft_local", "seq_len": 9, "local_window_size": 4, "d_ff": 10}
TRANSFORMER = {**LM, "layer": "transformer", "heads": 3, "d_ff": 14, "max_len": 11}
ENCODER = {**TRANSFORMER, "n_classes": 5, "activation": "GELU"}
SEQ2SEQ = {"src_vocab_size": 9, "tgt_vocab_size": 11, "embed_size": 5, "num_hiddens": 6, "num_layers": 2}
TRANSLATOR = {"src_vocab_size": 9, "tgt_vocab_size": 11, "d_model": 12, "heads": 3, "d_ff": 14, "n_layers": 2, "max_len": 11}
ADAM = {"kind": "adam", "learning_rate": 0.01}
TORCH_ADAM = {**ADAM, "optimized_update": False}

CASES = {
    "AFT-local, cosine, accumulation": (AFT, {
        "optimizer": ADAM, "schedule": {"kind": "cosine", "warmup": 4, "min_learning_rate": 0.001}, "accumulate": 3}),
    "AFT-full, AdamW, d2l's clipping": ({**AFT, "layer": "aft_full", "pos": "learned_pos", "max_len": 11}, {
        "optimizer": {**ADAM, "kind": "adamw"}, "schedule": {"kind": "cosine", "warmup": 3}, "clip": "d2l",
        "grad_norm_clip": 0.2}),
    "AFT-simple, SGD, smoothing": (
        {**LM, "layer": "aft_simple", "d_ff": 10, "is_gated": True, "activation": "SiLU"},
        {"optimizer": {"kind": "sgd", "learning_rate": 0.1}, "schedule": {"kind": "constant", "warmup": 4},
         "label_smoothing": 0.1}),
    "AFT-conv, Nesterov, padding": ({**LM, "layer": "aft_conv", "heads": 3, "window_size": 5, "d_ff": 10, "bias": False}, {
        "optimizer": {"kind": "sgd", "learning_rate": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
        "accumulate": 2, "pad": 3}),
    "transformer, tied, AMSGrad": (
        {**TRANSFORMER, "tie_generator": True, "pos": "no_pos", "activation": "gelu_tanh", "layer_norm_eps": 0.01},
        {"optimizer": {**ADAM, "amsgrad": True, "weight_decay": 0.1}, "label_smoothing": 0.2, "pad": 2}),
    "transformer, Noam, average": ({**TRANSFORMER, "norm_first": False}, {
        "optimizer": {"kind": "noam", "learning_rate": 0.5, "warmup": 8, "weight_decay": 0.05}, "ema": 0.9}),
    "gMLP, dampening, values clipped": ({**LM, "layer": "gmlp", "d_ffn": 14, "seq_len": 9}, {
        "optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.8, "dampening": 0.3},
        "schedule": {"kind": "linear", "min_learning_rate": 0.01}, "grad_value_clip": 0.02, "grad_norm_clip": 0}),
    "Feedback, decay in the gradient": ({**LM, "layer": "feedback", "heads": 2, "d_ff": 14, "P": 9}, {
        "optimizer": {**TORCH_ADAM, "weight_decay": 0.1, "weight_decouple": False},
        "schedule": {"kind": "noam", "warmup": 5}, "grad_norm_clip": 0.1}),
    "Feedback with one set of keys, tied": (
        {**LM, "layer": "feedback_kv", "heads": 2, "d_ff": 14, "P": 9, "embed_scale": 1.5, "tie_generator": True},
        {"optimizer": {**TORCH_ADAM, "amsgrad": True, "betas": [0.8, 0.9]}, "accumulate": 2, "ema": 0.5}),
    "encoder, classes, accumulation": (ENCODER, {"optimizer": ADAM, "label_smoothing": 0.1, "accumulate": 2}),
    "encoder, classes by the first word": ({**ENCODER, "pool": "first", "n_layers": 1}, {
        "optimizer": {"kind": "sgd", "learning_rate": 0.1}, "clip": "d2l"}),
    "encoder, a label for each word": ({**ENCODER, "pool": "none", "layer_norm_eps": 0.01}, {
        "optimizer": {**ADAM, "kind": "adamw", "weight_decay": 0.1}, "pad": 4, "schedule": {"kind": "linear", "warmup": 3}}),
    "encoder and decoder, padding": ({**TRANSLATOR, "n_decoder_layers": 1}, {"optimizer": TORCH_ADAM, "pad": 3, "accumulate": 2}),
    "encoder and decoder, Noam, post-norm": (
        {**TRANSLATOR, "norm_first": False, "tie_generator": True, "pos": "learned_pos", "layer_norm_eps": 0.01},
        {"optimizer": {"kind": "noam", "learning_rate": 0.5, "warmup": 8}, "label_smoothing": 0.1}),
    "Bahdanau, padding": (SEQ2SEQ, {"optimizer": TORCH_ADAM, "clip": "d2l", "pad": 3, "accumulate": 2}),
}
N_STEPS, LENGTH, BATCH = 12, 7, 3


def arch_of(model):
    translator = "seq2seq_transformer" if "heads" in model else "seq2seq_bahdanau"
    return "encoder" if "n_classes" in model else "lm" if "n_vocab" in model else translator


def batches_of(model, n):
    import torch
    if "n_classes" in model:
        lens = torch.randint(1, LENGTH + 1, (n, BATCH))
        shape = (n, LENGTH, BATCH) if model.get("pool") == "none" else (n, BATCH)
        return {"tokens": torch.randint(0, model["n_vocab"], (n, LENGTH, BATCH)), "valid_lens": lens,
                "targets": torch.randint(0, model["n_classes"], shape)}
    if "n_vocab" in model:
        x = torch.randint(0, model["n_vocab"], (n, LENGTH + 1, BATCH))
        x[:, 1::2] = (3 * x[:, 0::2] + 1) % model["n_vocab"]  # half of it can be learnt
        return {"tokens": x[:, :-1], "targets": x[:, 1:]}
    targets = torch.randint(0, model["tgt_vocab_size"], (2, n, BATCH, LENGTH))
    return {"enc_X": torch.randint(0, model["src_vocab_size"], (n, BATCH, LENGTH)), "dec_X": targets[0],
            "targets": targets[1], "enc_valid_lens": torch.randint(1, LENGTH + 1, (n, BATCH))}


def apart(a, b):
    differences = [abs(x - y) / max(abs(y), 1e-6) for x, y in zip(a, b)]
    return max((math.inf if math.isnan(d) else d for d in differences), default=1)


def disagreements(tool, directory, model, train):
    """What differs, in words."""
    import torch
    from support.safetensors_file import write
    from torch_models.model_file import load_model, model_of, save_model
    from torch_models.twin import Twin, loss_of
    arch = arch_of(model)
    train = {"batch_size": BATCH, "seq_len": LENGTH, "steps": N_STEPS, **train}
    config, init, data, run = (directory / name for name in ("c.json", "i.safetensors", "b.safetensors", "run"))
    config.write_text(json.dumps({"arch": arch, "model": model, "train": train}))
    module = model_of(arch, model)
    for p in module.parameters():
        p.data.normal_(std=0.3) if p.dim() > 1 else p.data.add_(0.1 * torch.randn_like(p))
    save_model(module, init, {"attncl.arch": arch, "attncl.config": json.dumps(model)})
    batches = batches_of(model, N_STEPS * train.get("accumulate", 1))
    write(data, {k: ("I64", list(v.shape), v.flatten().tolist()) for k, v in batches.items()})
    subprocess.run([tool, "train", "--config", config, "--init", init, "--batches", data, "--out", run], check=True,
                   stdout=subprocess.DEVNULL, timeout=900)

    twin = Twin(load_model(arch, model, init), train, model.get("d_model"))
    want = list(twin.run(batches))
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    got = [line for line in lines if "loss" in line]
    if len(got) != N_STEPS:
        return [f"{len(got)} steps"]
    keys = ("loss", "grad_norm", "learning_rate")
    found = {key: apart([line[key] for line in got], [line[key] for line in want]) for key in keys}

    # The model that was written, in PyTorch, on the first batch: the averaged one where there is an average.
    for p, average in zip(twin.params, twin.average):
        p.data.copy_(average)
    first = {k: v[0] for k, v in batches.items()}
    loaded = load_model(arch, model, run / "model.safetensors")
    with torch.no_grad():
        found["loss of the model"] = apart(*([float(loss_of(m, first, train)[0])] for m in (loaded, twin.model)))
    return [f"{what} {x:.1e}" for what, x in found.items() if not x <= LIMIT]


def main(tool, root):
    sys.path[:0] = [str(pathlib.Path(root, "tests"))]
    sys.dont_write_bytecode = True
    try:
        import torch
    except ImportError:
        print("skipped: no PyTorch", file=sys.stderr)
        return 77
    if subprocess.run([tool, "devices"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        print("skipped: no device", file=sys.stderr)
        return 77
    torch.manual_seed(1)
    torch.set_num_threads(1)
    failed = 0
    for name, (model, train) in CASES.items():
        with tempfile.TemporaryDirectory() as directory:
            differs = disagreements(tool, pathlib.Path(directory), model, train)
        failed += bool(differs)
        print(f"{name}: {', '.join(differs) or 'the same'}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: MIT
"""twin: trains as `attncl train` does, from the same weights and batches, and writes the same lines.

    PYTHONPATH=tests python3 -m torch_models.twin --config C.json --init M.safetensors --batches B.safetensors --out LOG

The optimisers are PyTorch's own.  Without dropout: its random bits cannot be the library's.
"""
import argparse
import contextlib
import json
import math
import time

import torch
from torch.nn import functional as F

from .model_file import load_model, save_model, tensors_of

KEYS = {"optimizer", "schedule", "grad_norm_clip", "clip", "grad_value_clip", "dropout", "label_smoothing", "pad",
        "accumulate", "ema", "steps"}
OF_DATA = {"batch_size", "seq_len", "valid_fraction", "batches", "eval_every", "checkpoint_every", "keep", "patience",
           "sample", "seed", "min_frequency"}
ADAM_KEYS = {"betas", "eps", "optimized_update", "weight_decouple", "amsgrad", "d_model", "warmup"}
SGD_KEYS = {"momentum", "nesterov", "dampening"}


def rate_at(t, base, schedule, steps):
    """The rate of step t = 1, 2, ...: `base` is the optimizer's."""
    kind = schedule.get("kind", "constant")
    if kind == "noam":
        return base * schedule["d_model"] ** -0.5 * min(t ** -0.5, t * schedule.get("warmup", 2000) ** -1.5)
    warmup, low = schedule.get("warmup", 0), schedule.get("min_learning_rate", 0)
    if t <= warmup:
        return base * t / warmup
    part = min(1, (t - warmup) / max(1, steps - warmup))
    if kind == "linear":
        return base + (low - base) * part
    if kind == "cosine":
        return low + (base - low) * (1 + math.cos(math.pi * part)) / 2
    assert kind == "constant", kind
    return base


class Optimizer:
    """One of torch.optim, given a rate at each step."""

    def __init__(self, params, settings):
        s = self.settings = dict(settings)
        kind, self.taken = s["kind"], 0
        unknown = set(s) - {"kind", "learning_rate", "weight_decay"} - (SGD_KEYS if kind == "sgd" else ADAM_KEYS)
        assert not unknown, unknown
        lr, self.decay = s["learning_rate"], s.get("weight_decay", 0)
        if kind == "sgd":
            self.torch = torch.optim.SGD(params, lr, weight_decay=self.decay, **{k: s[k] for k in SGD_KEYS if k in s})
            return
        keys = {"betas": tuple(s.get("betas", (0.9, 0.999))), "amsgrad": s.get("amsgrad", False)}
        self.eps, self.beta2 = s.get("eps", 1e-8), keys["betas"][1]
        if kind == "adamw":
            self.torch = torch.optim.AdamW(params, lr, eps=self.eps, weight_decay=self.decay, **keys)
            return
        assert kind in ("adam", "noam"), kind
        coupled = 0 if s.get("weight_decouple", True) else self.decay
        self.torch = torch.optim.Adam(params, lr, eps=self.eps, weight_decay=coupled, **keys)

    def step(self, rate):
        s, group = self.settings, self.torch.param_groups[0]
        self.taken += 1
        group["lr"] = rate
        if s["kind"] in ("adam", "noam"):
            if s.get("optimized_update", True):  # m / (sqrt(v) + eps): eps is not corrected
                group["eps"] = self.eps / math.sqrt(1 - self.beta2 ** self.taken)
            if s.get("weight_decouple", True) and self.decay:  # by the rate that the schedule starts from
                for p in group["params"]:
                    p.mul_(1 - s["learning_rate"] * self.decay)
        self.torch.step()


def clip(params, train):
    """Clips the gradients in place; their norm before that."""
    style, limit, value = train.get("clip", "torch"), train.get("grad_norm_clip", 1), train.get("grad_value_clip", 0)
    norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in params))
    if value:
        torch.nn.utils.clip_grad_value_(params, value)
    if not limit:
        return norm
    if style == "torch":
        torch.nn.utils.clip_grad_norm_(params, limit)
    else:
        assert style == "d2l", style
        clipped = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in params]))
        if clipped > limit:
            for p in params:
                p.grad.mul_(limit / clipped)
    return norm


def logits_of(model, batch):
    if hasattr(model, "classifier"):  # time first, [T, B]
        lens, tokens = batch.get("valid_lens"), batch["tokens"]
        places = torch.arange(len(tokens), device=tokens.device)
        return model(tokens, None if lens is None else (places[:, None] < lens).unsqueeze(0))
    if "tokens" in batch:
        return model(batch["tokens"])
    lens = batch.get("enc_valid_lens")
    if lens is None:
        lens = torch.full(batch["enc_X"].shape[:1], batch["enc_X"].shape[1])
    found = model(batch["enc_X"], batch["dec_X"], lens)
    return found[0] if isinstance(found, tuple) else found


def loss_of(model, batch, train):
    """The mean over the targets that are not padding, 0 where all are; and the number of these."""
    logits, targets, pad = logits_of(model, batch).flatten(0, -2), batch["targets"].flatten(), train.get("pad", -1)
    n = int((targets != pad).sum())
    total = F.cross_entropy(logits, targets, ignore_index=pad, reduction="sum",
                            label_smoothing=train.get("label_smoothing", 0))
    return total / max(1, n), n


class Twin:
    """Training of a module: step() after step().  d_model: what schedule noam takes from the model."""

    def __init__(self, model, train, d_model=None):
        unknown = set(train) - KEYS - OF_DATA
        assert not unknown, f"unknown keys in train: {unknown}"
        assert not train.get("dropout"), "dropout is not 0"
        self.model, self.train, self.steps = model, train, train["steps"]
        self.params = [p for p in model.parameters() if p.requires_grad]
        s = train["optimizer"]
        self.schedule = {"d_model": d_model, **train.get("schedule", {})}
        if s["kind"] == "noam":
            self.schedule = {"kind": "noam", "d_model": s.get("d_model", d_model), "warmup": s.get("warmup", 2000)}
        self.optimizer, self.rate, self.taken = Optimizer(self.params, s), s["learning_rate"], 0
        self.average = [p.detach().clone() for p in self.params] if train.get("ema") else []

    def step(self, batches):
        """One step of as many batches as `accumulate` says.  What the log has of it."""
        start = time.monotonic()
        self.model.zero_grad()
        total, n_tokens = 0.0, 0
        for batch in batches:
            loss, n = loss_of(self.model, batch, self.train)
            (loss / len(batches)).backward()
            total, n_tokens = total + float(loss.detach()) / len(batches), n_tokens + n
        with torch.no_grad():
            for p in self.params:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
            norm = clip(self.params, self.train)
            self.taken += 1
            rate = rate_at(self.taken, self.rate, self.schedule, self.steps)
            self.optimizer.step(rate)
            for a, p in zip(self.average, self.params):
                a.mul_(self.train["ema"]).add_(p, alpha=1 - self.train["ema"])
        return {"step": self.taken, "loss": total, "grad_norm": norm, "learning_rate": rate,
                "tokens_per_s": n_tokens / max(1e-9, time.monotonic() - start)}

    def run(self, batches, n_steps=None):
        """Steps over arrays whose first axis counts batches."""
        many = self.train.get("accumulate", 1)
        batches = {k: v.long() for k, v in batches.items()}
        given = len(batches["targets"]) // many
        for i in range(min(n_steps or self.steps, given)):
            yield self.step([{k: v[j] for k, v in batches.items()} for j in range(i * many, (i + 1) * many)])


def main():
    parser = argparse.ArgumentParser(description="Train in PyTorch as attncl train does.")
    for name, needed in (("config", True), ("init", True), ("batches", True), ("out", False), ("save", False)):
        parser.add_argument("--" + name, required=needed)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    a = parser.parse_args()
    with open(a.config) as file:
        c = json.load(file)
    if a.steps:
        c["train"]["steps"] = a.steps
    model = load_model(c["arch"], c["model"], a.init, getattr(torch, a.dtype))
    twin = Twin(model, c["train"], c["model"].get("d_model"))
    with open(a.out, "w") if a.out else contextlib.nullcontext() as out:
        for line in twin.run(tensors_of(a.batches)):
            print(json.dumps(line), file=out, flush=True)
    if a.save:
        save_model(model, a.save, {"attncl.arch": c["arch"], "attncl.config": json.dumps(c["model"])})


if __name__ == "__main__":
    main()

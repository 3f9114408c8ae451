# SPDX-License-Identifier: MIT
"""What a trace of training starts from: weights and batches made from a seed, by the standard library alone.

A trace (tests/data/traces/NAME.json) has the configuration, each parameter's name, shape, middle and spread, and the
losses of PyTorch.  random.Random gives the same numbers everywhere.
"""
import json
import math
import pathlib
import random

from support.safetensors_file import write

DIRECTORY = pathlib.Path(__file__).resolve().parents[1] / "data" / "traces"
SEED, RESERVED = 1, 4  # <unk> <pad> <bos> <eos>, as the library orders them: padding is 1, the beginning 2
PAD, BOS, EOS = 1, 2, 3


def read_trace(name):
    with open(DIRECTORY / (name + ".json")) as file:
        return json.load(file)


def write_weights(path, trace):
    """Uniform in middle +- spread."""
    source, tensors = random.Random(SEED), {}
    for name, (shape, middle, spread) in sorted(trace["params"].items()):
        values = [middle + spread * (2 * source.random() - 1) for _ in range(math.prod(shape))]
        tensors[name] = ("F32", shape, values)
    c = trace["config"]
    write(path, tensors, {"attncl.arch": c["arch"], "attncl.config": json.dumps(c["model"])})


def characters(source, n, n_vocab):
    """A text: what follows is a function of the last one, but for one in five."""
    text = [0]
    while len(text) < n:
        chance = source.randrange(5 * n_vocab)
        text.append(chance if chance < n_vocab else (3 * text[-1] + 2) % n_vocab)
    return text


def text_batches(n, train, n_vocab):
    """tokens and targets [N, T, B]"""
    source, steps, size = random.Random(SEED), train["seq_len"], train["batch_size"]
    text, tokens, targets = characters(source, 5000, n_vocab), [], []
    for _ in range(n):
        starts = [source.randrange(len(text) - steps) for _ in range(size)]
        tokens += [text[s + t] for t in range(steps) for s in starts]
        targets += [text[s + t + 1] for t in range(steps) for s in starts]
    shape = [n, steps, size]
    return {"tokens": ("I32", shape, tokens), "targets": ("I32", shape, targets)}


def pair_batches(n, train, model):
    """A word for each of the source's, in reverse order: enc_X, dec_X and targets [N, B, T], enc_valid_lens [N, B]"""
    source, steps, size = random.Random(SEED), train["seq_len"], train["batch_size"]
    n_words = min(model["src_vocab_size"], model["tgt_vocab_size"]) - RESERVED
    lists = {"enc_X": [], "dec_X": [], "enc_valid_lens": [], "targets": []}

    def padded(words):
        return words + [PAD] * (steps - len(words))

    for _ in range(n * size):
        words = [RESERVED + source.randrange(n_words) for _ in range(source.randrange(1, steps))]
        target = [RESERVED + (7 * (w - RESERVED) + 1) % n_words for w in reversed(words)] + [EOS]
        lists["enc_X"] += padded(words + [EOS])
        lists["dec_X"] += padded([BOS] + target[:-1])
        lists["targets"] += padded(target)
        lists["enc_valid_lens"].append(len(words) + 1)
    return {name: ("I32", [n, size] if name == "enc_valid_lens" else [n, size, steps], values)
            for name, values in lists.items()}


def class_batches(n, train, n_vocab):
    """Whether a sentence has more of the upper words: tokens [N, T, B], valid_lens and targets [N, B]"""
    source, steps, size = random.Random(SEED), train["seq_len"], train["batch_size"]
    lists = {"tokens": [], "valid_lens": [], "targets": []}
    for _ in range(n):
        lens = [source.randrange(1, steps + 1) for _ in range(size)]
        rows = [[source.randrange(2, n_vocab) for _ in range(k)] for k in lens]
        lists["tokens"] += [row[t] if t < len(row) else PAD for t in range(steps) for row in rows]
        lists["valid_lens"] += lens
        lists["targets"] += [int(2 * sum(w > n_vocab // 2 for w in row) > len(row)) for row in rows]
    return {name: ("I32", [n, steps, size] if name == "tokens" else [n, size], values) for name, values in lists.items()}


def write_batches(path, config):
    train, model = config["train"], config["model"]
    n = train["steps"] * train.get("accumulate", 1)
    if config["arch"] == "seq2seq_bahdanau":
        return write(path, pair_batches(n, train, model))
    make = text_batches if config["arch"] == "lm" else class_batches
    return write(path, make(n, train, model["n_vocab"]))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bleu.py RUN PAIRS.tsv [ATTNCL [BEAMS]]: translates the held-out pairs with RUN/best.safetensors and prints the mean BLEU.

The translation is arch seq2seq_predict or seq2seq_transformer_predict, from <bos> on, cut at <eos>: greedy, and of a transformer
with BEAMS above 1 a beam search.  BLEU as in "Dive into Deep Learning", of pairs of words at
most: exp(min(0, 1 - length of the label / length of the prediction)) times the products of p_n^(1 / 2^n).  ATTNCL is the command.
"""
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from support.safetensors_file import load, read, write  # noqa: E402

LONGEST = 2  # n-gram
PREDICTION = {"seq2seq_bahdanau": "seq2seq_predict", "seq2seq_transformer": "seq2seq_transformer_predict"}


def bleu(predicted, label, k=LONGEST):
    """Of two lists of words."""
    if not predicted:
        return 0.0
    score = math.exp(min(0, 1 - len(label) / len(predicted)))
    for n in range(1, min(k, len(predicted)) + 1):
        left = collections.Counter(tuple(label[i:i + n]) for i in range(len(label) - n + 1))
        total = len(predicted) - n + 1
        found = sum(min(count, left[gram]) for gram, count in
                    collections.Counter(tuple(predicted[i:i + n]) for i in range(total)).items())
        score *= (found / total) ** (0.5 ** n)
    return score


def words_of(sentence):
    return re.sub(r"(?<=\S)([,.!?])", r" \1", sentence.replace("\u202f", " ").replace("\xa0", " ").lower()).split()


def held_out(path, fraction):
    lines = [line.split("\t") for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    first = math.floor(len(lines) - len(lines) * fraction)
    return [(words_of(pair[0]), words_of(pair[1])) for pair in lines[first:]]


def translate(command, run, pairs, n_steps, n_beams):
    """Lists of words."""
    tensors, metadata = load(os.path.join(run, "best.safetensors"))
    source, target = (metadata[key].split("\n") for key in ("attncl.source_vocab", "attncl.target_vocab"))
    arch = PREDICTION[metadata["attncl.arch"]]
    config = dict(json.loads(metadata["attncl.config"]), bos=target.index("<bos>"), num_steps=n_steps)
    if arch == "seq2seq_transformer_predict":
        config.update(eos=target.index("<eos>"), beams=n_beams)
    elif n_beams > 1:
        sys.exit(f"bleu.py: {n_beams} beams, arch {metadata['attncl.arch']} is translated greedily")
    number = {word: i for i, word in enumerate(source)}
    rows = [[number.get(w, number["<unk>"]) for w in words + ["<eos>"]][:n_steps] for words, _ in pairs]
    ids = [i for row in rows for i in row + [number["<pad>"]] * (n_steps - len(row))]
    with tempfile.TemporaryDirectory() as directory:
        model, inputs, outputs = (os.path.join(directory, name + ".safetensors") for name in ("model", "in", "out"))
        write(model, tensors, {"attncl.arch": arch, "attncl.config": json.dumps(config)})
        write(inputs, {"enc_X": ("I32", [len(rows), n_steps], ids),
                       "enc_valid_lens": ("I32", [len(rows)], [len(row) for row in rows])})
        subprocess.run([command, "run", model, inputs, outputs], check=True, stdout=subprocess.DEVNULL)
        tokens = read(outputs, "tokens")
    found = [[target[i] for i in tokens[at:at + n_steps]] for at in range(0, len(tokens), n_steps)]
    return [words[:words.index("<eos>")] if "<eos>" in words else words for words in found]


def main(run, path, command="attncl", n_beams="1"):
    train = json.loads(pathlib.Path(run, "config.json").read_text())["train"]
    pairs = held_out(path, train["valid_fraction"])
    predictions = translate(command, run, pairs, train["seq_len"], int(n_beams))
    for (source, label), words in list(zip(pairs, predictions))[:5]:
        print(f"{' '.join(source)} -> {' '.join(words)}, bleu {bleu(words, label):.3f}")
    exact = sum(words == label for (_, label), words in zip(pairs, predictions))
    mean = sum(bleu(words, label) for (_, label), words in zip(pairs, predictions)) / len(pairs)
    print(f"{len(pairs)} held-out pairs: BLEU {mean:.4f}, {exact} without a mistake")


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit("usage: bleu.py RUN PAIRS.tsv [ATTNCL [BEAMS]]")
    main(*sys.argv[1:])

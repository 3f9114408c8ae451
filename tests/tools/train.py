#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""train.py TOOL ROOT: attncl train, what it writes and prints, with each kind of data, and what it refuses.

Standard library only.  Exit status 77 when there is no device.
"""
import json
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from language import TOKENIZER  # noqa: E402
from training import CONFIG, B, T, config_with, difference, load, log_of, main, results_of, text_of, write  # noqa: E402

N_TEXT = 3000
SEQ2SEQ = {"arch": "seq2seq_bahdanau", "model": {"embed_size": 8, "num_hiddens": 8, "num_layers": 1},
           "train": {"batch_size": 4, "seq_len": 5, "steps": 12, "eval_every": 6, "valid_fraction": 0.2,
                     "min_frequency": 1, "optimizer": {"kind": "adam", "learning_rate": 0.02}}}


def contract(c):
    """A run's files, its log, and that the model predicts the held-out part as the log says."""
    run, config = c.at("run"), c.save("c.json", CONFIG)
    out = c.works("train", "--config", config, "--data", c.at("text"), "--out", run, "--seed", "3")
    log = log_of(run)
    steps = [line for line in log if "loss" in line]
    evaluations = [line for line in log if "valid_loss" in line]
    c.check([line["step"] for line in steps] == list(range(1, 41)), "steps of the log")
    c.check(all(set(line) == {"step", "loss", "grad_norm", "learning_rate", "tokens_per_s"} for line in steps), "keys of a step")
    c.check([line["step"] for line in evaluations] == [15, 30, 40], "evaluations of the log")
    c.check(all(set(line) == {"step", "valid_loss"} for line in evaluations), "keys of an evaluation")
    c.check(all(line["learning_rate"] == 0.01 and line["grad_norm"] != line["loss"] for line in steps), "rate and norm")
    with open(os.path.join(run, "log.jsonl")) as f:
        floats = re.findall(r"[0-9]+\.[0-9]+", f.read())
    digits = [len(number.replace(".", "").strip("0")) for number in floats]
    c.check(7 < max(digits) <= 9, "the log's floats have up to %d digits" % max(digits))
    c.check(sorted(os.listdir(os.path.join(run, "checkpoints"))) == ["step-30.safetensors", "step-40.safetensors"],
            "the kept checkpoints")
    # 10 characters; words give about 0.4 nats a character, and none of them 2.3.
    c.check(steps[0]["loss"] > 2 and evaluations[-1]["valid_loss"] < 1.5, "it learns: %s" % evaluations)
    with open(os.path.join(run, "curve.svg")) as f:
        curve = f.read()
    points = [(int(step), float(x)) for step, x in re.findall(r"^([0-9]+) ([0-9.e+-]+) $", curve, re.M)]
    for line in log:  # which has more digits
        loss = line.get("loss", line.get("valid_loss"))
        c.check(any(step == line["step"] and abs(x - loss) <= 1e-6 * loss for step, x in points), "the curve lacks %s" % line)
    printed = ["held out %.6f nats (%.4f bits per character" % (x, x / math.log(2)) for x in
               (line["valid_loss"] for line in evaluations)]
    c.check(all(words in out for words in printed), "what is printed: %s" % out)
    samples = re.findall(r" left\n(.*?)\n\n(?=step |40 steps)", out, re.S)
    c.check([len(sample) for sample in samples] == [6, 6, 6], "samples of 5 characters after the first: %s" % samples)
    with open(os.path.join(run, "config.json")) as f:
        c.check(json.load(f)["train"]["seed"] == 3, "the seed of the configuration")

    text = text_of(N_TEXT)
    begin = len(text[:len(text) - len(text) // 10].encode())
    for name, loss in (("model", evaluations[-1]["valid_loss"]), ("best", min(e["valid_loss"] for e in evaluations))):
        model = os.path.join(run, name + ".safetensors")
        printed = json.loads(c.works("eval", model, c.at("text"), "--bytes", "%d:" % begin, "--json"))
        c.check(abs(printed["nll"] - loss) < 2e-6, "eval of %s: %s, the log has %s" % (name, printed["nll"], loss))
        c.check(abs(math.log(printed["perplexity"]) - loss) < 2e-6, "perplexity: %s" % printed)
    c.works("sample", model, "--prompt", "ab", "--length", "3")
    write(c.at("in"), {"tokens": ("I32", (2, 1), [0, 1])})
    c.works("run", os.path.join(run, "checkpoints", "step-40.safetensors"), c.at("in"), c.at("out"))

    c.refused("no configuration: give CONFIG.json", "train", "--data", c.at("text"), "--out", c.at("none"), "--resume")
    c.refused("run exists; --resume continues it", "train", config, "--data", c.at("text"), "--out", run)
    for step in (5, 7, 9):  # older ones, listed in any order
        c.save("run/checkpoints/step-%d.safetensors" % step, "")
    c.works("train", "--data", c.at("text"), "--out", run, "--resume")  # there is nothing left to do
    c.check(log_of(run) == log, "a finished run stays as it is")

    # Of more than 1000 points the curve has the means, here of three each.
    with open(os.path.join(run, "log.jsonl"), "r+") as f:
        lines = f.read()
        f.seek(0)
        f.write("".join('{"step": %d, "loss": %d}\n' % (i % 40, i) for i in range(2000)) + lines)
    c.works("train", "--data", c.at("text"), "--out", run, "--resume")
    with open(os.path.join(run, "curve.svg")) as f:
        curve = f.read()
    c.check("\n21 301 \n" in curve and "\n20 300 \n" not in curve, "means of the curve")


def translate(c):
    """The pairs once more, by an encoder and a decoder that learn them, read by the example."""
    config = {**SEQ2SEQ, "arch": "seq2seq_transformer",
              "model": {"d_model": 16, "heads": 2, "d_ff": 32, "n_layers": 1, "max_len": 5, "embed_scale": 1}}
    config["train"] = {**SEQ2SEQ["train"], "batch_size": 8, "steps": 150, "eval_every": 50}
    run, example = c.at("of-transformer"), os.path.join(c.root, "examples", "experiments", "bleu.py")
    c.works("train", c.save("translator.json", config), "--pairs", c.at("pairs.tsv"), "--out", run)
    for beams in ("1", "3"):
        done = subprocess.run([sys.executable, example, run, c.at("pairs.tsv"), c.tool, beams], capture_output=True, text=True)
        c.check("5 held-out pairs: BLEU 1.0000, 5 without a mistake" in done.stdout, done.stdout + done.stderr)
    done = subprocess.run([sys.executable, example, c.at("of-pairs"), c.at("pairs.tsv"), c.tool, "3"], capture_output=True, text=True)
    c.check(done.returncode == 1 and "3 beams, arch seq2seq_bahdanau is translated greedily" in done.stderr, done.stderr)


def other_data(c):
    """Token numbers, pairs, ready batches, a model to begin from."""
    tokens = [i % 7 for i in range(400)]
    write(c.at("tokens"), {"tokens": ("I32", (400,), tokens)})
    config = c.save("short.json", config_with(steps=4, eval_every=2))
    got = json.loads(c.works("train", config, "--tokens", "--data", c.at("tokens"), "--out", c.at("of-tokens"), "--json"))
    c.check(got["steps"] == 4 and got["best_step"] in (2, 4) and not got["stopped_early"], "the result: %s" % got)

    pairs = "".join("%s %s .\t%s %s !\n" % (a, b, b, a) for a in ("one", "two", "three") for b in ("red", "blue")) * 4
    c.works("train", c.save("seq.json", SEQ2SEQ), "--pairs", c.save("pairs.tsv", pairs), "--out", c.at("of-pairs"))
    c.check(len(log_of(c.at("of-pairs"))) == 14, "log of pairs")
    c.works("inspect", os.path.join(c.at("of-pairs"), "model.safetensors"))
    translate(c)

    shape = (3, T, B)
    ids = [i % 10 for i in range(3 * T * B)]
    write(c.at("batches"), {"tokens": ("I32", shape, ids), "targets": ("I32", shape, ids[1:] + [0])})
    first = os.path.join(c.at("run"), "model.safetensors")
    c.works("train", "--init", first, "--data", c.at("text"), "--batches", c.at("batches"), "--steps", "3",
            "--out", c.at("of-batches"), "--set", "train.optimizer.learning_rate=0")
    before, after = (load(path)[0] for path in (first, os.path.join(c.at("of-batches"), "model.safetensors")))
    c.check(before == after, "a rate of 0 leaves the first weights")
    c.refused("batch 3", "train", "--init", first, "--data", c.at("text"), "--batches", c.at("batches"), "--steps", "4",
              "--out", c.at("too-few"))


def by_a_tokenizer(c):
    """A text by a tokenizer is trained on as its tokens, and resumed; the model keeps tokenizer and ends, and takes text."""
    prose, numbers = "ab \u00e9cd ab fe " * 40, [6, 3, 4, 5, 7, 8, 3, 6, 3, 10, 9, 3] * 40
    rules, text = c.save("tokenizer.json", json.dumps(TOKENIZER, indent=1)), c.save("prose", prose)
    write(c.at("numbers"), {"tokens": ("I32", (len(numbers) + 1,), [0, *numbers])})
    config = c.save("prose.json", config_with(steps=20, eval_every=10))
    out = c.works("train", config, "--data", text, "--tokenizer", rules, "--out", c.at("of-prose"), "--prompt", "ab")
    c.works("train", config, "--data", c.at("numbers"), "--tokens", "--set", "model.n_vocab=11", "--out", c.at("of-numbers"))
    got, want = (results_of(c.at(name))[1] for name in ("of-prose", "of-numbers"))
    c.check(got == want and len(got) == 22, "logs by a tokenizer and by tokens: %s" % difference(({}, got), ({}, want)))
    samples = re.findall(r" left\n(.*?)\n\n(?=step |20 steps)", out, re.S)
    c.check("bits per token" in out and len(samples) == 2 and all(s.startswith("ab") for s in samples), "what is printed: %s" % out)
    model = os.path.join(c.at("of-prose"), "model.safetensors")
    tensors, metadata = load(model)
    c.check(metadata["attncl.tokenizer"] == json.dumps(TOKENIZER, separators=(",", ":")) and "attncl.vocab" not in metadata,
            "metadata: %s" % metadata)
    c.check(json.loads(c.works("eval", model, text, "--json"))["tokens"] == len(numbers), "eval of the text")

    write(c.at("first"), tensors, dict(metadata, **{"attncl.eos": "[3, 9]"}))
    words = ["train", "--init", c.at("first"), "--data", text, "--set", "train.seq_len=8", "--set", "train.eval_every=2",
             "--set", "train.checkpoint_every=2", "--out"]
    c.works(*words, c.at("whole"), "--steps", "4")
    c.works(*words, c.at("parts"), "--steps", "2")
    c.works("train", "--data", text, "--out", c.at("parts"), "--resume", "--steps", "4")
    parts, whole = results_of(c.at("parts")), results_of(c.at("whole"))
    for files, _ in (parts, whole):
        files.pop("checkpoints/step-2.safetensors")  # which holds another number of steps
    c.check(parts == whole, "resumed: %s" % difference(parts, whole))
    for name in ("model", "best"):
        kept = load(os.path.join(c.at("parts"), name + ".safetensors"))[1]
        c.check(kept.get("attncl.eos") == "[3, 9]" and kept.get("attncl.tokenizer") == metadata["attncl.tokenizer"], "kept: %s" % kept)
    c.works(*words[:-1], "--data", c.at("numbers"), "--tokens", "--steps", "1", "--out", c.at("of-more"))
    kept = load(os.path.join(c.at("of-more"), "model.safetensors"))[1]
    c.check("attncl.eos" in kept and "attncl.tokenizer" in kept, "the metadata of a training by tokens: %s" % kept)

    never = ("--out", c.at("never"), "--data")
    c.refused("n_vocab is 10, the data have a vocabulary of 11", "train", config, "--tokenizer", rules, "--set", "model.n_vocab=10", *never, text)
    c.refused("latin: the text is not UTF-8 at byte 3", "train", "--init", c.at("first"), *never, c.save("latin", b"ab \xe9 ab"))
    c.refused("normalizer Nmt is not supported", "train", config, *never, text, "--tokenizer",
              c.save("rule.json", json.dumps(dict(TOKENIZER, normalizer={"type": "Nmt"}))))
    c.refused("absent.json: No such file", "train", config, *never, text, "--tokenizer", c.at("absent.json"))
    c.refused("--tokenizer is for a text", "train", config, "--tokenizer", rules, *never, c.at("numbers"), "--tokens", status=2)


def encoder_with(seq_len, **model):
    return {"arch": "encoder",
            "model": {"layer": "transformer", "d_model": 16, "n_layers": 1, "heads": 2, "d_ff": 32, "max_len": 8, **model},
            "train": {"batch_size": 9, "seq_len": seq_len, "steps": 80, "eval_every": 80, "valid_fraction": 0.25,
                      "min_frequency": 1, "optimizer": {"kind": "adam", "learning_rate": 0.02}}}


def labels(c):
    """An encoder learns the label of a sentence, and one of each word."""
    lines = [(a, b) for a in ("red", "green", "blue") for b in ("cats", "dogs", "owls")] * 4
    classes = "".join("%s %s!\t%s\n" % (a, b, "Likes Cats" if b == "cats" else "other") for a, b in lines)
    tags = "".join("%s %s\tADJ %s\n" % (a, b, b.upper()) for a, b in lines)
    for name, text, model, expected in (
            ("classes", classes, {"pool": "mean"}, "Likes Cats\nother"),
            ("tags", tags, {"pool": "none"}, "<pad>\nADJ\nCATS\nDOGS\nOWLS"),
            ("tags-batch-first", tags, {"pool": "none", "batch_first": True}, "<pad>\nADJ\nCATS\nDOGS\nOWLS")):
        run, data = c.at("of-" + name), c.save(name + ".tsv", text)
        out = c.works("train", c.save(name + ".json", encoder_with(5, **model)), "--pairs", data, "--out", run)
        c.check("bits per label" in out, "%s: what is printed: %s" % (name, out))
        last = log_of(run)[-1]
        got = last.get("valid_loss", 9)
        c.check(got < 0.05, "%s: the held-out loss is %g" % (name, got))
        c.check(last.get("valid_accuracy") == 1 and "accuracy 1.0000;" in out, "%s: accuracy %s: %s" % (name, last, out))
        metadata = json.loads(c.works("inspect", "--json", os.path.join(run, "model.safetensors")))["metadata"]
        c.check(metadata.get("attncl.labels") == expected, "%s: labels %s" % (name, metadata.get("attncl.labels")))
        c.check(metadata.get("attncl.source_vocab", "").startswith("<unk>\n<pad>\n"), "%s: words" % name)
        c.works("train", "--pairs", data, "--out", run, "--resume", "--steps", "82")
    ready = encoder_with(5, pool="mean", batch_first=True)
    ready["train"].update(steps=60, eval_every=0)
    tokens = [(i * i * 7 + i // 3) % 6 for i in range(60 * 8 * 5)]
    classes = [int(tokens[5 * i] > 2) for i in range(60 * 8)]
    arrays = {"tokens": ("I32", (60, 8, 5), tokens), "targets": ("I32", (60, 8), classes),
              "valid_lens": ("I32", (60, 8), [1] * (60 * 8))}
    write(c.at("ready"), arrays)
    c.works("train", c.save("ready.json", ready), "--batches", c.at("ready"), "--out", c.at("of-ready"))
    losses = [line["loss"] for line in log_of(c.at("of-ready"))]
    c.check(losses[0] > 0.3 and losses[-1] < 0.05, "ready batches of classes: %s" % losses[::10])
    write(c.at("ready"), {**arrays, "targets": ("I32", (60, 8, 1), classes)})
    c.refused('no array "targets" of 2 axes', "train", c.at("ready.json"), "--batches", c.at("ready"), "--out", c.at("no"))
    untrained = encoder_with(5, pool="none")
    untrained["train"].update(steps=1, eval_every=1, optimizer={"kind": "sgd", "learning_rate": 0})
    c.works("train", c.save("untrained.json", untrained), "--pairs", c.at("tags.tsv"), "--out", c.at("untrained"))
    right = 2 * 9 * log_of(c.at("untrained"))[-1].get("valid_accuracy", 1)  # of two words in nine lines
    c.check(abs(right - round(right)) < 1e-7 and right < 18, "before training %s are right" % right)
    write(c.at("words"), {"tokens": ("I32", (2, 1), [4, 5])})
    c.works("run", os.path.join(c.at("of-classes"), "best.safetensors"), c.at("words"), c.at("scores"))
    c.refused("line 2: 2 words in the source, 1 labels", "train", c.at("tags.json"), "--out", c.at("never"), "--pairs",
              c.save("lengths.tsv", "a b\tX Y\na b\tX\n"))
    c.refused("for arch lm", "train", c.at("tags.json"), "--out", c.at("never"), "--data", c.at("text"))
    c.refused("pairs are for archs", "train", c.at("short.json"), "--out", c.at("never"), "--pairs", data)


def window(c):
    """A model without a length of its own is evaluated in windows of the length that it was trained with."""
    model = {"layer": "transformer", "d_model": 8, "n_layers": 1, "heads": 2, "d_ff": 8}
    config = c.save("window.json", {"arch": "lm", "model": model, "train": {"batch_size": 4, "seq_len": 20, "steps": 3}})
    run = c.at("window")
    got = json.loads(c.works("train", config, "--data", c.at("text"), "--out", run, "--json"))
    begin = len(text_of(N_TEXT)[:N_TEXT - N_TEXT // 10].encode())
    printed = json.loads(c.works("eval", os.path.join(run, "model.safetensors"), c.at("text"), "--bytes", "%d:" % begin,
                                 "--json"))
    c.check(abs(printed["nll"] - got["valid_loss"]) < 2e-6, "windows: eval %s, train %s" % (printed, got))


def early_stop(c):
    """Nothing gets better at a rate of 0: the first evaluation is the best, three more end it, as asked."""
    config = c.save("flat.json", config_with(eval_every=1, patience=3, dropout=0, optimizer={"learning_rate": 0}))
    got = json.loads(c.works("train", config, "--data", c.at("text"), "--out", c.at("flat"), "--json"))
    c.check(got["steps"] == 4 and got["best_step"] == 1 and got["stopped_early"], "early stop: %s" % got)

    # At a rate of 1 nothing gets better either, but the weights change: the best ones are kept.
    config = c.save("worse.json", config_with(eval_every=1, steps=4, optimizer={"kind": "adam", "learning_rate": 1}))
    got = json.loads(c.works("train", config, "--data", c.at("text"), "--out", c.at("worse"), "--json"))
    losses = [line["valid_loss"] for line in log_of(c.at("worse")) if "valid_loss" in line]
    c.check(got["best_step"] == 1 + losses.index(min(losses)) < 4 and abs(got["best_loss"] - min(losses)) < 1e-6,
            "best: %s of %s" % (got, losses))
    model = os.path.join(c.at("worse"), "best.safetensors")
    begin = len(text_of(N_TEXT)[:N_TEXT - N_TEXT // 10].encode())
    printed = json.loads(c.works("eval", model, c.at("text"), "--bytes", "%d:" % begin, "--json"))
    c.check(abs(printed["nll"] - min(losses)) < 2e-6 * min(losses), "eval of the best: %s of %s" % (printed, losses))


def mistakes(c):
    text, config = c.at("text"), c.at("c.json")
    train = lambda *words: ("train", *words, "--out", c.at("never"))  # noqa: E731
    c.refused("--out is missing", "train", config, "--data", text, status=2)
    c.refused("--data, --pairs or --batches is missing", *train(config), status=2)
    c.refused("--tokens is for --data", *train(config, "--pairs", text, "--tokens"), status=2)
    c.refused("exclude each other", *train(config, "--data", text, "--pairs", text), status=2)
    c.refused("not of the form KEY=VALUE", *train(config, "--data", text, "--set", "x"), status=2)
    c.refused("nearest: steps", *train(config, "--data", text, "--set", "train.stepz=1"))
    c.refused("line 1", *train(c.save("bad.json", "{"), "--data", text))
    c.refused("No such file", *train(c.at("absent.json"), "--data", text))
    c.check(not os.path.exists(c.at("never")), "a refused training leaves no directory")


def documented(c):
    """docs/training.md lists every key of "train" with its default."""
    run, config = c.at("defaults"), c.save("model.json", {"arch": "lm", "model": CONFIG["model"]})
    c.works("train", config, "--data", c.at("text"), "--out", run, "--steps", "1", "--set", "train.seq_len=16")
    with open(os.path.join(run, "config.json")) as f:
        defaults = json.load(f)["train"]
    with open(os.path.join(c.root, "docs", "training.md"), encoding="utf-8") as f:
        rows = dict(re.findall(r"^\| `([a-z_.0-9]+)` \| ([^|]*) \|", f.read(), re.M))
    flat = {}
    for key, value in defaults.items():
        for inner, v in value.items() if isinstance(value, dict) else [(None, value)]:
            flat[key if inner is None else key + "." + inner] = v
    flat["steps"] = 1000
    for key, value in flat.items():
        said = rows.get(key, "")
        c.check(key in rows, "docs/training.md lacks %s" % key)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        text = value if isinstance(value, str) else "%g" % value if number else json.dumps(value)
        c.check(said.strip("` ") == text or key in ("valid_len", "seq_len"),
                "docs/training.md: %s is %s, not %s" % (key, text, said))


def run(c):
    c.save("text", text_of(N_TEXT))
    for part in (contract, other_data, by_a_tokenizer, labels, window, early_stop, mistakes, documented):
        part(c)


if __name__ == "__main__":
    sys.exit(main(run))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""language.py TOOL ROOT: attncl eval and sample on the golden language models, against attncl run.

eval's mean must be the mean of the losses that `run` gives window by window; sample at temperature 0 must write what
the architecture lm_sample decodes.  Standard library only.  Exit status 77 when there is no device.
"""
import glob
import json
import math
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import TESTS, load, main, read, write  # noqa: E402

DATA = os.path.join(TESTS, "data")
VOCAB = "\nab é→𝄞zßc—"  # one to four bytes a character
V, T = len(VOCAB), 12  # the models have 11 characters and read 12 at most
MODELS = ("lm_aft_local_grad", "lm_transformer")


# Of 11 tokens: words, and the bytes of an accented letter.
TOKENIZER = {
    "model": {"type": "BPE", "byte_fallback": True, "merges": ["a b"],
              "vocab": {"<s>": 0, "a": 1, "b": 2, "\u2581": 3, "<0xC3>": 4, "<0xA9>": 5, "ab": 6, "c": 7, "d": 8, "e": 9, "f": 10}},
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                                                 {"type": "ByteFallback"}, {"type": "Fuse"}]},
    "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                       "special_tokens": {"<s>": {"ids": [0]}}}}
TOKEN_BYTES = [b"", b"a", b"b", b" ", b"\xc3", b"\xa9", b"ab", b"c", b"d", b"e", b"f"]

DRAWN = "7 7 9 7 7 7 9 7 2 7 2 2 7 7 7 7"  # attncl_decoder_sample()'s


def run(c):
    check, at, attncl, works, refused = c.check, c.at, c.attncl, c.works, c.refused
    rng = random.Random(9)
    text = "".join(rng.choice(VOCAB) for _ in range(4 * T + 8))
    with open(at("text"), "wb") as f:
        f.write(b"##" + text.encode() + b"#")
    bytes_range = "2:%d" % (2 + len(text.encode()))
    index = [VOCAB.index(c) for c in text]
    prompt, steps = "aé𝄞", T - 3
    options = ["--prompt", prompt, "--length", str(steps)]

    def eval_agrees():
        """4 whole windows and one of 7 predictions."""
        total = 0.0
        for start in range(0, len(index) - 1, T):
            tokens = index[start:start + T + 1]
            n = len(tokens) - 1
            write(at("in"), {"tokens": ("I64", [n, 1], tokens[:-1]), "targets": ("I64", [n, 1], tokens[1:])})
            works("run", at("lm"), at("in"), at("out"))
            total += n * read(at("out"), "loss")[0]
        want = total / (len(index) - 1)
        with open(at("numbers"), "w") as f:
            f.write("\n".join(map(str, index)) + "\n")
        out = works("eval", at("lm"), at("numbers"), "--tokens").split()
        check(abs(float(out[1]) - want) < 2e-6 and out[4:6] == ["tokens", str(len(index) - 1)], "eval --tokens: %s" % out)
        for dtype in ("I32", "I64"):
            write(at("tokens"), {"tokens": (dtype, [len(index)], index)})
            check(works("eval", at("lm"), at("tokens"), "--tokens").split()[:6] == out[:6], "eval --tokens of %s" % dtype)
        for batch in ("1", "3", "32"):
            out = works("eval", at("lm"), at("text"), "--bytes", bytes_range, "--batch", batch)
            line = out.split("\n")[0].split()
            got, perplexity = float(line[1]), float(line[3])
            check(line[0::2] == ["nll", "perplexity", "characters"] and line[5] == str(len(index) - 1), str(line))
            check(abs(got - want) < 2e-6, "eval --batch %s: nll %f, %f by run" % (batch, got, want))
            check(abs(perplexity - math.exp(want)) < 1e-3, "eval: perplexity %f" % perplexity)

    def sample_agrees(tensors, metadata):
        """Greedy against lm_sample; returns the text."""
        config = dict(json.loads(metadata["attncl.config"]), steps=steps)
        write(at("decode"), tensors, dict(metadata, **{
            "attncl.arch": "lm_sample", "attncl.config": json.dumps(config)}))
        write(at("in"), {"tokens": ("I64", [len(prompt), 1], [VOCAB.index(c) for c in prompt])})
        works("run", at("decode"), at("in"), at("out"))
        want = "".join(VOCAB[i] for i in read(at("out"), "tokens"))
        got = works("sample", at("lm"), *options, "--temperature", "0")
        check(got == want + "\n", "sample: '%s', lm_sample: '%s'" % (got, want))
        return got

    def ends_where_scores_are_not_finite(tensors, metadata, text):
        """The embedding of the first new character of the greedy text is no number: that is the last one written."""
        new = next((i for i in range(len(prompt), len(prompt) + steps - 1) if text[i] not in text[:i]), None)
        if new is None:
            return False
        name, (dtype, shape, data) = next((n, t) for n, t in tensors.items() if n.startswith("src_embed") and n.endswith("weight"))
        row = VOCAB.index(text[new]) * shape[1] * 4
        write(at("lm"), dict(tensors, **{name: (dtype, shape, data[:row] + struct.pack("<f", math.nan) + data[row + 4:])}), metadata)
        status, out, err = attncl("sample", at("lm"), *options, *greedy)
        check(status == 1 and out == text[:new + 1] and "after %d tokens are not finite" % (new + 1) in err,
              "not finite after '%s': status %d, '%s', %s" % (text[:new + 1], status, out, err))
        write(at("lm"), tensors, metadata)
        return True

    def draws_by_the_seed(length):
        """By Philox: as long a text, the same however long it is."""
        draw = lambda n, *more: works("sample", at("lm"), "--prompt", prompt, "--length", str(n), *more)
        texts = [draw(length, "--temperature", "3", "--seed", s) for s in "1123456"]
        check(texts[0] == texts[1] and len(set(texts)) > 3, "seeds: %s" % texts)
        check(all(len(t) == len(prompt) + length + 1 for t in texts), "a wrong number of characters")
        check(draw(4, "--temperature", "3", "--seed", "1") == texts[0][:len(prompt) + 4] + "\n", "4 characters are others")
        check(draw(length, "--temperature", "1", "--top-k", "1") == draw(length, *greedy), "--top-k 1 is not the likeliest")
        one = ["sample", at("lm"), "--prompt", prompt[0], "--length", "1", "--seed", "1"]
        check(len(works(*one)) == 3, "one character after one")
        seen = works("sample", at("lm"), "--prompt", prompt, "--crop", "--length", str(T + 9))
        check(len(seen) == len(prompt) + T + 10, "--crop: '%s'" % seen)

    def draws_as_often_as_scores_say(tensors, metadata):
        """At temperature 2, tokens 7, 2 and 9 of scores 2 ln 4, 2 ln 2 and 2 ln 1: of 7 draws 4, 2 and 1."""
        scores = [-9.0] * V
        scores[7], scores[2], scores[9] = (2 * math.log(n) for n in (4, 2, 1))
        flat = {name: (t[0], t[1], struct.pack("<%df" % V, *scores) if name.endswith("bias") else bytes(len(t[2])))
                for name, t in tensors.items() if name.startswith("generator")}
        write(at("lm"), {**tensors, **flat}, metadata)
        drawn = works("sample", at("lm"), "--tokens", "--prompt", "0", "--crop", "--length", "250", "--temperature", "2", "--top-k", "3",
                      "--seed", "5").split()[1:]
        check(all(abs(drawn.count(token) / 250 - n / 7) < 0.08 for token, n in (("7", 4), ("2", 2), ("9", 1))),
              "drawn at temperature 2: %s" % " ".join(drawn))
        # No rounding of scores can change these.
        check(" ".join(drawn[:16]) == DRAWN, "another text of a seed: %s" % " ".join(drawn[:16]))
        draw = ["sample", at("lm"), "--crop", "--temperature", "2", "--top-k", "3", "--seed", "5", "--prompt"]
        for eos, want in (([2, 5], DRAWN[:16]), ([9], DRAWN[:4]), ([7], ""), ([1], DRAWN)):
            write(at("lm"), {**tensors, **flat}, {**metadata, "attncl.eos": json.dumps(eos)})
            numbers = works(*draw, "0", "--tokens", "--length", "16").split()
            check(numbers == ["0", *want.split()], "eos %s: %s" % (eos, numbers))
            check(works(*draw, "0", "--tokens", "--length", "16", "--ignore-eos").split() == ["0", *DRAWN.split()], "--ignore-eos")
        write(at("lm"), {**tensors, **flat}, {**metadata, "attncl.eos": "[2]"})
        check(works(*draw, "a") == "azzczzzcz\n", "a text without a length ends by itself")
        write(at("lm"), {**tensors, **flat}, {**metadata, "attncl.eos": "2"})
        refused("attncl.eos is 2, expected a list of token numbers", *draw, "a")
        write(at("lm"), {**tensors, **flat}, metadata)
        ends_at_a_text(draw)
        write(at("lm"), tensors, metadata)

    def ends_at_a_text(draw):
        whole = "".join(VOCAB[int(token)] for token in DRAWN.split())
        for stop, prompt in (("zb", "a"), ("c", "a"), ("zzzc", "a"), ("b", "b"), ("zzzzz", "a")):
            want = prompt + whole.partition(stop)[0]
            got = works(*draw, prompt, "--length", "16", "--stop", stop)
            check(got == want + "\n", "--stop %s: '%s', expected '%s'" % (stop, got, want))
            said = json.loads(works(*draw, prompt, "--length", "16", "--stop", stop, "--json"))
            n = min(len(want + stop), 17)
            check(said["text"] == want and len(said["tokens"]) == n, "--stop %s --json: %s" % (stop, said))
        check(attncl(*draw, "a", "--stop", "")[::2] == (2, "attncl: sample: --stop is empty; see attncl sample --help\n"), "--stop ''")
        refused("--stop is a text", *draw, "1", "--tokens", "--stop", "1", status=2)

    def keeps_16_bits():
        """Near enough for most of the likeliest tokens."""
        for dtype in ("f16", "bf16", "q8"):
            words = ["sample", at("lm"), *options, *greedy, "--state-dtype", dtype]
            check(len(works(*words)) == len(prompt) + steps + 1, "--state-dtype %s" % dtype)
        wide = ["sample", at("lm"), *options, *greedy]
        check(works(*wide, "--state-dtype", "f32") == works(*wide), "--state-dtype f32 is not the default")
        status, _, err = attncl("sample", at("lm"), *options, "--state-dtype", "f64")
        check(status == 2 and "--state-dtype: 'f64' is not f16, bf16, f32 or q8" in err, "--state-dtype f64: %d, %s" % (status, err))

    def run_greedy(tokens):
        """The likeliest token after each, by a run of the whole window."""
        write(at("in"), {"tokens": ("I64", [len(tokens), 1], tokens)})
        works("run", at("lm"), at("in"), at("out"))
        last = read(at("out"), "output")[-V:]
        return last.index(max(last))

    greedy = ["--temperature", "0"]

    def crop_agrees():
        """Without --length up to the limit; with --crop beyond it, from the last T tokens.  Returns the tokens."""
        first = works("sample", at("lm"), "--prompt", prompt, *greedy)
        check(len(first) == T + 2, "sample without --length: %d characters" % len(first))
        check(works("sample", at("lm"), "--prompt", prompt, "--crop", "--length", "5", *greedy) == first[:8] + "\n",
              "--crop changes what fits")
        want = [VOCAB.index(c) for c in first[:-1]]
        while len(want) < T + 6:
            want.append(run_greedy(want[-T:]))
        seen = works("sample", at("lm"), "--prompt", prompt, "--crop", "--length", str(T + 6 - len(prompt)), *greedy)
        check(seen == "".join(VOCAB[i] for i in want) + "\n", "--crop: '%s', expected %s" % (seen, want))
        seen = works("sample", at("lm"), "--prompt", first[:-1], "--crop", "--length", "5", *greedy)
        check(seen == "".join(VOCAB[i] for i in want) + "\n", "--crop of the prompt: '%s', expected %s" % (seen, want))
        refused("--crop continues", "sample", at("lm"), "--prompt", first[:-1])
        log = attncl("sample", at("lm"), "--prompt", first[:-1], "--verbose")[2]  # before anything is compiled
        check("device" in log and " built" not in log and "from the cache" not in log, "a limit found late: " + log)
        return want

    def text_by_a_tokenizer(tensors, metadata):
        """The same as its token numbers, and always UTF-8: cut after each length, in the middle of characters too."""
        write(at("lm"), tensors, dict(metadata, **{"attncl.tokenizer": json.dumps(TOKENIZER), "attncl.vocab": "unused"}))
        cut = 0
        for seed in "12345678":
            more = ["--length", str(T - 5), "--seed", seed, "--temperature", "9"]
            drawn = works("sample", at("lm"), "--tokens", "--prompt", "0 6 3 4 5 7", *more).split()
            if "4" in drawn[6:]:  # ends within a character
                drawn = drawn[:drawn.index("4", 6) + 1]
                more[1], cut = str(len(drawn) - 6), cut + 1
            want = b"".join(TOKEN_BYTES[int(token)] for token in drawn).decode(errors="replace")
            got = works("sample", at("lm"), "--prompt", "ab \u00e9c", *more)
            check(got == want + "\n", "sample: '%s', expected '%s'" % (got, want))
            said = json.loads(works("sample", at("lm"), "--prompt", "ab \u00e9c", *more, "--json"))
            check(said["text"] == want and said["tokens"] == [int(token) for token in drawn], "sample --json: %s" % said)
        check(cut > 0, "no text ended within a character")
        with open(at("prose"), "wb") as f:
            f.write("ab \u00e9cd\u00e9".encode())
        with open(at("numbers"), "w") as f:
            f.write("0 6 3 4 5 7 8 4 5")
        got, want = (works("eval", at("lm"), at("prose")), works("eval", at("lm"), at("numbers"), "--tokens"))
        check(got.split()[:6] == want.split()[:6] and got.split()[4:6] == ["tokens", "8"], "eval: %s, expected %s" % (got, want))
        with open(at("broken"), "wb") as f:
            f.write(b"abab\xc3(")
        refused("broken: is not UTF-8 at byte 4", "eval", at("lm"), at("broken"))
        refused("broken: is not UTF-8 at byte 4", "eval", at("lm"), at("broken"), "--bytes", "2:")
        refused("--prompt: has no token", "sample", at("no_token"), "--prompt", "z")

    n_not_finite = 0
    for model in MODELS:
        tensors, metadata = load(os.path.join(DATA, model + ".safetensors"))
        metadata["attncl.vocab"] = VOCAB
        write(at("lm"), tensors, metadata)
        eval_agrees()
        got = sample_agrees(tensors, metadata)
        n_not_finite += ends_where_scores_are_not_finite(tensors, metadata, got)
        refused("%d positions" % (T + 1), "sample", at("lm"), "--prompt", prompt, "--length", str(steps + 2))

    nothing = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "post_processor": None}
    write(at("no_token"), tensors, dict(metadata, **{"attncl.tokenizer": json.dumps(nothing)}))
    text_by_a_tokenizer(tensors, metadata)
    write(at("bad_rule"), tensors, dict(metadata, **{"attncl.tokenizer": json.dumps(dict(TOKENIZER, normalizer={"type": "Nmt"}))}))
    refused("tokenizer.json: normalizer Nmt is not supported", "sample", at("bad_rule"), "--prompt", "a")
    write(at("lm"), tensors, metadata)
    want = crop_agrees()
    draws_by_the_seed(steps)
    draws_as_often_as_scores_say(tensors, metadata)
    keeps_16_bits()
    # The transformer reads on after seq_len; published code does not.
    short = dict(json.loads(metadata["attncl.config"]), seq_len=6)
    write(at("lm"), tensors, dict(metadata, **{"attncl.config": json.dumps(short)}))
    cropped = [VOCAB.index(c) for c in prompt]
    while len(cropped) < 10:
        cropped.append(run_greedy(cropped[-6:]))
    seen = works("sample", at("lm"), "--prompt", prompt, "--crop", "--length", "7", *greedy)
    check(seen == "".join(VOCAB[i] for i in cropped) + "\n", "--crop to seq_len: '%s'" % seen)
    write(at("lm"), tensors, metadata)
    check(n_not_finite > 0, "no greedy text had a new character")
    numbers = works("sample", at("lm"), "--tokens", "--prompt", " ".join(map(str, want[:3])), *greedy)
    check(numbers.split() == list(map(str, want[:T + 1])), "--tokens: %s, expected %s" % (numbers, want))
    write(at("tokens"), {"tokens": ("I64", [2], [3, 11])})
    refused("11 is not a token of the model, which has 0 to 10", "eval", at("lm"), at("tokens"), "--tokens")
    write(at("tokens"), {"tokens": ("F32", [2], [3, 4])})
    refused('no array "tokens" [n] of type I32 or I64', "eval", at("lm"), at("tokens"), "--tokens")
    refused("no token number", "sample", at("lm"), "--tokens", "--prompt", " ")

    # What is run to be timed: eval's first batch once more, of sample's prompt no more than its beginning.
    def count_launches(*words):
        layer = os.path.join(os.path.dirname(c.tool), os.pardir, "tests", "libattncl_fault_layer.so")
        works(*words, env=dict(os.environ, OPENCL_LAYERS=layer, ATTNCL_FAULTS_CALLS=at("calls")))
        with open(at("calls")) as f:
            return int(dict(map(str.split, f))["clEnqueueNDRangeKernel"])

    def count_eval(n_windows, *more):
        write(at("tokens"), {"tokens": ("I32", [n_windows * T + 1], (index * n_windows)[:n_windows * T + 1])})
        return count_launches("eval", at("lm"), at("tokens"), "--tokens", *more)

    write(at("in"), {"tokens": ("I64", [T, 1], index[:T]), "targets": ("I64", [T, 1], index[1:T + 1])})
    one, two, ran = count_eval(1, "--batch", "1"), count_eval(2, "--batch", "1"), count_launches("run", at("lm"), at("in"), at("out"))
    check(two - one == one - ran > 0, "eval launches %d kernels for one window, %d for two; run %d" % (one, two, ran))
    one = ("sample", at("lm"), "--tokens", "--prompt", " ".join(map(str, index[:T - 1])), "--length", "1")
    plain, timed = count_launches(*one), count_launches(*one, "--json")
    check(0 < plain < timed < 1.5 * plain, "sample launches %d kernels, %d with --json" % (plain, timed))

    large = 1 << 20  # of which 2^26 scores are five windows
    wide = {name: (t[0], [large, *t[1][1:]], bytes(len(t[2]) // V * large)) for name, t in tensors.items() if t[1][:1] == [V]}
    write(at("lm"), {**tensors, **wide}, {"attncl.arch": "lm", "attncl.config": json.dumps(
        dict(json.loads(metadata["attncl.config"]), n_vocab=large))})
    plain, five, ten = count_eval(10), count_eval(10, "--batch", "5"), count_eval(10, "--batch", "10")
    check(plain == five > ten, "eval of a large vocabulary launches %d kernels, %d and %d for 5 and 10 windows" % (plain, five, ten))
    write(at("lm"), tensors, metadata)

    # Of seconds until a first text most are the compiler's for copies of code.  PoCL 3 keeps a library a kernel: 107 kB.
    if re.search("PoCL.*driver 3", works("devices")) and not {"ATTNCL_VARIANT", "OPENCL_LAYERS"} & os.environ.keys():
        model = os.path.join(c.root, "examples", "models", "shakespeare.safetensors")
        works("sample", model, "--prompt", "a", "--length", "2", env=dict(os.environ, ATTNCL_CACHE="off", POCL_CACHE_DIR=at("pocl"),
                                                                          POCL_EXTRA_BUILD_FLAGS=""))
        size = sum(map(os.path.getsize, glob.glob(at("pocl/**/*.so"), recursive=True)))
        check(0 < size < 115000, "the first text takes %d bytes of kernels" % size)

    if os.path.exists("/dev/full"):  # without --length it would not end by itself
        with open("/dev/full", "w") as full:
            for more in ([], ["--length", "2"], ["--length", "0"], ["--length", "2", "--json"]):
                done = subprocess.run([c.tool, "sample", at("lm"), "--prompt", prompt, "--crop", *more], stdout=full,
                                      stderr=subprocess.PIPE, timeout=120)
                said = done.stderr.decode()
                check(done.returncode == 1 and said == "attncl: cannot write to standard output: No space left on device\n",
                      "sample to a full disk: status %d, %s" % (done.returncode, said))

    write(at("no_vocab"), tensors, {k: v for k, v in metadata.items() if k != "attncl.vocab"})
    write(at("short_vocab"), tensors, dict(metadata, **{"attncl.vocab": VOCAB[1:]}))
    write(at("double_vocab"), tensors, dict(metadata, **{"attncl.vocab": VOCAB[1:] + "a"}))

    refused("'#' (U+0023) at byte 0", "eval", at("lm"), at("text"))
    refused("'#' (U+0023) at byte %s" % bytes_range[2:], "eval", at("lm"), at("text"), "--bytes", "2:")
    past = os.path.getsize(at("text")) + 1
    for word, one in (("begins", "%d:" % past), ("ends", "2:%d" % past)):
        refused("the range %s at byte %d, the file ends at %d" % (word, past, past - 1), "eval", at("lm"), at("text"), "--bytes", one)
    refused("at least 2", "eval", at("lm"), at("text"), "--bytes", "2:2")
    refused("'1' is not", "eval", at("lm"), at("text"), "--bytes", "2:1", status=2)
    refused("No such file", "eval", at("lm"), at("nothing"))
    refused("directory", "eval", at("lm"), at("."))
    refused("attncl.vocab", "eval", at("no_vocab"), at("text"))
    refused("n_vocab is %d" % V, "eval", at("short_vocab"), at("text"))
    refused("twice", "eval", at("double_vocab"), at("text"))
    with open(at("broken"), "wb") as f:
        f.write(b"ab\xe2\x86")
    refused("not UTF-8 at byte 2", "eval", at("lm"), at("broken"))

    said = json.loads(works("sample", at("lm"), *options, *greedy, "--json"))
    check([said["text"], said["tokens"], said["prompt_tokens"]] == [got[:-1], [VOCAB.index(c) for c in got[:-1]], len(prompt)],
          "sample --json: %s" % said)
    refused("'q' (U+0071) at byte 1", "sample", at("lm"), "--prompt", "aq", "--length", "1")
    check(works("sample", at("no_vocab"), "--tokens", "--prompt", "1", "--length", "2", *greedy).count(" ") == 2,
          "--tokens needs no vocabulary")


if __name__ == "__main__":
    sys.exit(main(run))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tokenizer.py LIBRARY: tokenizers that Hugging Face's `tokenizers` trains, here and there; models that take text."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import support

try:
    import numpy as np
    import tokenizers
    import torch
    import transformers
except ImportError as error:
    support.skip(f"no {error.name}")
support.use_package(sys.argv[1])
sys.path.insert(0, str(support.DATA))
import attncl  # noqa: E402
import generate_tokenizers as made  # noqa: E402
from attncl import files  # noqa: E402
from attncl.convert import main as convert_main  # noqa: E402
from attncl.tokenizer import of_directory  # noqa: E402

TOOL = pathlib.Path(sys.argv[1]).resolve().parent / "tools" / "attncl"
END = "<|end|>"
NAMES = ("gpt2", "llama3", "llama2", "metaspace", "splits", "words")
# First and last of what strings are drawn from: scripts, symbols, private and unassigned ones.
RANGES = ((0x20, 0x7e), (0, 0x1f), (0x7f, 0x24f), (0x300, 0x36f), (0x370, 0x5ff), (0x600, 0x97f), (0xe00, 0xe7f), (0x1100, 0x11ff),
          (0x1e00, 0x206f), (0x2070, 0x2bff), (0x3000, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xe000, 0xfaff), (0xfe00, 0xffff),
          (0x1f300, 0x1faff), (0x20000, 0x2a6df), (0x10000, 0x10ffff))
WORDS = (*made.TEXTS, " ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "<mask>", "<r>", "<s>", "▁", "e\u0301", "\u2003\x85", "don't", "12345")


def texts(n, seed):
    """Parts of a play and of code, characters of all scripts, white space, added tokens."""
    rng, code = random.Random(seed), pathlib.Path(made.__file__).read_text(encoding="utf-8")
    for _ in range(n):
        parts = []
        for _ in range(rng.randrange(1, 6)):
            kind, (low, high) = rng.randrange(4), rng.choice(RANGES)
            source = made.TEXT if kind else code
            begin = rng.randrange(len(source))
            parts.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 8))) if kind == 1 else
                         rng.choice(WORDS) if kind == 2 else source[begin:begin + rng.randrange(40)])
        yield "".join(parts)


def saved(name):
    return json.dumps(json.loads((support.DATA / f"tokenizer_{name}.json").read_text(encoding="utf-8"))["tokenizer"])


class Tokenizers(unittest.TestCase):
    def same(self, text, n, seed):
        theirs, ours, rng = tokenizers.Tokenizer.from_str(text), attncl.Tokenizer(text), random.Random(seed)
        # They decompose what Unicode 12 knows, we what Unicode 15 does; in Whitespace they have newer letters than PCRE2.
        old = (lambda s: s) if "NFKD" not in text and "Whitespace" not in text else (lambda s: "".join(c for c in s if ord(c) < 0xa000 and c != "\u32ff"))
        for words in map(old, texts(n, seed)):
            begin, skip = rng.random() < 0.5, rng.random() < 0.5
            want = theirs.encode(words, add_special_tokens=begin).ids
            self.assertEqual(ours.encode(words, begin).tolist(), want, words)
            drawn = want if rng.random() < 0.5 else [rng.randrange(theirs.get_vocab_size() + 3) for _ in range(9)]
            text = theirs.decode(drawn, skip_special_tokens=skip)
            self.assertEqual(ours.decode(drawn, skip), text, drawn)
            parts = list(ours.stream(drawn, skip))
            self.assertEqual(len(parts), len(drawn) + 1)
            if "\ufffd" not in text:
                self.assertEqual("".join(parts), text, drawn)

    def test_equal(self):
        for seed, name in enumerate(NAMES):
            with self.subTest(name):
                self.same(saved(name), 1500, seed)

    def test_merges_over_spaces(self):
        """Texts cannot be cut into words where a merge goes over a space."""
        t = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="?"))
        t.normalizer = tokenizers.normalizers.Replace(" ", "▁")
        t.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("\n|.{1,9}"), "isolated")
        t.train_from_iterator([made.TEXT], tokenizers.trainers.BpeTrainer(vocab_size=600, special_tokens=["?"], show_progress=False))
        self.assertTrue(any("▁" in token.strip("▁") for token in t.get_vocab()))
        t.pre_tokenizer, t.decoder = tokenizers.pre_tokenizers.Sequence([]), tokenizers.decoders.Fuse()
        self.same(t.to_str(), 500, 3)

    def test_vocabulary_and_merges(self):
        """GPT-2's and Qwen's files without a tokenizer.json."""
        for family, theirs in (("gpt2", transformers.GPT2Tokenizer), ("qwen2", transformers.Qwen2Tokenizer)):
            model = json.loads(saved("gpt2"))["model"]
            with tempfile.TemporaryDirectory() as directory:
                at = pathlib.Path(directory)
                self.assertIsNone(of_directory(at))
                (at / "config.json").write_text(json.dumps({"model_type": family}))
                self.assertIsNone(of_directory(at))
                (at / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False), encoding="utf-8")
                (at / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"]), encoding="utf-8")
                added = {str(i): {"content": word, "special": True} for word, i in ((END, model["vocab"][END]), ("<x>", 420))}
                (at / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
                ours = attncl.Tokenizer(of_directory(at))
                hf = theirs(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]], unk_token=END, bos_token=END,
                            eos_token=END, pad_token=END)
                hf.add_special_tokens({"extra_special_tokens": ["<x>"]})
                for words in [*texts(300, 8), "a<x> b" + END]:
                    self.assertEqual(ours.encode(words).tolist(), hf.encode(words), words)

    def test_errors(self):
        with attncl.Tokenizer(saved("llama3")) as t:
            self.assertEqual(len(t), 423)
            with self.assertRaises(ValueError):
                t.encode("\ud800")
        with self.assertRaisesRegex(NotImplementedError, "tokenizer.json: model WordPiece is not supported; there are BPE"):
            attncl.Tokenizer('{"model": {"type": "WordPiece", "vocab": {}, "merges": []}}')
        with self.assertRaisesRegex(RuntimeError, "the tokenizer is closed"):
            t.encode("a")


class Models(support.ExportCase):
    seed = 5

    def directory(self, name):
        sizes = {"vocab_size": 480, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 2,
                 "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p) * 0.3)
        model.save_pretrained(self.at / name)
        (self.at / name / "tokenizer.json").write_text(saved(name), encoding="utf-8")
        return model.eval()

    def tool(self, *words):
        done = subprocess.run([TOOL, *words], capture_output=True, check=False)
        return done.stdout.decode(), done.stderr.decode()

    @unittest.skipUnless(TOOL.exists(), "no tool")
    def test_text(self):
        """From a directory to text, as transformers writes it."""
        prompt = "Hello naïve 日本 <r> 😀"
        for name in ("llama3", "llama2", "metaspace"):
            model, hf = self.directory(name), tokenizers.Tokenizer.from_str(saved(name))
            self.assertEqual(convert_main([str(self.at / name), str(self.file)]), 0)
            ids = hf.encode(prompt).ids
            drawn = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=20, do_sample=False)[0].tolist()
            want = hf.decode(drawn)
            with attncl.Model(self.file) as file:
                self.assertEqual(file.encode(prompt).tolist(), ids)
                self.assertEqual(file.generate(prompt, 20, temperature=0), want)
                parts = list(file.generate(prompt, 20, temperature=0, stream=True))
            out, said = self.tool("sample", self.file, "--prompt", prompt, "--length", "20", "--temperature", "0")
            out.encode()
            if "\ufffd" not in want:
                self.assertEqual("".join(parts), want[len(hf.decode(ids)):])
                self.assertEqual(out, want + "\n", said)
            out, said = self.tool("sample", self.file, "--prompt", prompt, "--length", "20", "--temperature", "0", "--json")
            self.assertEqual(json.loads(out)["tokens"], drawn, said)
            (self.at / "text").write_text(made.TEXT[:500], encoding="utf-8")
            tokens = torch.tensor(hf.encode(made.TEXT[:500]).ids)
            losses = [torch.nn.functional.cross_entropy(model(tokens[i:i + 64][None]).logits[0, :len(tokens) - i - 1], tokens[i + 1:i + 65],
                                                        reduction="sum").item() for i in range(0, len(tokens) - 1, 64)]
            out, said = self.tool("eval", self.file, self.at / "text", "--json")
            self.assertEqual(json.loads(out)["tokens"], len(tokens) - 1, said)
            self.assertAlmostEqual(json.loads(out)["nll"], sum(losses) / (len(tokens) - 1), delta=1e-4)
            (self.at / "text").write_bytes(b"ab\xff")
            self.assertIn("text: is not UTF-8 at byte 2", self.tool("eval", self.file, self.at / "text")[1])

    @unittest.skipUnless(TOOL.exists(), "no tool")
    def test_training(self):
        """Tokens train a model, which keeps its tokenizer; a text does not, since characters are other tokens."""
        self.directory("llama2")
        self.assertEqual(convert_main([str(self.at / "llama2"), str(self.file)]), 0)
        (self.at / "text").write_text(made.TEXT[:3000], encoding="utf-8")
        files.save(self.at / "tokens", {"tokens": attncl.Tokenizer(saved("llama2")).encode(made.TEXT[:3000])})
        words = ("train", "--init", self.file, "--out", self.at / "run", "--steps", "1", "--set", "train.seq_len=16", "--data")
        self.assertIn("text: the model has a tokenizer", self.tool(*words, self.at / "text")[1])
        said = self.tool(*words, self.at / "tokens", "--tokens")
        with attncl.Model(self.at / "run" / "model.safetensors") as file, attncl.Model(self.file) as first:
            self.assertEqual(file.metadata("attncl.tokenizer"), first.metadata("attncl.tokenizer"), said)

    def test_directories(self):
        """A rule that is not known is refused before anything is written, unless the tokenizer is left out."""
        self.directory("llama3")
        path = self.at / "llama3" / "tokenizer.json"
        values = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**values, "normalizer": {"type": "Lowercase"}, "truncation": {"max_length": 5}}), encoding="utf-8")
        with self.assertRaisesRegex(NotImplementedError, "tokenizer.json: normalizer Lowercase is not supported"):
            attncl.export(self.at / "llama3", self.file, quiet=True)
        self.assertFalse(self.file.exists())
        self.assertEqual(convert_main([str(self.at / "llama3"), str(self.file), "--no-tokenizer"]), 0)
        with attncl.Model(self.file) as file:
            self.assertIsNone(file.metadata("attncl.tokenizer"))
            with self.assertRaisesRegex(NotImplementedError, "no attncl.tokenizer and no attncl.vocab"):
                file.generate("text", 3)
            self.assertEqual(file.generate(np.array([3]), 3).shape, (4,))


if __name__ == "__main__":
    support.need_device()
    support.main()

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
from attncl.tokenizer import read_directory  # noqa: E402

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
                self.assertIsNone(read_directory(at))
                (at / "config.json").write_text(json.dumps({"model_type": family}))
                self.assertIsNone(read_directory(at))
                (at / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False), encoding="utf-8")
                (at / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"]), encoding="utf-8")
                added = {str(i): {"content": word, "special": True} for word, i in ((END, model["vocab"][END]), ("<x>", 420))}
                (at / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
                ours = attncl.Tokenizer(read_directory(at))
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
            with self.assertRaisesRegex(TypeError, "tokens are float64, expected integers"):
                t.decode([1.5])
            self.assertEqual((t.decode([2**40 + 5, -7]), t.decode([])), ("", ""))  # numbers without a token
        with self.assertRaisesRegex(NotImplementedError, "tokenizer.json: model WordPiece is not supported; there are BPE"):
            attncl.Tokenizer('{"model": {"type": "WordPiece", "vocab": {}, "merges": []}}')
        with self.assertRaisesRegex(RuntimeError, "the tokenizer is closed"):
            t.encode("a")


class Models(support.ExportCase):
    seed = 5

    def directory(self, name, more={}, generation=None):
        sizes = {"vocab_size": 480, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 2,
                 "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
        torch.manual_seed(self.seed)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p) * 0.3)
        model.save_pretrained(self.at / name)
        path = self.at / name / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **more}))
        if generation is not None:
            (self.at / name / "generation_config.json").write_text(json.dumps(generation))
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
        """A text trains a model as its tokens do, here and there; the model keeps its tokenizer and its ends."""
        self.directory("llama2", {"eos_token_id": 2})
        self.assertEqual(convert_main([str(self.at / "llama2"), str(self.file)]), 0)
        text, keys = self.at / "text", ("attncl.tokenizer", "attncl.eos")
        text.write_text(made.TEXT[:3000], encoding="utf-8")
        files.save(self.at / "tokens", {"tokens": attncl.Tokenizer(saved("llama2")).encode(made.TEXT[:3000])})
        words = ("train", "--init", self.file, "--steps", "2", "--set", "train.seq_len=16", "--json", "--out", self.at / "run", "--data")
        want = json.loads(self.tool(*words, self.at / "tokens", "--tokens")[0])
        words = (*words[:-3], "--out", self.at / "of-text", "--data")
        self.assertEqual(json.loads(self.tool(*words, text)[0])["loss"], want["loss"])
        with attncl.Model(self.file) as first:
            given, config = [first.metadata(key) for key in keys], {"model": first.config, "train": {"seq_len": 16, "steps": 2}}
        self.assertEqual(given[1], "[2]")
        trainer = attncl.train(config, text, self.at / "here", progress=False, init=self.file)
        for out in ("run", "of-text", "here"):
            with attncl.Model(self.at / out / "model.safetensors") as file:
                self.assertEqual([file.metadata(key) for key in keys], given, out)
        self.assertAlmostEqual(json.loads((self.at / "here" / "log.jsonl").read_text().splitlines()[1])["loss"], want["loss"], places=6)
        trainer.close()
        convert_main([str(self.at / "llama2"), str(self.file), "--no-tokenizer"])
        (self.at / "t.json").write_text(saved("llama2"), encoding="utf-8")
        with attncl.Trainer(config, text, init=self.file, tokenizer=self.at / "t.json") as trainer:
            for step in trainer:
                pass
            self.assertAlmostEqual(step.loss, want["loss"], places=6)
            self.assertEqual(trainer.model.decode(trainer.model.encode("a text")), "a text")

    def test_ends(self):
        """A text ends in front of the first of the tokens that transformers ends at."""
        prompt = "Hello"
        model, hf = self.directory("llama3"), tokenizers.Tokenizer.from_str(saved("llama3"))
        self.assertEqual(convert_main([str(self.at / "llama3"), str(self.file)]), 0)
        ids = hf.encode(prompt).ids
        batch = torch.tensor([ids, ids[::-1], ids[:1] * len(ids)])
        with attncl.Model(self.file) as file:
            self.assertIsNone(file.metadata("attncl.eos"))
            whole = file.generate(batch.t().numpy(), 40, temperature=1, seed=4)
            plain = file.generate(np.array(ids), 40, temperature=0)
        end = int(plain[len(ids) + 6])
        n = plain.tolist().index(end, len(ids))
        for directory in ({"eos_token_id": [end, 999], "generation": 3}, {"eos_token_id": 3, "generation": [end, 999]}):
            self.directory("llama3", {"eos_token_id": directory["eos_token_id"]}, {"eos_token_id": directory["generation"]})
            self.assertEqual(convert_main([str(self.at / "llama3"), str(self.file)]), 0)
            with attncl.Model(self.file) as file:
                self.assertEqual(file.metadata("attncl.eos"), "[3]" if directory["generation"] == 3 else f"[{end}]")
        drawn = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=40, do_sample=False, eos_token_id=end)
        self.assertEqual(drawn[0].tolist(), [*plain[:n].tolist(), end])
        with attncl.Model(self.file) as file:
            self.assertEqual(file.generate(np.array(ids), 40, temperature=0).tolist(), plain[:n].tolist())
            self.assertEqual(len(list(file.generate(np.array(ids), 40, temperature=0, stream=True))), n - len(ids))
            self.assertEqual(file.generate(prompt, 40, temperature=0), hf.decode(plain[:n].tolist()))
            self.assertEqual("".join(file.generate(prompt, 40, temperature=0, stream=True, eos=[end, 1])),
                             hf.decode(plain[:n].tolist())[len(hf.decode(ids)):])
            self.assertEqual(file.generate(np.array(ids), 40, temperature=0, eos=None).tolist(), plain.tolist())
            for last in (4, 36):  # tokens of this row, at which the last sequence ends: of the first part that is drawn, of the second
                ends, want, at = whole[len(ids) + last].tolist(), whole.copy(), []
                for row in want.T:
                    at.append(next(i for i in range(len(ids), len(row)) if row[i] in ends))
                    row[at[-1]:] = row[at[-1]]
                self.assertEqual((max(at) > len(ids) + 32, len(set(at)) > 1), (last == 36, last == 36))
                np.testing.assert_array_equal(file.generate(batch.t().numpy(), 40, seed=4, eos=ends), want[:max(at)])
            with self.assertRaisesRegex(ValueError, "eos is 'none', it can be 'model', None or token numbers"):
                file.generate(prompt, 40, eos="none")
        if TOOL.exists():
            words = ("sample", self.file, "--prompt", prompt, "--length", "40", "--temperature", "0")
            self.assertEqual(json.loads(self.tool(*words, "--json")[0])["tokens"], plain[:n].tolist())
            self.assertEqual(json.loads(self.tool(*words, "--json", "--ignore-eos")[0])["tokens"], plain.tolist())
        attncl.export(model, self.file, quiet=True, check=False)
        self.assertNotIn("attncl.eos", files.load(self.file)[1])
        model.generation_config.eos_token_id = [7, 5]
        attncl.export(model, self.file, quiet=True, check=False)
        self.assertEqual(files.load(self.file)[1]["attncl.eos"], "[7, 5]")

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

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""api.py LIBRARY: the Python package over the C API, on the golden files.  Needs numpy."""
import ast
import ctypes
import fcntl
import gc
import json
import os
import pickle
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import support

try:
    import numpy as np
except ImportError:
    support.skip("no numpy")
support.use_package(sys.argv[1])
import attncl  # noqa: E402
from attncl import c_api, files  # noqa: E402

GOLDEN = ("linear", "linear_bf16", "mha", "gru", "lm_transformer", "lm_aft_local", "lm_sample")
GRADIENTS = ("linear_grad", "gru_grad", "lm_aft_local_grad")


def golden(name):
    """Inputs and expected outputs of a file of tests/data, without cotangents and gradients where the name does not ask for them."""
    arrays, _ = files.load(path(name))
    parts = [("input.", "input.cotangent."), ("expected.", "expected.grad.")]
    return [{n.removeprefix(part): a for n, a in arrays.items()
             if n.startswith(part) and (name.endswith("_grad") or not n.startswith(gradient))} for part, gradient in parts]


def path(name):
    alone = support.DATA / f"{name}.safetensors"
    return alone if alone.exists() else support.DATA / f"{name}_grad.safetensors"


class Runs(unittest.TestCase):
    def assert_close(self, got, want):
        self.assertEqual(got.shape, want.shape)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
        else:
            np.testing.assert_array_equal(got, want)

    def test_golden_files(self):
        for name in GOLDEN:
            with self.subTest(name), attncl.Model(path(name)) as model:
                inputs, expected = golden(name)
                for outputs in (model.run(inputs), model.run(**inputs)):
                    self.assertLessEqual(set(expected), set(outputs))
                    for output, want in expected.items():
                        self.assert_close(outputs[output], want)

    def test_precision(self):
        inputs, expected = golden("linear")
        for precision, rounding in (("float32", 0), ("tf32", 2e-3), ("bf16", 2e-2)):
            with self.subTest(precision), attncl.Model(path("linear"), precision=precision) as model:
                np.testing.assert_allclose(model.run(inputs)["output"], expected["output"], rtol=2e-4 + rounding, atol=2e-5 + rounding)

    def test_gradients(self):
        for name in GRADIENTS:
            with self.subTest(name), attncl.Model(path(name)) as model:
                inputs, expected = golden(name)
                cotangents = {n.removeprefix("cotangent."): inputs.pop(n) for n in list(inputs) if n.startswith("cotangent.")}
                outputs, gradients = model.gradients(cotangents, inputs)
                for n, want in expected.items():
                    self.assert_close(gradients[n[5:]] if n.startswith("grad.") else outputs[n], want)

    def test_views_and_types(self):
        with attncl.Model(path("linear")) as model:
            inputs, _ = golden("linear")
            x = inputs["x"]
            want = model.run(x=x)["output"]
            strided = np.asfortranarray(x)
            for same in (strided, x.astype(">f4"), x.astype(np.float64), x.tolist(), np.repeat(x, 2, 0)[::2]):
                self.assert_close(model.run(x=same)["output"], want)
            empty = model.run(x=np.zeros((0, 7), np.float32))["output"]
            self.assertEqual(empty.shape, (0, 3))

    def test_new_models(self):
        config = {"in_features": 4, "out_features": 3}
        with tempfile.TemporaryDirectory() as directory, attncl.Model.create("linear", config, seed=5) as model:
            params = model.params()
            self.assertEqual({n: p.shape for n, p in params.items()}, {"weight": (3, 4), "bias": (3,)})
            self.assertLessEqual(abs(params["weight"]).max(), 0.5)
            file = pathlib.Path(directory, "linear.safetensors")
            model.set_params({"bias": np.arange(3)})
            model.save(file, {"note": "new"})
            with attncl.Model(file) as saved:
                self.assertEqual((saved.config, saved.metadata("note")), (config, "new"))
                np.testing.assert_array_equal(saved.params()["weight"], params["weight"])
                want = np.ones(4, np.float32) @ params["weight"].T + np.arange(3)
                self.assert_close(saved.run(x=np.ones(4, np.float32))["output"], want.astype(np.float32))
            for wrong in ({"bias": np.zeros(4)}, {"none": np.zeros(4)}):
                with self.assertRaisesRegex(attncl.AttnclError, f"parameter '?{next(iter(wrong))}"):
                    model.set_params(wrong)
            with self.assertRaisesRegex(attncl.AttnclError, "out_features"):
                attncl.Model.create("linear", {"in_features": 4})

    def test_description(self):
        with attncl.Model(path("lm_transformer")) as model:
            self.assertEqual(model.arch, "lm")
            self.assertEqual(model.config["n_vocab"], 11)
            self.assertIsNone(model.metadata("attncl.vocab"))
            self.assertEqual({n: (e.shape, e.optional) for n, e in model.inputs.items()},
                             {"tokens": ("[T, B]", False), "targets": ("[T, B]", True)})
            self.assertEqual(model.outputs["output"].shape, "[T, B, 11]")
            self.assertIn(model.device.id, [device.id for device in attncl.devices()])

        entries = {e.name: e for e in attncl.describe("linear", {"in_features": 3, "out_features": 2})}
        self.assertEqual(entries["weight"][:5], ("parameter", "weight", "F32", "[2, 3]", False))
        self.assertEqual(entries["bias"].kind, "parameter")  # the key of that name comes before it
        example = {(e.kind, e.name): e for e in attncl.describe("lm")}
        self.assertEqual(example["output", "output"].shape, "[T, B, n_vocab]")
        self.assertEqual(example["key", "pos"].default, "fixed_pos")
        with self.assertRaisesRegex(attncl.AttnclError, "linar"):
            attncl.describe("linar")

    def test_calls(self):
        """Inputs by position and by name, one output as it is, several as a named tuple."""
        inputs, expected = golden("linear")
        with attncl.Model(path("linear")) as model:
            for output in (model(inputs["x"]), model(x=inputs["x"])):
                self.assert_close(output, expected["output"])
            for words, call in (("linear takes 1 inputs, x; 2 were given", lambda: model(1, 2)),
                                ("input x is given by position and by name", lambda: model(1, x=2)),
                                (r"run\(\) takes inputs by name, run\(x=...\), not a ndarray", lambda: model.run(inputs["x"]))):
                with self.assertRaisesRegex(TypeError, words):
                    call()
        inputs, expected = golden("gru")
        with attncl.Model(path("gru")) as model:
            outputs = model(*(inputs.get(name) for name in model.inputs))
            self.assertEqual(outputs._fields, ("output", "h_n"))
            self.assert_close(outputs.h_n, expected["h_n"])
            self.assert_close(model(inputs["input"], None)[0], model.run(input=inputs["input"])["output"])

    def test_tensors(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no torch")
        inputs, expected = golden("linear")
        x = torch.from_numpy(inputs["x"])
        with attncl.Model(path("linear")) as model:
            for same in (x, x.clone().requires_grad_(), x.double(), x.transpose(0, 1).contiguous().transpose(0, 1)):
                output = model(same)
                self.assertIsInstance(output, torch.Tensor)
                self.assert_close(output.numpy(), expected["output"])
            rounded = x.bfloat16()
            self.assert_close(model(rounded).numpy(), model(rounded.float().numpy()))
            outputs, gradients = model.gradients({"output": torch.ones_like(output)}, x=x)
            self.assertIsInstance(gradients["x"], torch.Tensor)

    def test_graphs_are_kept(self):
        """Those of the last two sets of shapes, which see changed weights."""
        inputs, expected = golden("linear")
        x = inputs["x"]
        with attncl.Model(path("linear")) as model:
            want = model(x)
            kept = list(model._graphs.values())
            np.testing.assert_array_equal(model(x), want)
            self.assertIs(next(iter(model._graphs.values())), kept[0])
            weight = model.params()["weight"]
            model.set_params({"weight": 2 * weight, "bias": 2 * model.params()["bias"]})
            self.assert_close(model(x), 2 * want)
            for n in (1, 2, 3, 2, 1):
                self.assert_close(model(x[:n]), 2 * want[:n])
                self.assertLessEqual(len(model._graphs), 2)
            self.assert_close(model(x.astype(np.float64)), 2 * want)
            model(x[:1])
            model(x[:2])
            first, _ = model._graphs.values()
            model(x[:1])
            model(x[:3])
            self.assertIn(first, list(model._graphs.values()))  # the one that was used last
        tokens = golden("lm_transformer")[0]["tokens"]
        with attncl.Model(path("lm_transformer")) as model:
            model(tokens)
            with self.assertRaisesRegex(TypeError, "input tokens has type U8, expected I64 or I32"):
                model(tokens.astype(np.uint8))

    def test_lengths_beyond_32_bits(self):
        with attncl.Model.create("masked_softmax", {}) as model:
            x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
            for lens in ([4, 2**40], [4, 4]):
                self.assert_close(model(x, np.array(lens)), model(x))
            self.assertEqual(model(x, np.array([1, 2**33]))[0, 0].tolist(), [1, 0, 0, 0])

    def test_representations(self):
        self.assertRegex(repr(attncl.devices()[0]), r"^<attncl.Device 0:0 \w+: .+, \d+ units>$")
        with attncl.Model(path("lm_transformer")) as model, model.decoder(2) as decoder:
            self.assertRegex(repr(model), r"^<attncl.Model lm\(tokens, targets\) -> output, loss: [\d,]+ parameters, on .+>$")
            self.assertEqual(repr(decoder), "<attncl.Decoder, batch 2, at position 0 of 12>")
        self.assertEqual((repr(model), repr(decoder)), ("<attncl.Model, closed>", "<attncl.Decoder, closed>"))

    def test_threads(self):
        inputs, expected = golden("linear")
        wrong = []
        with attncl.Model(path("linear")) as model:
            def work():
                for _ in range(20):
                    if not np.allclose(model.run(inputs)["output"], expected["output"], rtol=1e-4, atol=1e-5):
                        wrong.append(1)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertFalse(wrong)


class Decodes(unittest.TestCase):
    def test_steps_are_the_forward_pass(self):
        inputs, expected = golden("lm_transformer")
        tokens = inputs["tokens"]
        with attncl.Model(path("lm_transformer")) as model, model.decoder(tokens.shape[1]) as decoder:
            self.assertEqual((decoder.position, decoder.vocabulary, decoder.limit), (0, 11, 12))
            for _ in range(2):
                for t, row in enumerate(tokens):
                    np.testing.assert_allclose(decoder.step(row), expected["output"][t], rtol=2e-4, atol=2e-5)
                self.assertEqual(decoder.position, len(tokens))
                decoder.reset()
            self.assertIsNone(decoder.step(tokens[0], logits=False))
            decoder.reset()
            np.testing.assert_allclose(decoder.prefill(tokens), expected["output"][-1], rtol=2e-4, atol=2e-5)
            self.assertEqual(decoder.position, len(tokens))
            decoder.reset()
            self.assertIsNone(decoder.prefill(tokens[:3], logits=False))
            np.testing.assert_allclose(decoder.step(tokens[3]), expected["output"][3], rtol=2e-4, atol=2e-5)
            for wrong in (tokens[:, :1], np.float32(tokens), [], 3):
                with self.assertRaises(attncl.AttnclError):
                    decoder.prefill(wrong)

    def test_states_of_16_bits(self):
        for name in "lm_transformer", "lm_gmlp", "lm_aft_local", "lm_feedback_kv":
            tokens = golden(name)[0]["tokens"]
            with attncl.Model(path(name)) as model:
                with model.decoder(tokens.shape[1]) as decoder:
                    want = decoder.prefill(tokens)
                q8 = [("q8", 2e-2)] if name == "lm_transformer" else []
                for dtype, rtol in [("F16", 2e-3), ("BF16", 2e-2), *q8]:
                    with model.decoder(tokens.shape[1], state_dtype=dtype) as decoder:
                        scores = decoder.prefill(tokens)
                        self.assertFalse(np.array_equal(scores, want))
                        np.testing.assert_allclose(scores, want, rtol=rtol, atol=rtol * np.abs(want).max())
                with self.assertRaisesRegex(attncl.AttnclError, "state_dtype is 'F64', it can be 'F32', 'F16', 'BF16' or 'Q8'"):
                    model.decoder(state_dtype="F64")
        with attncl.Model(path("lm_aft_window_0")) as model:
            with self.assertRaisesRegex(attncl.AttnclError, "layer aft_local keeps its state in F32: sums"):
                model.decoder(state_dtype="F16")
            with self.assertRaisesRegex(attncl.AttnclError, "Q8, only for layer transformer; layer aft_local keeps its state in F32$"):
                model.decoder(state_dtype="Q8")

    def test_texts_longer_than_a_window(self):
        tokens = golden("lm_transformer")[0]["tokens"]
        with attncl.Model(path("lm_transformer")) as model:
            with model.decoder(tokens.shape[1], window=3) as decoder:
                self.assertEqual(decoder.limit, 0)
                scores = decoder.prefill(np.concatenate([tokens, tokens]))
                want = model.run(tokens=tokens[-3:])["output"][-1]
                np.testing.assert_allclose(scores, want, rtol=2e-4, atol=2e-5)
                decoder.sample(scores.argmax(1), 5)
                self.assertEqual(decoder.position, 2 * len(tokens) + 5)
            with self.assertRaisesRegex(attncl.AttnclError, "window is -1, allowed are 0 to"):
                model.decoder(window=-1)

    def test_slots(self):
        inputs, expected = golden("lm_transformer")
        tokens, want = inputs["tokens"], expected["output"]
        with attncl.Model(path("lm_transformer")) as model, model.decoder(3, slot_limit=12) as decoder:
            np.testing.assert_allclose(decoder.slot_prefill(1, tokens[:3, 0]), want[2, 0], rtol=2e-4, atol=2e-5)
            self.assertIsNone(decoder.slot_prefill(0, tokens[:1, 1], logits=False))
            decoder.slot_copy(2, 1, 2)
            scores = decoder.step([tokens[1, 1], -1, tokens[2, 0]])
            np.testing.assert_allclose(scores[0], want[1, 1], rtol=2e-4, atol=2e-5)
            np.testing.assert_allclose(scores[2], want[2, 0], rtol=2e-4, atol=2e-5)
            decoder.slot_truncate(0)
            self.assertEqual([decoder.slot_position(i) for i in range(3)], [0, 3, 3])
            for wrong in ([], [[1]], 1, [0.5]):
                with self.assertRaises(attncl.AttnclError):
                    decoder.slot_prefill(0, wrong)
            with self.assertRaisesRegex(attncl.AttnclError, "slot is 3, allowed are 0 to 2"):
                decoder.slot_copy(3, 0, 0)

    def test_tokens_drawn_on_the_device(self):
        tokens = golden("lm_transformer")[0]["tokens"]
        with attncl.Model(path("lm_transformer")) as model, model.decoder(tokens.shape[1]) as decoder:
            want = [tokens[0]]
            for _ in range(6):
                want.append(decoder.step(want[-1]).argmax(1))
            decoder.reset()
            np.testing.assert_array_equal(decoder.sample(tokens[0], 6, temperature=0), want[1:])
            self.assertEqual(decoder.position, 6)
            decoder.reset()
            drawn = decoder.sample(tokens[0], 6, temperature=2.0, top_k=9, seed=2**64 - 1)
            decoder.reset()
            first = decoder.sample(tokens[0], 2, temperature=2.0, top_k=9, seed=2**64 - 1)
            rest = decoder.sample(first[-1], 4, temperature=2.0, top_k=9, seed=2**64 - 1)
            np.testing.assert_array_equal(np.concatenate([first, rest]), drawn)
            for length, arguments in ((0, {}), (7, {}), (1, {"temperature": -1}), (1, {"top_k": -1})):
                with self.assertRaises(attncl.AttnclError):
                    decoder.sample(tokens[0], length, **arguments)

    def test_greedy_sample_is_lm_sample(self):
        inputs, expected = golden("lm_sample")
        tokens, want = inputs["tokens"], expected["tokens"]
        arrays, metadata = files.load(path("lm_sample"))
        with tempfile.TemporaryDirectory() as directory:
            lm = pathlib.Path(directory) / "lm.safetensors"
            files.save(lm, arrays, {**metadata, "attncl.arch": "lm",
                                    "attncl.config": re.sub(r'"steps": \d+, |, "steps": \d+', "", metadata["attncl.config"])})
            with attncl.Model(lm) as model:
                steps = len(want) - len(tokens)
                got = model.generate(tokens, steps, temperature=0)
                np.testing.assert_array_equal(got, want)
                self.assertEqual(got.dtype, tokens.dtype)
                np.testing.assert_array_equal(model.generate(tokens[:, 0].tolist(), steps, temperature=0), want[:, 0])
                np.testing.assert_array_equal(model.generate(tokens, 0), tokens)
                np.testing.assert_array_equal(list(model.generate(tokens, steps, temperature=0, stream=True)), want[len(tokens):])
                drawn = [model.generate(tokens, steps, temperature=5, seed=s).tobytes() for s in (1, 1, 2)]
                self.assertEqual(drawn[0], drawn[1])
                self.assertNotEqual(drawn[0], drawn[2])
                np.testing.assert_array_equal(model.generate(tokens, steps, temperature=5, top_k=1), want)

    def test_bad_tokens(self):
        with attncl.Model(path("lm_transformer")) as model, model.decoder() as decoder:
            for tokens in ([11], [-1], [2**40], [0, 1], [0.5], [[0]]):
                with self.subTest(tokens), self.assertRaises(attncl.AttnclError) as caught:
                    decoder.step(tokens)
                self.assertEqual(caught.exception.status, attncl.Status.ERR_ARGUMENT)
            self.assertEqual(decoder.position, 0)
            for tokens, steps in (([], 1), ([0.5], 1), ([[[1]]], 1), ([1], -1)):
                with self.subTest(tokens), self.assertRaises(attncl.AttnclError):
                    model.generate(tokens, steps, temperature=0)
            for words, arguments, more in (
                ("3 tokens and 11 more need 13 positions, the model has 12; crop=True", ([1, 2, 3], 11), {}),
                ("13 tokens and 0 more need 13 positions", ([1] * 13,), {}),
                ("there is no limit: length is missing", ([1],), {"crop": True}),
                ("takes token numbers, not text", ("a text",), {}),
            ):
                with self.subTest(words), self.assertRaisesRegex(attncl.AttnclError, words):
                    model.generate(*arguments, **more)

    def test_generate(self):
        """To the limit by default, beyond it with crop; texts by the file's vocabulary."""
        arrays, metadata = files.load(path("lm_transformer"))
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "lm.safetensors"
            files.save(file, arrays, {**metadata, "attncl.vocab": "abcdéfghijk"})
            with attncl.Model(file) as model:
                self.assertEqual(model.encode("écab").tolist(), [4, 2, 0, 1])
                text = model.generate("écab", 6, seed=3)
                tokens = model.generate(model.encode("écab"), 6, seed=3)
                self.assertEqual((text, text[:4]), (model.decode(tokens), "écab"))
                for unknown in (-1, 11, 2**40):
                    with self.assertRaisesRegex(ValueError, f"token {unknown} is not in the model's vocabulary of 11"):
                        model.decode([0, unknown])
                self.assertEqual(len(model.generate("a")), 13)
                pieces = model.generate("écab", 6, seed=3, stream=True)
                self.assertEqual((next(pieces), len(model._decoders)), (text[4], 1))  # before the rest is drawn
                self.assertEqual(next(iter(model._decoders)).position, 4)
                self.assertEqual(("".join(pieces), list(model.generate("écab", 0, stream=True))), (text[5:], []))
                for n in (20, 40):
                    self.assertEqual(len(model.generate("a" * n, 5, crop=True)), n + 5)
                with model.decoder() as decoder:
                    for token in tokens[:3]:
                        decoder.step([token], logits=False)
                    np.testing.assert_array_equal(decoder.sample(tokens[3:4], 6, seed=3)[:, 0], tokens[4:])
                with self.assertRaisesRegex(ValueError, "character 'z' at 1 is not in the model's vocabulary"):
                    model.generate("az")


class Trains(unittest.TestCase):
    CONFIG = {"model": {"layer": "aft_local", "d_model": 16, "n_layers": 1, "d_ff": 32, "seq_len": 16, "local_window_size": 4},
              "train": {"batch_size": 4, "steps": 6, "eval_every": 3, "checkpoint_every": 2, "keep": 2}}

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.at = pathlib.Path(directory.name)
        self.text = self.at / "text.txt"
        self.text.write_text("to be or not to be that is the question " * 30)

    def assert_same(self, a, b):
        self.assertEqual(set(a), set(b))
        for name, value in a.items():
            np.testing.assert_array_equal(value, b[name], name)

    def log(self, run):
        lines = [json.loads(line) for line in (self.at / run / "log.jsonl").read_text().splitlines()]
        return [{key: value for key, value in line.items() if key != "tokens_per_s"} for line in lines]

    def test_train_and_resume(self):
        seen = []
        with attncl.train(self.CONFIG, self.text, self.at / "run", progress=lambda step, loss: seen.append((step.step, loss))) as trainer:
            self.assertEqual(repr(trainer)[:36], "<attncl.Trainer lm: step 6 of 6, bes")
            want, state = trainer.model.params(), trainer.state
            self.assertEqual(len(trainer.model.generate("to be", 4)), 9)
        self.assertTrue(trainer.closed and trainer._model.closed)
        self.assertEqual([step for step, loss in seen if loss is None], [1, 2, 4, 5])
        self.assertEqual(min(loss for _, loss in seen if loss), state.best_loss)
        self.assertEqual(sorted(p.relative_to(self.at / "run").as_posix() for p in (self.at / "run").rglob("*.*")),
                         ["best.safetensors", "checkpoints/step-4.safetensors", "checkpoints/step-6.safetensors", "config.json",
                          "log.jsonl", "model.safetensors"])
        said, = re.findall(r'^\| `log.jsonl` \| `{(.*?)}`', (support.ROOT / "docs/training.md").read_text(), re.M)
        lines = (self.at / "run" / "log.jsonl").read_text().splitlines()
        self.assertEqual(list(json.loads(lines[0])), re.findall(r'"(\w+)"', said))
        with attncl.Model(self.at / "run" / "model.safetensors") as model:
            self.assert_same(model.params(), want)

        def interrupt(step, _):
            if step.step == 1:
                raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            attncl.train(self.CONFIG, self.text, self.at / "again", progress=interrupt)
        self.assertTrue((self.at / "again" / "checkpoints" / "step-2.safetensors").exists())  # it was in flight
        with open(self.at / "again" / "log.jsonl", "a") as file:
            file.write('{"step": 3, "loss": 0}\n{"st')  # of a killed one
        with attncl.train(None, self.text, self.at / "again", resume=True, progress=False) as trainer:
            self.assert_same(trainer.model.params(), want)
        self.assertEqual(self.log("again"), self.log("run"))

    def test_an_interrupt_loses_no_line_of_the_log(self):
        def interrupt(step, _):
            if step.step == 2:
                threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT)).start()
        config = {**self.CONFIG, "train": {"batch_size": 4, "steps": 100000, "eval_every": 0, "checkpoint_every": 0}}
        with self.assertRaises(KeyboardInterrupt):
            attncl.train(config, self.text, self.at / "run", progress=interrupt)
        saved, = (self.at / "run" / "checkpoints").glob("*")
        steps = [line["step"] for line in self.log("run") if "loss" in line]
        self.assertEqual([saved.name, steps], [f"step-{steps[-1]}.safetensors", list(range(1, len(steps) + 1))])

    def test_resume_of_a_directory_where_another_process_trains(self):
        busy = self.at / "busy"
        (busy / "checkpoints").mkdir(parents=True)
        (busy / "config.json").write_text(json.dumps(self.CONFIG))
        (busy / "checkpoints" / "step-5.safetensors").symlink_to("removed")  # the other process has just replaced it
        lock = os.open(busy, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with self.assertRaisesRegex(BlockingIOError, "busy: another process trains there"):
            attncl.train(None, self.text, busy, resume=True, progress=False)
        os.close(lock)

    def test_resume_keeps_the_first_vocabulary(self):
        with attncl.train(self.CONFIG, self.text, self.at / "run", progress=False, steps=1):
            pass
        shorter = self.at / "shorter.txt"
        shorter.write_text("to be or not to be " * 60)
        first = {"init": self.at / "run" / "model.safetensors", "steps": 1}
        with attncl.train(self.CONFIG, shorter, self.at / "next", progress=False, **first) as trainer:
            vocabulary = trainer.model.metadata("attncl.vocab")
            self.assertIn("q", vocabulary)
        with attncl.train(self.CONFIG, shorter, self.at / "next", progress=False, resume=True, steps=2) as trainer:
            self.assertEqual(trainer.model.metadata("attncl.vocab"), vocabulary)

    def test_the_trainer(self):
        tokens = np.arange(400) % 7
        with attncl.Trainer(self.CONFIG, tokens=tokens, steps=3, seed=5) as trainer:
            self.assertEqual([step.step for step in trainer], [1, 2, 3])
            self.assertEqual((trainer.plan.steps, trainer.config["train"]["seed"], trainer.config["model"]["n_vocab"]), (3, 5, 7))
            trainer.save(self.at / "c.safetensors")
            loss = trainer.evaluate()
            step = trainer.step()
            with attncl.Trainer(self.CONFIG, tokens=tokens, steps=3, seed=5) as other:
                other.resume(self.at / "c.safetensors")
                self.assertEqual((other.evaluate(), other.step()), (loss, step))
                other.save_model(self.at / "m.safetensors")
            decoder = trainer.model.decoder()
        self.assertTrue(decoder.closed)
        with self.assertRaisesRegex(RuntimeError, "the trainer is closed"):
            trainer.step()
        batches = {"tokens": tokens[:96].reshape(3, 16, 2), "targets": tokens[1:97].reshape(3, 16, 2)}
        config = {**self.CONFIG, "model": {**self.CONFIG["model"], "n_vocab": 7}}
        with attncl.Trainer(config, tokens=tokens, batches=batches, init=self.at / "m.safetensors", steps=3) as trainer:
            self.assertLess(trainer.step().loss, 3)
            self.assertGreater(trainer.plan.n_valid_batches, 0)
        model = attncl.Trainer(self.CONFIG, tokens=tokens).model
        gc.collect()
        self.assertEqual(model(tokens[:8, None]).shape, (8, 1, 7))  # a model keeps its trainer

    def test_refusals(self):
        attncl.train(self.CONFIG, self.text, self.at / "run", progress=False, steps=2).close()
        files_before = sorted((p, p.read_bytes()) for p in (self.at / "run").rglob("*.*"))
        changed = {**self.CONFIG, "train": {**self.CONFIG["train"], "batch_size": 8}}
        (self.at / "wrong.json").write_text("[")
        for error, words, call in (
            (FileExistsError, "run exists; resume=True continues it", lambda: attncl.train(self.CONFIG, self.text, self.at / "run")),
            (RuntimeError, "train.batch_size is 4 there and 8 now", lambda: attncl.train(changed, self.text, self.at / "run", resume=True)),
            (ValueError, "config is None and .*new has no config.json", lambda: attncl.train(None, self.text, self.at / "new", resume=True)),
            (ValueError, "key layr is not known, nearest: layer", lambda: attncl.train({"model": {"layr": 1}}, self.text, self.at / "new")),
            (ValueError, "wrong.json: no valid JSON", lambda: attncl.train(self.at / "wrong.json", self.text, self.at / "new")),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call()
        self.assertEqual(sorted((p, p.read_bytes()) for p in (self.at / "run").rglob("*.*")), files_before)
        self.assertFalse((self.at / "new").exists())


class Refuses(unittest.TestCase):
    def refused(self, status, words, call, *arguments, **named):
        with self.assertRaisesRegex(attncl.AttnclError, words) as caught:
            call(*arguments, **named)
        self.assertEqual(caught.exception.status, status)
        self.assertNotIn("\n", str(caught.exception))

    def test_errors_carry_status_and_message(self):
        status = attncl.Status
        self.refused(status.ERR_FORMAT, "attncl.arch|safetensors|header", attncl.Model, __file__)
        self.refused(status.ERR_NO_DEVICE, "no-such-device", attncl.Model, path("linear"), "no-such-device")
        self.refused(status.ERR_ARGUMENT, "precision is 'fp8', it can be 'float32', 'tf32' or 'bf16'",
                     lambda: attncl.Model(path("linear"), precision="fp8"))
        with attncl.Model(path("linear")) as model:
            self.refused(status.ERR_ARGUMENT, "input x", model.run)
            self.refused(status.ERR_SHAPE, "x", model.run, x=np.zeros((2, 8), np.float32))
            self.refused(status.ERR_DTYPE, "x", model.run, x=np.zeros((2, 7), np.int32))
            self.refused(status.ERR_UNSUPPORTED, "linear", model.decoder)
            for call in (lambda: model.run(X=[1]), lambda: model.gradients({"outptu": [1]}, x=np.zeros((2, 7), np.float32)),
                         lambda: model.set_params({"wieght": [1]})):
                with self.assertRaisesRegex(KeyError, "nearest"):
                    call()
            for standard, call in ((ValueError, model.run), (ValueError, lambda: model.run(x=[[1.0]])), (TypeError, lambda: model.run(x=[1] * 7)),
                                   (NotImplementedError, model.decoder),
                                   (RuntimeError, lambda: attncl.Model(path("linear"), "absent")),
                                   (OSError, lambda: model.save("absent/m.safetensors"))):
                with self.assertRaises(standard) as caught:
                    call()
                self.assertIsInstance(caught.exception, attncl.AttnclError)
                again = pickle.loads(pickle.dumps(caught.exception))
                self.assertEqual((type(again), str(again), again.status),
                                 (type(caught.exception), str(caught.exception), caught.exception.status))
            for value in ("text", np.zeros((2, 7), np.complex128), np.array([None]), np.zeros((1,) * 9)):
                with self.assertRaisesRegex(TypeError, "array x"):
                    model.run(x=value)
        for call in (attncl.Model, files.load, lambda name: attncl.train({}, name, "out"), lambda name: attncl.train(name, __file__, "out")):
            with self.assertRaises(FileNotFoundError) as caught:
                call("absent.safetensors")
            self.assertEqual(caught.exception.filename, "absent.safetensors")
        self.assertFalse(os.path.exists("out"))

    def test_use_after_close(self):
        model = attncl.Model(path("lm_transformer"))
        decoder = model.decoder()
        model.close()
        model.close()
        self.assertTrue(model.closed and decoder.closed)
        closed = attncl.Status.ERR_STATE
        for call in (lambda: model.arch, lambda: model.config, lambda: model.device, lambda: model.run(x=[1]), model.decoder,
                     lambda: model.generate([1], 1)):
            self.refused(closed, "the model is closed", call)
        for call in (lambda: decoder.step([1]), decoder.reset, lambda: decoder.position, lambda: decoder.limit):
            self.refused(closed, "the decoder is closed", call)
        decoder.close()

    def test_a_decoder_keeps_its_model(self):
        decoder = attncl.Model(path("lm_transformer")).decoder()
        gc.collect()
        self.assertEqual(decoder.step([1]).shape, (1, 11))

    def test_fork_and_exit_without_close(self):
        """A child leaves what its parent opened alone; at exit everything is released in order."""
        program = (f"import sys; sys.path.insert(0, {str(support.ROOT / 'tools/python')!r})\n"
                   "import os, attncl\n"
                   f"model = attncl.Model({str(path('lm_transformer'))!r}); decoder = model.decoder(); decoder.step([1])\n"
                   "child = os.fork()\n"
                   "if not child: model.close(); sys.exit(3)\n"
                   "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3\n"
                   "decoder.step([1]); print('done')\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))


class Declarations(unittest.TestCase):
    """ctypes cannot see the headers: what it repeats of them is compared with them."""

    def test_against_headers(self):
        headers = "\n".join(p.read_text() for p in sorted((support.ROOT / "include" / "attncl").glob("*.h")))
        statuses = re.findall(r"X\((\w+), (\d+), \"", headers)
        self.assertEqual({n: int(v) for n, v in statuses}, {s.name: s.value for s in attncl.Status})
        for name, (_, *arguments) in c_api.FUNCTIONS.items():
            prototype = re.search(rf"\battncl_{name}\(([^)]*)\);", headers)[1]
            count = 0 if prototype == "void" else prototype.count(",") + 1
            self.assertEqual(count, len(arguments), name)
        for struct, name in ((c_api.Array, "array"), (c_api.DescriptionEntry, "entry"), (c_api.DeviceInfo, "device_info"),
                             (c_api.ContextOptions, "context_options"), (c_api.CrossEntropyDesc, "cross_entropy_desc"),
                             (c_api.DecoderOptions, "decoder_options"),
                             (c_api.TrainerOptions, "trainer_options"), (c_api.TrainPlan, "train_plan"),
                             (c_api.TrainState, "train_state"), (c_api.TrainStep, "train_step"), (c_api.Sampling, "sampling"),
                             (c_api.AttentionDesc, "attention_desc"), (c_api.AttentionInputs, "attention_inputs"),
                             (c_api.AftDesc, "aft_desc"), (c_api.SguParams, "sgu_params"), (c_api.Value, "value")):
            body = re.sub(r"/\*.*?\*/", "", re.search(rf"typedef struct attncl_{name} {{(.*?)}}", headers, re.S)[1], flags=re.S)
            fields = re.findall(r"(\w+)(?:\[\w+\])?[,;]", body)
            sized = issubclass(struct, c_api.Sized)  # a prefix will do where the struct says its size
            ours = ["struct_size"] * sized + [field[0] for field in struct._fields_]
            self.assertEqual(fields[:len(ours)] if sized else fields, ours)

    def test_struct_sizes(self):
        """The library fills as much of a struct as its size says: an older, shorter one stays whole."""
        lib, info = c_api.library(), c_api.DeviceInfo()
        info.struct_size, info.available = c_api.DeviceInfo.available.offset, 77
        lib.device_get(0, ctypes.byref(info))
        self.assertEqual(info.available, 77)
        self.assertTrue(info.name)

    def test_types(self):
        """Every type that numpy has goes to a file and back."""
        arrays = {name: np.arange(6).reshape(2, 3).astype(dtype) if name != "BF16" else
                  np.arange(6, dtype="u2").view(c_api.BFLOAT16) for name, dtype in c_api.DTYPES.items()}
        arrays["scalar"], arrays["empty"] = np.float32(2.5), np.zeros((0, 4), np.int64)
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "ü.safetensors")
            files.save(file, arrays, {"k": "é", "empty": ""})
            back, metadata = files.load(file)
        self.assertEqual(metadata, {"k": "é", "empty": ""})
        self.assertEqual(set(back), set(arrays))
        for name, array in arrays.items():
            self.assertEqual((back[name].dtype, back[name].shape), (np.asarray(array).dtype, np.asarray(array).shape))
            self.assertEqual(back[name].tobytes(), np.asarray(array).tobytes())

    def test_annotations(self):
        """py.typed promises types of every function."""
        for file in (support.ROOT / "tools/python/attncl").rglob("*.py"):
            for f in ast.walk(ast.parse(file.read_text())):
                if isinstance(f, ast.FunctionDef):
                    named = [a for a in [*f.args.args, *f.args.posonlyargs, *f.args.kwonlyargs, f.args.vararg, f.args.kwarg]
                             if a and a.arg not in ("self", "cls")]
                    bare = [a.arg for a in named if not a.annotation] + ["return"] * (not f.returns and f.name != "__init__")
                    self.assertEqual(bare, [], f"{file.name}: {f.name}()")

    def test_torch_is_not_imported(self):
        program = ("import sys; sys.modules['torch'] = None; import attncl; attncl.Model.create('softmax', {})([1.0, 2.0])\n"
                   "for name in 'nn', 'export':\n"
                   "    try: getattr(attncl, name)\n"
                   "    except ImportError as error: print(error)\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("pip install 'attncl[convert]'")), (0, "", 2), done)

    def test_gguf_without_its_package(self):
        program = "import sys; sys.modules['gguf'] = None; from attncl.convert import main; sys.exit(main(['m.gguf', 'absent.safetensors']))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
        self.assertEqual((done.returncode, done.stderr), (1, "attncl-convert: m.gguf: GGUF files need the package gguf: pip install gguf\n"))

    def test_library_not_found(self):
        program = f"import sys; sys.path.insert(0, {str(support.ROOT / 'tools/python')!r}); import attncl; attncl.devices()"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "ATTNCL_LIBRARY": "/absent.so"})
        self.assertIn("ImportError: libattncl cannot be loaded: /absent.so", done.stderr)


if __name__ == "__main__":
    support.need_device()
    support.main()

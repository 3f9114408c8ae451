#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert.py LIBRARY: PyTorch modules as model files, run by both.  Needs numpy and torch; GPT-2 and BERT transformers."""
import contextlib
import functools
import io
import itertools
import os
import re
import subprocess
import sys

import support

try:
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    support.skip(f"no {error.name}")
support.use_package(sys.argv[1])
import attncl  # noqa: E402
from attncl import files  # noqa: E402
from attncl import convert as command  # noqa: E402

Layer = functools.partial(nn.TransformerEncoderLayer, dropout=0.1)


def randomise(module):
    """Biases and norms that are not zeros and ones: a misplaced one shows."""
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.3)
    return module


class Case(support.ExportCase):
    seed = 7

    def refused(self, words, source, **more):
        self.file.write_bytes(b"as it was")
        with self.assertRaisesRegex(attncl.ConversionError, words) as caught:
            attncl.export(source, self.file, quiet=True, **more)
        self.assertEqual(self.file.read_bytes(), b"as it was")
        self.assertEqual(os.listdir(self.at), [self.file.name])
        return str(caught.exception)


class Modules(Case):
    def test_simple_modules(self):
        for module in (nn.Linear(7, 5), nn.Linear(1, 3, bias=False), nn.LayerNorm(5, eps=1e-3), nn.LayerNorm((3, 5)),
                       nn.LayerNorm(5, bias=False), nn.LayerNorm(5, elementwise_affine=False), nn.Embedding(11, 3)):
            with self.subTest(module):
                self.export(randomise(module))

    def test_gradient_notes(self):
        notes = self.export(nn.Embedding(11, 3, padding_idx=2)).notes
        self.assertRegex(notes[0], "padding_idx=2.*gradients")

    def test_types(self):
        for dtype in (torch.float64, torch.float16, torch.bfloat16):
            with self.subTest(dtype):
                self.export(nn.Linear(7, 5).to(dtype))
                held = files.load(self.file)[0]["weight"]
                self.assertEqual(held.dtype.itemsize, dtype.itemsize)

    def test_gru(self):
        for layers, bias, batch_first in ((1, True, False), (2, True, True), (2, False, False)):
            with self.subTest(layers=layers, bias=bias, batch_first=batch_first):
                self.export(nn.GRU(5, 7, layers, bias=bias, batch_first=batch_first, dropout=0.1 if layers > 1 else 0))
        self.assertEqual(self.export(nn.GRU(3, 5, 3, bias=False, bidirectional=True)).arch, "gru")
        for more in ({}, {"nonlinearity": "relu", "bias": False}, {"num_layers": 2, "batch_first": True, "bidirectional": True}):
            with self.subTest(more):
                self.assertEqual(self.export(nn.RNN(5, 7, **more)).arch, "rnn")

    def test_gru_lengths(self):
        """As PyTorch packs sequences; what is beyond their ends does not count."""
        net, x, lens = nn.GRU(3, 5, 2, bidirectional=True), torch.randn(6, 3, 3), torch.tensor([4, 1, 6])
        packed, last = net(nn.utils.rnn.pack_padded_sequence(x, lens, enforce_sorted=False))
        want = nn.utils.rnn.pad_packed_sequence(packed, total_length=6)[0]
        self.export(net)
        x[torch.arange(6)[:, None] >= lens] = torch.nan
        with attncl.Model(self.file) as model:
            got = model.run(input=x.numpy(), lens=lens.numpy())
        torch.testing.assert_close(torch.from_numpy(got["output"]), want.detach())
        torch.testing.assert_close(torch.from_numpy(got["h_n"]), last.detach())

    def test_attention(self):
        for bias, batch_first in itertools.product((True, False), (True, False)):
            with self.subTest(bias=bias, batch_first=batch_first):
                self.export(randomise(nn.MultiheadAttention(15, 3, bias=bias, batch_first=batch_first, dropout=0.1)))
        self.export(nn.MultiheadAttention(6, 2, kdim=6, vdim=6))

    def test_linear_is_what_was_asked(self):
        """The judge of the judge: a module whose forward the converter does not know fails its own check."""
        class Scaled(nn.Linear):
            def forward(self, x):
                return 2 * super().forward(x)

        class Named(nn.Linear):
            pass
        self.export(Named(3, 2))
        self.refused("Scaled cannot be converted; what can: nn.Linear, nn.LayerNorm", Scaled(3, 2))
        hooked = nn.Linear(3, 2)
        hooked.register_forward_hook(lambda module, x, y: 2 * y)
        self.refused(r"not written: it would differ from the module by \S+, more than 0.0001", hooked)
        with self.assertRaises(attncl.ConversionError):
            attncl.export(hooked, self.file, limit=1e-3)
        self.assertIsNone(attncl.export(hooked, self.file, check=False, quiet=True).difference)


class Encoders(Case):
    def check_masked(self, net, batch_first):
        """Another length and batch, with a mask: True hides in PyTorch, shows here."""
        net.eval()
        x, hidden = torch.randn(6, 2, net_width(net)), torch.rand(6, 6) < 0.3
        hidden.fill_diagonal_(False)
        padding = torch.zeros(2, 6, dtype=torch.bool)
        padding[1, 4:] = True
        given = x.transpose(0, 1) if batch_first else x
        mask = {"src_mask": hidden} if isinstance(net, nn.TransformerEncoderLayer) else {"mask": hidden}
        with torch.no_grad():
            want = net(given, src_key_padding_mask=padding, **mask)
        visible = ~(hidden[:, :, None] | padding.T[None])  # [T, S, B]
        with attncl.Model(self.file) as model:
            got = model.run(x=given.numpy(), mask=visible.numpy())["output"]
        np.testing.assert_allclose(got, want.numpy(), atol=support.LIMIT, rtol=support.LIMIT)

    def test_the_default_encoder(self):
        net = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 2)
        self.assertEqual(self.export(net).arch, "encoder")
        self.check_masked(net, False)

    def test_layers(self):
        for norm_first, bias, batch_first in itertools.product((True, False), (True, False), (True, False)):
            with self.subTest(norm_first=norm_first, bias=bias, batch_first=batch_first):
                layer = randomise(Layer(15, 3, 21, norm_first=norm_first, bias=bias, batch_first=batch_first, activation="gelu",
                                        layer_norm_eps=1e-3))
                self.assertEqual(self.export(layer).arch, "transformer_layer")
                self.check_masked(layer, batch_first)

    def test_activations(self):
        """Told by what they compute: strings, functions, modules and lambdas."""
        for activation, name in (("relu", "relu"), ("gelu", "gelu"), (F.gelu, "gelu"), (nn.GELU("tanh"), "gelu_tanh"),
                                 (lambda x: F.gelu(x, approximate="tanh"), "gelu_tanh"), (F.silu, "silu"), (nn.Tanh(), "tanh"),
                                 (torch.sigmoid, "sigmoid")):
            with self.subTest(activation):
                layer = randomise(Layer(15, 3, 21, activation=activation))
                if name in ("silu", "tanh", "sigmoid"):  # seconds of compiling that the library's own tests take
                    report = attncl.export(layer, self.file, check=False, quiet=True)
                else:
                    report = self.export(layer)
                self.assertEqual(report.config["activation"], name)

    def test_encoders(self):
        """Norm order, final norm and eps, together."""
        pairs = ((None, 1e-2), (1e-5, 1e-5), (1e-5, 1e-2), (1e-2, 1e-12))
        for norm_first, (final, eps) in itertools.product((True, False), pairs):
            with self.subTest(norm_first=norm_first, final=final, eps=eps):
                layer = Layer(15, 3, 21, norm_first=norm_first, layer_norm_eps=eps)
                norm = None if final is None else nn.LayerNorm(15, eps=final)
                net = randomise(nn.TransformerEncoder(layer, 2, norm=norm, enable_nested_tensor=False))
                self.export(net)
        self.check_masked(net, False)

    def test_other_encoders(self):
        layer = Layer(6, 2, 9, batch_first=True, bias=False)
        for norm in (nn.Identity(), nn.LayerNorm(6, bias=False), nn.LayerNorm(6, elementwise_affine=False)):
            with self.subTest(norm):
                net = nn.TransformerEncoder(layer, 3, norm=norm)
                self.export(net)
                self.check_masked(net, True)

    def test_gradients(self):
        """Small x: eps counts in the gradients too."""
        net = randomise(nn.TransformerEncoder(Layer(6, 2, 9, layer_norm_eps=1e-2, activation=nn.GELU("tanh"), norm_first=True), 2,
                                              norm=nn.LayerNorm(6, eps=1e-2), enable_nested_tensor=False)).eval()
        self.export(net)
        x, cotangent = torch.randn(4, 2, 6) * 0.3, torch.randn(4, 2, 6)
        x.requires_grad_()
        net(x).backward(cotangent)
        with attncl.Model(self.file) as model:
            _, gradients = model.gradients({"output": cotangent.numpy()}, x=x.detach().numpy())
        for name, tensor in (("x", x), ("norm.weight", net.norm.weight), ("layers.0.norm_ff.bias", net.layers[0].norm2.bias),
                             ("layers.0.feed_forward.layer1.weight", net.layers[0].linear1.weight)):
            np.testing.assert_allclose(gradients[name], tensor.grad.numpy(), atol=2e-5, rtol=2e-5)


class Transformers(Case):
    def test_sizes(self):
        for norm_first, bias, batch_first in itertools.product((True, False), (True, False), (True, False)):
            with self.subTest(norm_first=norm_first, bias=bias, batch_first=batch_first):
                net = randomise(nn.Transformer(15, 3, 2, 3, 21, norm_first=norm_first, bias=bias, batch_first=batch_first,
                                               activation="gelu", layer_norm_eps=1e-2))
                report = self.export(net)
                self.assertEqual(report.arch, "seq2seq_transformer")
                self.assertRegex(report.notes[0], "causal")
                self.check_padded(net)

    def check_padded(self, net):
        """Other lengths than the probe's, and sources with padding."""
        x, y, lens = torch.randn(2, 6, 15), torch.randn(2, 4, 15), torch.tensor([4, 6])
        if not net.batch_first:
            x, y = x.transpose(0, 1), y.transpose(0, 1)
        hidden = torch.arange(6)[None] >= lens[:, None]
        with torch.no_grad():
            want = net.eval()(x, y, tgt_mask=torch.ones(4, 4, dtype=torch.bool).triu(1), src_key_padding_mask=hidden,
                              memory_key_padding_mask=hidden)
        with attncl.Model(self.file) as model:
            got = model.run(enc_X=x.numpy(), dec_X=y.numpy(), enc_valid_lens=lens.numpy())["output"]
        np.testing.assert_allclose(got, want.numpy(), atol=support.LIMIT, rtol=support.LIMIT)

    def test_what_cannot_be_expressed(self):
        def net(**more):
            return nn.Transformer(6, 2, 2, 1, 9, **more)
        eps, heads, epsilon, normless = net(), net(), net(), net()
        eps.decoder.layers[0].norm3.eps = 1e-3
        heads.decoder.layers[0].multihead_attn = nn.MultiheadAttention(6, 3)
        epsilon.encoder.norm.eps = 1e-3
        normless.decoder.norm = None
        wide = net(custom_decoder=nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 10), 1, norm=nn.LayerNorm(6)))
        for module, words in ((eps, r"norm3.eps=0.001 cannot"), (heads, "multihead_attn: heads=3 cannot be expressed: self_attn has 2"),
                              (epsilon, "encoder.norm.eps=0.001"), (normless, "decoder.norm='none' cannot be expressed: as encoder.norm"),
                              (wide, "layers.0: d_ff=10 cannot be expressed: encoder.layers.0 has 9"),
                              (nn.Transformer(6, 2, 1, 0, 9), "num_decoder_layers=0 cannot be expressed"),
                              (net(custom_encoder=nn.Linear(6, 6)), "encoder='Linear' cannot be expressed")):
            with self.subTest(words):
                self.refused(words, module)


def net_width(net):
    layer = net if isinstance(net, nn.TransformerEncoderLayer) else net.layers[0]
    return layer.self_attn.embed_dim


class Refusals(Case):
    def test_by_name(self):
        def changed(module, name, value):
            target = module
            *path, last = name.split(".")
            for part in path:
                target = getattr(target, part)
            setattr(target, last, value)
            return module

        encoder = lambda **more: nn.TransformerEncoder(Layer(6, 2, 9, **more), 2, enable_nested_tensor=False)
        normed = nn.TransformerEncoder(Layer(6, 2, 9), 1, norm=nn.RMSNorm(6))
        parametrized = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
        for module, words in (
            (nn.Embedding(5, 3, max_norm=1.0), "max_norm=1.0 cannot be expressed: "),
            (nn.MultiheadAttention(6, 2, kdim=5), "kdim=5 cannot be expressed: "),
            (nn.MultiheadAttention(6, 2, vdim=4), "vdim=4 cannot be expressed: "),
            (nn.MultiheadAttention(6, 2, add_bias_kv=True), "add_bias_kv=True cannot be expressed: "),
            (nn.MultiheadAttention(6, 2, add_zero_attn=True), "add_zero_attn=True cannot be expressed: "),
            (changed(Layer(6, 2, 9), "norm1.eps", 1e-3), "norm1.eps and norm2.eps=0.001 cannot be expressed: "),
            (changed(encoder(), "layers.1.norm_first", True), "layers.1: norm_first=True cannot be expressed: layers.0 has False"),
            (changed(encoder(), "layers.1", nn.Linear(6, 6)), "layers.1='Linear' cannot be expressed: "),
            (normed, "norm='RMSNorm' cannot be expressed: "),
            (nn.TransformerEncoder(Layer(6, 2, 9), 0), "num_layers=0 cannot be expressed"),
            (Layer(6, 2, 9, activation=F.elu), "activation cannot be expressed: <function elu .*> is none of relu, gelu, "),
            (Layer(6, 2, 9, activation=nn.PReLU()), "activation cannot be expressed: PReLU"),
            (Layer(6, 2, 9, activation=lambda x: x.norm()), "activation cannot be expressed"),
            (changed(nn.Linear(3, 2), "extra", nn.Parameter(torch.ones(2))),
             "parameters that arch linear has no place for: extra$"),
            (changed(encoder(), "layers.1.self_attn.head", nn.Linear(2, 2)),
             "has no place for: layers.1.self_attn.head.weight, layers.1.self_attn.head.bias$"),
            (parametrized, "cannot be converted|has no place for|there is no parameter weight"),
            (nn.LSTM(3, 4), "LSTM cannot be converted; what can: nn.Linear, "),
        ):
            with self.subTest(words):
                self.refused(words, module)

    def test_paths(self):
        with self.assertRaisesRegex(FileNotFoundError, "m.safetensors: there is no directory .*absent"):
            attncl.export(nn.Linear(3, 2), self.at / "absent" / "m.safetensors", quiet=True)
        with self.assertRaisesRegex(IsADirectoryError, "is a directory, expected a file"):
            attncl.export(nn.Linear(3, 2), self.at, quiet=True)


class Documents(Case):
    def test_blocks(self):
        """Every Python block of README.md, and the first of docs/model-files.md, write a file that runs."""
        blocks = [block for document, most in (("README.md", None), ("docs/model-files.md", 1)) for block in
                  re.findall(r"^```python\n(.*?)^```$", (support.ROOT / document).read_text(), re.S | re.M)[:most]]
        self.assertGreaterEqual(len(blocks), 2)
        for block in blocks:
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", block], capture_output=True, text=True, timeout=240,
                                  cwd=self.at, env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, "^encoder.safetensors: arch encoder, [0-9]+ tensors, largest difference ")

    def test_modules(self):
        """docs/model-files.md has each module of torch.nn that export() converts."""
        with self.assertRaises(attncl.ConversionError) as caught:
            attncl.export(nn.LSTM(3, 4), self.at / "lstm.safetensors", quiet=True)
        text = (support.ROOT / "docs/model-files.md").read_text()
        names = re.findall(r"[ :](nn\.\w+)", str(caught.exception))
        self.assertIn("nn.Linear", names)
        self.assertEqual([name for name in names if f"`{name}`" not in text], [])


class Checkpoints(Case):
    """What files hold: the command, and export() of a path or a state dict."""

    MADE = (
        ("Linear", {}, lambda: nn.Linear(3, 2, bias=False)),
        ("LayerNorm", {"eps": 1e-2}, lambda: nn.LayerNorm((2, 3), eps=1e-2)),
        ("Embedding", {}, lambda: nn.Embedding(5, 3)),
        ("GRU", {"batch_first": True}, lambda: nn.GRU(3, 4, 2, batch_first=True)),
        ("RNN", {"nonlinearity": "relu"}, lambda: nn.RNN(3, 4, nonlinearity="relu", bidirectional=True)),
        ("MultiheadAttention", {"num_heads": 3}, lambda: nn.MultiheadAttention(6, 3, bias=False)),
        ("TransformerEncoderLayer", {"nhead": 2, "norm_first": True}, lambda: Layer(6, 2, 9, norm_first=True)),
        ("Transformer", {"nhead": 2, "norm_first": True}, lambda: nn.Transformer(6, 2, 1, 2, 9, norm_first=True)),
        ("TransformerEncoder", {"nhead": 2, "activation": "gelu_tanh", "layer_norm_eps": 1e-2, "norm_eps": 1e-3},
         lambda: nn.TransformerEncoder(Layer(6, 2, 9, activation=nn.GELU("tanh"), layer_norm_eps=1e-2, bias=False), 3,
                                       norm=nn.LayerNorm(6, eps=1e-3, bias=False), enable_nested_tensor=False)),
    )

    def convert(self, *words):
        """The command in this process: its status, output and errors."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = command.main([str(word) for word in words])
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def test_state_dicts(self):
        for name, settings, make in self.MADE:
            with self.subTest(name):
                net = randomise(make())
                direct = self.export(net)
                tensors, metadata = files.load(self.file)
                report = self.export(dict(net.state_dict()), module=name, settings=settings)
                self.assertEqual((report.arch, report.config), (direct.arch, direct.config))
                again, metadata_again = files.load(self.file)
                self.assertEqual(metadata, metadata_again)
                for tensor, value in tensors.items():
                    np.testing.assert_array_equal(again[tensor], value)

    def test_saved_modules(self):
        """torch.save(module): read without running what the file says."""
        for name, _, make in self.MADE:
            with self.subTest(name):
                torch.save(make(), self.at / "m.pt")
                self.export(self.at / "m.pt")
        torch.save(nn.Sequential(nn.PReLU()), self.at / "m.pt")
        with self.assertRaisesRegex(attncl.ConversionError, "could run code when loaded; save its state_dict"):
            attncl.export(self.at / "m.pt", self.file)

    def test_prefix_key_and_safetensors(self):
        net = nn.TransformerEncoder(Layer(6, 2, 9), 2, enable_nested_tensor=False)
        state = {"encoder." + name: tensor for name, tensor in net.state_dict().items()} | {"head.weight": torch.ones(2)}
        torch.save({"epoch": 3, "model": state}, self.at / "c.pt")
        report = self.export(self.at / "c.pt", key="model", prefix="encoder.", module="nn.TransformerEncoder", settings={"nhead": 2})
        self.assertRegex(report.notes[0], "assumed activation=relu, layer_norm_eps=1e-05, batch_first=False, norm_first=False")
        files.save(self.at / "c.safetensors", {n: t.to(torch.bfloat16).view(torch.int16).numpy().view(files.BFLOAT16)
                                               for n, t in net.state_dict().items()})
        self.export(self.at / "c.safetensors", module="TransformerEncoder", settings={"nhead": 2})
        self.assertEqual(files.load(self.file)[0]["layers.0.norm_ff.bias"].dtype, files.BFLOAT16)

    def test_command(self):
        torch.save(nn.TransformerEncoder(Layer(6, 2, 9), 2).state_dict(), self.at / "c.pt")
        words = [self.at / "c.pt", self.file, "--module", "TransformerEncoder", "--set", "nhead=2", "--set", "norm_first=true",
                 "--set", "activation=gelu"]
        done = subprocess.run([sys.executable, "-m", "attncl.convert", *words], capture_output=True, text=True, timeout=240,
                              env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"m.safetensors: arch encoder, \d+ tensors, largest difference \d")
        self.assertEqual(done.stderr, "note: assumed layer_norm_eps=1e-05, batch_first=False\n")
        with attncl.Model(self.file) as model:
            self.assertEqual([model.config[k] for k in ("norm_first", "activation", "heads")], [True, "gelu", 2])

    def test_absent_source_without_torch(self):
        code = "import sys; sys.modules['torch'] = None; from attncl.convert import main; sys.exit(main(['absent', 'out']))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240,
                              env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
        self.assertEqual((done.returncode, done.stderr), (1, "attncl-convert: absent: No such file or directory\n"))

    def test_refusals(self):
        state = nn.TransformerEncoder(Layer(6, 2, 9), 2).state_dict()
        garbage, absent = self.at / "c.pt", self.at / "absent.pt"
        for data, words in ((b"nothing of the kind", "a header of"), (b"", "a file of 0 bytes"), (b"GGUF" + bytes(20), "a GGUF file")):
            garbage.write_bytes(data)
            with self.assertRaisesRegex(attncl.AttnclError, "c.pt: " + words):
                attncl.export(garbage, self.file, module="Linear")
        garbage.write_bytes(b"PK\3\4" + bytes(40))
        for words, source, more in (
            ("is not a file of torch.save", garbage, {}),
            ("module and config: a state dict is of", garbage, {"module": "Linear", "config": "config.json"}),
            ("absent.pt does not exist", absent, {}),
            ("does not tell its module: --module, one of Linear, ", state, {}),
            ("module Conv1d is none of Linear, ", state, {"module": "Conv1d"}),
            ("TransformerEncoder needs nhead, .*: --set nhead=N", state, {"module": "TransformerEncoder"}),
            ("setting heads of TransformerEncoder is none of nhead, ", state, {"module": "TransformerEncoder", "settings": {"heads": 2}}),
            ("does not take these settings: .*divisible", state, {"module": "TransformerEncoder", "settings": {"nhead": 5}}),
            ("activation should be relu/gelu", state, {"module": "TransformerEncoder", "settings": {"nhead": 2, "activation": "elu"}}),
            ("the state dict is not one of Linear: .*[Uu]nexpected", {"weight": torch.ones(2, 3), "extra": torch.ones(1)},
             {"module": "Linear"}),
            ("the state dict has no weight; it has layers.0.self_attn.in_proj_weight, .* more", state, {"module": "Linear"}),
            ("entries that are no tensors: epoch; --key names", {"epoch": 3, "w": torch.ones(2)}, {"module": "Linear"}),
            ("the checkpoint has no state dict model; it has a", {"a": 1}, {"key": "model", "module": "Linear"}),
            ("no tensor is below 'x.'; there are a", {"a": torch.ones(1)}, {"prefix": "x.", "module": "Linear"}),
            ("are for state dicts, not for a module", nn.Linear(2, 2), {"module": "Linear"}),
        ):
            with self.subTest(words):
                with self.assertRaisesRegex(attncl.ConversionError, words):
                    attncl.export(source, self.file, **more)
                self.assertFalse(self.file.exists())
        with self.assertRaisesRegex(attncl.ConversionError, "the output would overwrite what is read"):
            attncl.export(garbage, garbage, module="Linear")
        self.assertEqual(garbage.read_bytes(), b"PK\3\4" + bytes(40))
        status, out, err = self.convert(self.at / "c.pt", self.file)
        self.assertEqual((status, out, err.count("\n")), (1, "", 1), err)
        self.assertTrue(err.startswith("attncl-convert: "), err)
        status, out, err = self.convert(self.at / "c.pt", self.file, "--set", "nhead")
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)


if __name__ == "__main__":
    support.need_device()
    support.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nn.py LIBRARY: attncl.nn against the golden files of the published code and the library, attncl.ops against PyTorch."""
import copy
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

own = attncl.nn
C, T, B = 12, 9, 3


def attentions():
    return own.AFTFull(C, T), own.AFTSimple(C, bias=False), own.AFTLocal(C, T, 3), own.AFTConv(C, 3, 5), own.MultiHeadAttention(C, 3)


def transformer_layer(attention, **more):
    return own.TransformerLayer(attention, own.FeedForward(C, 20, "gelu"), **more)


def language_model(**more):
    return own.LanguageModel(own.Encoder(transformer_layer(own.AFTLocal(C, T, 3)), 2), 17, max_len=30, **more)


def token_encoder(pos, **more):
    layer = transformer_layer(own.MultiHeadAttention(C, 3), norm_first=False, batch_first=pos == "learned_pos")
    return own.TokenEncoder(own.Encoder(layer if pos != "no_pos" else own.GMLPBlock(C, 20, T), 2), 17, pos, 30, **more)


def modules():
    yield from attentions()
    yield own.MultiHeadAttention(C, 4, bias=False, batch_first=True, n_kv_heads=2)
    yield own.SpatialGatingUnit(C, T, 1e-2)
    yield own.GMLPBlock(C, 20, T, 1e-2)
    yield own.FeedForward(C, 20, "silu", is_gated=True, bias1=False)
    yield own.FeedbackTransformer(C, 3, 20, 2, P=7)
    yield own.FeedbackTransformer(C, 3, 20, 2, P=7, score="split", activation="gelu", layer_norm_eps=1e-2)
    for i, attention in enumerate(attentions()):
        yield transformer_layer(attention, norm_first=i % 2 == 0, batch_first=i < 2)
    yield own.Encoder(transformer_layer(own.AFTConv(C, 3, 5), norm_first=False), 2, final_norm_eps=1e-2)
    yield own.Encoder(own.GMLPBlock(C, 20, T), 2, final_norm=False)
    yield own.Encoder(transformer_layer(own.MultiHeadAttention(C, 3, n_kv_heads=1), batch_first=True), 1, n_classes=4, pool="first")
    yield own.TokenEncoder(own.Encoder(own.GMLPBlock(C, 20, T), 1, n_classes=4), 17, max_len=30)
    for pos in ("fixed_pos", "learned_pos", "no_pos"):
        yield token_encoder(pos, embed_norm=pos == "learned_pos", embed_scale=0.7 if pos == "no_pos" else None)
        yield language_model(pos=pos, tie_generator=pos != "fixed_pos", embed_norm=pos == "learned_pos", generator_bias=pos != "no_pos")
    yield own.FeedbackTransformerKV(C, 3, 20, 2, P=7)
    yield own.FeedbackTransformerKV(C, 3, 20, 2, P=7, score="joint")
    for cls in (own.FeedbackTransformer, own.FeedbackTransformerKV):
        yield own.FeedbackLanguageModel(cls(C, 3, 20, 2, P=7), 17, tie_generator=cls is own.FeedbackTransformer)


def randomise(module):
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return module.eval()


def assert_close(got, want, what, limit=2e-5):
    got, want = (np.asarray(x.detach() if isinstance(x, torch.Tensor) else x) for x in (got, want))
    np.testing.assert_allclose(got, want, atol=limit * max(1, np.abs(want).max(initial=0)), rtol=limit, err_msg=what)


class Published(support.ExportCase):
    """The same outputs and gradients as the published code, whose state dicts the files hold."""
    seed = 3

    def test_golden_files(self):
        seen, lacking = set(), set()
        for path in sorted(support.DATA.glob("*.safetensors")):
            arrays, metadata = files.load(path)
            if metadata.get("attncl.arch") not in own.CLASSES or path.stem.startswith("dropout_"):
                continue
            with self.subTest(path.stem):
                seen.add(metadata["attncl.arch"])
                try:
                    module = own.load(path)
                except NotImplementedError as error:
                    self.assertIn(f"{path}: attncl.nn has no layer with ", str(error))
                    lacking.add(path.stem)
                    continue
                self.check(module, {n: torch.from_numpy(a) for n, a in arrays.items()})
        self.assertEqual(seen, set(own.CLASSES))
        self.assertEqual(lacking, {"lm_alibi_grad", "lm_longrope_grad", "lm_longrope_short", "lm_padded_grad", "lm_parallel", "lm_rotary_grad", "lm_windows_grad"})

    def check(self, module, arrays):
        inputs = {n[len("input."):]: a for n, a in arrays.items() if n.startswith("input.") and "cotangent" not in n}
        targets = inputs.pop("targets", None)
        for value in inputs.values():
            value.requires_grad_(value.is_floating_point())
        outputs = {"output": module(**inputs)}
        if targets is not None:
            outputs["loss"] = F.cross_entropy(outputs["output"].flatten(0, 1), targets.flatten())
        for name, value in outputs.items():
            assert_close(value, arrays[f"expected.{name}"], name)
        asked = [name for name in outputs if f"input.cotangent.{name}" in arrays]
        if not asked or "input.cotangent.memory" in arrays:
            return
        sum((outputs[name] * arrays[f"input.cotangent.{name}"]).sum() for name in asked).backward()
        for name, value in {**dict(module.named_parameters()), **inputs}.items():
            if value.requires_grad:
                assert_close(value.grad, arrays[f"expected.grad.{name}"].view_as(value), name)


class Files(support.ExportCase):
    seed = 5

    def test_names_are_the_architecture_s(self):
        for module in modules():
            with self.subTest(module):
                entries = attncl.describe(module.arch, module.config)
                want = {e.name: e.shape for e in entries if e.kind in ("parameter", "buffer")}
                self.assertEqual({n: str(list(t.shape)) for n, t in module.state_dict().items()}, want)

    def check_loaded(self, module):
        again = own.load(self.file)
        self.assertEqual((type(again), again.config), (type(module), module.config))
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(again.state_dict()[name], value), name)

    def test_gradients_and_masks(self):
        """What PyTorch computes in training is what the file computes, rows that see nothing included."""
        for module in modules():
            with self.subTest(module):
                randomise(module)
                report = attncl.export(module, self.file, quiet=True, check=False)
                self.assertEqual((report.arch, report.config), (module.arch, module.config))
                self.check_loaded(module)
                x = torch.randint(17, (6, B)) if "n_vocab" in module.config else torch.randn(6, B, C).double()
                module.double()  # the file has F32: its errors alone count
                x.requires_grad_(x.is_floating_point())
                with attncl.Model(self.file) as model:
                    names = [name for name, entry in model.inputs.items() if not entry.optional]
                    inputs = dict.fromkeys(names, x if not module.config.get("batch_first") else x.transpose(0, 1))
                    if "mask" in model.inputs:
                        one = module.arch in ("spatial_gating_unit", "gmlp_block") or module.config.get("layer") == "gmlp"
                        inputs["mask"] = torch.rand(6, 6, 1 if one else B) < 0.6
                        inputs["mask"][2] = False
                    output = module(**inputs)
                    cotangent = torch.randn_like(output)
                    output.backward(cotangent)
                    outputs, gradients = model.gradients({"output": cotangent}, inputs)
                assert_close(outputs["output"], output, "output")
                for name, p in module.named_parameters():
                    assert_close(gradients[name], torch.zeros_like(p) if p.grad is None else p.grad, name)
                if x.requires_grad:
                    sum_x = sum(gradients[name] for name in names)
                    assert_close(sum_x.transpose(0, 1) if module.config.get("batch_first") else sum_x, x.grad, "x")

    def test_a_trained_language_model(self):
        """Trained by PyTorch, run and continued by the library."""
        module = language_model()
        tokens = torch.arange(T + 1).repeat(2, 1).T % 17
        optimizer = torch.optim.Adam(module.parameters(), 0.02)
        for _ in range(60):
            loss = F.cross_entropy(module(tokens[:-1]).flatten(0, 1), tokens[1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.assertLess(loss.item(), 0.1)
        self.export(module.eval())
        with attncl.Model(self.file) as model:
            scores, ours = model(tokens[:-1], tokens[1:])
            self.assertIsInstance(scores, torch.Tensor)
            self.assertAlmostEqual(float(ours), F.cross_entropy(module(tokens[:-1]).flatten(0, 1), tokens[1:].flatten()).item(), 5)
            self.assertTrue(torch.equal(model.generate(tokens[:3, 0], 6, temperature=0), tokens[:9, 0]))


class Shapes(support.ExportCase):
    seed = 6

    def test_keys_far_apart(self):
        """exp(w) exp(k) underflows where the largest of both meet other positions."""
        for module in (own.AFTFull(C, T), own.AFTConv(C, 3, 5), own.AFTSimple(C)):
            with self.subTest(module):
                randomise(module)
                x = torch.randn(T, B, C)
                key = x.clone()
                key[5] *= 500
                mask = torch.ones(T, T, dtype=torch.bool).tril()[:, :, None]
                got, want = (m(x.to(dtype), key.to(dtype), x.to(dtype), mask) for m, dtype in
                             ((module, torch.float32), (copy.deepcopy(module).double(), torch.float64)))
                assert_close(got, want, "output")
                got.sum().backward()
                self.assertTrue(all(p.grad.isfinite().all() for p in module.parameters()))

    def test_left_out_inputs(self):
        for module in attentions():
            x, y = torch.randn(T, B, C), torch.randn(T, B, C)
            torch.testing.assert_close(module(x), module(x, x, x))
            torch.testing.assert_close(module(x, y), module(x, y, y))

    def test_refusals(self):
        x = torch.randn(T + 1, B, C)
        for words, call in (
            ("AFTLocal: a sequence of 10 positions, at most 9 are possible", lambda: own.AFTLocal(C, T, 3)(x)),
            ("GMLPBlock|SpatialGatingUnit: a sequence of 10", lambda: own.GMLPBlock(C, 20, T)(x)),
            ("FeedbackTransformer: a sequence of 10 positions, at most 4", lambda: own.FeedbackTransformer(C, 3, 20, 1, P=3)(x)),
            ("LanguageModel: a sequence of 40 positions, at most 30", lambda: language_model()(torch.zeros(40, 1, dtype=torch.int64))),
            (r"AFTSimple: query \[10, 3, 12\], key \[9, 3, 12\]", lambda: own.AFTSimple(C)(x, x[1:])),
            (r"MultiHeadAttention: mask is \[10, 9, 1\], expected \[10 or 1, 10, 3 or 1\]",
             lambda: own.MultiHeadAttention(C, 3)(x, mask=torch.ones(10, 9, 1))),
            ("AFTConv: d_model 12 must be divisible by heads 5, window_size 4 odd", lambda: own.AFTConv(C, 5, 4)),
            ("MultiHeadAttention: d_model 12 is not divisible by heads 5", lambda: own.MultiHeadAttention(C, 5)),
            ("MultiHeadAttention: heads 4 is not divisible by n_kv_heads 3", lambda: own.MultiHeadAttention(C, 4, n_kv_heads=3)),
            ("SpatialGatingUnit: d_z 7 is odd", lambda: own.SpatialGatingUnit(7, T)),
            ("FeedForward: activation 'elu' is none of relu, gelu", lambda: own.FeedForward(C, 20, "elu")),
            ("score 'both' is none of joint, split", lambda: own.FeedbackTransformer(C, 3, 20, 1, score="both")),
            ("TokenEncoder: a sequence of 31 positions, at most 30", lambda: token_encoder("fixed_pos")(x.new_zeros(31, 1).long())),
            ("TokenEncoder: embed_norm=True with pos no_pos", lambda: token_encoder("no_pos", embed_norm=True)),
            ("LanguageModel: embed_norm=True with pos no_pos", lambda: language_model(pos="no_pos", embed_norm=True)),
            ("Encoder: pool 'max' is none of mean, first, none", lambda: own.Encoder(own.GMLPBlock(C, 20, T), 2, n_classes=4, pool="max")),
            ("LanguageModel: n_classes=4 of its encoder", lambda: own.LanguageModel(own.Encoder(own.GMLPBlock(C, 20, T), 1, n_classes=4), 17)),
            ("valid_lens with AFTSimple, expected MultiHeadAttention",
             lambda: own.Encoder(transformer_layer(own.AFTSimple(C)), 1)(x, valid_lens=torch.ones(B))),
            ("Encoder: valid_lens with GMLPBlock, expected layers of MultiHeadAttention",
             lambda: own.Encoder(own.GMLPBlock(C, 20, T), 1)(x[:T], valid_lens=torch.ones(B))),
            ("pos 'rotary' is none of fixed_pos, learned_pos, no_pos", lambda: language_model(pos="rotary")),
            ("d_model is 12 of AFTSimple, 8 of FeedForward", lambda: own.TransformerLayer(own.AFTSimple(C), own.FeedForward(8, 20))),
            ("batch_first=True of MultiHeadAttention", lambda: transformer_layer(own.MultiHeadAttention(C, 3, batch_first=True))),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()
        with self.assertRaisesRegex(TypeError, r"TransformerLayer\(Linear, FeedForward\): expected one of AFTLocal, "):
            transformer_layer(nn.Linear(C, C))
        with self.assertRaisesRegex(TypeError, "a stack of AFTSimple: expected TransformerLayer"):
            own.Encoder(own.AFTSimple(C), 2)
        with self.assertRaisesRegex(ValueError, "linear_grad.safetensors: architecture linear is none of attncl.nn's: aft_full, "):
            own.load(support.DATA / "linear_grad.safetensors")
        for changed, words in (({"key.weight": np.ones((C, 5), np.float32)}, "key.weight"), ({}, "Missing key.*key.weight")):
            arrays = {name: value.numpy() for name, value in own.AFTSimple(C).state_dict().items() if name != "key.weight"}
            files.save(self.file, {**arrays, **changed}, {"attncl.arch": "aft_simple", "attncl.config": f'{{"d_model": {C}}}'})
            with self.assertRaisesRegex(ValueError, f"m.safetensors: [^\n]*{words}"):
                own.load(self.file)


class Operations(support.ExportCase):
    """attncl.ops: the results and gradients of PyTorch's."""
    seed = 9

    @staticmethod
    def aft(q, k, v, w, mask=None):
        """w [H, T, T], k [T, B, H or C]."""
        heads, n = len(w), v.shape[-1]
        scores = w.repeat_interleave(n // heads, 0).permute(1, 2, 0)[:, :, None] + k.repeat_interleave(n // k.shape[-1], -1)
        if mask is not None:
            scores = scores.masked_fill(~mask[..., None], -1e30)
        return torch.sigmoid(q) * (scores.softmax(1) * v).sum(1)

    def cases(self):
        """What differs, ours, PyTorch's, and the tensors they take."""
        def normal(*shape):
            return torch.randn(*shape, requires_grad=True)
        ops, n, x = attncl.ops, torch.arange(T), normal(T, B, C)
        causal = (n[:, None] >= n)[:, :, None]
        seen = torch.rand(T, T, B) < 0.7
        seen |= torch.eye(T, dtype=torch.bool)[:, :, None]
        near = ((n[:, None] - n).abs() < 3)[None]
        at = (n - n[:, None] + 2).clamp(0, 4)
        qkv, bias, w = [normal(T, B, C) for _ in range(3)], normal(T + 2, T + 2), normal(3, 5)
        heads = [normal(B, 4, 6, 4), normal(B, 2, 7, 4), normal(B, 2, 7, 5)]  # two share a key head
        square = [normal(B, 2, 6, 4) for _ in range(3)]
        hidden = torch.rand(6, 7, B) < 0.3
        hidden[:, 0] = False
        tokens, targets = torch.randint(11, (4, 3)), torch.randint(C, (T, B))
        yield "softmax", lambda x: ops.softmax(x, 1), lambda x: x.softmax(1), [x]
        yield "layer_norm", lambda *v: ops.layer_norm(*v, 1e-2), lambda x, *v: F.layer_norm(x, (C,), *v, 1e-2), [x, normal(C), normal(C)]
        for name in ("gelu", "relu", "silu"):
            yield name, getattr(ops, name), getattr(F, name), [x]
        yield "gelu_tanh", lambda x: ops.gelu(x, "tanh"), lambda x: F.gelu(x, approximate="tanh"), [x]
        yield "sigmoid", ops.sigmoid, torch.sigmoid, [x]
        yield "tanh", ops.tanh, torch.tanh, [x]
        yield "linear", ops.linear, F.linear, [x, normal(7, C), normal(7)]
        yield "linear without bias", ops.linear, F.linear, [x, normal(7, C)]
        yield "bmm", ops.bmm, torch.bmm, [normal(3, 4, 5), normal(3, 5, 6)]
        yield "embedding", lambda w: ops.embedding(tokens, w), lambda w: F.embedding(tokens, w), [normal(11, 4)]
        for how in ("mean", "sum", "none"):
            yield how, lambda x: ops.cross_entropy(x, targets, how), \
                lambda x: F.cross_entropy(x.movedim(-1, 1), targets, reduction=how), [x]
        yield "attention", lambda *v: ops.attention(*v, ~hidden), \
            lambda *v: F.scaled_dot_product_attention(*v, ~hidden.permute(2, 0, 1)[:, None], enable_gqa=True), heads
        yield "square attention", ops.attention, F.scaled_dot_product_attention, square
        yield "causal attention", lambda *v: ops.attention(*v, is_causal=True, scale=0.3), \
            lambda *v: F.scaled_dot_product_attention(*v, is_causal=True, scale=0.3), square
        yield "attention with a soft cap", lambda *v: ops.attention(*v, softcap=0.5), \
            lambda q, k, v: (0.5 * (q @ k.mT / q.shape[-1] ** 0.5 / 0.5).tanh()).softmax(-1) @ v, square
        yield "attention with a bias", lambda q, k, v, b: ops.attention(q, k, v, ~hidden, bias=b), \
            lambda q, k, v, b: F.scaled_dot_product_attention(
                q, k, v, b.masked_fill(hidden.permute(2, 0, 1)[:, None], -torch.inf), enable_gqa=True), \
            [*heads, normal(1, heads[0].shape[1], 1, heads[1].shape[2])]
        slopes, lengths = torch.tensor([0.5, 0.25]), torch.tensor([1, 3, 5])
        yield "attention with slopes and lengths", lambda *v: ops.attention(*v, slopes=slopes, lengths=lengths), \
            lambda *v: F.scaled_dot_product_attention(
                *v, slopes[:, None, None] * (torch.arange(5.0) - torch.arange(5.0)[:, None])
                + torch.zeros(3, 1, 1, 5).masked_fill(torch.arange(5) >= lengths[:, None, None, None], -torch.inf)), \
            [normal(3, 2, 5, 4) for _ in range(3)]
        yield "rms_norm", ops.rms_norm, lambda x, w: F.rms_norm(x, (C,), w, 1e-6), [x, normal(C)]
        angles, places = torch.randn(7, 3), torch.tensor([[2, 0], [6, 1], [3, 3]])
        yield "rotary", lambda x: ops.rotary(x, torch.stack([angles.cos(), angles.sin()], 1), places, neighbours=True), \
            lambda x: torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (3, 2))) * torch.exp(1j * angles[places])).flatten(2), \
            [normal(3, 2, 6)]
        yield "aft_full", lambda *v: ops.aft_full(*v, seen), lambda q, k, v, b: self.aft(q, k, v, b[None, :T, :T], seen), [*qkv, bias]
        yield "aft_local", lambda *v: ops.aft_local(*v, 3, causal=True), \
            lambda q, k, v, b: self.aft(q, k, v, b[None, :T, :T] * near, causal), [*qkv, bias]
        yield "aft_simple", ops.aft_simple, lambda q, k, v: self.aft(q, k, v, torch.zeros(1, T, T)), qkv
        yield "aft_conv", ops.aft_conv, \
            lambda q, k, v, w: self.aft(q, k, v, w[:, at] * near), [qkv[0], normal(T, B, 3), qkv[2], w]
        yield "spatial_gating_unit", lambda *v: ops.spatial_gating_unit(*v, causal=True), \
            lambda z, g, h, w, b: z[..., :6] * (torch.einsum("ij,jbc->ibc", w[:T, :T].tril(), F.layer_norm(z[..., 6:], (6,), g, h))
                                                + b[:T, None, None]), [x, normal(6), normal(6), bias, normal(T + 2)]

    def test_against_pytorch(self):
        for what, ours, theirs, inputs in self.cases():
            with self.subTest(what):
                got, want = ours(*inputs), theirs(*inputs)
                assert_close(got, want, "result")
                cotangent = torch.randn_like(want)
                for i, (a, b) in enumerate(zip(torch.autograd.grad(got, inputs, cotangent), torch.autograd.grad(want, inputs, cotangent))):
                    assert_close(a, b, f"gradient {i}")

    def test_only_asked_gradients(self):
        x, weight = torch.randn(3, 4), torch.randn(2, 4, requires_grad=True)
        for _ in range(2):
            attncl.ops.linear(x, weight).sum().backward()
        assert_close(weight.grad, 2 * x.sum(0).expand(2, 4), "added up")
        self.assertIsNone(x.grad)
        attncl.ops.linear(x.requires_grad_(), weight).sum().backward()
        assert_close(x.grad, weight.sum(0).expand(3, 4), "both")
        with torch.no_grad():
            self.assertFalse(attncl.ops.linear(x, weight).requires_grad)

    def test_narrow_integers(self):
        """Numbers that a type holds are taken as they are, also where it does not hold the limit."""
        weight = torch.randn(300, 2)
        for dtype in (torch.uint8, torch.int8, torch.int16):
            tokens = torch.tensor([3, 100], dtype=dtype)
            self.assertTrue(torch.equal(attncl.ops.embedding(tokens, weight), weight[[3, 100]]), dtype)

    def test_bad_inputs(self):
        x, ops = torch.randn(3, 4), attncl.ops
        for error, words, call in (
            (TypeError, "attncl.ops.softmax: argument 1 is torch.float64 on cpu, expected float32", lambda: ops.softmax(x.double())),
            (TypeError, "attncl.ops.embedding takes integers, not torch.float32", lambda: ops.embedding(x, x)),
            (ValueError, "element 0 is 2147483647, allowed are 0 to 2", lambda: ops.embedding(torch.tensor([2**40]), x)),
            (ValueError, "element 1 is -100, allowed are 0 to 3", lambda: ops.cross_entropy(x, torch.tensor([0, -100, 1]))),
            (ValueError, "reduction 'max' is none of mean, sum, none", lambda: ops.cross_entropy(x, torch.tensor([0, 1, 2]), "max")),
            (ValueError, "approximate 'erf' is none of", lambda: ops.gelu(x, "erf")),
            (ValueError, "softcap is -1, must be finite and at least 0", lambda: ops.attention(*[x[None, None]] * 3, softcap=-1.0)),
            (ValueError, "scale is 0, expected", lambda: ops.attention(x, x, x, scale=0)),
            (ValueError, "weight", lambda: ops.linear(x, x[:, :3])),
            (ValueError, "axis", lambda: ops.softmax(x, 2)),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call()


class Sequential(support.ExportCase):
    seed = 8

    def test_what_a_file_can_hold(self):
        for parts, arch in (
            ([own.AFTSimple(C)], "aft_simple"), ([nn.Linear(3, 2), nn.Dropout()], "linear"),
            ([nn.Sequential(own.GMLPBlock(C, 20, T))], "gmlp_block"),
            ([own.GMLPBlock(C, 20, T) for _ in range(3)], "encoder"),
            ([*(transformer_layer(own.AFTLocal(C, T, 3)) for _ in range(2)), nn.LayerNorm(C, eps=1e-2)], "encoder"),
            ([*(nn.TransformerEncoderLayer(C, 3, 20) for _ in range(2)), nn.Identity()], "encoder"),
            ([own.GMLPBlock(C, 20, T)] * 2, "encoder"),
            ([nn.Linear(5, 7), nn.GELU(), nn.Dropout(), nn.Linear(7, 5, bias=False)], "feed_forward"),
        ):
            with self.subTest(parts):
                self.assertEqual(self.export(randomise(nn.Sequential(*parts))).arch, arch)

    def test_what_it_cannot(self):
        for words, parts in (
            ("Sequential of AFTSimple, AFTSimple cannot be converted; what can: one module; Linear, activation, Linear; layers of one "
             "class of nn.TransformerEncoderLayer, attncl.nn.TransformerLayer, attncl.nn.GMLPBlock, then LayerNorm or not",
             [own.AFTSimple(C), own.AFTSimple(C)]),
            ("Sequential of none cannot", []),
            ("Sequential of LSTM cannot", [nn.LSTM(C, C)]),
            ("2: out_features=6 cannot be expressed", [nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 6)]),
            ("1='TransformerLayer' cannot be expressed: the layers of arch encoder are all of one class",
             [own.GMLPBlock(C, 20, T), transformer_layer(own.AFTSimple(C))]),
            ("1: d_ffn=24 cannot be expressed: 0 has 20", [own.GMLPBlock(C, 20, T), own.GMLPBlock(C, 24, T)]),
        ):
            with self.subTest(words), self.assertRaisesRegex(attncl.ConversionError, words):
                self.export(nn.Sequential(*parts))

    def test_state_dicts(self):
        """As the published code saves them; a configuration's keys are the settings."""
        module = randomise(own.AFTLocal(C, T, 3))
        state = {name: value for name, value in module.state_dict().items() if name != "local_mask"}
        settings = {"d_model": C, "seq_len": T, "local_window_size": 3}
        self.assertEqual(self.export(state, module="AFTLocal", settings=settings).config, module.config)
        torch.save(module, self.at / "m.pt")
        self.export(self.at / "m.pt")
        for words, more in (("setting window of AFTLocal is none of d_model, seq_len", {"window": 3}),
                            ("AFTLocal does not take these settings and tensors: .*local_window_size", {"d_model": C, "seq_len": T})):
            with self.subTest(words), self.assertRaisesRegex(attncl.ConversionError, words):
                self.export(state, module="AFTLocal", settings=more)


if __name__ == "__main__":
    support.need_device()
    support.main()

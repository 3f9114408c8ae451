#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gguf_files.py LIBRARY: models of transformers as GGUF files, written as llama.cpp's convert_hf_to_gguf.py does, and those as model files.

Where llama_cpp is, it is the judge of both.  Only tests/run --full runs it: torch, transformers and gguf are not among the packages that
.ci/run installs.
"""
import functools
import json
import sys
import unittest

import support

try:
    import gguf
    import numpy as np
    import torch
    import transformers
except ImportError as error:
    support.skip(f"no {error.name}")
try:
    import llama_cpp
except ImportError:
    llama_cpp = None
support.use_package(sys.argv[1])
sys.path.insert(0, str(support.DATA))
import attncl  # noqa: E402
import generate_tokenizers as made  # noqa: E402
from attncl import converting, files  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
QUANTISATION = gguf.GGMLQuantizationType
FAMILIES = {"Llama": "llama", "Mistral": "llama", "SmolLM3": "smollm3", "Qwen2": "qwen2", "Qwen3": "qwen3", "Gemma": "gemma", "Gemma2": "gemma2",
            "Gemma3Text": "gemma3", "Phi3": "phi3", "GPTNeoX": "gptneox", "GPT2": "gpt2"}
SIZES = {"vocab_size": 31, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
CAPS = {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 5}


def permuted(a, heads):
    """llama.cpp's LlamaModel.permute()."""
    return a.reshape(heads, 2, a.shape[0] // heads // 2, *a.shape[1:]).swapaxes(1, 2).reshape(a.shape)


def moved(arch, c, name, a):
    """A tensor as the file has it."""
    if arch in ("llama", "smollm3") and ".q_proj." in name:
        return permuted(a, c.num_attention_heads)
    if arch in ("llama", "smollm3") and ".k_proj." in name:
        return permuted(a, c.num_key_value_heads)
    if arch.startswith("gemma") and name.endswith("norm.weight"):
        return a + np.float32(1)
    if arch == "gptneox" and ".query_key_value." in name:
        parts = a.reshape(c.num_attention_heads, 3, -1, *a.shape[1:])
        return np.concatenate([parts[:, k].reshape(-1, *a.shape[1:]) for k in range(3)])
    if arch == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return a.T
    return a


def metadata(writer, arch, c):
    writer.add_block_count(c.num_hidden_layers)
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_vocab_size(c.vocab_size)
    writer.add_file_type(0)
    if arch == "gpt2":
        writer.add_feed_forward_length(c.n_inner or 4 * c.n_embd)
        writer.add_layer_norm_eps(c.layer_norm_epsilon)
        return
    rope = c.rope_parameters.get("full_attention", c.rope_parameters)
    head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1)))
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
        if rope["rope_type"] == "yarn":
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "longrope":
        writer.add_rope_scaling_attn_factors(rope["attention_factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if arch == "gptneox":
        writer.add_parallel_residual(c.use_parallel_residual)
        writer.add_layer_norm_eps(c.layer_norm_eps)
        return
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    if getattr(c, "head_dim", None):
        writer.add_key_length(c.head_dim)
        writer.add_value_length(c.head_dim)
    if arch in ("gemma2", "gemma3", "phi3"):
        writer.add_sliding_window(c.sliding_window or 0)
    if getattr(c, "final_logit_softcapping", None):
        writer.add_final_logit_softcapping(c.final_logit_softcapping)
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(c.attn_logit_softcapping)


def llama3_factors(rope, head_dim):
    """llama.cpp's rope_freqs.weight."""
    factors, low, high = [], rope["low_freq_factor"], rope["high_freq_factor"]
    for freq in rope["rope_theta"] ** (-np.arange(0, head_dim, 2) / head_dim):
        length, original = 2 * np.pi / freq, rope["original_max_position_embeddings"]
        smooth = (original / length - low) / (high - low)
        factors.append(1 if length < original / high else rope["factor"] if length > original / low else
                       1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, np.float32)


def rounded(a, kind):
    """An array as a type has it, and its values."""
    if a.ndim < 2 or kind == "F32":
        return a, QUANTISATION.F32, a
    if kind == "F16":
        return a.astype(np.float16), QUANTISATION.F16, a.astype(np.float16).astype(np.float32)
    quantised = gguf.quants.quantize(a, QUANTISATION[kind])
    return quantised, QUANTISATION[kind], gguf.quants.dequantize(quantised, QUANTISATION[kind])


class Case(support.ExportCase):
    seed = 13

    def setUp(self):
        super().setUp()
        self.gguf = self.at / "m.gguf"

    def model(self, family, **more):
        config = getattr(transformers, f"{family}Config")(**({"n_positions": 40, "vocab_size": 31, "n_embd": 64, "n_head": 4, "n_layer": 2, **more}
                                                             if family == "GPT2" else {**SIZES, **more}))
        model = getattr(transformers, family.replace("3Text", "3") + ("LMHeadModel" if family == "GPT2" else "ForCausalLM"))(config)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p) * 0.1)
        return model.eval()

    def write(self, model, family, kind="F32", extra=lambda writer: None, drop=(), **split):
        """The file, after which the model has the values that the file has.  kind: of matrices, a type or a function of their names.
        split: of the writer, for a file in parts."""
        arch, c = FAMILIES[family], model.config
        writer = gguf.GGUFWriter(self.gguf, arch, **split)
        metadata(writer, arch, c)
        extra(writer)
        names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch), c.num_hidden_layers)
        tied, written, values = c.tie_word_embeddings, set(), {}
        for name, tensor in model.state_dict().items():
            if name.endswith(("inv_freq", "attention.bias")) or (tied and name in ("lm_head.weight", "embed_out.weight")):
                continue
            a, own = moved(arch, c, name, tensor.float().numpy()), names.get_name(name, (".weight", ".bias"))
            data, dtype, value = rounded(np.ascontiguousarray(a), kind(own) if callable(kind) else "F32" if name.endswith("wpe.weight") else kind)
            values[own] = value
            if own not in drop:
                writer.add_tensor(own, data, raw_dtype=dtype)
            written.add(own)
        if arch != "gpt2" and getattr(c, "rope_parameters", {}).get("rope_type") == "llama3":
            writer.add_tensor("rope_freqs.weight", llama3_factors(c.rope_parameters, c.head_dim))
        for name in ("short", "long"):
            if factors := getattr(c, "rope_parameters", {}).get(f"{name}_factor"):
                writer.add_tensor(f"rope_factors_{name}.weight", np.array(factors, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return values

    def scores(self, model, tokens):
        with torch.no_grad():
            return model(tokens).logits.transpose(0, 1).numpy()

    def ours(self, tokens, file=None):
        with attncl.Model(file or self.file) as file:
            return file.run(tokens=tokens.t().numpy())["output"]

    def refused(self, words, source=None, **more):
        with self.assertRaisesRegex(attncl.ConversionError, words):
            converting.convert(source or self.gguf, self.file, **more)
        self.assertFalse(self.file.exists())

    def close(self, got, want, limit=2e-5):
        np.testing.assert_allclose(got, want, atol=limit * max(1, np.abs(want).max()), rtol=0)


class Models(Case):
    MADE = (("Llama", {}), ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}), ("Llama", {"head_dim": 10, "hidden_size": 32}),
            ("Mistral", {"sliding_window": None}), ("SmolLM3", {"num_hidden_layers": 5}), ("Qwen2", {}), ("Qwen3", {"head_dim": 24}), ("Gemma", {"head_dim": 24}),
            ("Gemma2", {**CAPS, "num_hidden_layers": 3, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5}),
            ("Gemma3Text", {**CAPS, "num_hidden_layers": 7}), ("Phi3", {"sliding_window": 5}), ("Phi3", {"partial_rotary_factor": 0.5}),
            ("Phi3", {"original_max_position_embeddings": 10, "rope_parameters": {"rope_type": "longrope", "partial_rotary_factor": 0.5, "attention_factor": 1.2,
                      "short_factor": [1.0, 1.5, 1.7, 2.0], "long_factor": [1.0, 3.0, 8.0, 20.0]}}),
            ("GPTNeoX", {}), ("GPTNeoX", {"use_parallel_residual": False}), ("GPT2", {}), ("GPT2", {"tie_word_embeddings": False, "n_inner": 96}))

    ROPES = ({"rope_type": "linear", "factor": 2.0}, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10},
             {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16})

    def test_families(self):
        tokens = torch.randint(31, (3, 20))
        for family, more in self.MADE:
            with self.subTest(family, **more):
                model = self.model(family, **more)
                self.write(model, family)
                support.convert_alone(self.gguf, self.file)
                self.close(self.ours(tokens), self.scores(model, tokens))

    @unittest.skipUnless(llama_cpp, "no llama_cpp")
    def test_llama_cpp(self):
        """The judge of the writer here: llama.cpp finds the same in its files.  Its GELU comes from a table of F16."""
        tokens = torch.randint(31, (1, 20))
        for family, more in (*self.MADE, *(("Llama", {"rope_parameters": {"rope_theta": 1e4, **rope}}) for rope in self.ROPES)):
            if family == "Phi3" and "sliding_window" in more:  # llama.cpp leaves it out
                continue
            with self.subTest(family, **more):
                model = self.model(family, **more)
                self.write(model, family, extra=lambda writer: writer.add_tokenizer_model("none"))
                file = llama_cpp.Llama(str(self.gguf), n_ctx=256, n_threads=2, logits_all=True, verbose=False, type_k=0, type_v=0)
                file.eval(tokens[0].tolist())
                support.convert_alone(self.gguf, self.file)
                self.close(self.ours(tokens)[:, 0], file.scores[:20], 2e-3)

    def test_scaled_positions(self):
        tokens = torch.randint(31, (3, 20))
        for rope in self.ROPES:
            with self.subTest(**rope):
                model = self.model("Llama", rope_parameters={"rope_theta": 1e4, **rope})
                self.write(model, "Llama")
                support.convert_alone(self.gguf, self.file)
                self.close(self.ours(tokens), self.scores(model, tokens))
                self.assertEqual(json.loads(files.load(self.file)[1]["attncl.config"])["rope_scaling"], rope["rope_type"])

    def test_the_same_as_of_a_directory(self):
        """F16 and F32: the files of both ways hold the same."""
        for family, more, kind in (("Llama", {}, "F16"), ("Phi3", {}, "F16"), ("GPTNeoX", {}, "F32"), ("GPT2", {}, "F32")):
            with self.subTest(family):
                model = self.model(family, **more)
                if kind == "F16":
                    with torch.no_grad():
                        for p in model.parameters():
                            p.copy_(p.half().float())
                self.write(model, family, kind)
                model.save_pretrained(self.at / "d")
                converting.convert(self.gguf, self.file)
                converting.convert(self.at / "d", self.at / "want")
                (got, _), (want, _) = files.load(self.file), files.load(self.at / "want")
                self.assertEqual(set(got), set(want))
                for name, a in want.items():
                    np.testing.assert_array_equal(got[name].astype(np.float32), a.astype(np.float32), name)

    def test_blocks_stay(self):
        """Q8_0 and Q4_0 give the values of the file, bit for bit; with --dtype f32 too, from which q8 and q4 find the same numbers."""
        for kind, own in (("Q8_0", "q8"), ("Q4_0", "q4")):
            for family, more in (("Llama", {"vocab_size": 37, "num_attention_heads": 2}), ("Phi3", {}), ("GPT2", {"n_embd": 96})):
                with self.subTest(family, kind=kind):
                    model = self.model(family, **more)
                    values = self.write(model, family, kind)
                    converting.convert(self.gguf, self.file)
                    converting.convert(self.gguf, self.at / "f32", dtype="F32")
                    kept, described = files.load(self.file)
                    floats, _ = files.load(self.at / "f32")
                    matrices = [name for name in kept if f"attncl.quantised.{name}" in described]
                    self.assertGreater(len(matrices), 8)
                    self.assertTrue(all(described[f"attncl.quantised.{name}"].startswith(own) for name in matrices))
                    np.testing.assert_array_equal(floats["src_embed.linear.weight" if family == "GPT2" else "src_embed.weight"], values["token_embd.weight"])
                    down = floats["encoder.layers.1.feed_forward.layer2.weight"]
                    np.testing.assert_array_equal(down, values["blk.1.ffn_down.weight"])
                    tokens = torch.randint(31, (3, 20))
                    # CPUs round inputs of quantised maps to 16 bits: 1.5e-5 of the largest, in each of 14 maps
                    self.close(self.ours(tokens), self.ours(tokens, self.at / "f32"), 2.1e-4)

    def test_mixed_types(self):
        """What llama.cpp mixes in becomes F16; BF16 stays."""
        model = self.model("Llama", hidden_size=256, tie_word_embeddings=False, num_hidden_layers=1)
        values = self.write(model, "Llama", lambda name: "Q5_1" if name == "output.weight" else "BF16" if "attn" in name else "Q4_0")
        converting.convert(self.gguf, self.file)
        tensors, described = files.load(self.file)
        np.testing.assert_array_equal(tensors["generator.projection.weight"], values["output.weight"].astype(np.float16))
        self.assertEqual(tensors["encoder.layers.0.self_attn.output.weight"].dtype, files.BFLOAT16)
        self.assertIn("attncl.quantised.src_embed.weight", described)
        converting.convert(self.gguf, self.file, dtype="Q8")
        self.assertEqual(files.load(self.file)[1]["attncl.quantised.generator.projection.weight"], "q8 [31, 256]")

    def test_positions(self):
        """A table that is no map is not in blocks."""
        values = self.write(self.model("GPT2"), "GPT2", lambda name: "Q8_0")
        for dtype in (None, "Q8"):
            converting.convert(self.gguf, self.file, dtype=dtype)
            np.testing.assert_array_equal(files.load(self.file)[0]["src_embed.positional_encodings"][:, 0], values["position_embd.weight"])

    def test_memory(self):
        """A file of 110 MiB, or one in parts, whose largest tensors have 8 takes little more memory than a small one."""
        def peak(**sizes):
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**SIZES, **sizes}))
            self.write(model, "Llama")
            self.write(model, "Llama", split_max_tensors=6)
            return [support.convert_alone(file, self.file, *more, peak=True)
                    for file in (self.gguf, min(self.at.glob("m-*.gguf"))) for more in ((), ("--dtype", "q4"))]
        for big, small in zip(peak(hidden_size=512, intermediate_size=4096, num_attention_heads=8, num_hidden_layers=4), peak()):
            self.assertLess(big - small, 40)

    def test_refusals(self):
        model = self.model("Llama")
        for words, more in ((r"llama.attention.clamp_kqv: not known for llama", {"extra": lambda w: w.add_clamp_kqv(1.0)}),
                            ("llama.expert_count is 4, expected 0", {"extra": lambda w: w.add_expert_count(4)}),
                            ("short_factor is None, expected a list of numbers above 0",
                             {"extra": lambda w: w.add_tensor("rope_factors_long.weight", np.ones(8, np.float32))}),
                            ("llama.rope.scaling.type 'longrope' is none of none, linear, yarn",
                             {"extra": lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)}),
                            ("tensor blk.1.ffn_down.weight is TQ2_0, none of F32, F16, BF16, Q8_0, Q4_0, ", {"kind": lambda n: "TQ2_0" if n == "blk.1.ffn_down.weight" else "F32"}),
                            ("there is no tensor blk.1.attn_k.weight; there are ", {"drop": ("blk.1.attn_k.weight",)}),
                            ("has no token_embd.weight", {"drop": ("token_embd.weight",)}),
                            ("arch lm has no place for: blk.9.odd", {"extra": lambda w: w.add_tensor("blk.9.odd", np.ones(3, np.float32))}),
                            ("rope_freqs.weight is not of Llama 3's rule", {"extra": lambda w: w.add_tensor("rope_freqs.weight", np.linspace(1, 9, 8, dtype=np.float32))})):
            with self.subTest(words):
                wide = self.model("Llama", intermediate_size=256, num_hidden_layers=2) if "TQ2" in words else model
                self.write(wide, "Llama", **more)
                self.refused(words)
        writer = gguf.GGUFWriter(self.gguf, "mamba")
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        self.refused("general.architecture 'mamba' is none of llama, smollm3, ")

    def test_damaged_files(self):
        self.write(self.model("Llama"), "Llama", "Q8_0")
        whole = self.gguf.read_bytes()
        for n in (4, 20, 100, 700, len(whole) // 2, len(whole) - 40):
            with self.subTest(bytes=n):
                self.gguf.write_bytes(whole[:n])
                self.refused("m.gguf is not a complete GGUF file: ")
        for data, words in ((whole.replace(b"GGUF", b"GGML", 1), "m.gguf is not a GGUF file: it begins with b'GGML'"), (b"", "it begins with b''"),
                            (b"version https://git-lfs.github.com/spec/v1", "m.gguf is a Git LFS pointer: get the file itself with git lfs pull")):
            self.gguf.write_bytes(data)
            self.refused(words)
        heads = b"llama.attention.head_count\4\0\0\0"
        self.gguf.write_bytes(whole.replace(heads + b"\4", heads + b"\6", 1))
        self.refused(r"tensor blk.0.attn_q.weight \[64, 64\] does not fit 6 heads: ")
        reader = gguf.GGUFReader(self._restored(whole))
        at = next(t for t in reader.tensors if t.name == "blk.1.ffn_up.weight").data_offset
        self.gguf.write_bytes(whole[:at] + b"\x00\x7c" + whole[at + 2:])
        self.refused("tensor blk.1.ffn_up.weight: a scale is not finite")
        name = b"blk.1.ffn_up.weight"
        offset = whole.index(name) + len(name) + 4 + 2 * 8 + 4
        for to in (0, int.from_bytes(whole[offset:offset + 8], "little") + 1):
            self.gguf.write_bytes(whole[:offset] + to.to_bytes(8, "little") + whole[offset + 8:])
            self.refused("m.gguf: tensor .* is at byte .*, expected a multiple of 32 after the one before, which ends at")
        self.gguf.write_bytes(whole)
        for more, words in (((self.at / "absent.gguf", self.file), "attncl-convert: .*absent.gguf: No such file or directory\n"),
                            ((self.at, self.file), "is a directory of GGUF files, give one of them: m.gguf"), ((self.gguf, self.file, "--set", "a=1"), "settings: .*m.gguf tells all"),
                            ((self.gguf, self.gguf), "m.gguf: the output would overwrite what is read")):
            self.assertRegex(support.convert_alone(*more, status=1).stderr, words)

    def _restored(self, whole):
        self.gguf.write_bytes(whole)
        return self.gguf

    def test_other_names(self):
        self.write(self.model("Llama"), "Llama")
        support.convert_alone(self.gguf.rename(self.at / "sha256-00"), self.file)


class Parts(Case):
    """Models of several files, as llama-gguf-split and the package gguf write them."""

    def write_parts(self, family="Llama", most=8, kind="F32", extra=lambda writer: None, **more):
        self.write(self.model(family, **more), family, kind, extra, split_max_tensors=most, small_first_shard=most == 9)
        return sorted(self.at.glob("m-*.gguf"))

    def test_as_one_file(self):
        """Any of the parts gives the bytes that the whole file gives.  Tensors of one layer lie in two parts, those of the tokenizer in the first."""
        def tokenizer(writer):
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre("gpt-2")
            writer.add_token_list([chr(65 + i) for i in range(30)] + ["AB"])
            writer.add_token_types([1] * 31)
            writer.add_token_merges(["A B"])
            writer.add_eos_token_id(9)
        for family, kind, most, dtype, more in (
                ("Llama", "F32", 8, None, {"rope_parameters": {"rope_theta": 1e4, **Models.ROPES[2]}}), ("Llama", "Q8_0", 9, None, {}),
                ("Phi3", "Q4_0", 5, "Q8", {}), ("GPT2", "F16", 7, "F32", {})):
            with self.subTest(family, kind=kind, most=most):
                model = self.model(family, **more)
                self.write(model, family, kind, tokenizer)
                converting.convert(self.gguf, self.file, dtype=dtype)
                self.gguf.unlink()
                self.write(model, family, kind, tokenizer, split_max_tensors=most, small_first_shard=most == 9)
                parts = sorted(self.at.glob("m-*.gguf"))
                self.assertGreater(len(parts), 2)
                for part in parts:
                    converting.convert(part, self.at / "own", dtype=dtype)
                    self.assertEqual((self.at / "own").read_bytes(), self.file.read_bytes(), part.name)
                self.assertIn("attncl.tokenizer", files.load(self.file)[1])
                for part in parts:
                    part.unlink()

    def test_refusals(self):
        first, second, third = self.write_parts()
        whole = {part: part.read_bytes() for part in (first, second, third)}

        def swap(old, new, *parts):
            for part in parts:
                self.assertEqual(whole[part].count(old), 1)
                part.write_bytes(whole[part].replace(old, new))

        def other(**more):
            """The second part, of another model."""
            own = second.rename(self.at / "own")
            self.write_parts(**more)
            return own.replace(second)
        count, total = (key.encode() + bytes(more) for key, more in (("split.count", (2, 0, 0, 0, 3)), ("split.tensors.count", (5, 0, 0, 0, 21))))
        for words, harm in (
                ("m-00003-of-00003.gguf is one of 3 parts of a model, which must lie in one directory; missing: m-00001-of-00003.gguf, m-00002-of-00003.gguf$",
                 lambda: (first.unlink(), second.unlink())),
                ("m-00002-of-00003.gguf is not a complete GGUF file", lambda: second.write_bytes(whole[second][:-100])),
                ("m-00001-of-00003.gguf: split.no is 1, expected 0: it is no part of the same model as the others", lambda: first.write_bytes(whole[second])),
                ("m-00002-of-00003.gguf: split.count is 4, expected 3: ", lambda: swap(count, count[:-1] + b"\4", second)),
                ("m-00003-of-00003.gguf is one of 4 parts of a model: their names must end with -00001-of-00004.gguf and so on", lambda: swap(count, count[:-1] + b"\4", third)),
                ("m-00002-of-00003.gguf: split.tensors.count is 25, expected 21: ", lambda: swap(total, total[:-1] + b"\x19", second)),
                ("m-00001-of-00003.gguf: split.tensors.count is 25, but the 3 parts have 21 tensors", lambda: swap(total, total[:-1] + b"\x19", *whole)),
                ("m-00002-of-00003.gguf: tensor blk.0.attn_k.weight is in m-00001-of-00003.gguf too",
                 lambda: swap(b"blk.1.attn_k.weight", b"blk.0.attn_k.weight", second)),
                ("m-00002-of-00003.gguf: general.architecture is 'qwen2', expected 'llama': ", lambda: self.foreign(second))):
            with self.subTest(words):
                for part, data in whole.items():
                    part.write_bytes(data)
                harm()
                self.refused(words, third)

    def foreign(self, path):
        writer = gguf.GGUFWriter(path, "qwen2")
        for key, value in (("no", 1), ("count", 3), ("tensors.count", 21)):
            writer.add_uint32(f"split.{key}", value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()

    def test_names(self):
        first, *_ = parts = self.write_parts()
        for name in ("m.gguf", "m-00001-of-00000.gguf", "m-00004-of-00003.gguf", "m-00000-of-00003.gguf"):
            (self.at / name).write_bytes(first.read_bytes())
            self.refused(f"{name} is one of 3 parts of a model: their names must end with -00001-of-00003.gguf and so on", self.at / name)
        kept = parts[1].read_bytes()
        done = support.convert_alone(first, parts[1], status=1)
        self.assertRegex(done.stderr, "m-00002-of-00003.gguf: the output would overwrite what is read")
        self.assertEqual(parts[1].read_bytes(), kept)


class Tokenizers(Case):
    def saved(self, name):
        """Its added tokens without the spaces and normalisation that a GGUF file does not tell."""
        values = json.loads((support.DATA / f"tokenizer_{name}.json").read_text(encoding="utf-8"))["tokenizer"]
        plain = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
        return {**values, "added_tokens": [{**one, **plain} for one in values["added_tokens"]]}

    def convert(self, write):
        self.write(self.model("Llama", vocab_size=2000), "Llama", extra=write)
        converting.convert(self.gguf, self.file)
        return attncl.Tokenizer(files.load(self.file)[1]["attncl.tokenizer"])

    def listed(self, values):
        """Tokens and their types, as llama.cpp's conversion has them: control ones, and at the end what pads to a row."""
        tokens = {i: token for token, i in values["model"]["vocab"].items()}
        added = {one["id"]: one for one in values["added_tokens"]}
        tokens.update((i, one["content"]) for i, one in added.items())
        types = [3 if i in added and added[i]["special"] else 4 if i in added else 1 for i in range(len(tokens))]
        return [tokens[i] for i in range(len(tokens))] + ["[PAD]"], types + [5]

    def same(self, ours, values):
        theirs = attncl.Tokenizer(json.dumps(values))
        for text in (*made.TEXTS, made.TEXT[:2000], "", " ", "  a  b", "12345 3", "don't  'LL", "\u4e2d\U0001f600e\u0301", *(one["content"] for one in values["added_tokens"])):
            self.assertEqual(ours.encode(text).tolist(), theirs.encode(text).tolist(), text)
            self.assertEqual(ours.decode(theirs.encode(text)), theirs.decode(theirs.encode(text)), text)
        if llama_cpp:
            file = llama_cpp.Llama(str(self.gguf), n_ctx=256, vocab_only=True, verbose=False)
            for begin in range(0, 9000, 45):
                text = made.TEXT[begin:begin + 45]
                self.assertEqual(ours.encode(text).tolist(), file.tokenize(text.encode(), add_bos=True, special=True), text)

    def test_byte_level(self):
        for name, pre in (("gpt2", "gpt-2"), ("llama3", "llama-bpe")):
            with self.subTest(name):
                values = {**self.saved(name), "normalizer": None}
                if name == "gpt2":
                    values["pre_tokenizer"]["add_prefix_space"] = False
                tokens, types = self.listed(values)

                def write(writer):
                    writer.add_tokenizer_model("gpt2")
                    writer.add_tokenizer_pre(pre)
                    writer.add_token_list(tokens)
                    writer.add_token_types(types)
                    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in values["model"]["merges"]])
                    begin = values.get("post_processor") and self.begin(values)
                    writer.add_add_bos_token(begin is not None)
                    if begin is not None:
                        writer.add_bos_token_id(begin)
                    writer.add_eos_token_id(9)
                    writer.add_eot_token_id(5)
                    writer.add_eom_token_id(5000)  # the model has 2000 tokens
                self.same(self.convert(write), values)
                self.assertEqual(files.load(self.file)[1]["attncl.eos"], "[9, 5]")

    def begin(self, values):
        tokens = attncl.Tokenizer(json.dumps(values)).encode("")
        return int(tokens[0]) if len(tokens) else None

    def test_pieces(self):
        """Scores fall with the order in which merges were found."""
        values = self.saved("llama2")
        tokens, types = self.listed(values)
        merged, merges = {}, [one if isinstance(one, list) else one.split(" ") for one in values["model"]["merges"]]
        for rank, (left, right) in enumerate(merges):
            merged.setdefault(left + right, -float(rank))
        types = [6 if token.startswith("<0x") else 2 if token == "<unk>" else kind for token, kind in zip(tokens, types)]

        def write(writer):
            writer.add_tokenizer_model("llama")
            writer.add_token_list(tokens)
            writer.add_token_types(types)
            writer.add_token_scores([merged.get(token, -1e6) for token in tokens])
            writer.add_bos_token_id(self.begin(values))
        self.same(self.convert(write), values)

    def test_refusals(self):
        model = self.model("Llama")

        def vocabulary(kind, pre, writer):
            writer.add_tokenizer_model(kind)
            writer.add_tokenizer_pre(pre)
            writer.add_token_list([chr(97 + i) for i in range(31)])
            writer.add_token_types([1] * 31)
            writer.add_token_merges([])
        def listed(name, values, more, writer):
            vocabulary("llama", "default", writer)
            getattr(writer, f"add_{name}")(values)
            writer.add_bos_token_id(more)
        for name, values, begin, words in (("token_scores", [0.0] * 30, 1, "tokenizer.ggml.scores has 30 entries, tokenizer.ggml.tokens has 31"),
                                           ("token_scores", [0.0] * 31, 31, "tokenizer.ggml.bos_token_id is 31, tokenizer.ggml.tokens has 31 entries")):
            self.write(model, "Llama", extra=functools.partial(listed, name, values, begin))
            self.refused(words)
        for kind, pre, words in (("t5", "default", "tokenizer.ggml.model 't5' is none of gpt2, llama; --tokenizer FILE takes"),
                                 ("gpt2", "default", "tokenizer.ggml.pre 'default' is none of gpt-2, smollm, qwen2, llama-bpe; --tokenizer FILE")):
            self.write(model, "Llama", extra=functools.partial(vocabulary, kind, pre))
            with self.assertRaisesRegex(attncl.ConversionError, words):
                converting.convert(self.gguf, self.file)
            self.assertFalse(self.file.exists())
            support.convert_alone(self.gguf, self.file, "--no-tokenizer")
            self.assertNotIn("attncl.tokenizer", files.load(self.file)[1])
            (self.at / "t.json").write_text(json.dumps(self.saved("llama2")))
            support.convert_alone(self.gguf, self.file, "--tokenizer", self.at / "t.json")
            self.assertIn("attncl.tokenizer", files.load(self.file)[1])
            self.file.unlink()


if __name__ == "__main__":
    support.need_device()
    support.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pretrained.py LIBRARY: GPT-2, BERT, Marian, BART and others of the transformers package, of odd sizes and random weights, as model files."""
import json
import pathlib
import shutil
import subprocess
import sys

import support

try:
    import numpy as np
    import torch
    import transformers
except ImportError as error:
    support.skip(f"no {error.name}")
support.use_package(sys.argv[1])
import attncl  # noqa: E402
from attncl import files  # noqa: E402
from attncl.decoders import plan  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def gpt2(**more):
    settings = {"vocab_size": 29, "n_positions": 17, "n_embd": 18, "n_head": 3, "n_layer": 2, "bos_token_id": 1,
                "eos_token_id": None, **more}
    return random_weights(transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings)))


def bert(cls=transformers.BertModel, **more):
    settings = {"vocab_size": 29, "max_position_embeddings": 17, "hidden_size": 18, "num_attention_heads": 3,
                "num_hidden_layers": 2, "intermediate_size": 31, "type_vocab_size": 3, **more}
    return random_weights(cls(transformers.BertConfig(**settings)))


def random_weights(model):
    """Large enough that every one of them shows in the output; no bias is 0, no norm 1."""
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return model.eval()


class Case(support.ExportCase):
    seed = 11

    def refused(self, words, source, **more):
        with self.assertRaisesRegex(attncl.ConversionError, words):
            attncl.export(source, self.file, quiet=True, **more)
        self.assertFalse(self.file.exists())


class GPT2(Case):
    def test_settings(self):
        for more in ({}, {"n_inner": 31, "activation_function": "gelu"}, {"activation_function": "relu", "layer_norm_epsilon": 1e-2},
                     {"tie_word_embeddings": False}, {"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True},
                     {"n_embd": 5, "n_head": 5, "n_layer": 3, "vocab_size": 7, "n_positions": 3}):
            with self.subTest(**more):
                report = self.export(gpt2(**more))
                self.assertEqual(report.arch, "lm")
                self.assertEqual(report.config["tie_generator"], more.get("tie_word_embeddings", True))
                self.assertEqual("generator.projection.weight" in files.load(self.file)[0], "tie_word_embeddings" in more)

    def test_every_position(self):
        model = gpt2()
        self.export(model)
        tokens = torch.randint(29, (17, 3))
        with torch.no_grad():
            want = model(tokens.t()).logits.transpose(0, 1).numpy()
        with attncl.Model(self.file) as file:
            np.testing.assert_allclose(file.run(tokens=tokens.numpy())["output"], want, atol=1e-4, rtol=1e-5)
            with file.decoder(3) as decoder:
                self.assertEqual(decoder.limit, 17)
                for t in range(17):
                    np.testing.assert_allclose(decoder.step(tokens[t].numpy()), want[t], atol=1e-4, rtol=1e-5)

    def test_greedy_text(self):
        model = gpt2()
        self.export(model)
        prompt = torch.randint(29, (2, 4))
        want = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=9, do_sample=False, pad_token_id=0)
        with attncl.Model(self.file) as file:
            np.testing.assert_array_equal(file.generate(prompt.t().numpy(), 9, temperature=0), want.t().numpy())

    def test_types(self):
        self.export(gpt2().bfloat16())
        self.assertEqual(files.load(self.file)[0]["encoder.norm.weight"].dtype, files.BFLOAT16)

    def test_refusals(self):
        self.refused("add_cross_attention is True, expected False", gpt2(add_cross_attention=True))
        self.refused("activation 'quick_gelu' is none of silu", gpt2(activation_function="quick_gelu"))
        self.refused("GPT2Model cannot be converted; what can: .*GPT2LMHeadModel, BertModel", gpt2().transformer)


class Bert(Case):
    def test_settings(self):
        for more in ({}, {"hidden_act": "relu", "layer_norm_eps": 1e-2}, {"hidden_act": "gelu_new", "type_vocab_size": 1},
                     {"hidden_size": 5, "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 7,
                      "max_position_embeddings": 3}):
            with self.subTest(**more):
                report = self.export(bert(**more))
                self.assertEqual(report.arch, "encoder")
                self.assertTrue(any("pooler.dense.weight, pooler.dense.bias left out" in note for note in report.notes))
                self.assertTrue(any("tokens are of type 0" in note for note in report.notes))

    def test_padding(self):
        """attention_mask shows where it is 1, as the mask here does."""
        model = bert()
        self.export(model)
        tokens, seen = torch.randint(29, (3, 17)), torch.ones(3, 17, dtype=torch.int64)
        seen[1, 9:], seen[2, 1:] = 0, 0
        with torch.no_grad():
            want = model(tokens, attention_mask=seen).last_hidden_state.transpose(0, 1).numpy()
        with attncl.Model(self.file) as file:
            got = file.run(tokens=tokens.t().numpy(), mask=seen.t()[None].bool().numpy())["output"]
        for b, n in enumerate(seen.sum(1)):
            np.testing.assert_allclose(got[:n, b], want[:n, b], atol=1e-5, rtol=1e-5)

    def test_refusals(self):
        self.refused("is_decoder=True cannot be expressed", bert(is_decoder=True))
        self.refused("hidden_act cannot be expressed", bert(hidden_act="quick_gelu"))
        self.refused("BertForMaskedLM cannot be converted", bert(transformers.BertForMaskedLM))


class Translators(Case):
    SIZES = {"vocab_size": 29, "d_model": 18, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 3,
             "decoder_attention_heads": 3, "encoder_ffn_dim": 31, "decoder_ffn_dim": 31, "max_position_embeddings": 17,
             "pad_token_id": 28, "decoder_start_token_id": 28, "eos_token_id": 3, "forced_eos_token_id": None, "bos_token_id": 1}

    def model(self, family, **more):
        cls = {"Marian": transformers.MarianMTModel, "Bart": transformers.BartForConditionalGeneration}[family]
        model = random_weights(cls(getattr(transformers, f"{family}Config")(**{**self.SIZES, **more})))
        model.final_logits_bias.normal_()
        return model

    def test_settings(self):
        for family, more in (("Marian", {}), ("Bart", {}), ("Marian", {"scale_embedding": True, "activation_function": "swish"}),
                             ("Marian", {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False, "decoder_vocab_size": 31}),
                             ("Bart", {"scale_embedding": True, "activation_function": "relu", "decoder_layers": 3})):
            with self.subTest(family, **more):
                report = self.export(self.model(family, **more))
                self.assertEqual(report.arch, "seq2seq_transformer")
                self.assertEqual(report.notes[-1], "arch seq2seq_transformer_predict takes bos 28 and eos 3")

    def test_directories(self):
        for family in ("Marian", "Bart"):
            with self.subTest(family):
                self.model(family).save_pretrained(self.at / family)
                self.assertEqual(self.export(self.at / family).arch, "seq2seq_transformer")

    def test_translation(self):
        """Greedy and by beams, with padded sources.  Beams of a fixed length: transformers ends a search early in its own way."""
        model, source, seen = self.model("Marian"), torch.randint(28, (3, 6)), torch.ones(3, 6, dtype=torch.int64)
        seen[1, 4:] = 0
        self.export(model)
        tensors, metadata = files.load(self.file)
        for beams, more in ((1, {"eos": 3}), (4, {"length_penalty": 1})):
            config = {**json.loads(metadata["attncl.config"]), "bos": 28, "num_steps": 9, "beams": beams, **more}
            files.save(self.file, tensors, {"attncl.arch": "seq2seq_transformer_predict", "attncl.config": json.dumps(config)})
            want = model.generate(source, attention_mask=seen, max_new_tokens=9, min_new_tokens=1 if beams == 1 else 9, num_beams=beams, do_sample=False,
                                  eos_token_id=3 if beams == 1 else None, bad_words_ids=None)[:, 1:].numpy()
            with attncl.Model(self.file) as file:
                got = file.run(enc_X=source.numpy(), enc_valid_lens=seen.sum(1).numpy())["tokens"]
            for a, b in zip(got, want):
                end = np.flatnonzero(b == 3)[:1]
                np.testing.assert_array_equal(a[:end[0] + 1 if len(end) else 9], b[:end[0] + 1 if len(end) else 9])

    def test_refusals(self):
        self.refused("decoder_ffn_dim=30 cannot be expressed", self.model("Marian", decoder_ffn_dim=30))
        self.refused("decoder_attention_heads=2 cannot be expressed", self.model("Bart", decoder_attention_heads=2))


class Decoders(Case):
    """Families of decoder-only models: their directories without torch or transformers, and live models."""

    SIZES = {"vocab_size": 31, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6,
             "num_key_value_heads": 2, "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
    CAPS = {"head_dim": 10, "query_pre_attn_scalar": 7, "sliding_window": 5, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5}
    ROPES = ({"rope_type": "linear", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0},
             {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10},
             {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10, "truncate": False},
             {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16})

    def model(self, family, **more):
        config = getattr(transformers, f"{family}Config")(**{**self.SIZES, **more})
        model = getattr(transformers, family.replace("3Text", "3") + "ForCausalLM")(config)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p) * 0.1)
        return model.eval()

    def save(self, model, prefix=""):
        """The model's directory; `prefix` is taken off the tensors' names, as the published GPT-2 has them."""
        directory = self.at / "saved"
        shutil.rmtree(directory, ignore_errors=True)
        model.save_pretrained(directory)
        if prefix:
            tensors, metadata = files.load(directory / "model.safetensors")
            files.save(directory / "model.safetensors", {name.removeprefix(prefix): a for name, a in tensors.items()}, metadata)
        return directory

    def same(self, model, limit=2e-5, **more):
        """The directory, converted by a process that has neither package, gives the model's scores and greedy tokens."""
        support.convert_alone(self.save(model, **more), self.file)
        tokens = torch.randint(31, (3, 20))
        with torch.no_grad():
            want = model(tokens).logits.transpose(0, 1).numpy()
        text = model.generate(tokens[:, :4], attention_mask=torch.ones(3, 4), max_new_tokens=16, do_sample=False)
        with attncl.Model(self.file) as file:
            got = file.run(tokens=tokens.t().numpy())["output"]
            np.testing.assert_allclose(got, want, atol=limit * max(1, np.abs(want).max()), rtol=0)
            np.testing.assert_array_equal(file.generate(tokens[:, :4].t().numpy(), 16, temperature=0), text.t().numpy())

    def test_families(self):
        caps = self.CAPS
        for family, more in (("Llama", {}), ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
                             ("Llama", {"num_key_value_heads": 1, "head_dim": 6}), ("Mistral", {"sliding_window": None}),
                             ("Mistral", {"sliding_window": 5}), ("Qwen2", {}),
                             ("Qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
                             ("Qwen3", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0}), ("Qwen3", {"head_dim": 10}), ("SmolLM3", {"no_rope_layers": [1, 1]}),
                             ("SmolLM3", {"no_rope_layer_interval": 2, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 6}),
                             ("Gemma", {"head_dim": 10}), ("Gemma2", {**caps, "num_hidden_layers": 3}),
                             ("Gemma2", {**caps, "final_logit_softcapping": None, "sliding_window": 40}),
                             ("Gemma3Text", {**caps, "num_hidden_layers": 7, "attn_logit_softcapping": None}),
                             ("Gemma3Text", {**caps, "attn_logit_softcapping": None, "final_logit_softcapping": None,
                                             "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
                                                 "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e5},
                                                 "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}}), ("Phi3", {"partial_rotary_factor": 0.5}),
                             ("Gemma3Text", {**caps, "attn_logit_softcapping": None, "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
                                 "full_attention": {**self.ROPES[3], "rope_theta": 1e4}, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
                             ("GPTNeoX", {"num_attention_heads": 3}),
                             ("GPTNeoX", {"num_attention_heads": 3, "rope_parameters": {"rope_theta": 100.0, "partial_rotary_factor": 0.4}}),
                             ("GPTNeoX", {"num_attention_heads": 3, "use_parallel_residual": False})):
            with self.subTest(family, **more):
                self.same(self.model(family, **more))

    def test_gpt2(self):
        sizes = {"vocab_size": 31, "n_positions": 40}
        for more in ({}, {"scale_attn_weights": False, "n_inner": 31}, {"scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False}):
            with self.subTest(**more):
                self.same(gpt2(**sizes, **more))
        self.same(gpt2(**sizes), prefix="transformer.")

    def test_types(self):
        """--dtype gives the bytes of attncl convert."""
        tool = pathlib.Path(sys.argv[1]).parent / "tools" / "attncl"
        if not tool.exists():
            self.skipTest("no attncl")
        wide = {"hidden_size": 64, "head_dim": 16, "num_attention_heads": 4}
        for model in (self.model("Llama", **wide), self.model("Gemma", **wide).bfloat16(), self.model("GPTNeoX", hidden_size=64, num_attention_heads=4),
                      self.model("Phi3", **wide).half(), gpt2(n_embd=96)):
            support.convert_alone(self.save(model), self.file)
            kinds = set()
            for dtype in ("f32", "f16", "bf16", "q8", "q4"):
                with self.subTest(type(model).__name__, dtype=dtype):
                    support.convert_alone(self.at / "saved", self.at / "here", "--dtype", dtype)
                    subprocess.run([tool, "convert", self.file, self.at / "there", "--dtype", dtype], check=True)
                    self.assertEqual((self.at / "here").read_bytes(), (self.at / "there").read_bytes())
                    kinds |= set(files.load(self.at / "here")[1])
            self.assertTrue(any("quantised" in key for key in kinds))
        big = self.model("Llama", **wide)
        with torch.no_grad():
            big.model.layers[1].mlp.up_proj.weight[0, 0] = 1e9
        for dtype, words in (("f16", "encoder.layers.1.feed_forward.linear_v.weight: element 0 is 1e.09, which does not fit F16"),
                             ("q4", "encoder.layers.1.feed_forward.linear_v.weight: block 0 of row 0 is too large")):
            done = support.convert_alone(self.save(big), self.at / "large", "--dtype", dtype, status=1)
            self.assertRegex(done.stderr, words)
            self.assertFalse((self.at / "large").exists())
        done = support.convert_alone(self.at / "there", self.at / "large", "--dtype", "q8", status=1)
        self.assertRegex(done.stderr, "--dtype and --tokenizer are for directories and ..gguf of gpt2, llama, ")

    def test_memory(self):
        """A model of 120 MiB whose largest tensors have 8 takes little more memory than a small one."""
        def peak(**sizes):
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**self.SIZES, **sizes}))
            directory = self.save(model)
            return [support.convert_alone(directory, self.file, *more, peak=True) for more in ((), ("--dtype", "q8"), ("--dtype", "bf16"))]
        for big, small in zip(peak(hidden_size=512, intermediate_size=4096, num_attention_heads=8, num_hidden_layers=4, head_dim=64), peak()):
            self.assertLess(big - small, 40)

    def test_scaled_positions(self):
        for rope in self.ROPES:
            with self.subTest(**rope):
                self.same(self.model("Llama", rope_parameters={"rope_theta": 1e4, **rope}))

    LONG = {"rope_type": "longrope", "short_factor": [1.0, 1.3], "long_factor": [2.0, 9.0]}

    def test_longrope(self):
        """Texts of one kind, and one that becomes long while it is drawn.  Only Phi 3 takes it again then."""
        for family, original, more, rope in (
                ("Phi3", 20, {}, {}), ("Phi3", 10, {"sliding_window": 6}, {"attention_factor": 1.4}), ("Phi3", 3, {"tie_word_embeddings": True}, {"factor": 7.0}),
                ("Phi3", 10, {"num_key_value_heads": 3, "max_position_embeddings": 20}, {"partial_rotary_factor": 0.5, "short_factor": [2.0], "long_factor": [3.0]}),
                ("Llama", 3, {}, {}), ("Qwen2", 30, {}, {}), ("Gemma3Text", 3, {**self.CAPS, "attn_logit_softcapping": None, "head_dim": 4}, {})):
            rope = {**self.LONG, "rope_theta": 100.0, "original_max_position_embeddings": original, **rope}
            more = {**more, **({"original_max_position_embeddings": original} if family == "Phi3" else {})}
            if family == "Gemma3Text":
                more["layer_types"], rope = ["full_attention", "sliding_attention"], {"full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
            with self.subTest(family, original=original, **more):
                self.same(self.model(family, **more, rope_parameters=rope))
        with attncl.Model(self.file) as file:
            self.assertEqual(file.config["rope_factor"], 40 / 3)

    def test_published_configurations(self):
        """As transformers 4 wrote them: positions beside each other, a pattern of layers, keys of a family's first code."""
        for family, gone, old in (
                ("Gemma3Text", ("layer_types", "rope_parameters", "_sliding_window_pattern"),
                 {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": None, "sliding_window_pattern": 6, "cache_implementation": "hybrid"}),
                ("Gemma2", ("layer_types", "rope_parameters"), {"rope_theta": 1e4, "hidden_act": "gelu_pytorch_tanh", "cache_implementation": "hybrid"}),
                ("SmolLM3", ("rope_parameters",), {"rope_theta": 2e6, "max_window_layers": 28, "rope_scaling": None}),
                ("Phi3", ("rope_parameters",), {"rope_theta": 1e4, "rope_scaling": {**self.LONG, "rope_type": "su"}, "full_attn_mod": 1, "interpolate_factor": 1}),
                ("Phi3", ("rope_parameters",), {"rope_theta": 1e4, "rope_scaling": {**self.LONG, "rope_type": None, "type": "yarn"}}),
                ("Qwen2", ("layer_types", "rope_parameters"), {"rope_theta": 1e4, "use_sliding_window": False, "sliding_window": 131072})):
            long = {"rope_scaling": {**self.LONG, "original_max_position_embeddings": 9}, "original_max_position_embeddings": 8} if family == "Phi3" else {}
            new = getattr(transformers, f"{family}Config")(**{**self.SIZES, "num_hidden_layers": 7, **long}).to_dict()
            with self.subTest(family):
                older = {**{k: v for k, v in new.items() if k not in gone}, **old}
                self.assertEqual(plan(older)[0], plan(new)[0])

    def test_shards(self):
        """The files that the index names, which are all there; what else lies in the directory does not count."""
        model = self.model("Llama")
        directory = self.save(model)
        support.convert_alone(directory, self.file)
        whole = self.file.read_bytes()
        (directory / "consolidated.safetensors").write_bytes(b"of another program")
        support.convert_alone(directory, self.file)
        (directory / "model.safetensors").unlink()
        model.save_pretrained(directory, max_shard_size="8KB")
        support.convert_alone(directory, self.file)
        self.assertEqual(self.file.read_bytes(), whole)
        shards = sorted(directory.glob("model-*.safetensors"))
        self.assertGreater(len(shards), 1)
        shards[1].unlink()
        done = support.convert_alone(directory, self.at / "none", status=1)
        self.assertRegex(done.stderr, "index.json names files that are missing: model-00002-of-.*.safetensors\n")
        (directory / "model.safetensors.index.json").write_text("[]")
        self.assertRegex(support.convert_alone(directory, self.at / "none", status=1).stderr, "index.json: no list of files: TypeError: ")

    def test_absent_keys(self):
        """Without a key a family's default counts, or the key is missed by name."""
        for family, more in (("Mistral", {}), ("Qwen2", {"use_sliding_window": True, "max_window_layers": 1}), ("Qwen3", {}), ("SmolLM3", {}), ("Gemma", {}),
                             ("Gemma2", {}), ("Gemma3Text", {}), ("Phi3", {}), ("GPTNeoX", {}), ("Llama", {})):
            cls = getattr(transformers, f"{family}Config")
            whole = cls(**{**self.SIZES, "head_dim": 4, **more}).to_dict()
            for key in whole.keys() - {"model_type"}:
                with self.subTest(family, key=key):
                    values = {k: v for k, v in whole.items() if k != key}
                    try:
                        got = plan(values)[0]
                    except attncl.ConversionError as error:
                        self.assertRegex(str(error), f"config.json has no {key}|layer_types")
                        continue
                    self.assertEqual(got, plan(cls(**json.loads(json.dumps(values))).to_dict())[0])
        old = cls(**self.SIZES).to_dict()
        smol = {"is_llama_config": True, "rope_interleaved": False, "transformers.js_config": {}, "pretraining_tp": 2, "temperature": 0.5, "use_mrope": False}
        self.assertEqual(plan({**old, **smol})[0], plan(old)[0])
        neox = transformers.GPTNeoXConfig(**self.SIZES).to_dict()
        del neox["rope_parameters"]
        config = plan({**neox, "rotary_pct": 0.5, "rotary_emb_base": 300})[0]
        self.assertEqual((config["rope_width"], config["rope_theta"]), (2, 300))

    def test_live_and_gradients(self):
        for family, more in (("Qwen3", {"head_dim": 10}), ("Llama", {"rope_parameters": {**self.LONG, "rope_theta": 50.0, "original_max_position_embeddings": 8}}), ("Gemma2", self.CAPS), ("Gemma3Text", {**self.CAPS, "attn_logit_softcapping": None})):
            with self.subTest(family):
                self.same_gradients(self.model(family, **{"pad_token_id": 2, "tie_word_embeddings": family == "Qwen3", **more}))

    def same_gradients(self, model):
        self.export(model)
        tokens, targets = torch.randint(31, (12, 2)), torch.randint(31, (12, 2))
        torch.nn.functional.cross_entropy(model(tokens.t()).logits.transpose(0, 1).flatten(0, 1), targets.flatten()).backward()
        with attncl.Model(self.file) as file:
            _, got = file.gradients({"loss": np.ones((), np.float32)}, tokens=tokens.numpy(), targets=targets.numpy())
        for name, source in (("src_embed.weight", model.model.embed_tokens), ("encoder.norm.weight", model.model.norm),
                             ("encoder.layers.0.self_attn.key.linear.weight", model.model.layers[0].self_attn.k_proj),
                             ("encoder.layers.1.self_attn.query.linear.weight", model.model.layers[1].self_attn.q_proj),
                             ("encoder.layers.1.self_attn.query_norm.weight", getattr(model.model.layers[1].self_attn, "q_norm", None)),
                             ("encoder.layers.0.post_norm_ff.weight", getattr(model.model.layers[0], "post_feedforward_layernorm", None)),
                             ("encoder.layers.1.feed_forward.linear_v.weight", model.model.layers[1].mlp.up_proj)):
            if source is None:
                continue
            np.testing.assert_allclose(got[name], source.weight.grad.numpy(), atol=1e-5, rtol=1e-4, err_msg=name)

    def test_refusals(self):
        self.model("Llama").save_pretrained(self.at / "d")
        good = json.loads((self.at / "d" / "config.json").read_text())
        for more, words in (({"hidden_act": "relu6"}, "activation 'relu6' is none of silu"), ({"novel": 1}, "config.json: novel: not known"),
                            ({"rope_parameters": {"rope_type": "ntk"}}, "rope_type 'ntk' is none of default, linear"),
                            ({"rope_parameters": {**self.LONG, "long_factor": [1, float("nan")]}}, r"long_factor is \[1, nan\], expected a list of numbers above 0"),
                            ({"rope_parameters": {**self.LONG, "short_factor": [0, 1]}}, r"short_factor is \[0, 1\], expected a list of numbers above 0"),
                            ({"rope_parameters": {"rope_type": "longrope", "short_factor": [1, 1]}}, "long_factor is None, expected a list of numbers above 0"),
                            ({"rope_parameters": {"rope_type": "yarn", "factor": 2, "partial_rotary_factor": 0.3}}, "yarn turns 1 channels of a head, expected an even"),
                            ({"num_hidden_layers": 3}, "there is no tensor model.layers.2.input_layernorm.weight"),
                            ({"num_hidden_layers": 1}, "arch lm has no place for: model.layers.1."),
                            ({"intermediate_size": 41}, r"mlp.gate_proj.weight becomes .*layer1.weight \[40, 24\], expected \[41, 24\]"),
                            ({"model_type": "gemma3_text", "attn_logit_softcapping": 3.0}, "attn_logit_softcapping is 3.0, expected None"),
                            ({"model_type": "qwen2", "layer_types": ["full_attention"]}, "layer_types has 1 entries, num_hidden_layers is 2"),
                            ({"model_type": "qwen2", "layer_types": ["full_attention", "chunked"]}, "layer_types has chunked, expected full_attention"),
                            ({"model_type": "phi3", "full_attn_mod": 2}, "full_attn_mod is 2, expected 1"),
                            ({"use_mrope": True}, "use_mrope is True, expected False: model_type 'llama' has none"),
                            ({"num_attention_heads": 0}, "num_attention_heads is 0, expected a whole number from 1 to 2147483647"),
                            ({"num_hidden_layers": 10 ** 12}, "num_hidden_layers is 1000000000000, expected a whole number from 1 to 9999"),
                            ({"rope_parameters": [1]}, r"rope_parameters is \[1\], expected an object"),
                            ({"eos_token_id": [1, "x"]}, r"eos_token_id is \[1, 'x'\], expected token numbers"),
                            ({"model_type": "falcon"}, "model_type 'falcon' is none of gpt2, bert, bart, marian, llama, ")):
            (self.at / "d" / "config.json").write_text(json.dumps({**good, **more}))
            self.refused(words, self.at / "d")
        (self.at / "d" / "config.json").write_text(json.dumps(good))
        for name, text, words in (("tokenizer.json", "[]", "tokenizer.json holds no JSON object"), ("config.json", "null", "config.json holds no JSON object"),
                                  ("generation_config.json", "5", "generation_config.json holds no JSON object")):
            before = (self.at / "d" / name).read_text() if (self.at / "d" / name).exists() else "{}"
            (self.at / "d" / name).write_text(text)
            self.refused(words, self.at / "d")
            (self.at / "d" / name).write_text(before)
        done = support.convert_alone(self.at / "d", "--dtyp", "f16", self.file, status=2)
        self.assertRegex(done.stderr, "^attncl-convert: unrecognized arguments: --dtyp")
        (self.at / "d" / "tokenizer.json").write_text("[" * 100000)
        done = support.convert_alone(self.at / "d", self.file, status=1)
        self.assertRegex(done.stderr, "^attncl-convert: .*d: RecursionError: ")
        (self.at / "d" / "tokenizer.json").unlink()
        done = support.convert_alone(self.at / "d", self.at / "d" / "model.safetensors", status=1)
        self.assertRegex(done.stderr, "model.safetensors: the output would overwrite what is read")


class Checkpoints(Case):
    def same(self, source, model, notes=(), **more):
        """A file gives the model file that the module itself does."""
        attncl.export(model, self.at / "want", quiet=True)
        report = self.export(source, **more)
        want, got = files.load(self.at / "want"), files.load(self.file)
        self.assertEqual(got[1], want[1])
        self.assertEqual(set(got[0]), set(want[0]))
        for name, value in want[0].items():
            np.testing.assert_array_equal(got[0][name], value, name)
        for words in notes:
            self.assertTrue(any(words in note for note in report.notes), report.notes)
        self.file.unlink()

    def test_saved_by_transformers(self):
        for i, model in enumerate((gpt2(), gpt2(tie_word_embeddings=False), bert())):
            model.save_pretrained(self.at / f"d{i}")
            self.same(self.at / f"d{i}", model)
            self.same(self.at / f"d{i}" / "model.safetensors", model)
            self.same(dict(model.state_dict()), model, config=model.config.to_dict())

    def test_older_files(self):
        """The published GPT-2: no prefix, causal masks among the tensors.  The published BERT: a prefix, its heads,
        gamma and beta."""
        model = gpt2()
        (self.at / "config.json").write_text(json.dumps(model.config.to_dict()))
        old = {name.removeprefix("transformer."): t for name, t in model.state_dict().items() if name != "lm_head.weight"}
        old |= {f"h.{i}.attn.bias": torch.ones(1, 1, 17, 17).tril() for i in range(2)}
        old |= {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(2)}
        torch.save(old, self.at / "pytorch_model.bin")
        self.same(self.at / "pytorch_model.bin", model)
        masked = bert(transformers.BertForMaskedLM)
        (self.at / "config.json").write_text(json.dumps(masked.config.to_dict()))
        renamed = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
                   for name, t in masked.state_dict().items()}
        renamed["bert.embeddings.position_ids"] = torch.arange(17)[None]
        torch.save(renamed, self.at / "pytorch_model.bin")
        self.same(self.at / "pytorch_model.bin", masked.bert, notes=["cls.predictions."])

    def test_refusals(self):
        model = gpt2()
        state, config = dict(model.state_dict()), model.config.to_dict()
        short = {name: t for name, t in state.items() if "h.1.ln_2" not in name}
        self.refused("the checkpoint lacks transformer.h.1.ln_2.bias, transformer.h.1.ln_2.weight", short, config=config)
        self.refused("model_type 'llama' is none of gpt2, bert", state, config={**config, "model_type": "llama"})
        self.refused(r"shapes of the checkpoint differ from config.json: transformer.wpe.weight \[17, 18\], expected \[16, 18\]", state, config={**config, "n_positions": 16})
        self.refused("absent.json", state, config=self.at / "absent.json")
        self.refused("config.json tells all settings", state, config=config, settings={"nhead": 3})
        extra = {**state, "transformer.h.0.attn.gate": torch.ones(3)}
        report = attncl.export(extra, self.file, config=config, quiet=True)
        self.assertTrue(any("transformer.h.0.attn.gate" in note for note in report.notes), report.notes)


if __name__ == "__main__":
    support.need_device()
    support.main()

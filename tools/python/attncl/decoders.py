# SPDX-License-Identifier: MIT
"""Decoder-only language models of the transformers package as arch lm, layer transformer.

A function for each family makes, from config.json, the configuration and the target of each tensor.  Every key of config.json
is used, known to be harmless, or refused by name.  attncl.converting reads and writes the tensors.
"""
from __future__ import annotations

import json
import math
import os
import pathlib
import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from .c_api import BFLOAT16
from .model import some


class ConversionError(ValueError):
    """A model file cannot hold the module, or computes something else."""


def refuse(words: str) -> NoReturn:
    raise ConversionError(words)


_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}


def _check_kind(name: str, value: Any, example: Any) -> Any:
    kind = type(example)
    if kind in _KINDS and not isinstance(value, (int, float) if kind in (int, float) else kind):
        refuse(f"{name} is {value!r}, expected {_KINDS[kind]}")
    return value


def check_size(name: str, value: Any, most: int = 2 ** 31 - 1) -> int:
    if type(value) is not int or not 1 <= value <= most:
        refuse(f"{name} is {value!r}, expected a whole number from 1 to {most}")
    return value


# Keys of training, generation and other programs, which do not change the logits.
_HARMLESS = {
    "_name_or_path", "architectures", "auto_map", "bos_token_id", "chunk_size_feed_forward", "classifier_dropout", "dtype",
    "eos_token_id", "id2label", "initializer_range", "is_decoder", "is_encoder_decoder", "label2id", "output_attentions",
    "output_hidden_states", "pad_token_id", "problem_type", "resid_pdrop", "embd_pdrop", "return_dict", "torch_dtype",
    "transformers_version", "use_cache", "attention_dropout", "hidden_dropout", "max_window_layers", "model_type",
    "cache_implementation", "attn_pdrop", "n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
    "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params", "pretraining_tp",
    "_attn_implementation", "_attn_implementation_autoset", "_num_labels", "gradient_checkpointing", "is_llama_config",
    "max_sequence_length", "neftune_noise_alpha", "tokenizer_class", "torchscript", "transformers.js_config", "unsloth_fixed",
    "unsloth_version", "use_bfloat16",
    # Of generation, which transformers kept in config.json up to version 4.
    "begin_suppress_tokens", "bad_words_ids", "decoder_start_token_id", "diversity_penalty", "do_sample", "early_stopping",
    "forced_bos_token_id", "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "min_length",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences", "output_scores", "prefix",
    "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "sep_token_id", "suppress_tokens", "temperature",
    "top_k", "top_p", "typical_p",
}
# Features that published files name and that only other families have.
_OFF = {"attention_bias", "lm_head_bias", "mlp_bias", "pruned_heads", "qk_layer_norms", "rope_interleaved", "use_mrope"}
# Defaults of transformers for absent keys, where a null means something else or the family differs from the others.
_GEMMA = {"head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "num_key_value_heads": 4, "pad_token_id": 0,
          "sliding_window": 4096}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "qwen2": {"num_key_value_heads": 32, "sliding_window": 4096},
    "qwen3": {"head_dim": 128, "num_key_value_heads": 32, "sliding_window": 4096},
    "smollm3": {"num_key_value_heads": 4, "rope_theta": 2e6, "tie_word_embeddings": True},
    "gemma": {"head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": 16, "pad_token_id": 0},
    "gemma2": {**_GEMMA, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "gemma3_text": {**_GEMMA, "rope_theta": 1e6},
    "phi3": {"original_max_position_embeddings": 4096},
    "gpt_neox": {"hidden_act": "gelu", "partial_rotary_factor": 0.25},
}
# Older names of keys.
_RENAMED = {"gpt_neox": {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"}}
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh",
                "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh", "gelu_python": "gelu", "linear": "identity", "relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid"}
# Endings of tensors that follow from config.json.
DERIVED = ("rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias", ".attn.bias", ".attn.masked_bias")
_MOST_LAYERS = 9999
_REQUIRED = object()

Cut = Callable[[np.ndarray], np.ndarray]
# target, source, and the function applied to the tensor; None: no change
Move = tuple[str, str, Cut | None]


class Config:
    """config.json; remembers which keys were read."""

    def __init__(self, values: Mapping[str, Any]):
        family = values.get("model_type")
        self._values, self._left = dict(values), set(values) - _HARMLESS
        for old, new in _RENAMED.get(family, {}).items():
            if old in values:
                self._values.setdefault(new, values[old])
                self._left.discard(old)
        self._values = {**_DEFAULTS.get(family, {}), **self._values}

    def take(self, key: str, default: Any = _REQUIRED) -> Any:
        self._left.discard(key)
        value = self._values.get(key)
        if value is None:
            value = default
        return refuse(f"config.json has no {key}") if value is _REQUIRED else _check_kind(f"config.json: {key}", value, default)

    def take_size(self, key: str, default: Any = _REQUIRED, most: int = 2 ** 31 - 1) -> int:
        return check_size(f"config.json: {key}", self.take(key, default), most)

    def expect(self, key: str, *allowed: Any, why: str) -> None:
        """Refuses a key with another value; it may be absent."""
        value = self.take(key, allowed[0])
        if value not in allowed:
            refuse(f"config.json: {key} is {value!r}, expected {' or '.join(map(repr, allowed))}: {why}")

    def finish(self) -> None:
        for key in sorted(self._left & _OFF):
            if self._values[key]:
                refuse(f"config.json: {key} is {self._values[key]!r}, expected False: model_type {self._values['model_type']!r} has none")
        if self._left - _OFF:
            refuse(f"config.json: {some(sorted(self._left - _OFF))}: not known for model_type {self._values.get('model_type')!r}")


def _check_factors(name: str, factors: Any) -> None:
    if not isinstance(factors, list) or not all(isinstance(factor, (int, float)) and 0 < factor < math.inf for factor in factors):
        refuse(f"{name} is {reprlib.repr(factors)}, expected a list of numbers above 0")


def _rope(c: Config, head_dim: int) -> dict[str, Any]:
    """The keys of rotary positions, from config.json as transformers writes it now or wrote it up to version 4."""
    parameters, local = dict(c.take("rope_parameters", {})), {}
    if "full_attention" in parameters:  # Gemma 3 has parameters for each kind of layer
        sliding, full = (dict(_check_kind(f"config.json: rope_parameters: {key}", parameters.pop(key, None) or {}, {}))
                         for key in ("sliding_attention", "full_attention"))
        parameters = {**full, **parameters}
        local = {"rope_local_theta": sliding.pop("rope_theta", 10000.0)}
        if sliding.pop("rope_type", "default") != "default" or sliding:
            refuse("config.json: rope_parameters: sliding_attention has more than rope_theta, and rope_type 'default' expected")
    old = {key: value for key, value in (("rope_theta", c.take("rope_theta", None)), ("partial_rotary_factor",
           c.take("partial_rotary_factor", None))) if value is not None}
    given = {key: value for key, value in {**old, **c.take("rope_scaling", {}), **parameters}.items() if value is not None}
    original, longest = c.take("original_max_position_embeddings", None), c.take_size("max_position_embeddings")
    kind = given.pop("rope_type", given.pop("type", "default"))
    given.pop("type", None)
    share = _check_kind("config.json: partial_rotary_factor", given.pop("partial_rotary_factor", 1.0), 1.0)
    keys = {"rope": True, "rope_theta": given.pop("rope_theta", 10000.0), "rope_width": int(head_dim * share), **local}
    if kind == "dynamic":  # changes nothing up to max_position_embeddings, the longest text
        given.pop("factor", None)
        given.pop("original_max_position_embeddings", None)
        kind = "default"
    if kind in ("default", None):
        if given:
            refuse(f"config.json: rope_parameters: {some(sorted(given))}: not known for rope_type 'default'")
        return keys
    if kind == "su" or (kind == "yarn" and "short_factor" in given):  # older names
        kind = "longrope"
    if kind not in ("linear", "llama3", "yarn", "longrope"):
        refuse(f"config.json: rope_type {kind!r} is none of default, linear, dynamic, llama3, yarn, longrope")
    if kind == "yarn" and keys["rope_width"] % 2:
        refuse(f"config.json: yarn turns {keys['rope_width']} channels of a head, expected an even number, as in transformers")
    if kind != "linear":
        if original is None or local:  # as transformers prefers the key outside, but where each kind of layer has parameters
            original = given.get("original_max_position_embeddings", longest)
        given["original_max_position_embeddings"] = check_size("config.json: original_max_position_embeddings", original)
    if given.get("attention_factor") == 0:
        refuse("config.json: attention_factor is 0, expected a number above 0")
    if kind == "longrope":
        given["factor"] = max(_check_kind("config.json: factor", given.get("factor", longest / original), 1.0), 1)
        for key in ("short_factor", "long_factor"):
            _check_factors(f"config.json: {key}", given.get(key))
    return {**keys, "rope_scaling": kind, **{f"rope_{key}": value for key, value in given.items()}}


def _attention_biases(c: Config, default: bool = False) -> dict[str, bool]:
    return dict.fromkeys(("bias", "value_bias", "output_bias"), c.take("attention_bias", default))


def _feed_forward_biases(c: Config) -> dict[str, bool]:
    return dict.fromkeys(("bias1", "bias2", "bias_gate"), c.take("mlp_bias", False))


def _activation(name: str) -> str:
    return _ACTIVATIONS[name] if name in list(_ACTIVATIONS) else refuse(f"config.json: activation {name!r} is none of {', '.join(_ACTIVATIONS)}")


def _common_config(c: Config, **more: Any) -> dict[str, Any]:
    """Sizes, feed-forward network and positions; norms are RMS norms unless `more` has layer_norm_eps."""
    if "layer_norm_eps" not in more:
        more["layer_norm_eps"] = c.take("rms_norm_eps")
    width, heads = c.take_size("hidden_size"), c.take_size("num_attention_heads")
    head_dim = c.take_size("head_dim", width // heads)
    name = c.take("hidden_activation", None) or c.take("hidden_act", "silu")
    c.take("hidden_act", None)
    n_vocab, padding = c.take_size("vocab_size"), c.take("pad_token_id", None)
    if padding is not None and -n_vocab <= padding < n_vocab:
        more = {"padding_idx": padding % n_vocab, **more}
    return {
        "layer": "transformer", "n_vocab": n_vocab, "d_model": width, "n_layers": c.take_size("num_hidden_layers", most=_MOST_LAYERS),
        "heads": heads, "n_kv_heads": c.take_size("num_key_value_heads", heads), "head_dim": head_dim,
        "d_ff": c.take("intermediate_size"), "activation": _activation(name), "is_gated": True, "norm": "rms",
        "norm_first": True, "final_norm": True, "pos": "no_pos", "max_len": c.take("max_position_embeddings"),
        "embed_scale": 1, "tie_generator": c.take("tie_word_embeddings", False), "generator_bias": False,
        **dict.fromkeys(("bias", "value_bias", "output_bias", "bias1", "bias2", "bias_gate"), False), **_rope(c, head_dim), **more,
    }


def _shortest_period(flags: list[int]) -> list[int]:
    """The shortest list whose repetition gives `flags`."""
    return next(flags[:n] for n in range(1, len(flags) + 1) if all(flag == flags[i % n] for i, flag in enumerate(flags)))


def _take_layer_list(c: Config, key: str, n: int, default: list[Any]) -> list[Any]:
    """The first n entries of a list with an entry for each layer, or more."""
    kinds = c.take(key, default)
    if len(kinds) < n:
        refuse(f"config.json: {key} has {len(kinds)} entries, num_hidden_layers is {n}")
    return kinds[:n]


def _take_window(c: Config) -> dict[str, int]:
    window = c.take("sliding_window", None)
    return {} if window is None else {"window": window}


def _set_window(c: Config, config: dict[str, Any], sliding: Callable[[int], bool] = lambda i: True, on: bool = True) -> None:
    """Sets the window and its layers: those of layer_types, by default those where sliding(i).  on: default of use_sliding_window."""
    kinds = _take_layer_list(c, "layer_types", config["n_layers"],
                    ["sliding_attention" if sliding(i) else "full_attention" for i in range(config["n_layers"])])
    if not set(kinds) <= {"sliding_attention", "full_attention"}:
        refuse(f"config.json: layer_types has {some(sorted(set(kinds) - {'sliding_attention', 'full_attention'}))}, "
               "expected full_attention or sliding_attention")
    window, flags = c.take("sliding_window", None), [int(kind == "sliding_attention") for kind in kinds]
    if not c.take("use_sliding_window", on) or window is None or not any(flags):
        return
    config["window"] = window
    if not all(flags):
        config["window_layers"] = _shortest_period(flags)


def _plus_one(weight: np.ndarray) -> np.ndarray:
    """Gemma's norms multiply by 1 + weight."""
    return _to_float(weight) + np.float32(1)


def _to_float(a: np.ndarray) -> np.ndarray:
    return (a.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if a.dtype == BFLOAT16 else a.astype(np.float32)


def rows(first: int, n: int) -> Cut:
    return lambda weight: weight[first:first + n]


_ATTENTION = (("query.linear", "q_proj"), ("key.linear", "k_proj"), ("value.linear", "v_proj"), ("output", "o_proj"))
_POST_NORMS = (("post_norm_self_attn", "post_attention_layernorm"), ("norm_ff", "pre_feedforward_layernorm"),
               ("post_norm_ff", "post_feedforward_layernorm"))
_FEED_FORWARD = (("layer1", "gate_proj"), ("linear_v", "up_proj"), ("layer2", "down_proj"))


def _llama_moves(config: dict[str, Any], norm: Cut | None = None) -> Iterator[Move]:
    """The moves of tensors with Llama's names."""
    yield "src_embed.weight", "model.embed_tokens.weight", None
    biases = dict(zip(("query.linear", "key.linear", "value.linear", "output"),
                      (config["bias"], config["bias"], config["value_bias"], config["output_bias"])))
    for i in range(config["n_layers"]):
        source, target = f"model.layers.{i}.", f"encoder.layers.{i}."
        yield f"{target}norm_self_attn.weight", f"{source}input_layernorm.weight", norm
        norms = _POST_NORMS if config.get("post_norm") else (("norm_ff", "post_attention_layernorm"),)
        yield from ((f"{target}{own}.weight", f"{source}{name}.weight", norm) for own, name in norms)
        for own, name in _ATTENTION:
            yield f"{target}self_attn.{own}.weight", f"{source}self_attn.{name}.weight", None
            if biases[own]:
                yield f"{target}self_attn.{own}.bias", f"{source}self_attn.{name}.bias", None
        if config.get("qk_norm"):
            yield f"{target}self_attn.query_norm.weight", f"{source}self_attn.q_norm.weight", norm
            yield f"{target}self_attn.key_norm.weight", f"{source}self_attn.k_norm.weight", norm
        for own, name in _FEED_FORWARD:
            yield f"{target}feed_forward.{own}.weight", f"{source}mlp.{name}.weight", None
            if config["bias1"]:
                yield f"{target}feed_forward.{own}.bias", f"{source}mlp.{name}.bias", None
    yield "encoder.norm.weight", "model.norm.weight", norm
    if not config["tie_generator"]:
        yield "generator.projection.weight", "lm_head.weight", None


Family = Callable[[Config], tuple[dict[str, Any], Iterator[Move]]]


def _llama(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    config = _common_config(c, **_attention_biases(c), **_feed_forward_biases(c))
    return config, _llama_moves(config)


def _mistral(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    config = _common_config(c)
    config.update(_take_window(c))
    return config, _llama_moves(config)


def _qwen(c: Config, config: dict[str, Any]) -> tuple[dict[str, Any], Iterator[Move]]:
    first = c.take("max_window_layers", 28)
    _set_window(c, config, lambda i: i >= first, on=False)
    return config, _llama_moves(config)


def _qwen2(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    return _qwen(c, _common_config(c, bias=True, value_bias=True))


def _qwen3(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    return _qwen(c, _common_config(c, qk_norm=True, **_attention_biases(c)))


def _smollm3(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    config = _common_config(c, **_attention_biases(c), **_feed_forward_biases(c))
    interval, n = c.take_size("no_rope_layer_interval", 4), config["n_layers"]
    turned = [int(bool(flag)) for flag in _take_layer_list(c, "no_rope_layers", n, [(i + 1) % interval != 0 for i in range(n)])]
    if not all(turned):
        config["rope_layers"] = _shortest_period(turned)
    _set_window(c, config, lambda i: not turned[i], on=False)
    return config, _llama_moves(config)


def _gemma(c: Config, **more: Any) -> tuple[dict[str, Any], Iterator[Move]]:
    c.expect("use_bidirectional_attention", False, why="arch lm is causal")
    tied = c.take("tie_word_embeddings", True)
    config = _common_config(c, **_attention_biases(c), **more)
    config.update(embed_scale=config["d_model"] ** 0.5, tie_generator=tied)
    return config, _llama_moves(config, _plus_one)


def _gemma_2_and_3(c: Config, period: int, **more: Any) -> tuple[dict[str, Any], Iterator[Move]]:
    """The last layer of each period attends to all positions."""
    config, _ = _gemma(c, **more)
    period = c.take_size("sliding_window_pattern", c.take_size("_sliding_window_pattern", period))
    _set_window(c, config, lambda i: (i + 1) % period != 0)
    config.update(post_norm=True, attention_scale=c.take("query_pre_attn_scalar", 256) ** -0.5)
    return config, _llama_moves(config, _plus_one)


def _gemma2(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    caps = {"softcap": c.take("attn_logit_softcapping", None), "logit_softcap": c.take("final_logit_softcapping", None)}
    return _gemma_2_and_3(c, 2, **{key: cap for key, cap in caps.items() if cap is not None})


def _gemma3(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    c.expect("attn_logit_softcapping", None, why="transformers' Gemma 3 caps no scores")
    cap = c.take("final_logit_softcapping", None)
    config, moves = _gemma_2_and_3(c, 6, qk_norm=True, **({} if cap is None else {"logit_softcap": cap}))
    config.setdefault("rope_local_theta", c.take("rope_local_base_freq", 10000.0))
    config.pop("rope_truncate", None)  # transformers looks for it outside of full_attention
    return config, moves


def _phi3(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    for key in ("full_attn_mod", "interpolate_factor"):  # of Phi 4 mini
        c.expect(key, 1, why="transformers has no such key")
    config = _common_config(c)
    config.update(_take_window(c))
    width, kv = config["heads"] * config["head_dim"], config["n_kv_heads"] * config["head_dim"]
    features = config["d_ff"]
    parts = {"q_proj": ("qkv_proj", rows(0, width)), "k_proj": ("qkv_proj", rows(width, kv)),
             "v_proj": ("qkv_proj", rows(width + kv, kv)), "gate_proj": ("gate_up_proj", rows(0, features)),
             "up_proj": ("gate_up_proj", rows(features, features))}

    def cut(move: Move) -> Move:
        target, source, change = move
        for name, (fused, part) in parts.items():
            if f".{name}." in source:
                return target, source.replace(name, fused), part
        return target, source, change
    return config, map(cut, _llama_moves(config))


def _gpt_neox(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    biases = _attention_biases(c, True)
    parallel = c.take("use_parallel_residual", True)
    config = _common_config(c, layer_norm_eps=c.take("layer_norm_eps"), norm="layer", is_gated=False, parallel=parallel, bias1=True, bias2=True,
                     **biases)
    config.pop("padding_idx", None)  # its embedding has none
    heads, head_dim = config["heads"], config["head_dim"]
    config["n_kv_heads"] = heads

    def third(k: int) -> Cut:
        """Part k of rows [H, 3, D]: queries, keys, values."""
        return lambda a: a.reshape(heads, 3, head_dim, *a.shape[1:])[:, k].reshape(heads * head_dim, *a.shape[1:])

    def moves() -> Iterator[Move]:
        yield "src_embed.weight", "gpt_neox.embed_in.weight", None
        for i in range(config["n_layers"]):
            source, target = f"gpt_neox.layers.{i}.", f"encoder.layers.{i}."
            for kind in ("weight", "bias"):
                yield f"{target}norm_self_attn.{kind}", f"{source}input_layernorm.{kind}", None
                yield f"{target}norm_ff.{kind}", f"{source}post_attention_layernorm.{kind}", None
                yield f"{target}feed_forward.layer1.{kind}", f"{source}mlp.dense_h_to_4h.{kind}", None
                yield f"{target}feed_forward.layer2.{kind}", f"{source}mlp.dense_4h_to_h.{kind}", None
                if kind == "bias" and not config["bias"]:
                    continue
                for k, own in enumerate(("query", "key", "value")):
                    yield f"{target}self_attn.{own}.linear.{kind}", f"{source}attention.query_key_value.{kind}", third(k)
                yield f"{target}self_attn.output.{kind}", f"{source}attention.dense.{kind}", None
        for kind in ("weight", "bias"):
            yield f"encoder.norm.{kind}", f"gpt_neox.final_layer_norm.{kind}", None
        if not config["tie_generator"]:
            yield "generator.projection.weight", "embed_out.weight", None
    return config, moves()


def _gpt2(c: Config) -> tuple[dict[str, Any], Iterator[Move]]:
    c.expect("add_cross_attention", False, why="arch lm has no encoder to attend to")
    width, heads, n = c.take_size("n_embd"), c.take_size("n_head"), c.take_size("n_layer", most=_MOST_LAYERS)
    config = {
        "layer": "transformer", "n_vocab": c.take_size("vocab_size"), "d_model": width, "heads": heads, "n_layers": n,
        "d_ff": c.take("n_inner", None) or 4 * width, "activation": _activation(c.take("activation_function", "gelu_new")),
        "norm_first": True, "final_norm": True, "layer_norm_eps": c.take("layer_norm_epsilon", 1e-5), "pos": "learned_pos",
        "max_len": c.take("n_positions"), "embed_scale": 1, "tie_generator": c.take("tie_word_embeddings", True),
        "generator_bias": False,
    }
    scale = 1 if c.take("scale_attn_weights", True) else (width // heads) ** 0.5
    by_layer = c.take("scale_attn_by_inverse_layer_idx", False)

    def columns(first: int, size: int, by: float = 1) -> Cut:
        """Columns of a Conv1D's weight [in, out], transposed.  by: a factor of the scores, which may scale queries instead."""
        def cut(a: np.ndarray) -> np.ndarray:
            part = a[..., first:first + size].T
            return part if by == 1 else _to_float(np.ascontiguousarray(part)) * np.float32(by)
        return cut

    def moves() -> Iterator[Move]:
        yield "src_embed.linear.weight", "transformer.wte.weight", None
        yield "src_embed.positional_encodings", "transformer.wpe.weight", lambda a: a[:, None]
        for i in range(n):
            source, target = f"transformer.h.{i}.", f"encoder.layers.{i}."
            for kind in ("weight", "bias"):
                yield f"{target}norm_self_attn.{kind}", f"{source}ln_1.{kind}", None
                yield f"{target}norm_ff.{kind}", f"{source}ln_2.{kind}", None
                for k, own in enumerate(("query", "key", "value")):
                    by = (scale / (i + 1) if by_layer else scale) if own == "query" else 1
                    yield f"{target}self_attn.{own}.linear.{kind}", f"{source}attn.c_attn.{kind}", columns(k * width, width, by)
                yield f"{target}self_attn.output.{kind}", f"{source}attn.c_proj.{kind}", np.transpose
                yield f"{target}feed_forward.layer1.{kind}", f"{source}mlp.c_fc.{kind}", np.transpose
                yield f"{target}feed_forward.layer2.{kind}", f"{source}mlp.c_proj.{kind}", np.transpose
        for kind in ("weight", "bias"):
            yield f"encoder.norm.{kind}", f"transformer.ln_f.{kind}", None
        if not config["tie_generator"]:
            yield "generator.projection.weight", "lm_head.weight", None
    return config, moves()


FAMILIES: dict[str, Family] = {"gpt2": _gpt2, "llama": _llama, "mistral": _mistral, "qwen2": _qwen2, "qwen3": _qwen3, "smollm3": _smollm3,
                               "gemma": _gemma, "gemma2": _gemma2, "gemma3_text": _gemma3, "phi3": _phi3, "gpt_neox": _gpt_neox}


def plan(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Move]]:
    """The configuration of a model file and the moves of its tensors, from the values of config.json."""
    kind = values.get("model_type")
    if kind not in list(FAMILIES):  # not by hash: it may be a list
        refuse(f"config.json: model_type {kind!r} is none of {', '.join(FAMILIES)}")
    c = Config(values)
    config, moves = FAMILIES[kind](c)
    c.finish()
    return config, list(moves)


def find_family(source: str | os.PathLike[str]) -> str | None:
    """The family of a directory if attncl.converting reads it, else None."""
    try:
        kind = json.loads((pathlib.Path(source) / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError):
        return None
    # PyTorch reads a GPT-2 that has only pytorch_model.bin.
    return kind if kind in list(FAMILIES) and (kind != "gpt2" or any(pathlib.Path(source).glob("*.safetensors"))) else None

# SPDX-License-Identifier: MIT
"""GGUF files of llama.cpp as sources of attncl.converting; the package gguf reads them.

The file's keys are translated to a config.json, for the functions of attncl.decoders.  Tensors of Q8_0 and Q4_0 keep their values in
the layout of model files, without a second rounding.
"""
from __future__ import annotations

import math
import pathlib
import re
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import tokenizer
from .c_api import DTYPES
from .converting import Source, Stored
from .decoders import Cut, check_size, plan, refuse, rows
from .model import some

# By architecture: the model_type, and the activation, which a file does not contain.
_ARCHITECTURES = {"llama": ("llama", "silu"), "smollm3": ("smollm3", "silu"), "qwen2": ("qwen2", "silu"), "qwen3": ("qwen3", "silu"),
                  "gemma": ("gemma", "gelu_pytorch_tanh"), "gemma2": ("gemma2", "gelu_pytorch_tanh"),
                  "gemma3": ("gemma3_text", "gelu_pytorch_tanh"), "phi3": ("phi3", "silu"), "gptneox": ("gpt_neox", "gelu"),
                  "gpt2": ("gpt2", "gelu_new")}
_KEPT = {"F32": "F32", "F16": "F16", "BF16": "BF16", "Q8_0": "Q8", "Q4_0": "Q4"}
# Types of llama.cpp whose values Q8 and Q4 cannot hold; they become F16.
_AS_F16 = {"Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}
_LAYERS_OF_27B = {"gemma2": 46, "gemma3_text": 62}
_NORMAL, _UNKNOWN, _CONTROL, _USER = 1, 2, 3, 4
_OTHERWISE = "; --tokenizer FILE takes a tokenizer.json instead, --no-tokenizer none"
_REQUIRED = object()
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")


def _value(reader: Any, key: str, default: Any = None) -> Any:
    field = reader.get_field(key)
    return default if field is None else field.contents()


class File:
    """A GGUF file, or all parts of a split one; its tensors are read on demand."""

    def __init__(self, path: pathlib.Path):
        try:
            import gguf
        except ImportError:
            refuse(f"{path}: GGUF files need the package gguf: pip install gguf")
        self._gguf = gguf
        parts = self._open_parts(path)
        self.paths = list(parts)
        self._path, self._reader = next(iter(parts.items()))
        self._arch = self._field("general.architecture")
        if self._arch not in _ARCHITECTURES:
            refuse(f"{self._path}: general.architecture {self._arch!r} is none of {', '.join(_ARCHITECTURES)}")
        self._tensors: dict[str, Any] = {}
        self._path_of: dict[str, pathlib.Path] = {}
        for part, reader in parts.items():
            for tensor in reader.tensors:
                if tensor.name in self._tensors:
                    refuse(f"{part}: tensor {tensor.name} is in {self._path_of[tensor.name].name} too")
                self._tensors[tensor.name], self._path_of[tensor.name] = tensor, part
        n = self._field("split.tensors.count") if len(parts) > 1 else len(self._tensors)
        if len(self._tensors) != n:
            refuse(f"{self._path}: split.tensors.count is {n}, but the {len(parts)} parts have {len(self._tensors)} tensors")
        self._left = {key for key in self._reader.fields if key.startswith(self._arch + ".")}

    def _open(self, path: pathlib.Path) -> Any:
        with open(path, "rb") as file:
            first = file.read(32)
        if first.startswith(b"version https://git-lfs"):
            refuse(f"{path} is a Git LFS pointer: get the file itself with git lfs pull")
        if not first.startswith(b"GGUF"):
            refuse(f"{path} is not a GGUF file: it begins with {first[:4]!r}")
        try:
            reader = self._gguf.GGUFReader(path)
        except Exception as error:  # a damaged file may raise anything
            refuse(f"{path} is not a complete GGUF file: {type(error).__name__}: {error}")
        if reader.byte_order != "I":
            refuse(f"{path} is big-endian, expected little-endian")
        end = reader.data_offset
        for tensor in sorted(reader.tensors, key=lambda one: one.data_offset):
            if tensor.data_offset < end or (tensor.data_offset - reader.data_offset) % reader.alignment:
                refuse(f"{path}: tensor {tensor.name} is at byte {tensor.data_offset}, expected a multiple of {reader.alignment} "
                       f"after the one before, which ends at {end}")
            end = tensor.data_offset + tensor.n_bytes
        return reader

    def _open_parts(self, path: pathlib.Path) -> dict[pathlib.Path, Any]:
        """Readers of all parts of the model of which `path` is any part.  Only the first has the model's keys."""
        given = self._open(path)
        n = _value(given, "split.count", 1)
        if n in (0, 1):
            return {path: given}
        name = _PART.fullmatch(path.name)
        if not name or int(name[3]) != n or not 1 <= int(name[2]) <= n:
            refuse(f"{path} is one of {n} parts of a model: their names must end with -00001-of-{str(n):0>5}.gguf and so on")
        paths = [path.with_name(f"{name[1]}-{i:05}-of-{name[3]}.gguf") for i in range(1, int(name[3]) + 1)]
        missing = [part.name for part in paths if not part.exists()]
        if missing:
            refuse(f"{path} is one of {n} parts of a model, which must lie in one directory; missing: {some(missing)}")
        parts = {part: given if part == path else self._open(part) for part in paths}
        first = parts[paths[0]]
        for i, (part, reader) in enumerate(parts.items()):
            expected = {"split.no": i, "split.count": n, "split.tensors.count": _value(first, "split.tensors.count")}
            if i:
                expected |= {key: _value(first, key) for key in reader.fields if not key.startswith(("GGUF.", "split.", "general.alignment"))}
            for key, want in expected.items():
                if _value(reader, key) != want:
                    refuse(f"{part}: {key} is {reprlib.repr(_value(reader, key))}, expected {reprlib.repr(want)}: it is no part of the same model as the others")
        return parts

    def _field(self, key: str, default: Any = _REQUIRED) -> Any:
        value = _value(self._reader, key, default)
        return refuse(f"{self._path} has no {key}") if value is _REQUIRED else value

    def _take(self, key: str, default: Any = _REQUIRED) -> Any:
        """The value of a key of the architecture."""
        self._left.discard(f"{self._arch}.{key}")
        return self._field(f"{self._arch}.{key}", default)

    def _take_one(self, key: str, default: Any = _REQUIRED) -> Any:
        """The value of a key that may be given for each layer, but must be the same for all."""
        value = self._take(key, default)
        if isinstance(value, list):
            if len(set(value)) != 1:
                refuse(f"{self._arch}.{key} differs between layers: {some(map(str, sorted(set(value))))}")
            value = value[0]
        return value

    def _expect(self, key: str, *allowed: Any) -> None:
        value = self._take(key, allowed[0])
        if value not in allowed:
            refuse(f"{self._arch}.{key} is {value!r}, expected {' or '.join(map(repr, allowed))}")

    def source(self) -> Source:
        """Configuration and tensors."""
        kind, activation = _ARCHITECTURES[self._arch]
        values = self._gpt2(activation) if kind == "gpt2" else self._decoder(kind, activation)
        rope_width = None if kind == "gpt2" else self._take("rope.dimension_count", values["head_dim"])
        self._expect("rope.dimension_count_swa", rope_width)
        self._expect("expert_count", 0)
        for key in ("vocab_size", "rope.scaling.finetuned", "expert_used_count"):
            self._take(key, None)
        if self._left:
            refuse(f"{self._path}: {some(sorted(self._left))}: not known for {self._arch}")
        config, moves = plan(values)
        if rope_width is not None:
            config["rope_width"] = rope_width
        arch = next(key for key, name in self._gguf.MODEL_ARCH_NAMES.items() if name == self._arch)
        names = self._gguf.get_tensor_name_map(arch, config["n_layers"])
        moves = [(target, names.get_name(source, (".weight", ".bias")) or refuse(f"{self._arch} has no {source}"),
                  _adapt_cut(kind, config, target, cut)) for target, source, cut in moves]
        return Source(config, moves, {name: self._stored(tensor) for name, tensor in self._tensors.items()},
                      lambda name: name.startswith(("rope_freqs.", "rope_factors_")))

    def _gpt2(self, activation: str) -> dict[str, Any]:
        heads = self._take("attention.head_count")
        self._expect("attention.head_count_kv", heads)
        return {"model_type": "gpt2", "n_embd": self._take("embedding_length"), "n_head": heads, "n_layer": self._take("block_count"),
                "n_inner": self._take("feed_forward_length"), "n_positions": self._take("context_length"), "activation_function": activation,
                "layer_norm_epsilon": self._take("attention.layer_norm_epsilon"), **self._vocabulary()}

    def _vocabulary(self) -> dict[str, Any]:
        if "token_embd.weight" not in self._tensors:
            refuse(f"{self._path} has no token_embd.weight; it has {some(self._tensors)}")
        return {"vocab_size": int(self._tensors["token_embd.weight"].shape[-1]), "tie_word_embeddings": "output.weight" not in self._tensors}

    def _decoder(self, kind: str, activation: str) -> dict[str, Any]:
        width, n = check_size(f"{self._arch}.embedding_length", self._take("embedding_length")), self._take("block_count")
        heads = check_size(f"{self._arch}.attention.head_count", self._take_one("attention.head_count"))
        head_dim = self._take("attention.key_length", width // heads)
        for key in ("attention.value_length", "attention.key_length_swa", "attention.value_length_swa"):
            self._expect(key, head_dim)
        rope = self._rope(head_dim)
        values = {"model_type": kind, "hidden_size": width, "num_hidden_layers": n, "num_attention_heads": heads, "head_dim": head_dim,
                  "num_key_value_heads": self._take_one("attention.head_count_kv", heads), "hidden_act": activation,
                  "intermediate_size": self._take_one("feed_forward_length"), "max_position_embeddings": self._take("context_length"),
                  "rope_parameters": rope, "original_max_position_embeddings": None, **self._vocabulary()}
        if kind == "gpt_neox":
            return {**values, "layer_norm_eps": self._take("attention.layer_norm_epsilon"),
                    "use_parallel_residual": self._take("use_parallel_residual", True)}
        values["rms_norm_eps"] = self._take("attention.layer_norm_rms_epsilon")
        if kind not in ("qwen2", "phi3"):
            values["attention_bias"] = "blk.0.attn_q.bias" in self._tensors
        if kind in ("llama", "smollm3"):
            values["mlp_bias"] = "blk.0.ffn_up.bias" in self._tensors
        if kind in ("phi3", "gemma2", "gemma3_text"):
            values["sliding_window"] = self._take("attention.sliding_window", None) or None
        if kind in _LAYERS_OF_27B:  # as llama.cpp recognises 27B models
            values["query_pre_attn_scalar"] = width // heads if n == _LAYERS_OF_27B[kind] else head_dim
            values["final_logit_softcapping"] = self._take("final_logit_softcapping", None)
        if kind == "gemma2":
            values["attn_logit_softcapping"] = self._take("attn_logit_softcapping", None)
        if kind == "gemma3_text":
            local = {"rope_type": "default", "rope_theta": self._take("rope.freq_base_swa", 10000.0)}
            values["rope_parameters"] = {"full_attention": rope, "sliding_attention": local}
            pattern = self._take("attention.sliding_window_pattern", None)
            if isinstance(pattern, list):
                values["layer_types"] = ["sliding_attention" if flag else "full_attention" for flag in pattern]
            elif pattern is not None:
                values["sliding_window_pattern"] = pattern
        return values

    def _rope(self, head_dim: int) -> dict[str, Any]:
        theta, factor = self._take("rope.freq_base", 10000.0), self._take("rope.scaling.factor", 0.0) or 1.0
        kind, original = self._take("rope.scaling.type", "linear"), self._take("rope.scaling.original_context_length", None)
        rope = {"rope_theta": theta}
        if "rope_freqs.weight" in self._tensors:
            return {**rope, **self._llama3(theta, head_dim)}
        factors = {f"{name}_factor": self._stored(self._tensors[f"rope_factors_{name}.weight"]).read(None).tolist()
                   for name in ("short", "long") if f"rope_factors_{name}.weight" in self._tensors}
        if factors:
            return {**rope, **factors, "rope_type": "longrope", "original_max_position_embeddings": original,
                    "attention_factor": self._take("rope.scaling.attn_factor", 1.0)}
        if kind == "none" or (kind == "linear" and factor == 1):
            return rope
        if kind == "linear":
            return {**rope, "rope_type": "linear", "factor": factor}
        if kind != "yarn":
            refuse(f"{self._arch}.rope.scaling.type {kind!r} is none of none, linear, yarn")
        beta = {name: self._take(f"rope.scaling.yarn_{name}", None) for name in ("beta_fast", "beta_slow")}
        return {**rope, "rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original, **beta}

    def _llama3(self, theta: float, head_dim: int) -> dict[str, Any]:
        """Finds the settings from the divisors of frequencies, assuming low_freq_factor 1 and high_freq_factor 4, as in all published
        models, and a length that is a power of two."""
        factors = self._stored(self._tensors["rope_freqs.weight"]).read(None).astype(np.float64)
        frequencies, most = theta ** (-np.arange(0, head_dim, 2) / head_dim), float(factors.max())
        for original in (2 ** i for i in range(3, 24)):
            share = np.clip((original * frequencies / (2 * math.pi) - 1) / 3, 0, 1)
            if factors.shape == share.shape and np.allclose(1 / ((1 - share) / most + share), factors, rtol=1e-5):
                return {"rope_type": "llama3", "factor": round(most, 4), "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                        "original_max_position_embeddings": original}
        return refuse(f"{self._path}: rope_freqs.weight is not of Llama 3's rule with low_freq_factor 1 and high_freq_factor 4")

    def _stored(self, tensor: Any) -> Stored:
        name, shape = tensor.tensor_type.name, tuple(int(n) for n in reversed(tensor.shape))
        if name not in _KEPT and name not in _AS_F16:
            refuse(f"tensor {tensor.name} is {name}, none of {', '.join((*_KEPT, *sorted(_AS_F16)))}")
        is_map = len(shape) == 2 and tensor.name != "position_embd.weight"
        path = self._path_of[tensor.name]
        kind = "F16" if name in _AS_F16 else "F32" if name in ("Q8_0", "Q4_0") and not is_map else _KEPT[name]

        def read(cut: Cut | None) -> np.ndarray:
            element = np.dtype(DTYPES.get(name, np.uint8))
            n = tensor.n_bytes // element.itemsize
            data = np.fromfile(path, element, n, offset=tensor.data_offset)
            if data.size != n:
                refuse(f"{path}: tensor {tensor.name} has {data.nbytes} bytes, expected {tensor.n_bytes}")
            data = data.reshape(*shape[:-1], -1) if shape else data.reshape(())
            if name not in DTYPES and kind in DTYPES:
                data = self._gguf.quants.dequantize(data, tensor.tensor_type).astype(DTYPES[kind])
            data = data if cut is None else cut(data)  # cuts whole rows, of any type
            return data if kind in DTYPES else _pack(tensor.name, kind, data)
        return Stored(kind, shape, read)

    def ends(self, n_vocab: int) -> dict[str, str]:
        """Metadata of the tokens that end a text, a turn or a message."""
        ids = [self._field(f"tokenizer.ggml.{name}_token_id", None) for name in ("eos", "eot", "eom")]
        return tokenizer.eos_metadata(n_vocab, list(dict.fromkeys(id for id in ids if id is not None)))

    def tokenizer(self) -> str | None:
        """The tokenizer.json of the file's tokenizer; None if it has none."""
        model = self._field("tokenizer.ggml.model", "none")
        if model in ("none", "no_vocab"):
            return None
        if model not in ("gpt2", "llama"):
            refuse(f"{self._path}: tokenizer.ggml.model {model!r} is none of gpt2, llama{_OTHERWISE}")
        tokens = self._field("tokenizer.ggml.tokens")
        types = self._token_list("token_type", len(tokens), [_NORMAL] * len(tokens))
        vocab = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if not (kind == 5 and token.startswith("[PAD"))}
        added = [{"id": i, "content": token, "special": kind != _USER, "normalized": False}
                 for i, (token, kind) in enumerate(zip(tokens, types)) if kind in (_CONTROL, _USER, _UNKNOWN)]
        values = self._byte_level(vocab, added) if model == "gpt2" else self._pieces(vocab, types, added)
        if self._field("tokenizer.ggml.add_eos_token", False):
            refuse(f"{self._path}: tokenizer.ggml.add_eos_token: tokens after a text cannot be expressed{_OTHERWISE}")
        if self._field("tokenizer.ggml.add_bos_token", model == "llama" or self._field("tokenizer.ggml.pre", None) in tokenizer.BEGINNING):
            id = self._field("tokenizer.ggml.bos_token_id")
            if not 0 <= id < len(tokens):
                refuse(f"{self._path}: tokenizer.ggml.bos_token_id is {id}, tokenizer.ggml.tokens has {len(tokens)} entries")
            begin, text = {"SpecialToken": {"id": tokens[id], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
            values["post_processor"] = {"type": "TemplateProcessing", "single": [begin, text], "pair": [begin, text, {"Sequence": {"id": "B", "type_id": 0}}],
                                        "special_tokens": {tokens[id]: {"id": tokens[id], "ids": [id], "tokens": [tokens[id]]}}}
        return tokenizer.compact_json(values)

    def _token_list(self, name: str, n: int, default: Any = _REQUIRED) -> list[Any]:
        values = self._field(f"tokenizer.ggml.{name}", default)
        return values if len(values) == n else refuse(f"{self._path}: tokenizer.ggml.{name} has {len(values)} entries, tokenizer.ggml.tokens has {n}")

    def _byte_level(self, vocab: dict[str, int], added: list[dict[str, Any]]) -> dict[str, Any]:
        kind = self._field("tokenizer.ggml.pre", None)
        if kind not in tokenizer.WORDS:
            refuse(f"{self._path}: tokenizer.ggml.pre {kind!r} is none of {', '.join(tokenizer.WORDS)}{_OTHERWISE}")
        return tokenizer.byte_level_json(vocab, self._field("tokenizer.ggml.merges"), added, kind)

    def _pieces(self, vocab: dict[str, int], types: list[int], added: list[dict[str, Any]]) -> dict[str, Any]:
        scores = self._token_list("scores", len(types))
        unknown = next((one["content"] for one in added if types[one["id"]] == _UNKNOWN), None)
        return tokenizer.pieces_json({token: i for token, i in vocab.items() if types[i] == _NORMAL}, scores, vocab, added, unknown,
                                   self._field("tokenizer.ggml.add_space_prefix", True))


def _adapt_cut(kind: str, config: dict[str, Any], target: str, cut: Cut | None) -> Cut | None:
    """The function to apply to a tensor of llama.cpp, in place of `cut` for transformers: llama.cpp adds the 1 to Gemma's norms, stores
    GPT-2's maps transposed, GPT-NeoX's queries, keys and values one after another, and Llama's rotary pairs as neighbours."""
    part = next((k for k, own in enumerate(("query", "key", "value")) if f".{own}.linear." in target), None)
    if kind in ("llama", "smollm3"):
        return _split_pairs(config["heads"] if part == 0 else config["n_kv_heads"]) if part in (0, 1) else None
    if kind in ("gpt2", "gpt_neox"):
        return rows(part * config["d_model"], config["d_model"]) if part is not None else cut if target.endswith("positional_encodings") else None
    return None if kind.startswith("gemma") else cut


def _split_pairs(heads: int) -> Callable[[np.ndarray], np.ndarray]:
    """Moves rows 2i, 2i + 1 of each head to i, i + D / 2."""
    return lambda a: a.reshape(heads, a.shape[0] // heads // 2, 2, *a.shape[1:]).swapaxes(1, 2).reshape(a.shape)


def _pack(name: str, kind: str, data: np.ndarray, chunk: int = 4096) -> np.ndarray:
    """Converts rows of llama.cpp's blocks, a scale and 32 numbers, to the layout of docs/model-files.md."""
    n, block = len(data), 34 if kind == "Q8" else 18
    n_blocks, quarters = data.shape[1] // block, 8 if kind == "Q8" else 4
    out = np.zeros((-(-n // 16), -(-n_blocks // 2), 64 + 128 * quarters), np.uint8)
    for first in range(0, n, chunk):
        part = out[first // 16:(first + chunk) // 16]
        blocks = np.zeros((len(part) * 16, out.shape[1] * 2, block), np.uint8)
        given = data[first:first + chunk].reshape(-1, n_blocks, block)
        if not np.isfinite(np.ascontiguousarray(given[..., :2]).view(np.float16)).all():
            refuse(f"tensor {name}: a scale is not finite")
        q = given[..., 2:]
        if kind == "Q8":
            q = q ^ 0x80  # q + 128
        else:  # halves of 16 numbers become pairs of four
            q = np.concatenate((q & 15, q >> 4), -1).reshape(*q.shape[:2], 4, 2, 4)
            q = (q[..., 0, :] | q[..., 1, :] << 4).reshape(*q.shape[:2], 16)
        blocks[:len(given), :n_blocks, :2], blocks[:len(given), :n_blocks, 2:] = given[..., :2], q
        blocks = blocks.reshape(len(part), 16, out.shape[1], 2, block)
        part[..., :64] = blocks[..., :2].transpose(0, 2, 3, 1, 4).reshape(*part.shape[:2], 64)
        part[..., 64:] = blocks[..., 2:].reshape(*blocks.shape[:4], quarters, 4).transpose(0, 2, 3, 4, 1, 5).reshape(*part.shape[:2], -1)
    return out

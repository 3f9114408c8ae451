# SPDX-License-Identifier: MIT
"""Text as the tokens of a language model, by the library's tokenizers."""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .c_api import SIZE, library
from .model import Handle, as_array


class Tokenizer(Handle):
    """Text as the tokens of a Hugging Face tokenizer.json, given as its text, and back.

    What the library has no rule for is refused by name.  A model with a tokenizer needs none of these: its encode(), decode()
    and generate() take text.
    """

    def __init__(self, text: str):
        self._lib, self._handle, self._lock = library(), ctypes.c_void_p(), threading.RLock()
        data = text.encode()
        self._lib.tokenizer_create(data, len(data), ctypes.byref(self._handle))
        self._owns((self._lib.tokenizer_destroy, self._handle))

    def __len__(self) -> int:
        """The largest token number, plus 1."""
        return self._ask(self._lib.tokenizer_count)

    def encode(self, text: str, begin: bool = True) -> np.ndarray:
        """The token numbers of a text, with `begin` after the tokens that the tokenizer puts before one."""
        data, tokens, n = text.encode(), ctypes.c_void_p(), SIZE()
        with self._lock:
            self._ask(self._lib.tokenizer_encode, data, len(data), int(begin), ctypes.byref(tokens), ctypes.byref(n))
            return np.frombuffer(ctypes.string_at(tokens.value or 0, 4 * n.value), np.int32).copy()

    def decode(self, tokens: Any, skip_special: bool = True) -> str:
        """The text of token numbers [T]; special tokens have none, unless skip_special is False."""
        array = _integers(tokens)
        with self._lock:
            return _text(self._ask, self._lib.tokenizer_decode, array.ctypes.data, array.size, int(skip_special))

    def stream(self, tokens: Iterable[Any], skip_special: bool = True) -> Iterator[str]:
        """For each of the tokens the text that it adds: whole characters, "" while one is unfinished; at the end what is left."""
        stream = ctypes.c_void_p()
        self._ask(self._lib.tokenizer_stream_create, int(skip_special), ctypes.byref(stream))
        try:
            for token in tokens:
                array = _integers([token])
                yield _text(self._ask, lambda _, *rest: self._lib.tokenizer_stream_add(stream, *rest), array.ctypes.data, array.size)
            yield _text(self._ask, lambda _, *rest: self._lib.tokenizer_stream_end(stream, *rest))
        finally:
            self._lib.tokenizer_stream_destroy(stream)


def _integers(tokens: Any) -> np.ndarray:
    return np.ascontiguousarray(as_array(tokens), np.int32)


def _text(ask: Callable[..., Any], function: Callable[..., Any], *arguments: Any) -> str:
    text, n = ctypes.c_void_p(), SIZE()
    ask(function, *arguments, ctypes.byref(text), ctypes.byref(n))
    return ctypes.string_at(text.value or 0, n.value).decode()


_QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_DIGITS = {"type": "Digits", "individual_digits": True}
# How byte-level tokenizers find words, by llama.cpp's names: the steps before ByteLevel, and its own regular expression or none.
WORDS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "gpt-2": ([], True), "smollm": ([_DIGITS], True),
    **{name: ([{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}], False)
       for name, pattern in (("qwen2", _QWEN), ("llama-bpe", _QWEN.replace(r"\p{N}|", r"\p{N}{1,3}|")))}}
BEGINNING = {"llama-bpe"}  # a text's first token is one that begins it
_FAMILIES = {"gpt2": "gpt-2", "qwen2": "qwen2", "qwen3": "qwen2"}  # by model_type


def byte_level(vocab: dict[str, int], merges: list[str], added: list[dict[str, Any]], words: str) -> dict[str, Any]:
    """tokenizer.json of a byte-level BPE."""
    steps, use_regex = WORDS[words]
    own = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": use_regex}
    return {"added_tokens": added, "normalizer": {"type": "NFC"} if words == "qwen2" else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, own]}, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": words == "llama-bpe"}}


def of_pieces(pieces: dict[str, int], scores: list[float], vocab: dict[str, int], added: list[dict[str, Any]], unknown: str | None,
              prefix: bool) -> dict[str, Any]:
    """tokenizer.json of a SentencePiece BPE, whose merges are the pieces that two pieces make, the best score first, as transformers
    finds them; prefix: a text begins with a space."""
    merges = sorted(((-scores[i], len(piece[:k]), len(piece[k:]), i, pieces[piece[:k]], pieces[piece[k:]], piece[:k], piece[k:])
                     for piece, i in pieces.items() for k in range(1, len(piece)) if piece[:k] in pieces and piece[k:] in pieces),
                    key=lambda one: (one[0], -one[1], -one[2], one[3:6]))
    first = [{"type": "Prepend", "prepend": "\u2581"}] if prefix else []
    last = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    return {"added_tokens": added, "pre_tokenizer": None,
            "normalizer": {"type": "Sequence", "normalizers": [*first, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                                                         {"type": "ByteFallback"}, {"type": "Fuse"}, *last]},
            "model": {"type": "BPE", "vocab": vocab, "merges": [[one[-2], one[-1]] for one in merges], "unk_token": unknown,
                      "fuse_unk": True, "byte_fallback": True}}


def _read(path: pathlib.Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _of_merges(directory: pathlib.Path) -> dict[str, Any] | None:
    """tokenizer.json of a directory that has vocab.json and merges.txt only, as transformers makes it."""
    family = _read(directory / "config.json").get("model_type")
    if family not in _FAMILIES or not (directory / "vocab.json").exists() or not (directory / "merges.txt").exists():
        return None
    lines = (directory / "merges.txt").read_text(encoding="utf-8").split("\n")
    vocab = _read(directory / "vocab.json")
    added = {int(id): one for id, one in _read(directory / "tokenizer_config.json").get("added_tokens_decoder", {}).items()}
    if "<|endoftext|>" in vocab:
        added.setdefault(vocab["<|endoftext|>"], {"content": "<|endoftext|>", "special": True})
    merges = [line for line in lines if line and not line.startswith("#version")]
    return byte_level(vocab, merges, [{**added[id], "id": id} for id in sorted(added)], _FAMILIES[family])


def of_directory(directory: str | os.PathLike[str]) -> str | None:
    """The tokenizer of a directory in the shortest form, which the library takes: its tokenizer.json, or vocab.json and merges.txt of
    GPT-2 and Qwen.  None where there is none."""
    path = pathlib.Path(directory)
    values = _read(path / "tokenizer.json") or _of_merges(path)
    return None if values is None else shortest(values)


def of_file(path: str | os.PathLike[str]) -> str:
    """A tokenizer.json in the shortest form."""
    return shortest(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))


def ends_of(n_vocab: int, *given: Any) -> dict[str, str]:
    """Metadata of the tokens that end a text, by the first eos_token_id that is given: one or a list.  Tokens that the model does not have,
    as of configurations with another family's defaults, are left out."""
    ids = next((one for one in given if one is not None), [])
    found = [id for id in (ids if isinstance(ids, (list, tuple)) else [ids]) if 0 <= id < n_vocab]
    return {"attncl.eos": json.dumps(found)} if found else {}


def ends_of_directory(n_vocab: int, directory: str | os.PathLike[str]) -> dict[str, str]:
    """The same of a directory of transformers, whose generation_config.json comes first."""
    return ends_of(n_vocab, *(_read(pathlib.Path(directory) / f"{name}.json").get("eos_token_id") for name in ("generation_config", "config")))


def shortest(values: dict[str, Any]) -> str:
    """The shortest text of a tokenizer.json that the library takes."""
    for key in ("truncation", "padding"):  # of the calls that saved it, not of the model
        values.pop(key, None)
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    Tokenizer(text).close()
    return text

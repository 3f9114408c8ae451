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


# Of GPT-2 and Qwen: the pattern of words and the normalizer that vocab.json and merges.txt do not tell.
_QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", {"type": "NFC"})
_PATTERNS: dict[str, tuple[str | None, Any]] = {"gpt2": (None, None), "qwen2": _QWEN, "qwen3": _QWEN}


def _read(path: pathlib.Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _of_merges(directory: pathlib.Path) -> dict[str, Any] | None:
    """tokenizer.json of a directory that has vocab.json and merges.txt only, as transformers makes it."""
    family = _read(directory / "config.json").get("model_type")
    if family not in _PATTERNS or not (directory / "vocab.json").exists() or not (directory / "merges.txt").exists():
        return None
    lines = (directory / "merges.txt").read_text(encoding="utf-8").split("\n")
    vocab, (pattern, normalizer) = _read(directory / "vocab.json"), _PATTERNS[family]
    added = {int(id): one for id, one in _read(directory / "tokenizer_config.json").get("added_tokens_decoder", {}).items()}
    if "<|endoftext|>" in vocab:
        added.setdefault(vocab["<|endoftext|>"], {"content": "<|endoftext|>", "special": True})
    words = [] if pattern is None else [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": pattern is None}
    return {"added_tokens": [{**added[id], "id": id} for id in sorted(added)], "normalizer": normalizer,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*words, byte_level]}, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocab, "merges": [line for line in lines if line and not line.startswith("#version")]}}


def of_directory(directory: str | os.PathLike[str]) -> str | None:
    """The tokenizer of a directory in the shortest form, which the library takes: its tokenizer.json, or vocab.json and merges.txt of
    GPT-2 and Qwen.  None where there is none."""
    path = pathlib.Path(directory)
    values = _read(path / "tokenizer.json") or _of_merges(path)
    if values is None:
        return None
    for key in ("truncation", "padding"):  # of the calls that saved it, not of the model
        values.pop(key, None)
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    Tokenizer(text).close()
    return text

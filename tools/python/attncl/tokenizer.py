# SPDX-License-Identifier: MIT
"""Tokenizers of the library: text as the tokens of a language model, and back."""
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
from .decoders import refuse
from .model import Handle, as_array


class Tokenizer(Handle):
    """The tokenizer of a Hugging Face tokenizer.json, given as its text.

    Rules that the library lacks are refused by name.  Model.encode(), decode() and generate() use a model's own tokenizer.
    """

    def __init__(self, text: str):
        self._lib, self._handle, self._lock = library(), ctypes.c_void_p(), threading.RLock()
        data = text.encode()
        self._lib.tokenizer_create(data, len(data), ctypes.byref(self._handle))
        self._release_with((self._lib.tokenizer_destroy, self._handle))

    def __len__(self) -> int:
        """The largest token number, plus 1."""
        return self._ask(self._lib.tokenizer_count)

    def encode(self, text: str, begin: bool = True) -> np.ndarray:
        """The token numbers of a text; begin: with the tokens that the tokenizer puts before a text."""
        data, tokens, n = text.encode(), ctypes.c_void_p(), SIZE()
        with self._lock:
            self._ask(self._lib.tokenizer_encode, data, len(data), int(begin), ctypes.byref(tokens), ctypes.byref(n))
            return np.frombuffer(ctypes.string_at(tokens.value or 0, 4 * n.value), np.int32).copy()

    def decode(self, tokens: Any, skip_special: bool = True) -> str:
        """The text of token numbers [T], without special tokens unless skip_special is False."""
        array = _to_int32(tokens)
        with self._lock:
            return _call_for_text(self._ask, self._lib.tokenizer_decode, array.ctypes.data, array.size, int(skip_special))

    def stream(self, tokens: Iterable[Any], skip_special: bool = True) -> Iterator[str]:
        """Yields the text that each token adds, in whole characters, "" while one is unfinished; at the end the rest."""
        stream = ctypes.c_void_p()
        self._ask(self._lib.tokenizer_stream_create, int(skip_special), ctypes.byref(stream))
        try:
            for token in tokens:
                array = _to_int32([token])
                yield _call_for_text(self._ask, lambda _, *rest: self._lib.tokenizer_stream_add(stream, *rest), array.ctypes.data, array.size)
            yield _call_for_text(self._ask, lambda _, *rest: self._lib.tokenizer_stream_end(stream, *rest))
        finally:
            self._lib.tokenizer_stream_destroy(stream)


def _to_int32(tokens: Any) -> np.ndarray:
    array = as_array(tokens)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"tokens are {array.dtype}, expected integers")
    return np.ascontiguousarray(array.clip(-1, 2**31 - 1), np.int32)


def _call_for_text(ask: Callable[..., Any], function: Callable[..., Any], *arguments: Any) -> str:
    text, n = ctypes.c_void_p(), SIZE()
    ask(function, *arguments, ctypes.byref(text), ctypes.byref(n))
    return ctypes.string_at(text.value or 0, n.value).decode()


_QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_DIGITS = {"type": "Digits", "individual_digits": True}
# How byte-level tokenizers split words, by llama.cpp's names: the steps before ByteLevel, and whether it uses its own regular
# expression.
WORDS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "gpt-2": ([], True), "smollm": ([_DIGITS], True),
    **{name: ([{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}], False)
       for name, pattern in (("qwen2", _QWEN), ("llama-bpe", _QWEN.replace(r"\p{N}|", r"\p{N}{1,3}|")))}}
BEGINNING = {"llama-bpe"}  # these put a token before a text
_FAMILIES = {"gpt2": "gpt-2", "qwen2": "qwen2", "qwen3": "qwen2"}  # by model_type


def byte_level_json(vocab: dict[str, int], merges: list[str], added: list[dict[str, Any]], words: str) -> dict[str, Any]:
    """tokenizer.json of a byte-level BPE."""
    steps, use_regex = WORDS[words]
    own = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": use_regex}
    return {"added_tokens": added, "normalizer": {"type": "NFC"} if words == "qwen2" else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, own]}, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": words == "llama-bpe"}}


def pieces_json(pieces: dict[str, int], scores: list[float], vocab: dict[str, int], added: list[dict[str, Any]], unknown: str | None,
              prefix: bool) -> dict[str, Any]:
    """tokenizer.json of a SentencePiece BPE.  Its merges are the pieces that consist of two pieces, the best score first, as in
    transformers.  prefix: a text begins with a space."""
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
    """The object of a JSON file, empty where there is no file."""
    values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return values if isinstance(values, dict) else refuse(f"{path.name} holds no JSON object")


def _from_merges(directory: pathlib.Path) -> dict[str, Any] | None:
    """tokenizer.json for a directory that has only vocab.json and merges.txt, as transformers makes it."""
    family = _read(directory / "config.json").get("model_type")
    if family not in _FAMILIES or not (directory / "vocab.json").exists() or not (directory / "merges.txt").exists():
        return None
    lines = (directory / "merges.txt").read_text(encoding="utf-8").split("\n")
    vocab = _read(directory / "vocab.json")
    added = {int(id): one for id, one in _read(directory / "tokenizer_config.json").get("added_tokens_decoder", {}).items()}
    if "<|endoftext|>" in vocab:
        added.setdefault(vocab["<|endoftext|>"], {"content": "<|endoftext|>", "special": True})
    merges = [line for line in lines if line and not line.startswith("#version")]
    return byte_level_json(vocab, merges, [{**added[id], "id": id} for id in sorted(added)], _FAMILIES[family])


def read_directory(directory: str | os.PathLike[str]) -> str | None:
    """The compact tokenizer.json of a directory, or one made from vocab.json and merges.txt of GPT-2 and Qwen.  None if it has
    neither."""
    path = pathlib.Path(directory)
    values = _read(path / "tokenizer.json") or _from_merges(path)
    return None if values is None else compact_json(values)


def read_file(path: str | os.PathLike[str]) -> str:
    """A compact tokenizer.json from a file."""
    pathlib.Path(path).stat()  # must exist
    return compact_json(_read(pathlib.Path(path)))


def eos_metadata(n_vocab: int, *given: Any) -> dict[str, str]:
    """Metadata of the tokens that end a text, from the first eos_token_id that is not None: a number or a list.  Tokens outside the
    model's vocabulary, such as defaults of another family, are left out."""
    ids = next((one for one in given if one is not None), [])
    ids = ids if isinstance(ids, (list, tuple)) else [ids]
    if not all(isinstance(id, int) for id in ids):
        refuse(f"eos_token_id is {ids!r}, expected token numbers")
    found = [id for id in ids if 0 <= id < n_vocab]
    return {"attncl.eos": json.dumps(found)} if found else {}


def directory_eos_metadata(n_vocab: int, directory: str | os.PathLike[str]) -> dict[str, str]:
    """eos_metadata() for a directory of transformers, from generation_config.json or else config.json."""
    return eos_metadata(n_vocab, *(_read(pathlib.Path(directory) / f"{name}.json").get("eos_token_id") for name in ("generation_config", "config")))


def compact_json(values: dict[str, Any]) -> str:
    """The compact text of a tokenizer.json, checked by the library."""
    for key in ("truncation", "padding"):  # settings of the saving program, not of the model
        values.pop(key, None)
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    Tokenizer(text).close()
    return text

# SPDX-License-Identifier: MIT
"""Converts models to model files, one tensor after another.

Needs neither torch nor transformers.  A source is a directory of transformers or, by attncl.gguf_input, a file of llama.cpp.
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .c_api import DTYPES, AttnclError, check_readable, library
from .decoders import DERIVED, Cut, Move, plan, refuse
from .description import Entry, describe
from .files import save_from
from .model import some
from .tokenizer import directory_eos_metadata, read_directory, read_file

QUANTISED = {"Q8", "Q4"}


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor of a source.  read(cut) returns the tensor or what cut() makes of it; for Q8 and Q4 as bytes of a model file."""
    kind: str
    shape: tuple[int, ...]
    read: Callable[[Cut | None], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Source:
    """A model: its configuration, its tensors by name, and the target of each."""
    config: dict[str, Any]
    moves: list[Move]
    tensors: Mapping[str, Stored]
    unused: Callable[[str], bool]  # whether the tensor may stay unused


@contextlib.contextmanager
def _open_directory(path: pathlib.Path) -> Iterator[Source]:
    """Opens a directory of transformers; its files stay open in the context."""
    values = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config, moves = plan(values)
    tensors: dict[str, Stored] = {}
    with contextlib.ExitStack() as files:
        for shard in _list_shards(path):
            for name, stored in _list_shard(shard, files):
                if name in tensors:
                    refuse(f"{shard}: tensor {name} is in another file too")
                tensors[name] = stored
        if values["model_type"] == "gpt2" and "transformer.wte.weight" not in tensors:  # published files lack the prefix
            moves = [(target, name.removeprefix("transformer."), cut) for target, name, cut in moves]
        yield Source(config, moves, tensors, lambda name: name.endswith(DERIVED) or (config["tie_generator"] and name == "lm_head.weight"))


def _list_shards(path: pathlib.Path) -> list[pathlib.Path]:
    """The files of a directory that transformers reads; others hold the tensors again, by other names."""
    single, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if single.exists() or not index.exists():
        return [single] if single.exists() else sorted(path.glob("*.safetensors")) or refuse(f"{path} holds no *.safetensors")
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        refuse(f"{index}: no list of files: {type(error).__name__}: {error}")
    missing = [name for name in names if not (path / name).exists()]
    return [path / name for name in names] if not missing else refuse(f"{index} names files that are missing: {some(missing)}")


def _list_shard(path: pathlib.Path, files: contextlib.ExitStack) -> Iterator[tuple[str, Stored]]:
    lib, file = library(), ctypes.c_void_p()
    lib.safetensors_open_header(check_readable(path), ctypes.byref(file))
    files.callback(lib.safetensors_close, file)
    for array in itertools.takewhile(bool, (lib.safetensors_at(file, i) for i in itertools.count())):
        name, shape = array.contents.name, tuple(array.contents.dim[:array.contents.rank])
        kind = lib.name_of_dtype.get(array.contents.dtype, "an unknown type")

        def read(cut: Cut | None, name: bytes = name, kind: str = kind, shape: tuple[int, ...] = shape) -> np.ndarray:
            whole = np.empty(shape, DTYPES[kind])
            lib.safetensors_read(file, name, whole.ctypes.data, whole.nbytes)
            return whole if cut is None else cut(whole)
        yield name.decode(), Stored(kind, shape, read)


def _convert_type(array: np.ndarray, kind: str, to: str, shape: tuple[int, ...]) -> np.ndarray:
    lib, array = library(), np.ascontiguousarray(array)
    before, after = lib.dtype_of_name[kind], lib.dtype_of_name[to]
    if to in QUANTISED:
        out = np.empty(lib.quantised_bytes(after, *shape), np.uint8)
        lib.quantise(after, *shape, array.ctypes.data, out.ctypes.data)
        return out
    out = np.empty(shape, DTYPES[to])
    if kind in QUANTISED:
        lib.dequantise(before, *shape, array.ctypes.data, out.ctypes.data)
    else:
        lib.elements_convert(before, array.ctypes.data, after, out.ctypes.data, array.size)
    return out


@dataclasses.dataclass(frozen=True)
class _Tensor:
    """A tensor of the model file: read as `kind`, written as `to`."""
    stored: Stored
    cut: Cut | None
    kind: str
    to: str
    shape: tuple[int, ...]

    def read(self) -> np.ndarray:
        array, kind = self.stored.read(self.cut), self.kind
        if kind not in (self.to, "F32") and {kind, self.to} & QUANTISED:
            array, kind = _convert_type(array, kind, "F32", self.shape), "F32"
        return array if kind == self.to else _convert_type(array, kind, self.to, self.shape)


def _target_type(kind: str, shape: tuple[int, ...], entry: Entry, dtype: str | None) -> str:
    """The type of a tensor in the model file, as attncl convert chooses it."""
    if dtype is None or len(shape) < 2 or (dtype in QUANTISED and not entry.is_map):
        return kind
    return "F16" if dtype in QUANTISED and shape[1] % 32 else dtype


def _plan_tensors(source: Source, where: pathlib.Path, dtype: str | None) -> dict[str, _Tensor]:
    """All tensors of the model file; checks their shapes before any is read."""
    entries = {entry.name: entry for entry in describe("lm", source.config) if entry.kind == "parameter"}
    tensors = {}
    for target, name, cut in source.moves:
        stored = source.tensors.get(name) or refuse(f"there is no tensor {name}; there are {some(source.tensors)}")
        if stored.kind not in DTYPES and stored.kind not in QUANTISED:
            refuse(f"tensor {name} is {stored.kind}, which no weight can be")
        like = np.broadcast_to(np.zeros((), DTYPES.get(stored.kind, np.uint8)), stored.shape)  # of one element
        try:
            result = like if cut is None else cut(like)
        except ValueError as error:
            refuse(f"tensor {name} {list(stored.shape)} does not fit {source.config['heads']} heads: {error}")
        entry = entries.pop(target, None)
        expected = "no such parameter" if entry is None else entry.shape
        if entry is None or str(list(result.shape)) != expected:
            refuse(f"tensor {name} becomes {target} {list(result.shape)}, expected {expected}")
        kind = stored.kind if result.dtype == like.dtype else next(k for k, own in DTYPES.items() if result.dtype == own)
        tensors[target] = _Tensor(stored, cut, kind, _target_type(kind, result.shape, entry, dtype), result.shape)
    if entries:
        refuse(f"{'config.json' if where.is_dir() else 'the file'} asks for {some(entries)}, which {where} lacks")
    used = {name for _, name, _ in source.moves}
    left = [name for name in source.tensors if name not in used and not source.unused(name)]
    if left:
        refuse(f"tensors that arch lm has no place for: {some(sorted(left))}")
    return tensors


def convert(source: str | os.PathLike[str], path: str | os.PathLike[str], tokenizer: bool | str | os.PathLike[str] = True,
            dtype: str | None = None) -> dict[str, Any]:
    """Writes the model of a directory or a GGUF file as the model file `path`, and returns its configuration.

    tokenizer: True for the source's, False for none, or the path of a tokenizer.json.  dtype: "F32", "F16", "BF16", "Q8" or "Q4"
    for matrices, as in attncl convert; None keeps their types.
    """
    where, text = pathlib.Path(source), None
    if not isinstance(tokenizer, bool):
        text = read_file(tokenizer)
    with contextlib.ExitStack() as stack:
        if where.is_dir():
            opened, sources = stack.enter_context(_open_directory(where)), list(where.glob("*"))
            text = read_directory(where) if tokenizer is True else text
            more = directory_eos_metadata(opened.config["n_vocab"], where)
        else:
            from . import gguf_input
            file = gguf_input.File(where)
            sources = file.paths
            opened = file.source()
            text = file.tokenizer() if tokenizer is True else text
            more = file.ends(opened.config["n_vocab"])
        if os.path.exists(path) and any(os.path.samefile(path, read) for read in sources):
            refuse(f"{path}: the output would overwrite what is read")
        tensors = _plan_tensors(opened, where, dtype)
        if text is not None:
            more["attncl.tokenizer"] = text

        def read(name: str) -> np.ndarray:
            try:
                return tensors[name].read()
            except AttnclError as error:
                refuse(f"{name}: {error}")
        save_from(path, {name: (tensor.to, tensor.shape) for name, tensor in tensors.items()}, read,
                  {"attncl.arch": "lm", "attncl.config": json.dumps(opened.config), **more})
    return opened.config

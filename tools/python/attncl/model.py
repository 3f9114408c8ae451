# SPDX-License-Identifier: MIT
"""Runs model files on numpy arrays and torch tensors."""
from __future__ import annotations

import collections
import ctypes
import difflib
import fnmatch
import functools
import itertools
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .c_api import (BFLOAT16, DTYPES, AttnclError, AttnclKeyError, AttnclMemoryError, AttnclUnsupported, AttnclValueError,
                    ContextOptions, DecoderOptions, DeviceInfo, Param, Sampling, Shape, Status, c_arrays, c_texts, check_readable,
                    library, make_error, numpy_array)
from .description import Entry, describe

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

_TYPES = {1: "cpu", 2: "gpu", 3: "other"}
_KEPT_GRAPHS = 2  # enough for the shapes of training and of validation batches
_DRAWN = 32  # tokens drawn at a time if one may end the text
_MIN_PREFILL = 32  # tokens; a shorter prompt is not worth a graph of its own, as in attncl sample
_LENGTHS = ("valid_lens", "enc_valid_lens")  # inputs clamped to 32 bits, which does not change their meaning


class Device(NamedTuple):
    """An OpenCL device, as attncl/context.h describes it; Model() takes its `id`."""
    id: str
    type: str
    platform_name: str
    name: str
    vendor: str
    driver_version: str
    opencl_version: str
    opencl_c_version: str
    compute_units: int
    clock_mhz: int
    global_memory_bytes: int
    max_buffer_bytes: int
    local_memory_bytes: int
    max_work_group: int
    vector_width: int
    available: int

    def __repr__(self) -> str:
        return f"<attncl.Device {self.id} {self.type}: {self.name}, {self.compute_units} units>"


def run_graph(graph: ctypes.c_void_p, c: Any, alive: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Runs a compiled graph on the two results of c_arrays(); returns its outputs."""
    lib, shape = library(), Shape()
    outputs: dict[str, np.ndarray] = {}
    for one, array in zip(c, alive):
        lib.graph_write_as(graph, one.name, one.dtype, one.data, array.size)
    lib.graph_run(graph)
    while (name := lib.graph_output_name(graph, len(outputs), ctypes.byref(shape))) is not None:
        value = outputs[name.decode()] = np.empty(shape.dim[:shape.rank], DTYPES[lib.name_of_dtype[shape.dtype]])
        lib.graph_read(graph, name, value.ctypes.data, value.nbytes)
    return outputs


def make_device(info: DeviceInfo) -> Device:
    values = (getattr(info, name) for name in Device._fields[2:])
    texts: Any = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)
    return Device(f"{info.platform}:{info.device}", _TYPES.get(info.type, "other"), *texts)


def devices() -> list[Device]:
    """The OpenCL devices of this machine."""
    lib, count, info = library(), ctypes.c_size_t(), DeviceInfo()
    lib.device_count(ctypes.byref(count))
    found = []
    for i in range(count.value):
        lib.device_get(i, ctypes.byref(info))
        found.append(make_device(info))
    return found


def _release_here(pid: int, *releases: tuple[Callable[[Any], Any], Any]) -> None:
    """Calls each function with its handle, but only in the process that opened them, not in a fork."""
    if os.getpid() == pid:
        for release, handle in releases:
            release(handle)


Graphs = collections.OrderedDict[Any, ctypes.c_void_p]


def drop_graphs(graphs: Graphs, kept: int = 0) -> None:
    """Destroys all but the last `kept` graphs."""
    while len(graphs) > kept:
        library().graph_destroy(graphs.popitem(last=False)[1])


def get_graph(graphs: Graphs, kept: int, inputs: Any, key: tuple[Any, ...], make: Callable[[], ctypes.c_void_p]) -> ctypes.c_void_p:
    """The graph for a key and the names, types and shapes of attncl_arrays, made if missing.  Keeps the last `kept`, memory
    permitting."""
    key = (frozenset((one.name, one.dtype, *one.dim[:one.rank]) for one in inputs), *key)
    if key not in graphs:
        try:
            graph = make()
        except AttnclMemoryError:
            if not graphs:
                raise
            drop_graphs(graphs)
            graph = make()
        drop_graphs(graphs, kept - 1)
        graphs[key] = graph
    graphs.move_to_end(key)
    return graphs[key]


class Handle:
    """A handle of the library, released by close(), by `with`, without references, and at exit."""
    _handle: ctypes.c_void_p
    _lock: Any  # shared by a model, its decoders and its trainer

    def _release_with(self, *releases: tuple[Callable[[Any], Any], Any]) -> None:
        self._release = weakref.finalize(self, _release_here, os.getpid(), *releases)

    @property
    def closed(self) -> bool:
        return not self._release.alive

    def close(self) -> None:
        self._release()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise make_error(Status.ERR_STATE, f"the {type(self).__name__.lower()} is closed")

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of the library with the handle, under the lock."""
        with self._lock:
            self._check_open()
            return function(self._handle, *arguments)


_PRECISIONS = {None: 0, "float32": 1, "tf32": 2, "bf16": 3}  # attncl_precision


def open_context(device: str | None, precision: str | None) -> ctypes.c_void_p:
    if precision not in _PRECISIONS:
        raise make_error(Status.ERR_ARGUMENT, f"precision is {precision!r}, it can be 'float32', 'tf32' or 'bf16'")
    context = ctypes.c_void_p()
    options = ContextOptions(device=device and device.encode(), precision=_PRECISIONS[precision])
    library().context_create(ctypes.byref(options), ctypes.byref(context))
    return context


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # without it imported there are no tensors
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> np.ndarray:
    """An array-like or a tensor as a numpy array, which shares host memory."""
    if not _is_tensor(value):
        return np.asarray(value)
    tensor, torch = value.detach().cpu(), sys.modules["torch"]
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(BFLOAT16)
    return tensor.numpy()


def _convert_like(arrays: dict[str, np.ndarray], inputs: Iterable[Any]) -> dict[str, Any]:
    """The arrays as tensors if an input is a tensor, else as they are."""
    tensor = next((value for value in inputs if _is_tensor(value)), None)
    if tensor is None:
        return arrays
    return {name: sys.modules["torch"].from_numpy(array).to(tensor.device) for name, array in arrays.items()}


@functools.lru_cache
def _output_type(names: tuple[str, ...]) -> Any:
    return collections.namedtuple("Outputs", names, rename=True)


def some(names: Iterable[str], most: int = 8) -> str:
    """The first names, and the number of the others."""
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest if names else "none"


def _unknown_name_error(what: str, name: str, choices: Iterable[str]) -> AttnclKeyError:
    near = difflib.get_close_matches(name, choices, 1)
    nearest = f"; the nearest is {near[0]!r}" if near else ""
    return AttnclKeyError(Status.ERR_ARGUMENT, f"there is no {what} {name!r}{nearest}; there are {some(choices)}")


class Model(Handle):
    """A model file, opened on a device: "gpu", "cpu", "0:1" or part of a name; None: ATTNCL_DEVICE, else the best.

    model(x) runs it on numpy arrays or torch tensors and returns the same kind.  Contiguous arrays are read in place and
    outputs written in place; the device's memory is not shared, the C API takes OpenCL buffers only.  Graphs of the last two
    sets of shapes stay compiled.  `precision` "tf32" or "bf16" allows GEMMs of GPUs with matrix instructions to round their factors;
    None is "float32".  May be used from several threads: calls wait for one another.
    """

    def __init__(self, path: str | os.PathLike[str], device: str | None = None, precision: str | None = None):
        self._open(device, precision, library().model_open, check_readable(path), None)

    @classmethod
    def create(cls, arch: str, config: Mapping[str, Any], seed: int = 0, device: str | None = None,
               precision: str | None = None) -> Model:
        """A new model: initial values are those of PyTorch's modules, made from the seed."""
        model = cls.__new__(cls)
        model._open(device, precision, library().model_create, arch.encode(), json.dumps(config).encode(), seed % 2**64)
        return model

    def _open(self, device: str | None, precision: str | None, make: Callable[..., Any], *arguments: Any) -> None:
        lib, model = library(), ctypes.c_void_p()
        context = open_context(device, precision)
        try:
            make(context, *arguments, ctypes.byref(model))
        except AttnclError:
            lib.context_destroy(context)
            raise
        self._adopt(context, model)
        self._release_with((drop_graphs, self._graphs), (lib.model_destroy, model), (lib.context_destroy, context))

    def _adopt(self, context: ctypes.c_void_p, model: ctypes.c_void_p) -> None:
        self._lib, self._context, self._handle = library(), context, model
        self._lock = threading.RLock()
        self._decoders: weakref.WeakSet[Decoder] = weakref.WeakSet()
        self._graphs: Graphs = collections.OrderedDict()
        self._owner: object = None  # a trainer, which must live as long
        self._described: dict[str, dict[str, Entry]] = {}
        self._text: Tokenizer | None = None

    def close(self) -> None:
        with self._lock:
            for decoder in list(self._decoders):
                decoder.close()
            super().close()

    def __repr__(self) -> str:
        if self.closed:
            return "<attncl.Model, closed>"
        count = sum(int(np.prod(shape)) for shape in self._param_shapes().values())
        return (f"<attncl.Model {self.arch}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}: {count:,} parameters, "
                f"on {self.device.name}>")

    # -- properties --

    @property
    def arch(self) -> str:
        """The architecture's name, "lm"."""
        return self._ask(self._lib.model_arch).decode()

    @property
    def config(self) -> dict[str, Any]:
        """The configuration in the file."""
        return json.loads(self.metadata("attncl.config") or "{}")

    def metadata(self, key: str) -> str | None:
        """A metadata value of the file, or None."""
        value = self._ask(self._lib.model_metadata, key.encode())
        return None if value is None else value.decode()

    @property
    def inputs(self) -> dict[str, Entry]:
        """The inputs by name: type, shape and whether optional."""
        return self._entries("input")

    @property
    def outputs(self) -> dict[str, Entry]:
        """The outputs by name: type and shape."""
        return self._entries("output")

    def _entries(self, kind: str) -> dict[str, Entry]:
        if kind not in self._described:
            self._described[kind] = {entry.name: entry for entry in describe(self.arch, self.config) if entry.kind == kind}
        return self._described[kind]

    @property
    def device(self) -> Device:
        """The device it runs on."""
        with self._lock:
            self._check_open()
            info = DeviceInfo()
            self._lib.context_device(self._context, ctypes.byref(info))
            return make_device(info)

    # -- parameters --

    def _param_shapes(self) -> dict[str, tuple[int, ...]]:
        found, param = {}, Param()
        with self._lock:  # another thread may close the model, which owns the names
            for i in range(self._ask(self._lib.model_param_count)):
                self._ask(self._lib.model_param_at, i, ctypes.byref(param))
                if param.trainable:
                    found[param.name.decode()] = tuple(param.shape.dim[:param.shape.rank])
        return found

    def params(self) -> dict[str, np.ndarray]:
        """The trained parameters by name: copies, in PyTorch's shapes."""
        found = {}
        with self._lock:
            for name, shape in self._param_shapes().items():
                value = found[name] = np.empty(shape, np.float32)
                self._lib.model_param_read(self._handle, name.encode(), value.ctypes.data, value.nbytes)
        return found

    def set_params(self, arrays: Mapping[str, Any]) -> None:
        """Replaces the given parameters by name, all or none of them."""
        with self._lock:
            shapes = self._param_shapes()
            values = {name: np.ascontiguousarray(as_array(array), np.float32) for name, array in arrays.items()}
            for name, value in values.items():
                if name not in shapes:
                    raise _unknown_name_error("parameter", name, shapes)
                if value.shape != shapes[name]:
                    raise make_error(Status.ERR_SHAPE, f"parameter {name} has shape {list(shapes[name])}, "
                                   f"{list(value.shape)} was given")
            for name, value in values.items():
                self._lib.model_param_write(self._handle, name.encode(), value.ctypes.data, value.nbytes)

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """Writes the model file as a whole; `metadata` is added to the model's or replaces it."""
        self._ask(self._lib.model_save, os.fsencode(path), c_texts(metadata))

    # -- running --

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The output for inputs in the order of `model.inputs`, or by name; several outputs are a named tuple."""
        names = list(self.inputs)
        if len(inputs) > len(names):
            raise TypeError(f"{self.arch} takes {len(names)} inputs, {', '.join(names)}; {len(inputs)} were given")
        twice = [name for name in names[:len(inputs)] if name in named]
        if twice:
            raise TypeError(f"input {twice[0]} is given by position and by name")
        given = {**dict(zip(names, inputs)), **named}
        outputs = self.run({name: value for name, value in given.items() if value is not None})
        if len(outputs) == 1:
            return next(iter(outputs.values()))
        return _output_type(tuple(outputs))(*outputs.values())

    def run(self, inputs: Mapping[str, Any] = {}, /, **named: Any) -> dict[str, Any]:
        """All outputs by name, for inputs by name: run(x=array), or run({"g.weight": array}) for names that are not Python
        identifiers."""
        if not isinstance(inputs, Mapping):
            raise TypeError(f"run() takes inputs by name, run({next(iter(self.inputs), 'x')}=...), not a "
                            f"{type(inputs).__name__}; model(...) takes them by position")
        given = {**inputs, **named}
        arrays = {name: as_array(value) for name, value in given.items()}
        for name in _LENGTHS:
            if name in arrays and arrays[name].dtype.kind in "iu":
                arrays[name] = arrays[name].clip(-2**31, 2**31 - 1).astype(np.int32)
        with self._lock:
            self._check_open()
            try:
                return _convert_like(self._run(arrays), given.values())
            except AttnclValueError as error:
                known = [*self.inputs, *(f"cotangent.{name}" for name in self.outputs)]
                if all(any(fnmatch.fnmatchcase(name, pattern) for pattern in known) for name in given):
                    raise
                raise AttnclKeyError(error.status, str(error)) from None

    def _run(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        c, alive = c_arrays(arrays)
        graph = self._graph(c, len(arrays))
        if graph is None:
            return self._run_once(c, len(arrays))
        return run_graph(graph, c, alive)

    def _graph(self, c: Any, n: int) -> ctypes.c_void_p | None:
        """The compiled graph for inputs of these types and shapes; None if the architecture is not one graph."""
        def make() -> ctypes.c_void_p:
            graph = ctypes.c_void_p()
            self._lib.model_graph(self._handle, c, n, ctypes.byref(graph))
            return graph
        try:
            return get_graph(self._graphs, _KEPT_GRAPHS, c[:n], (), make)
        except AttnclUnsupported:
            return None

    def _run_once(self, c: Any, n: int) -> dict[str, np.ndarray]:
        lib, results = self._lib, ctypes.c_void_p()
        lib.model_run(self._handle, c, n, ctypes.byref(results), None)
        try:
            found = (lib.results_at(results, i).contents for i in range(lib.results_count(results)))
            return {array.name.decode(): numpy_array(array) for array in found}
        finally:
            lib.results_destroy(results)

    def gradients(self, cotangents: Mapping[str, Any], inputs: Mapping[str, Any] = {}, /,
                  **named: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The outputs, and the gradients of the sum of all output * cotangent by each float input and parameter."""
        asked = {f"cotangent.{name}": value for name, value in cotangents.items()}
        found = self.run({**inputs, **named, **asked})
        gradients = {name.removeprefix("grad."): found.pop(name) for name in list(found) if name.startswith("grad.")}
        return found, gradients

    # -- language models --

    def decoder(self, batch: int = 1, *, state_dtype: str = "F32", window: int = 0, slot_limit: int = 0) -> Decoder:
        """A language model's state for `batch` sequences, token by token.  Transformer layers can keep keys and values, and
        gMLP its rows, as "F16" or "BF16" in half the memory of "F32"; transformer layers also as "Q8" in a quarter.  With a
        window the text may be longer than the model's limit: only its last `window` tokens count, which are computed again
        for each score.  With a slot_limit each sequence is a slot with its own position, of at most slot_limit tokens:
        Decoder.slot_prefill()."""
        return Decoder(self, batch, state_dtype, window, slot_limit)

    def encode(self, text: str) -> np.ndarray:
        """A text as token numbers, by the model's attncl.tokenizer or as indices of characters in attncl.vocab."""
        if tokenizer := self._tokenizer():
            return tokenizer.encode(text)
        vocabulary = self._vocabulary()
        unknown = next((i for i, character in enumerate(text) if character not in vocabulary), None)
        if unknown is not None:
            raise make_error(Status.ERR_ARGUMENT, f"character {text[unknown]!r} at {unknown} is not in the model's vocabulary")
        return np.array([vocabulary.index(character) for character in text], np.int32)

    def decode(self, tokens: Any) -> str:
        """The text of token numbers [T], without special tokens."""
        if tokenizer := self._tokenizer():
            return tokenizer.decode(tokens)
        vocabulary, array = self._vocabulary(), as_array(tokens)
        unknown = next((token for token in array if not 0 <= token < len(vocabulary)), None)
        if unknown is not None:
            raise make_error(Status.ERR_ARGUMENT, f"token {unknown} is not in the model's vocabulary of {len(vocabulary)}")
        return "".join(vocabulary[token] for token in array)

    def _tokenizer(self) -> Tokenizer | None:
        from .tokenizer import Tokenizer  # here, since tokenizer.py imports this file
        with self._lock:
            if self._text is None and (text := self.metadata("attncl.tokenizer")) is not None:
                self._text = Tokenizer(text)
            return self._text

    def _vocabulary(self) -> str:
        vocabulary = self.metadata("attncl.vocab")
        if vocabulary is None:
            raise make_error(Status.ERR_UNSUPPORTED,
                           "the model has no attncl.tokenizer and no attncl.vocab in its metadata: it takes token numbers, not text")
        return vocabulary

    def generate(self, prompt: Any, length: int | None = None, *, temperature: float = 1.0, top_k: int = 0, seed: int = 0,
                 state_dtype: str = "F32", crop: bool = False, stream: bool = False, eos: Any = "model") -> Any:
        """The prompt and `length` more tokens, as `attncl sample` draws them: by default up to the model's limit.  A token of `eos` ends
        the text and is not part of it.  [T, B] ends when all texts have ended; an ended text repeats the token.

        prompt       a text, whose continuation is a text, too; or token numbers, [T] or [T, B]
        temperature  divides the scores; 0: always draws the likeliest token
        top_k        draws from the top_k likeliest tokens; 0: from all
        state_dtype  as in decoder()
        crop         reads only the last seq_len tokens of a longer text
        eos          "model": the tokens of the file's attncl.eos; None: none; or token numbers
        stream       returns an iterator over the new text or tokens ([B] at a time), each as soon as it is drawn
        """
        tokens = self.encode(prompt) if isinstance(prompt, str) else as_array(prompt)
        if tokens.ndim not in (1, 2) or not tokens.size or tokens.dtype.kind not in "iu":
            raise make_error(Status.ERR_ARGUMENT, f"the prompt is {tokens.dtype} {list(tokens.shape)}, "
                           "expected a text or integers [T] or [T, B]")
        taken = tokens.reshape(len(tokens), -1)

        def like_prompt(rows: np.ndarray) -> Any:
            """Tokens [n, B] in the form of the prompt."""
            if isinstance(prompt, str):
                return self.decode(rows[:, 0])
            return _convert_like({"": rows.astype(tokens.dtype).reshape(-1, *tokens.shape[1:])}, [prompt])[""]

        with self._lock:
            limit = self._ask(self._lib.model_decoder_limit)
            window = min(filter(None, (self.config.get("seq_len", 0), limit)), default=0) if crop else 0
            length = self._check_length(len(tokens), length, limit, bool(window))
            decoder = self.decoder(taken.shape[1], state_dtype=state_dtype, window=window)
            ends = self._end_tokens(eos)
            at_once = 1 if stream else _DRAWN if ends else max(length, 1)
            drawn = _stop_at_ends(ends, decoder._continue(taken, length, at_once, temperature=temperature, top_k=top_k, seed=seed))
            if not stream:
                return like_prompt(np.concatenate([taken, *drawn]))
            if isinstance(prompt, str) and (tokenizer := self._tokenizer()):
                new = (token for rows in drawn for token in rows[:, 0])
                pieces = tokenizer.stream(itertools.chain(tokens, new))
                return filter(None, itertools.islice(pieces, len(tokens), None))
            return (row for rows in drawn for row in like_prompt(rows))

    def _end_tokens(self, eos: Any) -> list[int]:
        if eos is None:
            return []
        if isinstance(eos, str):
            if eos != "model":
                raise make_error(Status.ERR_ARGUMENT, f"eos is {eos!r}, it can be 'model', None or token numbers")
            return json.loads(self.metadata("attncl.eos") or "[]")
        return np.atleast_1d(as_array(eos)).tolist()

    @staticmethod
    def _check_length(n: int, length: int | None, limit: int, crops: bool) -> int:
        """The number of tokens to draw after n.  The last token is written, not read, and needs no position."""
        if length is None and (crops or not limit):
            raise make_error(Status.ERR_ARGUMENT, "there is no limit: length is missing")
        if length is not None and length < 0:
            raise make_error(Status.ERR_ARGUMENT, f"length is {length}, expected 0 or more")
        needed = n + max((length or 0) - 1, 0)
        if limit and not crops and needed > limit:
            raise make_error(Status.ERR_ARGUMENT, f"{n} tokens and {length or 0} more need {needed} positions, the model has {limit}; "
                           "crop=True goes on beyond them")
        return limit - n + 1 if length is None else length


def _stop_at_ends(ends: list[int], drawn: Generator[np.ndarray, None, None]) -> Iterator[np.ndarray]:
    """The tokens [n, B] drawn until all sequences have ended; an ended sequence repeats its last token."""
    last: Any = -1
    for rows in drawn:
        for i, row in enumerate(rows if ends else ()):
            row[:] = np.where(last >= 0, last, row)
            last = np.where(np.isin(row, ends), row, -1)
            if (last >= 0).all():
                drawn.close()
                yield rows[:i]
                return
        yield rows


class Decoder(Handle):
    """A language model's state after a prefix."""

    def __init__(self, model: Model, batch: int, state_dtype: str = "F32", window: int = 0, slot_limit: int = 0):
        lib, decoder = library(), ctypes.c_void_p()
        state_dtype = str(state_dtype).upper()
        if state_dtype not in ("F32", "F16", "BF16", "Q8"):
            raise make_error(Status.ERR_ARGUMENT, f"state_dtype is {state_dtype!r}, it can be 'F32', 'F16', 'BF16' or 'Q8'")
        options = DecoderOptions(state_dtype=lib.dtype_of_name[state_dtype], window=window, slot_limit=slot_limit)
        with model._lock:
            model._ask(lib.decoder_create, batch, ctypes.byref(options), ctypes.byref(decoder))
            self._lib, self._lock, self._model, self._handle, self.batch = lib, model._lock, model, decoder, batch
            self._release_with((lib.decoder_destroy, decoder))
            model._decoders.add(self)

    def close(self) -> None:
        with self._lock:
            super().close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"batch {self.batch}, at position {self.position} of {self.limit or 'any number'}"
        return f"<attncl.Decoder, {state}>"

    @property
    def position(self) -> int:
        """The tokens taken so far, by the fullest slot."""
        return self._ask(self._lib.decoder_position)

    @property
    def limit(self) -> int:
        """The maximum number of tokens; 0: no limit."""
        return self._ask(self._lib.decoder_limit)

    @property
    def vocabulary(self) -> int:
        """The number of tokens in the vocabulary."""
        return self._ask(self._lib.decoder_vocabulary)

    def reset(self) -> None:
        """Back to position 0."""
        self._ask(self._lib.decoder_reset)

    def step(self, tokens: Any, *, logits: bool = True) -> np.ndarray | None:
        """Takes one token for each sequence, [batch], -1 for an idle slot.  Returns the scores of the next token,
        [batch, vocabulary], or None."""
        return self._take(self._lib.decoder_step, (), tokens, (self.batch,), logits)

    def prefill(self, tokens: Any, *, logits: bool = True) -> np.ndarray | None:
        """Takes a prompt, [T, batch] or for a batch of 1 [T], at position 0 in one run.  Returns the scores of the next token,
        [batch, vocabulary], or None."""
        length = len(tokens) if np.ndim(tokens) else 0
        if not length:
            raise make_error(Status.ERR_ARGUMENT, "a prompt of no tokens")
        return self._take(self._lib.decoder_prefill, (length,), tokens, (length, self.batch), logits)

    def slot_position(self, slot: int) -> int:
        """The tokens that a slot has taken."""
        return self._ask(self._lib.decoder_slot_position, slot)

    def slot_prefill(self, slot: int, tokens: Any, *, logits: bool = True) -> np.ndarray | None:
        """One slot takes a prompt, [T], at position 0 in one run.  Returns the scores of the next token, [vocabulary], or
        None."""
        taken = self._check_tokens(tokens, (len(tokens) if np.ndim(tokens) else 0,))
        scores = np.empty(self.vocabulary, np.float32) if logits else None
        self._ask(self._lib.decoder_slot_prefill, slot, taken.size, taken.ctypes.data,
                  None if scores is None else scores.ctypes.data)
        return scores

    def slot_copy(self, to: int, from_: int, n: int) -> None:
        """Replaces the tokens of slot `to` by the first n of slot `from_`, with their computed state."""
        self._ask(self._lib.decoder_slot_copy, to, from_, n)

    def slot_truncate(self, slot: int, n: int = 0) -> None:
        """Keeps only the first n tokens of a slot."""
        self._ask(self._lib.decoder_slot_truncate, slot, n)

    def sample(self, tokens: Any, length: int, *, temperature: float = 1.0, top_k: int = 0, seed: int = 0) -> np.ndarray:
        """Takes one token for each sequence, [batch], then draws [length, batch] tokens on the device and takes all but the
        last.  A token of score s has the weight exp(s / temperature); temperature 0 draws the best one."""
        taken = self._check_tokens(tokens, (self.batch,))
        drawn = np.empty((max(length, 0), self.batch), np.int32)
        sampling = Sampling(temperature=temperature, top_k=top_k, seed=seed)
        self._ask(self._lib.decoder_sample, length, taken.ctypes.data, ctypes.byref(sampling), drawn.ctypes.data)
        return drawn

    def _continue(self, prompt: np.ndarray, length: int, at_once: int, **sampling: Any) -> Generator[np.ndarray, None, None]:
        """Yields the `length` tokens after a prompt [T, batch], at most `at_once` at a time; closes the decoder."""
        with self:
            if len(prompt) > _MIN_PREFILL:
                self.prefill(prompt[:-1], logits=False)
            else:
                for row in prompt[:-1]:
                    self.step(row, logits=False)
            last = prompt[-1]
            for i in range(0, length, at_once):
                drawn = self.sample(last, min(at_once, length - i), **sampling)
                last = drawn[-1]
                yield drawn

    def _check_tokens(self, tokens: Any, shape: tuple[int, ...]) -> np.ndarray:
        given = as_array(tokens)
        if given.dtype.kind not in "iu" or given.size != np.prod(shape) or given.ndim > len(shape):
            raise make_error(Status.ERR_ARGUMENT, f"tokens are {given.dtype} {list(given.shape)}, "
                           f"expected integers {list(shape)}")
        return np.ascontiguousarray(given.clip(-1, 2**31 - 1), np.int32)

    def _take(self, function: Callable[..., Any], arguments: tuple[Any, ...], tokens: Any, shape: tuple[int, ...],
              logits: bool) -> np.ndarray | None:
        taken = self._check_tokens(tokens, shape)
        scores = np.empty((self.batch, self.vocabulary), np.float32) if logits else None
        self._ask(function, *arguments, taken.ctypes.data, None if scores is None else scores.ctypes.data)
        return scores

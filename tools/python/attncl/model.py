# SPDX-License-Identifier: MIT
"""Model files on numpy arrays."""
import collections
import ctypes
import json
import os
import threading
import weakref

import numpy as np

from .c_api import (AttnclError, ContextOptions, DecoderOptions, DeviceInfo, Param, Sampling, Status, c_arrays, c_texts, library,
                    numpy_array)
from .description import describe

_TYPES = {1: "cpu", 2: "gpu", 3: "other"}
Device = collections.namedtuple("Device", ["id", "type", *(name for name, _ in DeviceInfo._fields_[4:])])


def _device(info):
    texts = (getattr(info, name) for name, _ in DeviceInfo._fields_[4:])
    texts = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in texts)
    return Device(f"{info.platform}:{info.device}", _TYPES.get(info.type, "other"), *texts)


def devices():
    """The OpenCL devices of this machine; `id` is what Model() takes."""
    lib, count, info = library(), ctypes.c_size_t(), DeviceInfo()
    lib.device_count(ctypes.byref(count))
    found = []
    for i in range(count.value):
        lib.device_get(i, ctypes.byref(info))
        found.append(_device(info))
    return found


def _here(pid, *releases):
    """Calls each (function, argument): in the process that opened them, not in a fork of it."""
    if os.getpid() == pid:
        for release, handle in releases:
            release(handle)


class _Handle:
    """What is released by close(), by `with`, when nothing refers to it, and at exit."""

    def _owns(self, *releases):
        self._release = weakref.finalize(self, _here, os.getpid(), *releases)

    @property
    def closed(self):
        return not self._release.alive

    def close(self):
        self._release()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _check_open(self):
        if self.closed:
            raise AttnclError(Status.ERR_STATE, f"the {type(self).__name__.lower()} is closed")


_PRECISIONS = {None: 0, "float32": 1, "tf32": 2, "bf16": 3}  # attncl_precision


class Model(_Handle):
    """A model file, opened on a device: "gpu", "cpu", "0:1" or part of a name; None: ATTNCL_DEVICE, else the best.

    `precision` "tf32" or "bf16" allows GEMMs of GPUs with matrix instructions to round their factors; None is "float32".
    May be used from several threads: calls wait for one another.
    """

    def __init__(self, path, device=None, precision=None):
        self._begin(device, precision, library().model_open, os.fsencode(path))

    @classmethod
    def create(cls, arch, config, seed=0, device=None, precision=None):
        """A new model: `config` is a dict, initial values are those of PyTorch's modules, made from the seed."""
        model = cls.__new__(cls)
        model._begin(device, precision, library().model_create, arch.encode(), json.dumps(config).encode(), seed % 2**64)
        return model

    def _begin(self, device, precision, make, *arguments):
        if precision not in _PRECISIONS:
            raise AttnclError(Status.ERR_ARGUMENT, f"precision is {precision!r}, it can be 'float32', 'tf32' or 'bf16'")
        lib, context, model = library(), ctypes.c_void_p(), ctypes.c_void_p()
        options = ContextOptions(device=device and device.encode(), precision=_PRECISIONS[precision])
        lib.context_create(ctypes.byref(options), ctypes.byref(context))
        try:
            make(context, *arguments, ctypes.byref(model))
        except AttnclError:
            lib.context_destroy(context)
            raise
        self._lib, self._context, self._model = lib, context, model
        self._lock, self._decoders = threading.RLock(), weakref.WeakSet()
        self._owns((lib.model_close, model), (lib.context_destroy, context))

    def close(self):
        with self._lock:
            for decoder in list(self._decoders):
                decoder.close()
            super().close()

    @property
    def arch(self):
        """The architecture's name, "lm"."""
        with self._lock:
            self._check_open()
            return self._lib.model_arch(self._model).decode()

    @property
    def config(self):
        """The configuration in the file, a dict."""
        return json.loads(self.metadata("attncl.config"))

    def metadata(self, key):
        """A metadata value of the file, or None."""
        with self._lock:
            self._check_open()
            value = self._lib.model_metadata(self._model, key.encode())
            return None if value is None else value.decode()

    @property
    def inputs(self):
        """The inputs by name: type, shape and whether optional."""
        return self._entries("input")

    @property
    def outputs(self):
        """The outputs by name: type and shape."""
        return self._entries("output")

    def _entries(self, kind):
        return {entry.name: entry for entry in describe(self.arch, self.config) if entry.kind == kind}

    def params(self):
        """The trained parameters by name: copies, in PyTorch's shapes."""
        found, param = {}, Param()
        with self._lock:
            self._check_open()
            for i in range(self._lib.model_param_count(self._model)):
                self._lib.model_param_at(self._model, i, ctypes.byref(param))
                if param.trainable:
                    value = np.empty(param.shape.dim[:param.shape.rank], np.float32)
                    self._lib.model_param_read(self._model, param.name, value.ctypes.data, value.nbytes)
                    found[param.name.decode()] = value
        return found

    def set_params(self, arrays):
        """Replaces parameters by name; others stay as they are."""
        with self._lock:
            have = self.params()
            for name, array in arrays.items():
                value = np.ascontiguousarray(array, np.float32)
                if name in have and value.shape != have[name].shape:
                    raise AttnclError(Status.ERR_SHAPE, f"parameter {name} has shape {list(have[name].shape)}, "
                                      f"{list(value.shape)} was given")
                self._lib.model_param_write(self._model, name.encode(), value.ctypes.data, value.nbytes)

    def save(self, path, metadata=None):
        """Writes the model file, in one step; `metadata` is added to the model's or replaces it."""
        with self._lock:
            self._check_open()
            self._lib.model_save(self._model, os.fsencode(path), c_texts(metadata))

    @property
    def device(self):
        """Where it runs, as devices() says it."""
        with self._lock:
            self._check_open()
            info = DeviceInfo()
            self._lib.context_device(self._context, ctypes.byref(info))
            return _device(info)

    def run(self, inputs=(), /, **named):
        """The outputs by name, for arrays by the names of the architecture's inputs: run(x=array), or
        run({"g.weight": array}) for names that are no words of Python."""
        arrays = {**dict(inputs), **named}
        lib, results = self._lib, ctypes.c_void_p()
        c, _alive = c_arrays(arrays)
        with self._lock:
            self._check_open()
            lib.model_run(self._model, c, len(arrays), ctypes.byref(results), None)
            try:
                found = (lib.results_at(results, i).contents for i in range(lib.results_count(results)))
                return {array.name.decode(): numpy_array(array) for array in found}
            finally:
                lib.results_destroy(results)

    def gradients(self, cotangents, inputs=(), /, **named):
        """The outputs, and the gradient of the sum of all output * cotangent by each float input and parameter."""
        asked = {f"cotangent.{name}": value for name, value in cotangents.items()}
        found = self.run({**dict(inputs), **named, **asked})
        gradients = {name.removeprefix("grad."): found.pop(name) for name in list(found) if name.startswith("grad.")}
        return found, gradients

    def decoder(self, batch=1, *, state_dtype="F32", window=0):
        """A language model's state for `batch` sequences, token by token.  Transformer layers can keep keys and
        values, and gMLP its rows, as "F16" or "BF16", in half the memory of "F32".  With a window the text may be
        longer than the model's limit: its last `window` tokens count, computed again for each score."""
        return Decoder(self, batch, state_dtype, window)

    def sample(self, tokens, steps, *, temperature=0.0, top_k=0, seed=0):
        """`tokens`, [T] or [T, B], and `steps` more: the likeliest, or with a temperature drawn from the
        `top_k` likeliest (0: all), by the seed as `attncl sample` draws them."""
        tokens = np.asarray(tokens)
        if tokens.ndim not in (1, 2) or not tokens.size or tokens.dtype.kind not in "iu":
            raise AttnclError(Status.ERR_ARGUMENT, f"tokens are {tokens.dtype} {list(tokens.shape)}, "
                              "expected integers [T] or [T, B]")
        if steps < 0 or temperature < 0 or top_k < 0:
            raise AttnclError(Status.ERR_ARGUMENT, f"steps {steps}, temperature {temperature}, top_k {top_k}: "
                              "expected none below 0")
        taken = tokens.reshape(len(tokens), -1)
        with self.decoder(taken.shape[1]) as decoder:
            needed = len(taken) + max(steps - 1, 0)  # the last token is written, not read
            if 0 < decoder.limit < needed:
                raise AttnclError(Status.ERR_STATE, f"{len(taken)} tokens and {steps} more need {needed} positions, "
                                  f"the model has {decoder.limit}")
            if steps == 0:
                return tokens
            if len(taken) > 1:
                decoder.prefill(taken[:-1], logits=False)
            drawn = decoder.sample(taken[-1], steps, temperature=temperature, top_k=top_k, seed=seed)
        return np.concatenate([taken, drawn.astype(tokens.dtype)]).reshape(-1, *tokens.shape[1:])


def _ints(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))


class Decoder(_Handle):
    """A language model's state after a prefix."""

    def __init__(self, model, batch, state_dtype="F32", window=0):
        lib, decoder = library(), ctypes.c_void_p()
        if state_dtype not in ("F32", "F16", "BF16"):
            raise AttnclError(Status.ERR_ARGUMENT, f"state_dtype is {state_dtype!r}, it can be 'F32', 'F16' or 'BF16'")
        options = DecoderOptions(state_dtype=lib.dtype_of_name[state_dtype], window=window)
        with model._lock:
            model._check_open()
            lib.decoder_create_with(model._model, batch, ctypes.byref(options), ctypes.byref(decoder))
            self._lib, self._model, self._decoder, self.batch = lib, model, decoder, batch
            self._owns((lib.decoder_destroy, decoder))
            model._decoders.add(self)

    def close(self):
        with self._model._lock:
            super().close()

    def _ask(self, function, *arguments):
        with self._model._lock:
            self._check_open()
            return function(self._decoder, *arguments)

    @property
    def position(self):
        """Tokens taken so far."""
        return self._ask(self._lib.decoder_position)

    @property
    def limit(self):
        """The most tokens it takes, 0: no limit."""
        return self._ask(self._lib.decoder_limit)

    @property
    def vocabulary(self):
        """The number of tokens there are."""
        return self._ask(self._lib.decoder_vocabulary)

    def reset(self):
        """Back to position 0."""
        self._ask(self._lib.decoder_reset)

    def step(self, tokens, *, logits=True):
        """Takes one token for each sequence, [batch]; the scores of the next one [batch, vocabulary], or None."""
        return self._take(self._lib.decoder_step, (), tokens, (self.batch,), logits)

    def prefill(self, tokens, *, logits=True):
        """Takes a prompt, [T, batch] or for a batch of 1 [T]: at position 0 at once; the scores of the token after
        it [batch, vocabulary], or None."""
        length = len(tokens) if np.ndim(tokens) else 0
        if not length:
            raise AttnclError(Status.ERR_ARGUMENT, "a prompt of no tokens")
        return self._take(self._lib.decoder_prefill, (length,), tokens, (length, self.batch), logits)

    def sample(self, tokens, length, *, temperature=1.0, top_k=0, seed=0):
        """Takes one token for each sequence, [batch], and then the tokens drawn, on the device: [length, batch] of
        them, the last of which is not taken.  A token of score s has the weight exp(s / temperature), 0: the best one."""
        taken = self._tokens(tokens, (self.batch,))
        drawn = np.empty((max(length, 0), self.batch), np.int32)
        sampling = Sampling(temperature=temperature, top_k=top_k, seed=seed)
        self._ask(self._lib.decoder_sample, length, _ints(taken), ctypes.byref(sampling), _ints(drawn))
        return drawn

    def _tokens(self, tokens, shape):
        given = np.asarray(tokens)
        if given.dtype.kind not in "iu" or given.size != np.prod(shape) or given.ndim > len(shape):
            raise AttnclError(Status.ERR_ARGUMENT, f"tokens are {given.dtype} {list(given.shape)}, "
                              f"expected integers {list(shape)}")
        return np.ascontiguousarray(given.clip(-1, 2**31 - 1), np.int32)

    def _take(self, function, arguments, tokens, shape, logits):
        taken = self._tokens(tokens, shape)
        scores = np.empty((self.batch, self.vocabulary), np.float32) if logits else None
        as_floats = scores.ctypes.data_as(ctypes.POINTER(ctypes.c_float)) if logits else None
        self._ask(function, *arguments, _ints(taken), as_floats)
        return scores

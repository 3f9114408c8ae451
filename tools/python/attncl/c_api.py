# SPDX-License-Identifier: MIT
"""The C API by ctypes: finds and declares libattncl, turns statuses into exceptions, converts arrays to and from numpy."""
from __future__ import annotations

import ctypes
import enum
import functools
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

SONAME = "libattncl.so.0.1"
MAX_RANK = 8

# numpy has no bfloat16; this type holds its two bytes.
BFLOAT16 = np.dtype([("bfloat16", "<u2")])
DTYPES: dict[str, Any] = {
    "F32": np.float32, "F16": np.float16, "BF16": BFLOAT16, "F64": np.float64, "I32": np.int32, "I64": np.int64,
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "U16": np.uint16, "U32": np.uint32,
    "U64": np.uint64, "C64": np.complex64,
}


class Status(enum.IntEnum):
    """The statuses of attncl/status.h."""
    OK = 0
    ERR_ARGUMENT = 1
    ERR_SHAPE = 2
    ERR_DTYPE = 3
    ERR_STATE = 4
    ERR_UNSUPPORTED = 5
    ERR_NO_DEVICE = 6
    ERR_NO_MEMORY = 7
    ERR_DEVICE_MEMORY = 8
    ERR_COMPILE = 9
    ERR_OPENCL = 10
    ERR_BLAS = 11
    ERR_IO = 12
    ERR_FORMAT = 13


class AttnclError(Exception):
    """A call failed: `status` for programs, the library's message for people.  Subclasses are standard exceptions, too:
    ValueError, TypeError, KeyError, OSError, MemoryError, NotImplementedError or RuntimeError."""

    def __init__(self, status: Status, message: str):
        super().__init__(message)
        self.status = status

    def __str__(self) -> str:  # KeyError and OSError would print differently
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.args[0])


class AttnclValueError(AttnclError, ValueError):
    """An argument, a shape or a file's content is wrong."""


class AttnclTypeError(AttnclError, TypeError):
    """An element type is wrong."""


class AttnclKeyError(AttnclError, KeyError):
    """A name does not exist."""


class AttnclOSError(AttnclError, OSError):
    """A file cannot be read or written."""


class AttnclMemoryError(AttnclError, MemoryError):
    """The host or the device lacks memory."""


class AttnclUnsupported(AttnclError, NotImplementedError):
    """The library does not support the request."""


class AttnclRuntimeError(AttnclError, RuntimeError):
    """A state that does not allow the call, or a device that failed."""


_ERRORS = {
    Status.ERR_ARGUMENT: AttnclValueError, Status.ERR_SHAPE: AttnclValueError, Status.ERR_FORMAT: AttnclValueError,
    Status.ERR_DTYPE: AttnclTypeError, Status.ERR_IO: AttnclOSError, Status.ERR_NO_MEMORY: AttnclMemoryError,
    Status.ERR_DEVICE_MEMORY: AttnclMemoryError, Status.ERR_UNSUPPORTED: AttnclUnsupported,
}


def make_error(status: Status, message: str) -> AttnclError:
    """The exception for a status."""
    return _ERRORS.get(status, AttnclRuntimeError)(status, message)


def check_readable(path: str | os.PathLike[str]) -> bytes:
    """The path for the library.  Raises what open() would: FileNotFoundError and its like."""
    with open(path, "rb"):
        return os.fsencode(path)


class Array(ctypes.Structure):
    """attncl_array."""
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("dim", ctypes.c_int64 * MAX_RANK), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Sized(ctypes.Structure):
    """A struct that starts with its size, for libraries with fewer or more fields."""
    _fields_ = [("struct_size", ctypes.c_size_t)]

    def __init__(self, **fields: Any):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class DescriptionEntry(Sized):
    """attncl_entry, filled by the library."""
    _fields_ = [("kind", ctypes.c_int), ("optional", ctypes.c_int),
                *((name, ctypes.c_char_p) for name in ("name", "type", "shape", "problem", "standard", "choices", "condition")),
                ("rank", ctypes.c_int), ("dim", ctypes.c_int64 * MAX_RANK), ("is_map", ctypes.c_int)]


class DeviceInfo(Sized):
    """attncl_device_info."""
    _fields_ = [("platform", ctypes.c_int), ("device", ctypes.c_int), ("type", ctypes.c_int),
                *((name, ctypes.c_char * 128) for name in ("platform_name", "name", "vendor", "driver_version",
                                                           "opencl_version", "opencl_c_version")),
                ("compute_units", ctypes.c_uint32), ("clock_mhz", ctypes.c_uint32),
                *((name, ctypes.c_uint64) for name in ("global_memory_bytes", "max_buffer_bytes", "local_memory_bytes",
                                                       "max_work_group")),
                ("vector_width", ctypes.c_uint32), ("available", ctypes.c_int)]


class ContextOptions(Sized):
    """attncl_context_options."""
    _fields_ = [("device", ctypes.c_char_p), ("cache_dir", ctypes.c_char_p), ("ignore_environment", ctypes.c_int),
                ("profile", ctypes.c_int), ("compile_progress", ctypes.c_void_p), ("user", ctypes.c_void_p), ("precision", ctypes.c_int)]


class Shape(ctypes.Structure):
    """attncl_shape."""
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("dim", ctypes.c_int64 * MAX_RANK)]


class Param(Sized):
    """attncl_param."""
    _fields_ = [("name", ctypes.c_char_p), ("shape", Shape), ("trainable", ctypes.c_int)]


class CrossEntropyDesc(Sized):
    """attncl_cross_entropy_desc."""
    _fields_ = [("reduction", ctypes.c_int), ("pad", ctypes.c_int64), ("label_smoothing", ctypes.c_double)]


class DecoderOptions(Sized):
    """attncl_decoder_options."""
    _fields_ = [("state_dtype", ctypes.c_int), ("window", ctypes.c_int64), ("slot_limit", ctypes.c_int64)]


class TrainerOptions(Sized):
    """attncl_trainer_options."""
    _fields_ = [*((name, ctypes.c_char_p) for name in ("data", "tokens", "pairs", "batches", "init")),
                ("steps", ctypes.POINTER(ctypes.c_int64)), ("seed", ctypes.POINTER(ctypes.c_uint64)), ("ranks", ctypes.c_void_p),
                ("tokenizer", ctypes.c_char_p)]


class TrainPlan(Sized):
    """attncl_train_plan."""
    _fields_ = [(name, ctypes.c_int64) for name in ("steps", "eval_every", "checkpoint_every", "keep", "patience", "sample",
                                                    "n_train_batches", "n_valid_batches")]


class TrainState(Sized):
    """attncl_train_state."""
    _fields_ = [("step", ctypes.c_int64), ("best_loss", ctypes.c_double), ("best_step", ctypes.c_int64),
                ("n_worse", ctypes.c_int64), ("accuracy", ctypes.c_double)]


class TrainStep(Sized):
    """attncl_train_step."""
    _fields_ = [("step", ctypes.c_int64), ("loss", ctypes.c_double), ("grad_norm", ctypes.c_double),
                ("learning_rate", ctypes.c_double), ("n_tokens", ctypes.c_int64)]


class Sampling(Sized):
    """attncl_sampling."""
    _fields_ = [("temperature", ctypes.c_double), ("top_k", ctypes.c_int64), ("seed", ctypes.c_uint64)]


class Value(ctypes.Structure):
    """attncl_value; all zeros: none."""
    _fields_ = [("id", ctypes.c_int32), ("graph", ctypes.c_uint32)]


class AttentionDesc(Sized):
    """attncl_attention_desc."""
    _fields_ = [("scale", ctypes.c_float), ("causal", ctypes.c_int), ("window", ctypes.c_int64), ("layout", ctypes.c_int),
                ("dropout", ctypes.c_void_p), ("rotary", Value), ("rotary_pairs", ctypes.c_int), ("qk_norm_eps", ctypes.c_float),
                ("softcap", ctypes.c_float), ("hard_lens", ctypes.c_int), ("slopes", Value)]


class AttentionInputs(Sized):
    """attncl_attention_inputs."""
    _fields_ = [(name, Value) for name in ("query", "key", "value", "mask", "valid_lens", "residual", "bias")]


class AftDesc(Sized):
    """attncl_aft_desc."""
    _fields_ = [("kind", ctypes.c_int), ("window", ctypes.c_int64), ("causal", ctypes.c_int)]


class SguParams(Sized):
    """attncl_sgu_params."""
    _fields_ = [*((name, Value) for name in ("norm_weight", "norm_bias", "weight", "bias")), ("norm_eps", ctypes.c_double)]


# attncl_array_source
SOURCE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p))
HANDLE, TEXT, SIZE, INT64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64
HANDLE_RET, ARRAY = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Array)
VALUES = ctypes.POINTER(Value)
CHECKED = "raises AttnclError"

# Result and arguments of each function that the package calls.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "version": (TEXT,),
    "last_error": (TEXT,),
    "status_name": (TEXT, ctypes.c_int),
    "dtype_name": (TEXT, ctypes.c_int),
    "device_count": (CHECKED, ctypes.POINTER(SIZE)),
    "device_get": (CHECKED, SIZE, ctypes.POINTER(DeviceInfo)),
    "context_create": (CHECKED, ctypes.POINTER(ContextOptions), HANDLE_RET),
    "context_destroy": (CHECKED, HANDLE),
    "context_device": (CHECKED, HANDLE, ctypes.POINTER(DeviceInfo)),
    "model_open": (CHECKED, HANDLE, TEXT, HANDLE, HANDLE_RET),
    "model_create": (CHECKED, HANDLE, TEXT, TEXT, ctypes.c_uint64, HANDLE_RET),
    "model_save": (CHECKED, HANDLE, TEXT, ctypes.POINTER(TEXT)),
    "model_param_count": (SIZE, HANDLE),
    "model_param_at": (CHECKED, HANDLE, SIZE, ctypes.POINTER(Param)),
    "model_param_read": (CHECKED, HANDLE, TEXT, HANDLE, SIZE),
    "model_param_write": (CHECKED, HANDLE, TEXT, HANDLE, SIZE),
    "model_destroy": (None, HANDLE),
    "model_arch": (TEXT, HANDLE),
    "model_metadata": (TEXT, HANDLE, TEXT),
    "model_run": (CHECKED, HANDLE, ARRAY, SIZE, HANDLE_RET, HANDLE_RET),
    "results_count": (SIZE, HANDLE),
    "results_at": (ARRAY, HANDLE, SIZE),
    "results_destroy": (None, HANDLE),
    "decoder_create": (CHECKED, HANDLE, INT64, ctypes.POINTER(DecoderOptions), HANDLE_RET),
    "decoder_destroy": (None, HANDLE),
    "decoder_reset": (CHECKED, HANDLE),
    "decoder_position": (INT64, HANDLE),
    "decoder_limit": (INT64, HANDLE),
    "decoder_vocabulary": (INT64, HANDLE),
    "decoder_step": (CHECKED, HANDLE, HANDLE, HANDLE),
    "decoder_prefill": (CHECKED, HANDLE, INT64, HANDLE, HANDLE),
    "decoder_slot_position": (INT64, HANDLE, INT64),
    "decoder_slot_prefill": (CHECKED, HANDLE, INT64, INT64, HANDLE, HANDLE),
    "decoder_slot_copy": (CHECKED, HANDLE, INT64, INT64, INT64),
    "decoder_slot_truncate": (CHECKED, HANDLE, INT64, INT64),
    "decoder_sample": (CHECKED, HANDLE, INT64, HANDLE, ctypes.POINTER(Sampling), HANDLE),
    "model_decoder_limit": (INT64, HANDLE),
    "tokenizer_create": (CHECKED, TEXT, SIZE, HANDLE_RET),
    "tokenizer_destroy": (None, HANDLE),
    "tokenizer_count": (INT64, HANDLE),
    "tokenizer_encode": (CHECKED, HANDLE, TEXT, SIZE, ctypes.c_int, HANDLE_RET, ctypes.POINTER(SIZE)),
    "tokenizer_decode": (CHECKED, HANDLE, HANDLE, SIZE, ctypes.c_int, HANDLE_RET, ctypes.POINTER(SIZE)),
    "tokenizer_stream_create": (CHECKED, HANDLE, ctypes.c_int, HANDLE_RET),
    "tokenizer_stream_destroy": (None, HANDLE),
    "tokenizer_stream_add": (CHECKED, HANDLE, HANDLE, SIZE, HANDLE_RET, ctypes.POINTER(SIZE)),
    "tokenizer_stream_end": (CHECKED, HANDLE, HANDLE_RET, ctypes.POINTER(SIZE)),
    "trainer_create": (CHECKED, HANDLE, TEXT, ctypes.POINTER(TrainerOptions), HANDLE_RET),
    "trainer_destroy": (None, HANDLE),
    "trainer_config": (TEXT, HANDLE),
    "trainer_plan": (CHECKED, HANDLE, ctypes.POINTER(TrainPlan)),
    "trainer_state": (CHECKED, HANDLE, ctypes.POINTER(TrainState)),
    "trainer_model": (HANDLE, HANDLE),
    "trainer_begin": (CHECKED, HANDLE),
    "trainer_step": (CHECKED, HANDLE, ctypes.POINTER(TrainStep)),
    "trainer_evaluate": (CHECKED, HANDLE, ctypes.POINTER(ctypes.c_double)),
    "trainer_save": (CHECKED, HANDLE, TEXT),
    "trainer_save_model": (CHECKED, HANDLE, TEXT),
    "trainer_resume": (CHECKED, HANDLE, TEXT),
    "graph_create": (CHECKED, HANDLE, HANDLE_RET),
    "graph_input": (Value, HANDLE, TEXT, ctypes.c_int, ctypes.c_int, ctypes.POINTER(INT64)),
    "graph_index_input": (Value, HANDLE, TEXT, ctypes.c_int, ctypes.POINTER(INT64), INT64, INT64),
    "graph_output": (None, HANDLE, TEXT, Value),
    "graph_gradient": (None, HANDLE, SIZE, VALUES, VALUES, SIZE, VALUES, VALUES),
    "graph_compile": (CHECKED, HANDLE, HANDLE),
    "softmax": (Value, HANDLE, Value, ctypes.c_int),
    "layer_norm": (Value, HANDLE, Value, Value, Value, ctypes.c_float),
    "rms_norm": (Value, HANDLE, Value, Value, ctypes.c_float),
    "rotary": (Value, HANDLE, Value, Value, ctypes.c_int, Value),
    "activate": (Value, HANDLE, Value, ctypes.c_int),
    "linear": (Value, HANDLE, Value, Value, Value),
    "bmm": (Value, HANDLE, Value, Value),
    "embedding": (Value, HANDLE, Value, Value, ctypes.c_float),
    "cross_entropy": (Value, HANDLE, Value, Value, ctypes.POINTER(CrossEntropyDesc)),
    "attention": (Value, HANDLE, ctypes.POINTER(AttentionDesc), ctypes.POINTER(AttentionInputs), VALUES),
    "aft_mix": (Value, HANDLE, ctypes.POINTER(AftDesc), Value, Value, Value, Value, Value),
    "spatial_gating_unit": (Value, HANDLE, ctypes.POINTER(SguParams), Value, ctypes.c_int, Value),
    "model_graph": (CHECKED, HANDLE, ARRAY, SIZE, HANDLE_RET),
    "graph_destroy": (None, HANDLE),
    "graph_write_as": (CHECKED, HANDLE, TEXT, ctypes.c_int, HANDLE, SIZE),
    "graph_run": (CHECKED, HANDLE),
    "graph_output_name": (TEXT, HANDLE, SIZE, ctypes.POINTER(Shape)),
    "graph_read": (CHECKED, HANDLE, TEXT, HANDLE, SIZE),
    "description_create": (CHECKED, TEXT, TEXT, ctypes.c_int, HANDLE_RET),
    "description_destroy": (None, HANDLE),
    "description_count": (SIZE, HANDLE),
    "description_at": (ctypes.POINTER(DescriptionEntry), HANDLE, SIZE),
    "safetensors_open": (CHECKED, TEXT, HANDLE_RET),
    "safetensors_open_header": (CHECKED, TEXT, HANDLE_RET),
    "safetensors_read": (CHECKED, HANDLE, TEXT, HANDLE, SIZE),
    "safetensors_close": (None, HANDLE),
    "safetensors_at": (ARRAY, HANDLE, SIZE),
    "safetensors_metadata_at": (TEXT, HANDLE, SIZE, ctypes.POINTER(TEXT)),
    "safetensors_write": (CHECKED, TEXT, ARRAY, SIZE, ctypes.POINTER(TEXT)),
    "safetensors_write_from": (CHECKED, TEXT, ARRAY, SIZE, ctypes.POINTER(TEXT), SOURCE, HANDLE),
    "elements_convert": (CHECKED, ctypes.c_int, HANDLE, ctypes.c_int, HANDLE, SIZE),
    "quantised_bytes": (SIZE, ctypes.c_int, INT64, INT64),
    "quantise": (CHECKED, ctypes.c_int, INT64, INT64, HANDLE, HANDLE),
    "dequantise": (CHECKED, ctypes.c_int, INT64, INT64, HANDLE, HANDLE),
}


def _load() -> ctypes.CDLL:
    """ATTNCL_LIBRARY, else the library inside the wheel, else the system's."""
    named, beside = os.environ.get("ATTNCL_LIBRARY"), pathlib.Path(__file__).with_name(SONAME)
    path = named or (str(beside) if beside.exists() else SONAME)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"libattncl cannot be loaded: {error}; ATTNCL_LIBRARY names its file") from error


class Library:
    """The declared functions as attributes, without their prefix."""

    def __init__(self) -> None:
        dll = _load()
        for name, (result, *arguments) in FUNCTIONS.items():
            function = getattr(dll, "attncl_" + name, None)
            if function is None:
                raise ImportError(f"{dll._name} has no attncl_{name}: it is older than this package")
            function.argtypes = arguments
            function.restype = ctypes.c_int if result is CHECKED else result
            if result is CHECKED:
                function.errcheck = self._check
            setattr(self, name, function)
        version = self.version().decode()
        if not SONAME.endswith(".so." + version.rpartition(".")[0]):
            raise ImportError(f"{dll._name} is version {version}, this package is for {SONAME}")
        names = (self.dtype_name(i).decode() for i in range(1, 64))
        self.dtype_of_name: dict[str, int] = {name: i for i, name in enumerate(names, 1) if name != "none"}
        self.name_of_dtype = {i: name for name, i in self.dtype_of_name.items()}

    def __getattr__(self, name: str) -> Any:  # for type checkers: the functions are set above
        raise AttributeError(f"libattncl has no function {name} in this package")

    def _check(self, status: int, _function: Any, _arguments: Any) -> None:
        if status:
            raise make_error(Status(status), self.last_error().decode("utf-8", "replace"))


@functools.cache
def library() -> Library:
    """libattncl, loaded on first use."""
    return Library()


def c_texts(metadata: Mapping[str, str] | None) -> Any:
    """A mapping of texts as key, value, key, value ... NULL."""
    words = [word.encode() for pair in (metadata or {}).items() for word in pair]
    return (TEXT * (len(words) + 1))(*words, None)


def c_arrays(arrays: Mapping[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """A name -> numpy array mapping as attncl_array[n], and the arrays it borrows memory from."""
    c, alive = (Array * max(len(arrays), 1))(), []
    for one, (name, value) in zip(c, arrays.items()):
        value = np.asarray(value, order="C")
        value = value.astype(value.dtype.newbyteorder("="), copy=False)
        kind = next((k for k, dtype in DTYPES.items() if value.dtype == dtype), None)
        if kind is None or value.ndim > MAX_RANK:
            raise TypeError(f"array {name} is {value.dtype} with {value.ndim} axes, expected at most {MAX_RANK} axes of "
                            + ", ".join(DTYPES))
        alive.append(value)
        one.name, one.dtype, one.rank = os.fsencode(name), library().dtype_of_name[kind], value.ndim
        one.dim[:value.ndim] = value.shape
        one.data, one.bytes = value.ctypes.data, value.nbytes
    return c, alive


def numpy_view(array: Array) -> np.ndarray:
    """A view of an attncl_array, whose memory it borrows."""
    kind = library().name_of_dtype.get(array.dtype)
    if kind not in DTYPES:
        raise TypeError(f"array {array.name.decode()} is {kind}: numpy has no such type")
    dim, dtype = tuple(array.dim[:array.rank]), np.dtype(DTYPES[kind])
    if math.prod(dim) * dtype.itemsize != array.bytes:
        raise make_error(Status.ERR_FORMAT, f"array {array.name.decode()} has {array.bytes} bytes, expected "
                       f"{math.prod(dim) * dtype.itemsize}")
    if not array.bytes:
        return np.empty(dim, dtype)
    return np.frombuffer((ctypes.c_char * array.bytes).from_address(array.data), dtype).reshape(dim)


def numpy_array(array: Array) -> np.ndarray:
    """A copy of an attncl_array."""
    return numpy_view(array).copy()

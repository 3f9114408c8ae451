# SPDX-License-Identifier: MIT
"""The library's operations on float32 CPU tensors, with gradients, as replacements for torch.nn.functional's.

They run on the device that ATTNCL_DEVICE names, else the best.  A graph is compiled for each operation, its shapes and the
gradients that it needs; the last graphs are kept.  A backward pass computes the operation again, then its gradients.
"""
from __future__ import annotations

import collections
import ctypes
import dataclasses
import functools
import math
import threading
from collections.abc import Callable
from typing import Any

try:
    import torch
except ImportError as error:
    raise ImportError("attncl.ops needs PyTorch: pip install 'attncl[convert]'") from error
from torch import Tensor

from .c_api import AftDesc, AttentionDesc, AttentionInputs, CrossEntropyDesc, SguParams, Value, c_arrays, library
from .model import Graphs, Handle, drop_graphs, get_graph, open_context, run_graph

__all__ = ["aft_conv", "aft_full", "aft_local", "aft_simple", "attention", "bmm", "cross_entropy", "embedding", "gelu",
           "layer_norm", "linear", "relu", "rms_norm", "rotary", "sigmoid", "silu", "softmax", "spatial_gating_unit", "tanh"]

_KEPT_GRAPHS = 64
_ACTIVATIONS = {"gelu": 1, "relu": 2, "sigmoid": 3, "tanh": 4, "silu": 5, "gelu_tanh": 6}  # attncl_activation
_REDUCTIONS = {"mean": 0, "sum": 1, "none": 2}  # attncl_reduction


@dataclasses.dataclass(frozen=True)
class _Op:
    """An operation with its settings.  build(graph, values) adds its node; integer inputs are below `limit`."""
    name: str
    settings: tuple[Any, ...]
    build: Callable[[ctypes.c_void_p, list[Value]], Value] = dataclasses.field(compare=False)
    limit: int = 0


class _Engine(Handle):
    """A device and the graphs compiled for it."""

    def __init__(self) -> None:
        self._context, self._lock = open_context(None, None), threading.Lock()
        self._graphs: Graphs = collections.OrderedDict()
        self._release_with((drop_graphs, self._graphs), (library().context_destroy, self._context))

    def run(self, op: _Op, inputs: list[Tensor | None], asked: tuple[int, ...] = ()) -> dict[str, Tensor]:
        """Returns output "y"; or, with "dy" as the last input, the gradients by the inputs with the numbers in `asked`."""
        names = [str(i) for i in range(len(inputs))]
        arrays = {name: tensor.detach().numpy() for name, tensor in zip(names, inputs) if tensor is not None}
        c, alive = c_arrays(arrays)
        with self._lock:
            graph = get_graph(self._graphs, _KEPT_GRAPHS, c[:len(arrays)], (op, asked), lambda: self._compile(op, inputs, asked))
            return {name: torch.from_numpy(array) for name, array in run_graph(graph, c, alive).items()}

    def _compile(self, op: _Op, inputs: list[Tensor | None], asked: tuple[int, ...]) -> ctypes.c_void_p:
        lib, graph = library(), ctypes.c_void_p()
        lib.graph_create(self._context, ctypes.byref(graph))
        try:
            values = [self._input(graph, i, tensor, op.limit) for i, tensor in enumerate(inputs)]
            if asked:
                y, dy = (Value * 1)(op.build(graph, values[:-1])), (Value * 1)(values[-1])
                x, dx = (Value * len(asked))(*(values[i] for i in asked)), (Value * len(asked))()
                lib.graph_gradient(graph, 1, y, dy, len(asked), x, dx)
                for i, gradient in zip(asked, dx):
                    lib.graph_output(graph, str(i).encode(), gradient)
            else:
                lib.graph_output(graph, b"y", op.build(graph, values))
            lib.graph_compile(graph, None)
        except BaseException:
            lib.graph_destroy(graph)
            raise
        return graph

    @staticmethod
    def _input(graph: ctypes.c_void_p, i: int, tensor: Tensor | None, limit: int) -> Value:
        if tensor is None:
            return Value()
        lib, name, dim = library(), str(i).encode(), (ctypes.c_int64 * tensor.dim())(*tensor.shape)
        if tensor.dtype == torch.int32:
            return lib.graph_index_input(graph, name, tensor.dim(), dim, 0, limit)
        kind = lib.dtype_of_name["F32" if tensor.dtype == torch.float32 else "U8"]
        return lib.graph_input(graph, name, kind, tensor.dim(), dim)


@functools.cache
def _engine() -> _Engine:
    return _Engine()


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: _Op, *inputs: Tensor | None) -> Tensor:
        ctx.op = op
        ctx.save_for_backward(*inputs)
        return _engine().run(op, list(inputs))["y"]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        asked = tuple(i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        found = _engine().run(ctx.op, [*ctx.saved_tensors, dy.contiguous()], asked)
        return None, *(found.get(str(i)) for i in range(len(ctx.saved_tensors)))


def _apply(op: _Op, *inputs: Tensor | None) -> Tensor:
    for i, tensor in enumerate(inputs):
        if tensor is not None and (tensor.device.type != "cpu" or tensor.dtype not in (torch.float32, torch.int32, torch.uint8)):
            raise TypeError(f"attncl.ops.{op.name}: argument {i + 1} is {tensor.dtype} on {tensor.device}, expected float32 on the CPU")
    return _Function.apply(op, *inputs)


def _to_int32(tensor: Tensor, name: str, most: int = 2**31 - 1) -> Tensor:
    """Integers as int32, at most `most`; no int32 stands for another one."""
    if tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise TypeError(f"attncl.ops.{name} takes integers, not {tensor.dtype}")
    return tensor.long().clamp(-2**31, most).int()


def _to_mask(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else (mask != 0).to(torch.uint8)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    return _apply(_Op("softmax", (dim,), lambda g, v: library().softmax(g, v[0], dim)), x)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Over the trailing axes that weight and bias have."""
    return _apply(_Op("layer_norm", (eps,), lambda g, v: library().layer_norm(g, *v, eps)), x, weight, bias)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Over the trailing axes that weight has."""
    return _apply(_Op("rms_norm", (eps,), lambda g, v: library().rms_norm(g, *v, eps)), x, weight)


def rotary(x: Tensor, table: Tensor, positions: Tensor | None = None, *, neighbours: bool = False) -> Tensor:
    """Rotates the first 2 F channels of each row of x [T, B, ..., C] by its position.

    table       [P, 2, F]: the cosines and sines of each position
    positions   [T or 1, B or 1]; None: row t has position t
    neighbours  rotates channels 2 i and 2 i + 1 together, else i and i + F
    """
    op = _Op("rotary", (neighbours,), lambda g, v: library().rotary(g, v[0], v[1], int(neighbours), v[2]), len(table))
    return _apply(op, x, table, None if positions is None else _to_int32(positions, "rotary"))


def _activation(x: Tensor, kind: str) -> Tensor:
    return _apply(_Op(kind, (), lambda g, v: library().activate(g, v[0], _ACTIVATIONS[kind])), x)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    if approximate not in ("none", "tanh"):
        raise ValueError(f"attncl.ops.gelu: approximate {approximate!r} is none of 'none', 'tanh'")
    return _activation(x, "gelu_tanh" if approximate == "tanh" else "gelu")


def relu(x: Tensor) -> Tensor:
    return _activation(x, "relu")


def sigmoid(x: Tensor) -> Tensor:
    return _activation(x, "sigmoid")


def silu(x: Tensor) -> Tensor:
    return _activation(x, "silu")


def tanh(x: Tensor) -> Tensor:
    return _activation(x, "tanh")


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return _apply(_Op("linear", (), lambda g, v: library().linear(g, *v)), x, weight, bias)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    return _apply(_Op("bmm", (), lambda g, v: library().bmm(g, *v)), a, b)


def embedding(tokens: Tensor, weight: Tensor) -> Tensor:
    op = _Op("embedding", (), lambda g, v: library().embedding(g, *v, 1.0), len(weight))
    return _apply(op, _to_int32(tokens, "embedding"), weight)


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """logits [..., V], the classes last; targets [...]."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"attncl.ops.cross_entropy: reduction {reduction!r} is none of {', '.join(_REDUCTIONS)}")
    n, desc = logits.shape[-1], CrossEntropyDesc(reduction=_REDUCTIONS[reduction], pad=-1)
    op = _Op("cross_entropy", (reduction,), lambda g, v: library().cross_entropy(g, *v, ctypes.byref(desc)), n)
    return _apply(op, logits, _to_int32(targets, "cross_entropy"))


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, is_causal: bool = False,
              window: int = 0, scale: float | None = None, softcap: float = 0.0, bias: Tensor | None = None,
              slopes: Tensor | None = None, lengths: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention: query [B, H, T, D], key [B, G, S, D], value [B, G, S, E] to [B, H, T, E].

    G is H or a divisor of it: H / G neighbouring heads of the query share a key and value head, as with PyTorch's enable_gqa
    mask       [T or 1, S, B or 1], True where a key is visible
    is_causal  query i sees keys up to i + S - T; window: only keys less than this far away
    softcap    above 0: scores become softcap * tanh(score / softcap)
    bias       [B or 1, H or 1, T or 1, S], added to scores after that; it has a gradient
    slopes     [H], without gradient: slope * (j - i - S + T) is added to scores (attention with linear biases)
    lengths    [B] or [B, T]: how many keys a query sees
    """
    def build(g: ctypes.c_void_p, v: list[Value]) -> Value:
        desc = AttentionDesc(scale=scale or 0.0, causal=is_causal, window=window, softcap=softcap,
                             hard_lens=lengths is not None, slopes=v[5])
        inputs = AttentionInputs(query=v[0], key=v[1], value=v[2], mask=v[3], bias=v[4], valid_lens=v[6])
        return library().attention(g, ctypes.byref(desc), ctypes.byref(inputs), None)
    if scale is not None and not (scale != 0 and math.isfinite(scale)):
        raise ValueError(f"attncl.ops.attention: scale is {scale}, expected a finite number other than 0")
    n_keys = key.shape[-2] if key.dim() > 1 else 0
    return _apply(_Op("attention", (is_causal, window, scale, softcap), build, n_keys + 1), query, key, value, _to_mask(mask), bias,
                  slopes, None if lengths is None else _to_int32(lengths, "attention", n_keys))


def _aft(name: str, kind: int, q: Tensor, k: Tensor, v: Tensor, pos_bias: Tensor | None, mask: Tensor | None, causal: bool,
         window: int = 0) -> Tensor:
    def build(g: ctypes.c_void_p, values: list[Value]) -> Value:
        desc = AftDesc(kind=kind, window=window, causal=causal)
        return library().aft_mix(g, ctypes.byref(desc), *values)
    return _apply(_Op(name, (window, causal), build), q, k, v, pos_bias, _to_mask(mask))


def aft_full(q: Tensor, k: Tensor, v: Tensor, pos_bias: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
    """sigmoid(q_i) * sum_j softmax_j(pos_bias_ij + k_j) v_j: q, k, v [T, B, C], pos_bias [n, n] with n >= T; mask as
    in attention()."""
    return _aft("aft_full", 1, q, k, v, pos_bias, mask, causal)


def aft_local(q: Tensor, k: Tensor, v: Tensor, pos_bias: Tensor, window: int, mask: Tensor | None = None, *,
              causal: bool = False) -> Tensor:
    """aft_full() whose biases count where |i - j| < window."""
    return _aft("aft_local", 0, q, k, v, pos_bias, mask, causal, window)


def aft_simple(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
    """aft_full() without biases."""
    return _aft("aft_simple", 2, q, k, v, None, mask, causal)


def aft_conv(q: Tensor, k: Tensor, v: Tensor, w: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
    """AFT with k [T, B, H], a channel for each head, and w [H, s], its bias for each of s distances, s odd."""
    return _aft("aft_conv", 3, q, k, v, w, mask, causal)


def spatial_gating_unit(z: Tensor, norm_weight: Tensor, norm_bias: Tensor, weight: Tensor, bias: Tensor,
                        mask: Tensor | None = None, *, causal: bool = False, eps: float = 1e-5) -> Tensor:
    """z1 * (weight LN(z2) + bias): z = [z1 | z2] [T, B, F], weight [n, n] and bias [n] with n >= T; mask [T or 1, T, 1]."""
    def build(g: ctypes.c_void_p, v: list[Value]) -> Value:
        params = SguParams(norm_weight=v[1], norm_bias=v[2], weight=v[3], bias=v[4], norm_eps=eps)
        return library().spatial_gating_unit(g, ctypes.byref(params), v[0], causal, v[5])
    return _apply(_Op("spatial_gating_unit", (causal, eps), build), z, norm_weight, norm_bias, weight, bias, _to_mask(mask))

# SPDX-License-Identifier: MIT
"""Loads state dicts and saved modules from files, and makes the module that a state dict belongs to."""
from __future__ import annotations

import functools
import inspect
import json
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .. import nn as own
from ..description import describe
from ..files import load
from .modules import MODULES
from .parameters import refuse, some
from .pretrained import from_checkpoint

# The classes and functions that a file of torch.save() may name; loading one that names others could run any code.
SAFE = [*MODULES, *own.PARTS, nn.TransformerDecoder, nn.TransformerDecoderLayer, nn.ModuleList, nn.Dropout, nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Identity, F.relu, F.gelu,
        F.silu, torch.tanh, torch.sigmoid, nn.modules.linear.NonDynamicallyQuantizableLinear, functools.partial, set]


def _read(path: pathlib.Path) -> Any:
    """A state dict, a checkpoint that holds one, or a module."""
    with path.open("rb") as file:
        first = file.read(1)
    if first not in (b"P", b"\x80"):  # neither zip nor pickle: safetensors, or an error of its reader
        return {name: own.as_tensor(array) for name, array in load(path)[0].items()}
    try:
        with torch.serialization.safe_globals(SAFE):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        refuse(f"{path} names things that could run code when loaded; save its state_dict(), or call attncl.export(module, "
               f"...) where the module is: {str(error).splitlines()[-1]}")
    except (RuntimeError, EOFError, KeyError, ValueError) as error:
        refuse(f"{path} is not a file of torch.save(): {(str(error).splitlines() or [type(error).__name__])[0]}")


def load_source(path: Any, config: Any = None) -> tuple[Any, Any]:
    """Loads a file, or a directory as transformers saves them.  Returns its content and the configuration: the given one, else
    config.json beside the file."""
    path = pathlib.Path(path)
    if path.is_dir():
        files = sorted(path.glob("*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))
        if not files:
            refuse(f"{path} holds neither *.safetensors nor pytorch_model*.bin")
        source = {name: tensor for file in files for name, tensor in _read(file).items()}
        config = config or path / "config.json"
    else:
        if not path.exists():
            refuse(f"{path} does not exist")
        source = _read(path)
        beside = path.with_name("config.json")
        config = config or (beside if isinstance(source, dict) and beside.exists() else None)
    return source, config


def _state_dict(source: Any, key: str | None, prefix: str) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint whose names begin with a prefix, which is removed."""
    if key:
        if not isinstance(source, dict) or not isinstance(source.get(key), dict):
            refuse(f"the checkpoint has no state dict {key}; it has {some(map(str, source))}")
        source = source[key]
    if not isinstance(source, dict) or not source:
        refuse(f"this is a {type(source).__name__}, not a state dict or a module")
    others = [str(name) for name, value in source.items() if not isinstance(value, torch.Tensor)]
    if others:
        refuse(f"entries that are no tensors: {some(others)}; --key names the one that is the state dict")
    inside = {name[len(prefix):]: tensor for name, tensor in source.items() if name.startswith(prefix)}
    return inside or refuse(f"no tensor is below {prefix!r}; there are {some(source)}")


# The functions below return the arguments of a class that follow from a state dict.

def _linear(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {"in_features": _get_tensor(state, "weight").shape[1], "out_features": state["weight"].shape[0], "bias": "bias" in state}


def _layer_norm(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {"normalized_shape": list(_get_tensor(state, "weight").shape), "bias": "bias" in state}


def _embedding(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    return dict(zip(("num_embeddings", "embedding_dim"), _get_tensor(state, "weight").shape))


def _recurrent(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {"input_size": _get_tensor(state, "weight_ih_l0").shape[1], "hidden_size": _get_tensor(state, "weight_hh_l0").shape[1],
            "num_layers": _count_layers(state, "weight_ih_l{}"), "bias": "bias_ih_l0" in state,
            "bidirectional": "weight_ih_l0_reverse" in state}


def _attention(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    width = _get_tensor(state, "out_proj.weight").shape[0]
    widths = {key: state[name].shape[1] for key, name in (("kdim", "k_proj_weight"), ("vdim", "v_proj_weight")) if name in state}
    return {"embed_dim": width, "bias": "in_proj_bias" in state, "add_bias_kv": "bias_k" in state, **widths}


def _encoder_layer(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    features, width = _get_tensor(state, "linear1.weight").shape
    return {"d_model": width, "dim_feedforward": features, "bias": "linear1.bias" in state}


def _encoder(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    first = {name[len("layers.0."):]: tensor for name, tensor in state.items() if name.startswith("layers.0.")}
    return {**_encoder_layer(first), "num_layers": _count_layers(state, "layers.{}.linear1.weight"), "norm": "norm.weight" in state}


def _transformer(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    first = {name[len("encoder.layers.0."):]: tensor for name, tensor in state.items() if name.startswith("encoder.layers.0.")}
    return {**_encoder_layer(first), **{f"num_{part}_layers": _count_layers(state, part + ".layers.{}.linear1.weight") for part in ("encoder", "decoder")}}


def _get_tensor(state: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    return state[name] if name in state else refuse(f"the state dict has no {name}; it has {some(state)}")


def _count_layers(state: dict[str, torch.Tensor], pattern: str) -> int:
    return next(i for i in range(len(state) + 1) if pattern.format(i) not in state)


def _make_encoder(num_layers: int, norm: bool, norm_eps: float | None = None, **arguments: Any) -> nn.TransformerEncoder:
    """Makes a TransformerEncoder from its layer's arguments; norm: whether it has a final norm."""
    layer = nn.TransformerEncoderLayer(**arguments)
    eps = layer.norm1.eps if norm_eps is None else norm_eps
    final = nn.LayerNorm(arguments["d_model"], eps=eps, bias=arguments["bias"]) if norm else None
    return nn.TransformerEncoder(layer, num_layers, norm=final, enable_nested_tensor=False)


# By name: the constructor, the function for the arguments that follow from a state dict, and the other arguments.
CLASSES: dict[str, tuple[Callable[..., nn.Module], Callable[[Any], dict[str, Any]], tuple[str, ...]]] = {
    "Linear": (nn.Linear, _linear, ()),
    "LayerNorm": (nn.LayerNorm, _layer_norm, ("eps",)),
    "Embedding": (nn.Embedding, _embedding, ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq")),
    "GRU": (nn.GRU, _recurrent, ("batch_first", "dropout")),
    "RNN": (nn.RNN, _recurrent, ("nonlinearity", "batch_first", "dropout")),
    "MultiheadAttention": (nn.MultiheadAttention, _attention, ("num_heads", "batch_first", "add_zero_attn", "dropout")),
}
_LAYER = ("nhead", "activation", "layer_norm_eps", "batch_first", "norm_first", "dropout")
CLASSES["TransformerEncoderLayer"] = (nn.TransformerEncoderLayer, _encoder_layer, _LAYER)
CLASSES["TransformerEncoder"] = (_make_encoder, _encoder, (*_LAYER, "norm_eps"))
CLASSES["Transformer"] = (nn.Transformer, _transformer, _LAYER)
OWN = {cls.__name__: cls for cls in own.LAYERS}
ACTIVATIONS = {"gelu_tanh": nn.GELU(approximate="tanh"), "silu": F.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}


def _from_class(name: str, state: dict[str, torch.Tensor], settings: dict[str, Any]) -> tuple[nn.Module, list[str]]:
    """A module of a PyTorch class with these tensors, and a note of the default arguments."""
    name = name.rpartition(".")[2]
    if name in OWN:
        return _from_own(OWN[name], state, settings), []
    if name not in CLASSES:
        refuse(f"module {name} is none of {', '.join([*CLASSES, *OWN])}")
    make, told, untold = CLASSES[name]
    unknown = [key for key in settings if key not in untold]
    if unknown:
        refuse(f"setting {unknown[0]} of {name} is none of {', '.join(untold) or '(none: the state dict tells all)'}")
    required = [key for key in ("nhead", "num_heads") if key in untold and key not in settings]
    if required:
        refuse(f"{name} needs {required[0]}, which a state dict does not tell: --set {required[0]}=N")
    arguments = told(state)
    defaults = {**_default_arguments(nn.TransformerEncoderLayer if name == "TransformerEncoder" else make), "norm_eps": "layer_norm_eps"}
    assumed = [f"{key}={_setting_name(defaults[key])}" for key in untold if key not in settings and key != "dropout"
               and (key != "norm_eps" or arguments["norm"])]
    if isinstance(settings.get("activation"), str):
        settings = {**settings, "activation": ACTIVATIONS.get(settings["activation"], settings["activation"])}
    try:
        module = make(**arguments, **settings)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        refuse(f"{name} does not take these settings: {error}")
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        refuse(f"the state dict is not one of {name}: " + " ".join(str(error).split()))
    module = module.to(next(iter(state.values())).dtype)
    return module, [f"assumed {', '.join(assumed)}"] if assumed else []


def _from_own(cls: type[own.Layer], state: dict[str, torch.Tensor], settings: dict[str, Any]) -> nn.Module:
    """A module of attncl.nn, whose keys are the settings."""
    keys = [entry.name for entry in describe(cls.arch) if entry.kind == "key"]
    unknown = [key for key in settings if key not in keys]
    if unknown:
        refuse(f"setting {unknown[0]} of {cls.__name__} is none of {', '.join(keys)}")
    try:
        module = cls.from_config(settings)
        module.load_state_dict({**dict(module.named_buffers()), **state})
    except KeyError as error:
        refuse(f"{cls.__name__} needs {error.args[0]}, which a state dict does not tell: --set {error.args[0]}=VALUE")
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        refuse(f"{cls.__name__} does not take these settings and tensors: " + " ".join(str(error).split()))
    return module.to(next(iter(state.values())).dtype)


def _setting_name(value: Any) -> Any:
    return getattr(value, "__name__", value)


def _default_arguments(make: Callable[..., Any]) -> dict[str, Any]:
    return {key: p.default for key, p in inspect.signature(make).parameters.items()} if make not in (nn.GRU, nn.RNN) else \
        {"nonlinearity": "tanh", "batch_first": False, "dropout": 0.0}


def build(source: Any, module: str | None, settings: dict[str, Any], config: Any, key: str | None,
          prefix: str) -> tuple[nn.Module, list[str]]:
    """The module of a state dict or checkpoint, and notes."""
    if isinstance(source, nn.Module):
        if module or settings or key or prefix:
            refuse(f"the file holds a {type(source).__name__}: module, settings, key and prefix are for state dicts")
        return source, []
    state = _state_dict(source, key, prefix)
    if module:
        return _from_class(module, state, settings)
    if config is None:
        refuse("a state dict does not tell its module: --module, one of " + ", ".join([*CLASSES, *OWN])
               + "; or config.json beside it, of GPT-2 or BERT")
    if settings:
        refuse(f"setting {next(iter(settings))}: config.json tells all settings")
    if not isinstance(config, dict):
        try:
            config = json.loads(pathlib.Path(config).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            refuse(f"{config}: {error}")
    try:
        model, others = from_checkpoint(state, config)
    except ImportError as error:
        refuse(f"GPT-2 and BERT need the transformers package: {error}")
    return model, [f"not of {type(model).__name__}: {some(others)} left out"] if others else []

# SPDX-License-Identifier: MIT
"""The library's layers as PyTorch modules: AFT, gMLP, Feedback Transformer, and stacks of them.

Arguments are the keys of an architecture in docs/architectures.md, parameters have its names, and forward() takes its
inputs.  So attncl.export(module, path) writes a model file, and load(path) reads one.  Sequences are [T, B, C] as in
labml.ai's code.  Masks are True where a position is visible, [T or 1, S, B or 1].
"""
from __future__ import annotations

import inspect
import json
import os
from typing import Any

try:
    import torch
except ImportError as error:
    raise ImportError("attncl.nn needs PyTorch: pip install 'attncl[convert]'") from error
from torch import Tensor

from ..description import describe
from ..files import BFLOAT16, load as load_file
from .aft import AFTConv, AFTFull, AFTLocal, AFTSimple
from .feedback import FeedbackAttention, FeedbackLayer, FeedbackTransformer, FeedbackTransformerKV
from .gmlp import GMLPBlock, SpatialGatingUnit
from .language_model import FeedbackLanguageModel, Generator, LanguageModel
from .layer import Heads, Layer
from .tokens import TokenEmbedding, TokenEncoder
from .transformer import Encoder, FeedForward, MultiHeadAttention, TransformerLayer

__all__ = ["AFTConv", "AFTFull", "AFTLocal", "AFTSimple", "Encoder", "FeedForward", "FeedbackLanguageModel", "FeedbackTransformer",
           "FeedbackTransformerKV", "GMLPBlock", "LanguageModel", "Layer", "MultiHeadAttention", "SpatialGatingUnit", "TokenEncoder",
           "TransformerLayer", "load"]

CLASSES: dict[str, type[Layer]] = {cls.arch: cls for cls in (
    AFTFull, AFTSimple, AFTLocal, AFTConv, SpatialGatingUnit, GMLPBlock, MultiHeadAttention, FeedForward, TransformerLayer, Encoder,
    LanguageModel, FeedbackTransformer, FeedbackTransformerKV)}  # LanguageModel makes a FeedbackLanguageModel of a file with such layers
LAYERS = (*CLASSES.values(), FeedbackLanguageModel, TokenEncoder)

PARTS = (Heads, TokenEmbedding, Generator, FeedbackAttention, FeedbackLayer)  # the classes inside LAYERS


def as_tensor(array: Any) -> Tensor:
    """An array of a safetensors file."""
    return torch.from_numpy(array.view("int16")).view(torch.bfloat16) if array.dtype == BFLOAT16 else torch.from_numpy(array)


def _default(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text  # a bare word


def _refuse_unknown(arch: str, config: dict[str, Any], module: Layer) -> None:
    """Refuses a key that no class has, unless its value is the default: attncl.nn lacks the layer that it describes."""
    known = {name for m in module.modules() if isinstance(m, Layer) for name in m.config}
    known |= {name for cls in CLASSES.values() for name in inspect.signature(cls).parameters}
    heads = config.get("heads", 1)
    usual: dict[str, Any] = {e.name: _default(e.default) for e in describe(arch) if e.kind == "key" and e.default is not None}
    usual.update(n_kv_heads=heads, head_dim=config.get("d_model", 0) // heads, final_norm_eps=config.get("layer_norm_eps"))
    for key, value in config.items():
        if key not in known and usual.get(key) != value:
            raise NotImplementedError(f"attncl.nn has no layer with {key}={value!r}")


def load(path: str | os.PathLike[str]) -> Layer:
    """The module of a model file, with its parameters: a file that export() or `attncl train` wrote."""
    arrays, metadata = load_file(path)
    arch = metadata.get("attncl.arch", "none")
    if arch not in CLASSES:
        raise ValueError(f"{os.fspath(path)}: architecture {arch} is none of attncl.nn's: {', '.join(CLASSES)}")
    config = json.loads(metadata["attncl.config"])
    if arch in ("encoder", "lm"):  # without these keys the tensors decide
        config.setdefault("final_norm", not {"norm.weight", "encoder.norm.weight"}.isdisjoint(arrays))
        config.setdefault("generator_bias", not {"generator.bias", "generator.projection.bias"}.isdisjoint(arrays))
    try:
        cls = TokenEncoder if arch == "encoder" and config.get("n_vocab") else CLASSES[arch]
        module = cls.from_config(config)
        _refuse_unknown(arch, config, module)
        state = {name: as_tensor(arrays[name]) for name in module.state_dict() if name in arrays}
        positions = state.get("src_embed.positional_encodings")
        if positions is not None and positions.dim() == 2:  # [max_len, d_model], which the library takes as well
            state["src_embed.positional_encodings"] = positions[:, None]
        module.load_state_dict({**dict(module.named_buffers()), **state})  # buffers follow from the keys: a file may lack them
    except NotImplementedError as error:
        raise NotImplementedError(f"{os.fspath(path)}: {error}") from None
    except (KeyError, RuntimeError, TypeError) as error:
        raise ValueError(f"{os.fspath(path)}: " + " ".join(str(error).split())) from None
    return module

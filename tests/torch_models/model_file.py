# SPDX-License-Identifier: MIT
"""Models from what a model file says: architecture, configuration, and parameters under their names."""
import math
import struct

import torch
from torch import nn

from support.safetensors_file import load, write

from .feedback import FeedbackLM
from .recurrent import Seq2Seq
from .transformer import LM, Classifier, Seq2SeqTransformer

DTYPES = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64, "I32": torch.int32}
SHAPE_KEYS = ("src_vocab_size", "tgt_vocab_size", "embed_size", "num_hiddens", "num_layers")


def tensors_of(path):
    """All tensors of a safetensors file that have a type of DTYPES."""
    return {name: torch.frombuffer(bytearray(data), dtype=DTYPES[dtype]).reshape(shape) if math.prod(shape)
            else torch.empty(shape, dtype=DTYPES[dtype])
            for name, (dtype, shape, data) in load(path)[0].items() if dtype in DTYPES}


def completed(c, names):
    """The configuration with what the library takes from the names in the file."""
    c = dict(c)
    if not c.get("norm_first", True):
        c.setdefault("final_norm", "encoder.norm.weight" in names)
    if c.get("tie_generator") and "layer" in c:
        bias = "generator.bias" if c["layer"].startswith("feedback") else "generator.projection.bias"
        c.setdefault("generator_bias", bias in names)
    return c


def model_of(arch, c, names=()):
    """A module without meaningful values.  `names`: of the parameters in the file."""
    if arch == "seq2seq_bahdanau":
        return Seq2Seq(*(c[key] for key in SHAPE_KEYS))
    if arch not in ("lm", "encoder", "seq2seq_transformer"):
        raise ValueError(f"arch {arch}, expected lm, encoder, seq2seq_bahdanau or seq2seq_transformer")
    if arch == "seq2seq_transformer":
        model = Seq2SeqTransformer(completed(c, names))
    elif arch == "encoder":
        model = Classifier(c)
        model.pool = c.get("pool", "mean")
    else:
        c = completed(c, names)
        model = FeedbackLM(c) if c["layer"].startswith("feedback") else LM(c)
    for norm in model.modules():
        if isinstance(norm, nn.LayerNorm):
            norm.eps = c.get("layer_norm_eps", 1e-5)
    encoder = model if arch == "encoder" else model.encoder if c.get("layer", "")[:8] != "feedback" else None
    if encoder and isinstance(encoder.norm, nn.LayerNorm):
        encoder.norm.eps = c.get("final_norm_eps", c.get("layer_norm_eps", 1e-5))
    return model


def load_model(arch, c, path, dtype=torch.float32):
    """The module with the values of a model file.  Each of its parameters must be there; buffers need not be."""
    tensors = tensors_of(path)
    model = model_of(arch, c, tensors)
    params = dict(model.named_parameters())
    missing, _ = model.load_state_dict({k: v for k, v in tensors.items() if k in model.state_dict()}, strict=False)
    missing = [name for name in missing if name in params]
    if missing:
        raise ValueError(f"{path} has no {', '.join(missing)}")
    return model.to(dtype)


def save_model(model, path, metadata=None):
    params = {k: v.detach().float().flatten().tolist() for k, v in model.named_parameters()}
    shapes = {k: v.shape for k, v in model.named_parameters()}
    write(path, {k: ("F32", shapes[k], struct.pack(f"<{len(v)}f", *v)) for k, v in params.items()}, metadata)

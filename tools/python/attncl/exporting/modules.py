# SPDX-License-Identifier: MIT
"""Converts PyTorch's modules and those of attncl.nn: for each class a function that fills a Conversion, and a probe, which runs
the module on random numbers and returns its inputs and outputs by the architecture's names.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .. import nn as own
from ..description import describe
from ..nn.transformer import stack_keys
from .parameters import Conversion, activation_name, only, refuse, some

T, B = 5, 3  # a probe's sequence and batch
Probe = tuple[dict[str, Tensor], dict[str, Tensor]]


def convert_linear(module: nn.Linear, out: Conversion) -> None:
    out.arch = "linear"
    out.config = {"in_features": module.in_features, "out_features": module.out_features, "bias": module.bias is not None}
    out.affine("", "")


def convert_layer_norm(module: nn.LayerNorm, out: Conversion) -> None:
    shape = list(module.normalized_shape)
    out.arch, out.config = "layer_norm", {"normalized_shape": shape, "eps": module.eps}
    if out.has("weight"):
        out.affine("", "", shape)
    else:
        out.put("weight", torch.ones(shape))
        out.put("bias", torch.zeros(shape))


def convert_rms_norm(module: nn.RMSNorm, out: Conversion) -> None:
    shape = list(module.normalized_shape)
    eps = torch.finfo(torch.float32).eps if module.eps is None else module.eps
    out.arch, out.config = "rms_norm", {"normalized_shape": shape, "eps": eps}
    if out.has("weight"):
        out.copy("weight")
    else:
        out.put("weight", torch.ones(shape))


def convert_embedding(module: nn.Embedding, out: Conversion) -> None:
    only("max_norm", module.max_norm, None, "it changes the weights as they are looked up")
    if module.padding_idx is not None or module.scale_grad_by_freq:
        out.notes.append(f"padding_idx={module.padding_idx}, scale_grad_by_freq={module.scale_grad_by_freq}: outputs are "
                         "the same, gradients are those without them")
    out.arch = "embedding"
    out.config = {"num_embeddings": module.num_embeddings, "embedding_dim": module.embedding_dim}
    out.copy("weight")


def convert_recurrent(module: nn.GRU | nn.RNN, out: Conversion) -> None:
    out.arch = "gru" if isinstance(module, nn.GRU) else "rnn"
    out.config = {"input_size": module.input_size, "hidden_size": module.hidden_size, "num_layers": module.num_layers,
                  "batch_first": module.batch_first, "bidirectional": module.bidirectional}
    if isinstance(module, nn.RNN):
        out.config["nonlinearity"] = module.nonlinearity
    ends = ("", "_reverse") if module.bidirectional else ("",)
    for name in (f"{side}_l{layer}{end}" for layer in range(module.num_layers) for end in ends for side in ("ih", "hh")):
        out.copy(f"weight_{name}")
        if module.bias:
            out.copy(f"bias_{name}")
        else:
            weight = out.take(f"weight_{name}")
            out.put(f"bias_{name}", torch.zeros(len(weight), dtype=weight.dtype))


def attention_keys(module: nn.MultiheadAttention) -> dict[str, Any]:
    """The keys of a MultiheadAttention that its layer has, too."""
    only("kdim", module.kdim, module.embed_dim, "keys are as wide as queries, embed_dim")
    only("vdim", module.vdim, module.embed_dim, "values are as wide as queries, embed_dim")
    only("add_bias_kv", module.bias_k is not None or module.bias_v is not None, False,
         "arch mha appends nothing to keys and values")
    only("add_zero_attn", module.add_zero_attn, False, "arch mha appends nothing to keys and values")
    return {"d_model": module.embed_dim, "heads": module.num_heads, "bias": module.in_proj_bias is not None,
            "batch_first": module.batch_first}


def put_attention(module: nn.MultiheadAttention, out: Conversion) -> None:
    """Puts an attention's parameters.  In a file values and output always have a bias; it is 0 if the module has none."""
    width, names = module.embed_dim, ("query", "key", "value")
    if out.has("in_proj_weight"):
        weights = out.take("in_proj_weight").chunk(3)
    else:
        weights = [out.take(f"{letter}_proj_weight") for letter in "qkv"]
    zeros = torch.zeros(3 * width, dtype=weights[0].dtype)
    biases = (out.take("in_proj_bias") if out.has("in_proj_bias") else zeros).chunk(3)
    for name, weight, bias in zip(names, weights, biases):
        out.put(f"{name}.linear.weight", weight)
        if module.in_proj_bias is not None or name == "value":
            out.put(f"{name}.linear.bias", bias)
    out.affine("out_proj.", "output.", width)


def convert_attention(module: nn.MultiheadAttention, out: Conversion) -> None:
    out.arch, out.config = "mha", attention_keys(module)
    put_attention(module, out)


def layer_keys(layer: nn.TransformerEncoderLayer) -> dict[str, Any]:
    """The configuration of an encoder of such layers, without n_layers."""
    only("norm1.eps and norm2.eps", layer.norm1.eps, layer.norm2.eps, "a layer has one layer_norm_eps")
    biased = layer.linear1.bias is not None
    return {"layer": "transformer", **attention_keys(layer.self_attn), "d_ff": layer.linear1.out_features,
            "bias1": biased, "bias2": layer.linear2.bias is not None, "activation": activation_name(layer.activation, "activation"),
            "norm_first": layer.norm_first, "layer_norm_eps": layer.norm1.eps}


def put_layer(layer: nn.TransformerEncoderLayer, out: Conversion) -> None:
    put_parts(layer, {"self_attn.": "self_attn."}, {"norm1.": "norm_self_attn.", "norm2.": "norm_ff."}, out)


def put_parts(layer: Any, attentions: dict[str, str], norms: dict[str, str], out: Conversion) -> None:
    """Puts the parameters of a PyTorch layer; the dicts map its names of attentions and norms to the file's."""
    for source, target in attentions.items():
        with out.scope(source, target):
            put_attention(getattr(layer, source[:-1]), out)
    for source, target in norms.items():
        out.affine(source, target, layer.self_attn.embed_dim)
    for source, target in (("linear1.", "feed_forward.layer1."), ("linear2.", "feed_forward.layer2.")):
        out.affine(source, target)


def convert_encoder_layer(module: nn.TransformerEncoderLayer, out: Conversion) -> None:
    out.arch, out.config = "transformer_layer", layer_keys(module)
    put_layer(module, out)


def decoder_layer_keys(layer: nn.TransformerDecoderLayer) -> dict[str, Any]:
    keys = layer_keys(layer)  # encoder and decoder layers share these names
    only("norm3.eps", layer.norm3.eps, layer.norm1.eps, "a layer has one layer_norm_eps")
    for key, value in attention_keys(layer.multihead_attn).items():
        only(f"multihead_attn: {key}", value, keys[key], f"self_attn has {keys[key]!r}, and one key serves both")
    return keys


def put_decoder_layer(layer: nn.TransformerDecoderLayer, out: Conversion) -> None:
    put_parts(layer, {"self_attn.": "self_attn.", "multihead_attn.": "src_attn."},
              {"norm1.": "norm_self_attn.", "norm2.": "norm_src_attn.", "norm3.": "norm_ff."}, out)


def convert_own_layer(module: own.Layer, out: Conversion) -> None:
    """Modules of attncl.nn have the architecture's keys and names."""
    out.arch, out.config = module.arch, module.config
    for name in module.state_dict():
        out.copy(name)


# For a class of layers: the keys of a stack, and the function that puts a layer's parameters.
Functions = tuple[Callable[[Any], dict[str, Any]], Callable[[Any, Conversion], None]]
STACKED: dict[type[nn.Module], Functions] = {
    nn.TransformerEncoderLayer: (layer_keys, put_layer),
    own.TransformerLayer: (stack_keys, convert_own_layer),
    own.GMLPBlock: (stack_keys, convert_own_layer),
}


def put_layers(layers: dict[str, nn.Module], functions: Functions, first: str, keys: dict[str, Any], out: Conversion) -> None:
    """Puts layers of one class, whose keys must be those of layer `first`."""
    for i, (name, layer) in enumerate(layers.items()):
        for key, value in functions[0](layer).items():
            only(f"{name}: {key}", value, keys[key], f"{first} has {keys[key]!r}, and one key serves all layers")
        with out.scope(f"{name}.", f"layers.{i}."):
            functions[1](layer, out)


def put_norm(name: str, norm: nn.Module | None, out: Conversion) -> nn.LayerNorm:
    only(name, type(norm).__name__, "LayerNorm", f"the final norm of arch {out.arch} is a layer norm")
    assert isinstance(norm, nn.LayerNorm)
    if not out.has(f"{name}.weight"):
        out.put("norm.weight", torch.ones(norm.normalized_shape))
        out.put("norm.bias", torch.zeros(norm.normalized_shape))
    else:
        out.affine(f"{name}.", "norm.", norm.normalized_shape)
    return norm


def convert_stack(layers: dict[str, nn.Module], norms: dict[str, nn.Module], out: Conversion) -> None:
    """Converts layers of one class and at most one final norm, by name, to arch encoder."""
    first = next(iter(layers))
    for name, layer in layers.items():
        if type(layer) not in STACKED or type(layer) is not type(layers[first]):
            refuse(f"{name}={type(layer).__name__!r} cannot be expressed: the layers of arch encoder are all of one class, of "
                   + ", ".join(map(class_name, STACKED)))
    functions = STACKED[type(layers[first])]
    keys = functions[0](layers[first])
    put_layers(layers, functions, first, keys, out)
    out.arch = "encoder"
    out.config = {**keys, "n_layers": len(layers), "final_norm": bool(norms)}
    for name, norm in norms.items():
        out.config["final_norm_eps"] = put_norm(name, norm, out).eps


def convert_transformer(module: nn.Transformer, out: Conversion) -> None:
    """Both encoder and decoder must have a final norm, or neither."""
    out.arch = "seq2seq_transformer"
    parts = (("encoder", module.encoder, nn.TransformerEncoder, nn.TransformerEncoderLayer, (layer_keys, put_layer)),
             ("decoder", module.decoder, nn.TransformerDecoder, nn.TransformerDecoderLayer, (decoder_layer_keys, put_decoder_layer)))
    for name, part, kind, layer_kind, _ in parts:
        only(name, type(part).__name__, kind.__name__, f"arch {out.arch} has PyTorch's own layers")
        for i, layer in enumerate(part.layers):
            only(f"{name}.layers.{i}", type(layer).__name__, layer_kind.__name__, f"arch {out.arch} has PyTorch's own layers")
        if not part.layers:
            refuse(f"num_{name}_layers=0 cannot be expressed: arch {out.arch} has at least one")
    keys, normed = layer_keys(module.encoder.layers[0]), module.encoder.norm is not None
    only("decoder.norm", "none" if module.decoder.norm is None else "given", "given" if normed else "none", "as encoder.norm, it is there or not")
    for name, part, _, _, functions in parts:
        with out.scope(f"{name}.", f"{name}."):
            put_layers({f"layers.{i}": layer for i, layer in enumerate(part.layers)}, functions, "encoder.layers.0", keys, out)
            if normed:
                only(f"{name}.norm.eps", put_norm("norm", part.norm, out).eps, keys["layer_norm_eps"], "one key serves all norms")
    del keys["layer"]
    out.config = {"src_vocab_size": 0, **keys, "final_norm": normed, "n_layers": len(module.encoder.layers),
                  "n_decoder_layers": len(module.decoder.layers)}
    out.notes.append("the decoder is causal, as with tgt_mask=generate_square_subsequent_mask(T)")


def convert_encoder(module: nn.TransformerEncoder, out: Conversion) -> None:
    if not module.layers:
        refuse("num_layers=0 cannot be expressed: arch encoder takes its width from its layers")
    norms = {} if isinstance(module.norm, (nn.Identity, type(None))) else {"norm": module.norm}
    convert_stack({f"layers.{i}": layer for i, layer in enumerate(module.layers)}, norms, out)


def convert_sequential(module: nn.Sequential, out: Conversion) -> None:
    """Converts one module, a feed-forward, or layers with or without a final norm; ignores dropout."""
    parts = {name: part for name, part in module._modules.items() if not isinstance(part, (nn.Identity, nn.Dropout))}
    names, norms = list(parts), {}
    if len(parts) > 1 and isinstance(parts[names[-1]], nn.LayerNorm):
        norms[names[-1]] = parts.pop(names[-1])
    if len(parts) == 1 and not norms and type(parts[names[0]]) in MODULES:
        with out.scope(f"{names[0]}."):
            MODULES[type(parts[names[0]])][0](parts[names[0]], out)
    elif parts and all(type(part) in STACKED for part in parts.values()):
        convert_stack(parts, norms, out)
    elif [isinstance(part, nn.Linear) for part in parts.values()] == [True, False, True] and not norms:
        first, function, second = parts.values()
        only(f"{names[2]}: out_features", second.out_features, first.in_features,
             "arch feed_forward gives the width that it takes")
        out.arch = "feed_forward"
        out.config = {"d_model": first.in_features, "d_ff": first.out_features, "bias1": first.bias is not None,
                      "bias2": second.bias is not None, "activation": activation_name(function, names[1])}
        out.affine(f"{names[0]}.", "layer1.")
        out.affine(f"{names[2]}.", "layer2.")
    else:
        refuse(f"Sequential of {some(type(part).__name__ for part in module)} cannot be converted; what can: one module; "
               f"Linear, activation, Linear; layers of one class of {', '.join(map(class_name, STACKED))}, then LayerNorm or not")


def class_name(cls: type[nn.Module]) -> str:
    return ("attncl.nn." if issubclass(cls, own.Layer) else "nn.") + cls.__name__


# -- probes --

def _normal(module: nn.Module, *shape: int) -> Tensor:
    dtype = next(module.parameters(), torch.empty(0)).dtype
    return torch.randn(shape, dtype=dtype)


def _sequence(module: nn.Module, width: int, batch_first: bool) -> Tensor:
    return _normal(module, *((B, T) if batch_first else (T, B)), width)


def probe_linear(module: nn.Linear) -> Probe:
    x = _normal(module, B, module.in_features)
    return {"x": x}, {"output": module(x)}


def probe_layer_norm(module: nn.LayerNorm | nn.RMSNorm) -> Probe:
    x = _normal(module, B, *module.normalized_shape)
    return {"x": x}, {"output": module(x)}


def probe_embedding(module: nn.Embedding) -> Probe:
    tokens = torch.randint(module.num_embeddings, (T, B))
    return {"tokens": tokens}, {"output": module(tokens)}


def probe_recurrent(module: nn.GRU | nn.RNN) -> Probe:
    x = _sequence(module, module.input_size, module.batch_first)
    h0 = _normal(module, module.num_layers * (2 if module.bidirectional else 1), B, module.hidden_size)
    output, h_n = module(x, h0)
    return {"input": x, "h0": h0}, {"output": output, "h_n": h_n}


def probe_attention(module: nn.MultiheadAttention) -> Probe:
    names = ("query", "key", "value")
    inputs = {name: _sequence(module, module.embed_dim, module.batch_first) for name in names}
    output, weights = module(*inputs.values(), average_attn_weights=False)
    return inputs, {"output": output, "attn": weights.permute(2, 3, 0, 1)}


def probe_encoder(module: nn.TransformerEncoderLayer | nn.TransformerEncoder) -> Probe:
    attention = (module.layers[0] if isinstance(module, nn.TransformerEncoder) else module).self_attn
    x = _sequence(module, attention.embed_dim, attention.batch_first)
    return {"x": x}, {"output": module(x)}


def probe_transformer(module: nn.Transformer) -> Probe:
    inputs = {name: _sequence(module, module.d_model, module.batch_first) for name in ("enc_X", "dec_X")}
    return inputs, {"output": module(*inputs.values(), tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1))}


def probe_own(module: own.Layer) -> Probe:
    """Runs the module on random inputs of the shapes in the architecture's description."""
    limits = {"seq_len": 0, "max_len": 0, "P": 1}
    longest = min([T, *(module.config[key] + more for key, more in limits.items() if key in module.config)])
    extents = {"T": longest, "S": longest, "B": B}
    inputs = {}
    for entry in describe(module.arch, module.config):
        if entry.kind == "input" and not entry.optional:
            shape = [extents.get(word) or int(word) for word in str(entry.shape)[1:-1].replace("...", "B").split(", ")]
            is_real = entry.type == "F32"
            inputs[entry.name] = _normal(module, *shape) if is_real else torch.randint(module.config["n_vocab"], shape)
    return inputs, {"output": module(**inputs)}


def probe_sequential(module: nn.Sequential) -> Probe:
    """Runs the whole module on the first layer's probe input."""
    first = next(part for part in module if not isinstance(part, (nn.Identity, nn.Dropout)))
    inputs, outputs = MODULES[type(first)][1](first)
    if len(module) > 1:
        x = next(iter(inputs.values()))
        inputs, outputs = dict.fromkeys(["x"], x), {"output": module(x)}
    return inputs, outputs


MODULES: dict[type[nn.Module], tuple[Callable[[Any, Conversion], None], Callable[[Any], Probe]]] = {
    nn.Linear: (convert_linear, probe_linear),
    nn.LayerNorm: (convert_layer_norm, probe_layer_norm),
    nn.RMSNorm: (convert_rms_norm, probe_layer_norm),
    nn.Embedding: (convert_embedding, probe_embedding),
    nn.GRU: (convert_recurrent, probe_recurrent),
    nn.RNN: (convert_recurrent, probe_recurrent),
    nn.MultiheadAttention: (convert_attention, probe_attention),
    nn.TransformerEncoderLayer: (convert_encoder_layer, probe_encoder),
    nn.TransformerEncoder: (convert_encoder, probe_encoder),
    nn.Transformer: (convert_transformer, probe_transformer),
    nn.Sequential: (convert_sequential, probe_sequential),
    **dict.fromkeys(own.LAYERS, (convert_own_layer, probe_own)),
}

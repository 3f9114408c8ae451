# SPDX-License-Identifier: MIT
"""Softmax attention, and stacks of layers that mix positions by it, by AFT or by gMLP."""
from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .aft import AFTConv, AFTFull, AFTLocal, AFTSimple
from .gmlp import GMLPBlock
from .layer import ACTIVATIONS, Heads, Layer, check_heads, make_layer, visible_pairs


class MultiHeadAttention(Layer):
    """Softmax attention, labml.ai's MultiHeadAttention.  `bias`: of queries and keys.  `n_kv_heads`: key and value heads, each
    shared by neighbouring query heads; None: as many as heads."""
    arch = "mha"

    def __init__(self, d_model: int, heads: int, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 n_kv_heads: int | None = None):
        check_heads("MultiHeadAttention", d_model, heads)
        if n_kv_heads is not None and (n_kv_heads < 1 or heads % n_kv_heads):
            raise ValueError(f"MultiHeadAttention: heads {heads} is not divisible by n_kv_heads {n_kv_heads}")
        shared = {} if n_kv_heads is None else {"n_kv_heads": n_kv_heads}
        super().__init__(d_model=d_model, heads=heads, **shared, bias=bias, batch_first=batch_first)
        self.query, self.key = Heads(d_model, heads, bias), Heads(d_model, heads, bias, n_kv_heads)
        self.value = Heads(d_model, heads, True, n_kv_heads)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = dropout

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                mask: Tensor | None = None, valid_lens: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """query [T, B, d_model], key and value [S, B, d_model]; key defaults to query, value to key.
        valid_lens [B]: scores of later keys are -1e6, so that a length of 0 averages them all.
        bias [B or 1, heads or 1, T or 1, S] is added to scores."""
        key = query if key is None else key
        value = key if value is None else value
        if self.config["batch_first"]:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        visible = visible_pairs(mask, query, key.shape[0], "MultiHeadAttention")
        q, k, v = (x.permute(1, 2, 0, 3) for x in (self.query(query), self.key(key), self.value(value)))  # [B, H, T, D]
        if k.shape[1] != q.shape[1]:
            k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        visible = None if visible is None else visible.permute(2, 0, 1)[:, None]
        dropout = self.dropout if self.training else 0.0
        if valid_lens is None:
            if bias is not None:
                visible = bias if visible is None else bias.masked_fill(~visible, -torch.inf)
            x = F.scaled_dot_product_attention(q, k, v, visible, dropout)
        else:
            scores = q @ k.mT / math.sqrt(q.shape[-1]) + (0.0 if bias is None else bias)
            scores = _mask_beyond(scores, valid_lens[:, None, None, None])
            if visible is not None:
                scores = scores.masked_fill(~visible, -torch.inf)
            x = F.dropout(scores.softmax(-1), dropout) @ v
        x = self.output(x.permute(2, 0, 1, 3).flatten(2))
        return x.transpose(0, 1) if self.config["batch_first"] else x


class FeedForward(Layer):
    """Two linear maps with an activation between them; gated: activation(x W1) * (x V)."""
    arch = "feed_forward"

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", is_gated: bool = False, bias1: bool = True,
                 bias2: bool = True, bias_gate: bool = True, dropout: float = 0.0):
        if activation.lower() not in ACTIVATIONS:
            raise ValueError(f"FeedForward: activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
        super().__init__(d_model=d_model, d_ff=d_ff, activation=activation.lower(), is_gated=is_gated, bias1=bias1, bias2=bias2,
                         bias_gate=bias_gate)
        self.layer1 = nn.Linear(d_model, d_ff, bias=bias1)
        self.layer2 = nn.Linear(d_ff, d_model, bias=bias2)
        if is_gated:
            self.linear_v = nn.Linear(d_model, d_ff, bias=bias_gate)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = ACTIVATIONS[self.config["activation"]](self.layer1(x))
        if self.config["is_gated"]:
            hidden = hidden * self.linear_v(x)
        return self.layer2(self.dropout(hidden))


class TransformerLayer(Layer):
    """A residual layer of an attention module, AFT or MultiHeadAttention, and a FeedForward, labml.ai's TransformerLayer."""
    arch = "transformer_layer"

    def __init__(self, self_attn: Layer, feed_forward: FeedForward, norm_first: bool = True, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, dropout: float = 0.0):
        layer = next((name for name, cls in _ATTENTION.items() if type(self_attn) is cls), None)
        if layer is None or not isinstance(feed_forward, FeedForward):
            raise TypeError(f"TransformerLayer({type(self_attn).__name__}, {type(feed_forward).__name__}): expected one of "
                            + ", ".join(cls.__name__ for cls in _ATTENTION.values()) + ", and a FeedForward")
        width = self_attn.config["d_model"]
        if width != feed_forward.config["d_model"]:
            raise ValueError(f"TransformerLayer: d_model is {width} of {type(self_attn).__name__}, "
                             f"{feed_forward.config['d_model']} of FeedForward")
        if self_attn.config.get("batch_first"):
            raise ValueError("TransformerLayer: batch_first=True of MultiHeadAttention, expected False: the layer has an own one")
        super().__init__(**{"layer": layer, **self_attn.config, **feed_forward.config, "norm_first": norm_first,
                            "layer_norm_eps": layer_norm_eps, "batch_first": batch_first})
        self.self_attn, self.feed_forward = self_attn, feed_forward
        self.norm_self_attn, self.norm_ff = (nn.LayerNorm(width, eps=layer_norm_eps) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, valid_lens: Tensor | None = None) -> Tensor:
        visible: dict[str, Any] = {"mask": mask}
        if valid_lens is not None:
            visible["valid_lens"] = valid_lens
            if not isinstance(self.self_attn, MultiHeadAttention):
                raise ValueError(f"TransformerLayer: valid_lens with {type(self.self_attn).__name__}, expected MultiHeadAttention")
        if self.config["batch_first"]:
            x = x.transpose(0, 1)
        if self.config["norm_first"]:
            x = x + self.dropout(self.self_attn(self.norm_self_attn(x), **visible))
            x = x + self.dropout(self.feed_forward(self.norm_ff(x)))
        else:
            x = self.norm_self_attn(x + self.dropout(self.self_attn(x, **visible)))
            x = self.norm_ff(x + self.dropout(self.feed_forward(x)))
        return x.transpose(0, 1) if self.config["batch_first"] else x

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TransformerLayer:
        layer = make_layer(_ATTENTION[config["layer"]], {**config, "batch_first": False})
        feed_forward = make_layer(FeedForward, config)
        assert isinstance(feed_forward, FeedForward)
        return cls(layer, feed_forward, config.get("norm_first", True), config.get("layer_norm_eps", 1e-5),
                   config.get("batch_first", False))


_ATTENTION: dict[str, type[Layer]] = {"aft_local": AFTLocal, "aft_full": AFTFull, "aft_simple": AFTSimple, "aft_conv": AFTConv,
                                      "transformer": MultiHeadAttention}


def stack_keys(layer: Layer) -> dict[str, Any]:
    """The keys of a stack of such layers."""
    if not isinstance(layer, (GMLPBlock, TransformerLayer)):
        raise TypeError(f"a stack of {type(layer).__name__}: expected TransformerLayer, which takes an attention module, "
                        "or GMLPBlock")
    return {"layer": "gmlp", **layer.config} if isinstance(layer, GMLPBlock) else layer.config


def run_stack(encoder: Layer, x: Tensor, mask: Tensor | None, valid_lens: Tensor | None) -> Tensor:
    """Runs the layers of an Encoder, or of a module that took over its parts, on embeddings."""
    if valid_lens is not None and isinstance(encoder.layers[0], GMLPBlock):
        raise ValueError(f"{type(encoder).__name__}: valid_lens with GMLPBlock, expected layers of MultiHeadAttention")
    for layer in encoder.layers:
        x = layer(x, mask) if valid_lens is None else layer(x, mask, valid_lens)
    if encoder.norm is not None:
        x = encoder.norm(x)
    if encoder.classifier is None:
        return x
    axis = 1 if encoder.config.get("batch_first") else 0
    if encoder.config["pool"] == "first":
        x = x.select(axis, 0)
    elif encoder.config["pool"] == "mean":
        lengths = x.new_full((x.shape[1 - axis],), x.shape[axis]) if valid_lens is None else valid_lens
        parts = torch.zeros(len(lengths), x.shape[axis], dtype=x.dtype, device=x.device)
        parts = _mask_beyond(parts, lengths[:, None]).softmax(-1)
        x = (x * (parts if axis else parts.T)[..., None]).sum(axis)
    return encoder.classifier(x)


def _mask_beyond(scores: Tensor, valid_lens: Tensor) -> Tensor:
    return scores.masked_fill(torch.arange(scores.shape[-1], device=scores.device) >= valid_lens, -1e6)


class Encoder(Layer):
    """`n_layers` copies of a TransformerLayer or GMLPBlock and a layer norm, labml.ai's Encoder.

    Copies start with the layer's values, as in torch.nn.TransformerEncoder.  `n_classes` above 0: the output is the scores of
    classes, of the positions' mean, the first position or each position, as `pool` is mean, first or none.
    """
    arch = "encoder"
    classifier: nn.Linear | None

    def __init__(self, layer: Layer, n_layers: int, final_norm: bool = True, final_norm_eps: float | None = None,
                 n_classes: int = 0, pool: str = "mean"):
        if pool not in ("mean", "first", "none"):
            raise ValueError(f"Encoder: pool {pool!r} is none of mean, first, none")
        keys = stack_keys(layer)
        eps = keys["layer_norm_eps"] if final_norm_eps is None else final_norm_eps
        super().__init__(**keys, n_layers=n_layers, final_norm=final_norm, **({"final_norm_eps": eps} if final_norm else {}),
                         **({"n_classes": n_classes, "pool": pool} if n_classes else {}))
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(n_layers))
        self.norm = nn.LayerNorm(keys["d_model"], eps=eps) if final_norm else None
        self.classifier = nn.Linear(keys["d_model"], n_classes) if n_classes else None

    def forward(self, x: Tensor, mask: Tensor | None = None, valid_lens: Tensor | None = None) -> Tensor:
        """valid_lens [B]: how many first positions MultiHeadAttention and a mean see."""
        return run_stack(self, x, mask, valid_lens)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Encoder:
        if config["layer"] == "gmlp" and config.get("batch_first"):
            raise NotImplementedError("attncl.nn.GMLPBlock has no batch_first")
        layer = GMLPBlock if config["layer"] == "gmlp" else TransformerLayer
        return cls(layer.from_config(config), config["n_layers"], config.get("final_norm", config.get("norm_first", True)),
                   config.get("final_norm_eps"), config.get("n_classes", 0), config.get("pool", "mean"))

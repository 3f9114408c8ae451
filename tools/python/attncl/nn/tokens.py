# SPDX-License-Identifier: MIT
"""Layers on tokens: an embedding with positions before an encoder."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from .layer import Layer, check_length, make_layer
from .transformer import Encoder, run_stack


def _sinusoid(n: int, width: int) -> Tensor:
    """Positions [n, 1, width] of sines and cosines."""
    angle = torch.arange(n, dtype=torch.float64)[:, None] * 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, None, :width].float()


class TokenEmbedding(nn.Module):
    """Embeddings times a scale, plus positions, then optionally a layer norm."""

    def __init__(self, d_model: int, n_vocab: int, pos: str, max_len: int, norm: nn.LayerNorm | None):
        super().__init__()
        self.linear, self.norm = nn.Embedding(n_vocab, d_model), norm
        self.positional_encodings: Tensor
        if pos == "learned_pos":
            self.positional_encodings = nn.Parameter(torch.zeros(max_len, 1, d_model))
        else:
            self.register_buffer("positional_encodings", _sinusoid(max_len, d_model))

    def forward(self, tokens: Tensor, scale: float) -> Tensor:
        x = self.linear(tokens) * scale + self.positional_encodings[:len(tokens)]
        return x if self.norm is None else self.norm(x)


class TokenLayer(Layer):
    """An embedding, `src_embed`, before an encoder's layers, which derived classes hold."""

    def __init__(self, encoder: Encoder, n_vocab: int, pos: str, max_len: int, embed_scale: float | None, embed_norm: bool, **more: Any):
        name, choices = type(self).__name__, ("fixed_pos", "learned_pos", "no_pos")
        if pos not in choices:
            raise ValueError(f"{name}: pos {pos!r} is none of {', '.join(choices)}")
        if embed_norm and pos == "no_pos":
            raise ValueError(f"{name}: embed_norm=True with pos no_pos, expected positions")
        config = {key: value for key, value in encoder.config.items() if key != "batch_first"}
        width = config["d_model"]
        if embed_scale is None:
            embed_scale = 1.0 if pos == "no_pos" else math.sqrt(width)
        super().__init__(**config, n_vocab=n_vocab, pos=pos, max_len=max_len, embed_scale=embed_scale, embed_norm=embed_norm, **more)
        norm = nn.LayerNorm(width, eps=config["layer_norm_eps"]) if embed_norm else None
        self.src_embed = nn.Embedding(n_vocab, width) if pos == "no_pos" else TokenEmbedding(width, n_vocab, pos, max_len, norm)

    def embed(self, tokens: Tensor) -> Tensor:
        """[T, B] to [T, B, d_model]."""
        scale = self.config["embed_scale"]
        if isinstance(self.src_embed, nn.Embedding):
            return self.src_embed(tokens) * scale
        check_length(self, len(tokens), self.config["max_len"])
        return self.src_embed(tokens, scale)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        encoder = Encoder.from_config({key: value for key, value in config.items() if key != "n_vocab"})
        return make_layer(cls, {**config, "encoder": encoder})


class TokenEncoder(TokenLayer):
    """An Encoder with an embedding before it: tokens [T, B], or [B, T] with batch_first layers, to the encoder's output.
    It takes over the encoder's layers.  `pos`, `embed_scale` and `embed_norm` as in LanguageModel."""
    arch = "encoder"

    def __init__(self, encoder: Encoder, n_vocab: int, pos: str = "fixed_pos", max_len: int = 5000, embed_scale: float | None = None,
                 embed_norm: bool = False):
        super().__init__(encoder, n_vocab, pos, max_len, embed_scale, embed_norm, batch_first=encoder.config.get("batch_first", False))
        self.layers, self.norm, self.classifier = encoder.layers, encoder.norm, encoder.classifier

    def forward(self, tokens: Tensor, mask: Tensor | None = None, valid_lens: Tensor | None = None) -> Tensor:
        x = self.embed(tokens.T).transpose(0, 1) if self.config["batch_first"] else self.embed(tokens)
        return run_stack(self, x, mask, valid_lens)

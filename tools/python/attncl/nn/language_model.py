# SPDX-License-Identifier: MIT
"""Language models: tokens in, scores of the next one out."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from .feedback import FeedbackTransformer, FeedbackTransformerKV
from .layer import Layer, check_length, made_of
from .transformer import Encoder


def _sinusoid(n: int, width: int) -> Tensor:
    """Positions [n, 1, width] of sines and cosines."""
    angle = torch.arange(n, dtype=torch.float64)[:, None] * 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, None, :width].float()


class TokenEmbedding(nn.Module):
    """Tokens times a scale, plus positions."""

    def __init__(self, d_model: int, n_vocab: int, pos: str, max_len: int):
        super().__init__()
        self.linear = nn.Embedding(n_vocab, d_model)
        self.positional_encodings: Tensor
        if pos == "learned_pos":
            self.positional_encodings = nn.Parameter(torch.zeros(max_len, 1, d_model))
        else:
            self.register_buffer("positional_encodings", _sinusoid(max_len, d_model))

    def forward(self, tokens: Tensor, scale: float) -> Tensor:
        return self.linear(tokens) * scale + self.positional_encodings[:len(tokens)]


class Generator(nn.Module):
    def __init__(self, d_model: int, n_vocab: int):
        super().__init__()
        self.projection = nn.Linear(d_model, n_vocab)

    def forward(self, x: Tensor) -> Tensor:
        return self.projection(x)


class LanguageModel(Layer):
    """An Encoder with a causal mask, an embedding before it and scores of each token after it: tokens [T, B] to
    [T, B, n_vocab], labml.ai's AutoregressiveTransformer.  `pos` is fixed_pos, learned_pos or no_pos; embeddings are
    scaled by sqrt(d_model) with positions and not without, or by `embed_scale`."""
    arch = "lm"

    def __init__(self, encoder: Encoder, n_vocab: int, pos: str = "fixed_pos", max_len: int = 5000,
                 embed_scale: float | None = None):
        choices = ("fixed_pos", "learned_pos", "no_pos")
        if pos not in choices:
            raise ValueError(f"LanguageModel: pos {pos!r} is none of {', '.join(choices)}")
        if encoder.config.get("batch_first"):
            raise ValueError("LanguageModel: batch_first=True of its layers, expected False: tokens are [T, B]")
        config = {key: value for key, value in encoder.config.items() if key != "batch_first"}
        width = config["d_model"]
        if embed_scale is None:
            embed_scale = 1.0 if pos == "no_pos" else math.sqrt(width)
        super().__init__(**config, n_vocab=n_vocab, pos=pos, max_len=max_len, embed_scale=embed_scale)
        self.src_embed = nn.Embedding(n_vocab, width) if pos == "no_pos" else TokenEmbedding(width, n_vocab, pos, max_len)
        self.encoder, self.generator = encoder, Generator(width, n_vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        length, scale = len(tokens), self.config["embed_scale"]
        if self.config["pos"] == "no_pos":
            x = self.src_embed(tokens) * scale
        else:
            check_length(self, length, self.config["max_len"])
            x = self.src_embed(tokens, scale)
        causal = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()[:, :, None]
        return self.generator(self.encoder(x, causal))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        if config.get("tie_generator") or config.get("embed_norm"):
            raise NotImplementedError("attncl.nn.LanguageModel has no tie_generator and embed_norm")
        if config["layer"] in _FEEDBACK:
            return FeedbackLanguageModel.from_config(config)
        encoder = Encoder.from_config({key: value for key, value in config.items() if key != "n_vocab"})
        return cls(encoder, config["n_vocab"], config.get("pos", "fixed_pos"), config.get("max_len", 5000), config.get("embed_scale"))


_FEEDBACK: dict[str, type[FeedbackTransformer]] = {"feedback": FeedbackTransformer, "feedback_kv": FeedbackTransformerKV}


class FeedbackLanguageModel(Layer):
    """A FeedbackTransformer with an embedding before it and scores of each token after it, labml.ai's AutoregressiveModel."""
    arch = "lm"

    def __init__(self, transformer: FeedbackTransformer, n_vocab: int, embed_scale: float = 1.0):
        super().__init__(layer="feedback_kv" if transformer.shares_kv else "feedback", **transformer.config, n_vocab=n_vocab, embed_scale=embed_scale)
        width = transformer.config["d_model"]
        self.src_embed = nn.Embedding(n_vocab, width)
        self.transformer, self.generator = transformer, nn.Linear(width, n_vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.generator(self.transformer(self.src_embed(tokens) * self.config["embed_scale"]))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        transformer = made_of(_FEEDBACK[config["layer"]], config)
        assert isinstance(transformer, FeedbackTransformer)
        return cls(transformer, config["n_vocab"], config.get("embed_scale", 1.0))

# SPDX-License-Identifier: MIT
"""Language models: tokens in, scores of the next one out."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .feedback import FeedbackTransformer, FeedbackTransformerKV
from .layer import Layer, check_length, made_of
from .transformer import Encoder


def _sinusoid(n: int, width: int) -> Tensor:
    """Positions [n, 1, width] of sines and cosines."""
    angle = torch.arange(n, dtype=torch.float64)[:, None] * 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, None, :width].float()


class TokenEmbedding(nn.Module):
    """Tokens times a scale, plus positions, then a layer norm or none."""

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


def _projection(width: int, n_vocab: int, bias: bool, tied: bool) -> nn.Linear:
    """A tied one has no weight of its own."""
    projection = nn.Linear(width, n_vocab, bias)
    if tied:
        projection.register_parameter("weight", None)
    return projection


def _scores(projection: nn.Linear, x: Tensor, embedding: nn.Embedding) -> Tensor:
    return F.linear(x, embedding.weight if projection.weight is None else projection.weight, projection.bias)


class Generator(nn.Module):
    def __init__(self, projection: nn.Linear):
        super().__init__()
        self.projection = projection


class LanguageModel(Layer):
    """An Encoder with a causal mask, an embedding before it and scores of each token after it: tokens [T, B] to
    [T, B, n_vocab], labml.ai's AutoregressiveTransformer.  `pos` is fixed_pos, learned_pos or no_pos; embeddings are
    scaled by sqrt(d_model) with positions and not without, or by `embed_scale`; `embed_norm`: a layer norm follows.
    `tie_generator`: the scores' weight is the embedding's; a bias it has, unless tied, or as `generator_bias` says."""
    arch = "lm"

    def __init__(self, encoder: Encoder, n_vocab: int, pos: str = "fixed_pos", max_len: int = 5000, embed_scale: float | None = None,
                 embed_norm: bool = False, tie_generator: bool = False, generator_bias: bool | None = None):
        choices = ("fixed_pos", "learned_pos", "no_pos")
        if pos not in choices:
            raise ValueError(f"LanguageModel: pos {pos!r} is none of {', '.join(choices)}")
        if encoder.config.get("batch_first"):
            raise ValueError("LanguageModel: batch_first=True of its layers, expected False: tokens are [T, B]")
        if embed_norm and pos == "no_pos":
            raise ValueError("LanguageModel: embed_norm=True with pos no_pos, expected positions")
        config = {key: value for key, value in encoder.config.items() if key != "batch_first"}
        width = config["d_model"]
        if embed_scale is None:
            embed_scale = 1.0 if pos == "no_pos" else math.sqrt(width)
        bias = not tie_generator if generator_bias is None else generator_bias
        super().__init__(**config, n_vocab=n_vocab, pos=pos, max_len=max_len, embed_scale=embed_scale, embed_norm=embed_norm,
                         tie_generator=tie_generator, generator_bias=bias)
        norm = nn.LayerNorm(width, eps=config["layer_norm_eps"]) if embed_norm else None
        self.src_embed = nn.Embedding(n_vocab, width) if pos == "no_pos" else TokenEmbedding(width, n_vocab, pos, max_len, norm)
        self.encoder, self.generator = encoder, Generator(_projection(width, n_vocab, bias, tie_generator))

    def forward(self, tokens: Tensor) -> Tensor:
        length, scale = len(tokens), self.config["embed_scale"]
        if isinstance(self.src_embed, nn.Embedding):
            embedding, x = self.src_embed, self.src_embed(tokens) * scale
        else:
            check_length(self, length, self.config["max_len"])
            embedding, x = self.src_embed.linear, self.src_embed(tokens, scale)
        causal = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()[:, :, None]
        return _scores(self.generator.projection, self.encoder(x, causal), embedding)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        if config["layer"] in _FEEDBACK:
            return FeedbackLanguageModel.from_config(config)
        encoder = Encoder.from_config({key: value for key, value in config.items() if key != "n_vocab"})
        return made_of(cls, {**config, "encoder": encoder})


_FEEDBACK: dict[str, type[FeedbackTransformer]] = {"feedback": FeedbackTransformer, "feedback_kv": FeedbackTransformerKV}


class FeedbackLanguageModel(Layer):
    """A FeedbackTransformer with an embedding before it and scores of each token after it, labml.ai's AutoregressiveModel;
    `tie_generator` and `generator_bias` as of LanguageModel."""
    arch = "lm"

    def __init__(self, transformer: FeedbackTransformer, n_vocab: int, embed_scale: float = 1.0, tie_generator: bool = False,
                 generator_bias: bool | None = None):
        bias = not tie_generator if generator_bias is None else generator_bias
        super().__init__(layer="feedback_kv" if transformer.shares_kv else "feedback", **transformer.config, n_vocab=n_vocab,
                         embed_scale=embed_scale, tie_generator=tie_generator, generator_bias=bias)
        width = transformer.config["d_model"]
        self.src_embed = nn.Embedding(n_vocab, width)
        self.transformer, self.generator = transformer, _projection(width, n_vocab, bias, tie_generator)

    def forward(self, tokens: Tensor) -> Tensor:
        return _scores(self.generator, self.transformer(self.src_embed(tokens) * self.config["embed_scale"]), self.src_embed)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        if config.get("embed_norm"):
            raise NotImplementedError("attncl.nn.FeedbackLanguageModel has no embed_norm")
        return made_of(cls, {**config, "transformer": made_of(_FEEDBACK[config["layer"]], config)})

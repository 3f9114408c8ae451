# SPDX-License-Identifier: MIT
"""Language models: tokens in, scores of the next one out."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .feedback import FeedbackTransformer, FeedbackTransformerKV
from .layer import Layer, make_layer
from .tokens import TokenLayer
from .transformer import Encoder


def _projection(width: int, n_vocab: int, bias: bool, tied: bool) -> nn.Linear:
    """A linear map to scores; if tied, without a weight of its own."""
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


class LanguageModel(TokenLayer):
    """An Encoder with a causal mask, an embedding before it and scores of each token after it: tokens [T, B] to
    [T, B, n_vocab], labml.ai's AutoregressiveTransformer.  `pos` is fixed_pos, learned_pos or no_pos; embeddings are
    scaled by sqrt(d_model) with positions and not without, or by `embed_scale`; `embed_norm`: a layer norm follows.
    `tie_generator`: the scores' weight is the embedding's.  `generator_bias`: whether scores have a bias; by default unless tied."""
    arch = "lm"

    def __init__(self, encoder: Encoder, n_vocab: int, pos: str = "fixed_pos", max_len: int = 5000, embed_scale: float | None = None,
                 embed_norm: bool = False, tie_generator: bool = False, generator_bias: bool | None = None):
        if encoder.config.get("batch_first"):
            raise ValueError("LanguageModel: batch_first=True of its layers, expected False: tokens are [T, B]")
        if encoder.classifier is not None:
            raise ValueError(f"LanguageModel: n_classes={encoder.config['n_classes']} of its encoder, expected none")
        bias = not tie_generator if generator_bias is None else generator_bias
        super().__init__(encoder, n_vocab, pos, max_len, embed_scale, embed_norm, tie_generator=tie_generator, generator_bias=bias)
        self.encoder, self.generator = encoder, Generator(_projection(self.config["d_model"], n_vocab, bias, tie_generator))

    def forward(self, tokens: Tensor) -> Tensor:
        causal = torch.ones(len(tokens), len(tokens), dtype=torch.bool, device=tokens.device).tril()[:, :, None]
        embedding = self.src_embed if isinstance(self.src_embed, nn.Embedding) else self.src_embed.linear
        return _scores(self.generator.projection, self.encoder(self.embed(tokens), causal), embedding)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        return FeedbackLanguageModel.from_config(config) if config["layer"] in _FEEDBACK else super().from_config(config)


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
        return make_layer(cls, {**config, "transformer": make_layer(_FEEDBACK[config["layer"]], config)})

# SPDX-License-Identifier: MIT
"""The layer over any attention, encoders and language models, from a model file's configuration."""
import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from .aft import AFT
from .attention import MHA
from .gmlp import GMLP


ACTIVATIONS = {kind.__name__.lower(): kind for kind in (nn.GELU, nn.Identity, nn.ReLU, nn.Sigmoid, nn.SiLU, nn.Tanh)}


def activation_of(name):
    return nn.GELU(approximate="tanh") if name == "gelu_tanh" else ACTIVATIONS[name.lower()]()


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="ReLU", is_gated=False, bias1=True, bias2=True, bias_gate=True):
        super().__init__()
        self.layer1 = nn.Linear(d_model, d_ff, bias=bias1)
        self.layer2 = nn.Linear(d_ff, d_model, bias=bias2)
        self.activation = activation_of(activation)
        self.linear_v = nn.Linear(d_model, d_ff, bias=bias_gate) if is_gated else None
        self.drop = nn.Identity()

    def forward(self, x):
        h = self.activation(self.layer1(x))
        if self.linear_v is not None:
            h = h * self.linear_v(x)
        return self.layer2(self.drop(h))


def feed_forward_of(c):
    keys = ("activation", "is_gated", "bias1", "bias2", "bias_gate")
    return FeedForward(c["d_model"], c["d_ff"], **{k: c[k] for k in keys if k in c})


class Layer(nn.Module):
    """`reads_memory`: a decoder's, which attends to an encoder's result too."""

    def __init__(self, c, reads_memory=False):
        super().__init__()
        d = c["d_model"]
        if c["layer"] == "transformer":
            self.self_attn = MHA(d, c["heads"], c.get("bias", True), c.get("n_kv_heads"))
        else:
            window = c.get("local_window_size", c.get("window_size", 0))
            self.self_attn = AFT(c["layer"], d, c.get("seq_len", 0), window, c.get("bias", True), c.get("heads", 0))
        self.feed_forward = feed_forward_of(c)
        self.norm_self_attn = nn.LayerNorm([d])
        self.norm_ff = nn.LayerNorm([d])
        self.norm_first = c.get("norm_first", True)
        self.drop_attn, self.drop_src, self.drop_ff = (nn.Identity() for _ in range(3))  # dropout.py places others
        self.src_attn = MHA(d, c["heads"], c.get("bias", True)) if reads_memory else None
        if reads_memory:
            self.norm_src_attn = nn.LayerNorm([d])

    def forward(self, x, mask, memory=None, memory_mask=None):
        if not self.norm_first:
            x = self.norm_self_attn(x + self.drop_attn(self.self_attn(x, x, x, mask)))
            if self.src_attn:
                x = self.norm_src_attn(x + self.drop_src(self.src_attn(x, memory, memory, memory_mask)))
            return self.norm_ff(x + self.drop_ff(self.feed_forward(x)))
        z = self.norm_self_attn(x)
        x = x + self.drop_attn(self.self_attn(z, z, z, mask))
        if self.src_attn:
            x = x + self.drop_src(self.src_attn(self.norm_src_attn(x), memory, memory, memory_mask))
        return x + self.drop_ff(self.feed_forward(self.norm_ff(x)))


class Encoder(nn.Module):
    def __init__(self, c, reads_memory=False):
        super().__init__()
        self.layers = nn.ModuleList(
            [GMLP(c["d_model"], c["d_ffn"], c["seq_len"]) if c["layer"] == "gmlp" else Layer(c, reads_memory)
             for _ in range(c["n_layers"])])
        has_norm = c.get("final_norm", c.get("norm_first", True))
        self.norm = nn.LayerNorm([c["d_model"]]) if has_norm else nn.Identity()

    def forward(self, x, mask, *memory):
        """memory: of a decoder, an encoder's result and its mask."""
        for layer in self.layers:
            x = layer(x, mask, *memory)
        return self.norm(x)


def sinusoid(n, d):
    p = torch.arange(n, dtype=torch.float64)[:, None]
    angle = p * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    table = torch.zeros(n, d, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)[:, : d // 2]
    return table


@functools.lru_cache
def causal_mask(n, device=None):
    """[T, T, 1]; kept between calls, so not a tensor of inference mode, which training refuses."""
    with torch.inference_mode(False):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril().unsqueeze(-1)


class Embed(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.pos, d, max_len = c.get("pos", "fixed_pos"), c["d_model"], c.get("max_len", 5000)
        self.scale = c.get("embed_scale", 1 if self.pos == "no_pos" else math.sqrt(d))
        self.norm = nn.LayerNorm([d]) if c.get("embed_norm") else nn.Identity()
        if self.pos == "no_pos":
            self.weight = nn.Parameter(torch.randn(c["n_vocab"], d))
            return
        self.linear = nn.Embedding(c["n_vocab"], d)
        if self.pos == "learned_pos":
            self.positional_encodings = nn.Parameter(torch.randn(max_len, 1, d))
        else:
            self.register_buffer("positional_encodings", sinusoid(max_len, d)[:, None].float())

    def forward(self, tokens):
        if self.pos == "no_pos":
            return self.norm(F.embedding(tokens, self.weight) * self.scale)
        x = self.linear(tokens) * self.scale
        return self.norm(x + self.positional_encodings[: tokens.shape[0]])


class TokenEncoder(Encoder):
    """BERT: an encoder of tokens."""

    def __init__(self, c):
        super().__init__(c)
        self.src_embed = Embed(c)

    def forward(self, tokens, mask):
        return super().forward(self.src_embed(tokens), mask)


class Classifier(TokenEncoder):
    def __init__(self, c):
        super().__init__(c)
        self.classifier = nn.Linear(c["d_model"], c["n_classes"])

    def forward(self, tokens, mask):
        y = super().forward(tokens, mask)
        pool = self.pool
        if pool == "mean" and mask is not None:  # [1, T, B]
            seen = mask[0].unsqueeze(2).to(y.dtype)
            return self.classifier((y * seen).sum(0) / seen.sum(0))
        return self.classifier(y.mean(0) if pool == "mean" else y[0] if pool == "first" else y)


class LM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.src_embed = Embed(c)
        self.encoder = Encoder(c)
        self.generator = nn.Module()
        has_bias = c.get("generator_bias", not c.get("tie_generator"))
        self.generator.projection = nn.Linear(c["d_model"], c["n_vocab"], bias=has_bias)
        self.drop_embed = nn.Identity()
        if c.get("tie_generator"):
            embed = self.src_embed
            self.generator.projection.weight = embed.weight if embed.pos == "no_pos" else embed.linear.weight

    def forward(self, tokens):
        x = self.drop_embed(self.src_embed(tokens))
        return self.generator.projection(self.encoder(x, causal_mask(len(tokens), x.device)))


class Seq2SeqTransformer(nn.Module):
    """Tokens [B, S] and [B, T] to scores [B, T, V]; inside time first."""

    def __init__(self, c):
        super().__init__()
        c = dict(c, layer="transformer")
        self.src_embed, self.tgt_embed = (Embed(dict(c, n_vocab=c[f"{end}_vocab_size"])) for end in ("src", "tgt"))
        self.encoder = Encoder(c)
        self.decoder = Encoder(dict(c, n_layers=c.get("n_decoder_layers", c["n_layers"])), reads_memory=True)
        self.generator = nn.Module()
        self.generator.projection = nn.Linear(c["d_model"], c["tgt_vocab_size"])
        if c.get("tie_generator"):
            self.generator.projection.weight = self.tgt_embed.weight if self.tgt_embed.pos == "no_pos" else self.tgt_embed.linear.weight

    def encode(self, source, lens):
        """The memory [S, B, C] and its mask."""
        seen = (torch.arange(source.shape[1], device=source.device)[:, None] < lens[None])[None]
        return self.encoder(self.src_embed(source.T), seen), seen

    def decode(self, target, memory, seen):
        y = self.decoder(self.tgt_embed(target.T), causal_mask(target.shape[1], target.device), memory, seen)
        return self.generator.projection(y).transpose(0, 1)

    def forward(self, source, target, lens):
        return self.decode(target, *self.encode(source, lens))

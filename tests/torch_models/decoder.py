# SPDX-License-Identifier: MIT
"""Decoder-only language models as Llama, Qwen 3, GPT-NeoX and Gemma have them: RMS norm, rotary positions, grouped heads, windows,
soft caps."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.weight


def make_norm(c, width):
    return RMSNorm(width, c["layer_norm_eps"]) if c["norm"] == "rms" else nn.LayerNorm(width, eps=c["layer_norm_eps"])


def rotate(x, c):
    """x [T, B, H, D]: the first rope_width channels; angles are floats' products."""
    width = c["rope_width"]
    half = (width + 1) // 2  # of an odd width one more channel turns
    frequency = 1 / c["rope_theta"] ** (torch.arange(0, width, 2).float() / width)
    factor = 1.0
    if c.get("rope_scaling") == "linear":
        frequency = frequency / c["rope_factor"]
    if c.get("rope_scaling") == "yarn":  # without truncation
        low, high = (width * math.log(c["rope_original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(c["rope_theta"])) for turns in (32, 1))
        part = ((torch.arange(half) - max(low, 0)) / (min(high, width - 1) - max(low, 0))).clamp(0, 1)
        frequency, factor = frequency * (1 - part + part / c["rope_factor"]), 0.1 * math.log(c["rope_factor"]) + 1
    if c.get("rope_scaling") == "longrope":
        original = c["rope_original_max_position_embeddings"]
        frequency = frequency / torch.tensor(c["rope_long_factor" if len(x) > original else "rope_short_factor"])
        factor = c.get("rope_attention_factor") or math.sqrt(1 + math.log(c["rope_factor"]) / math.log(original))
    width = 2 * half
    angle = (torch.arange(len(x)).float()[:, None] * frequency).to(x.dtype)[:, None, None]
    neighbours = c.get("rope_pairs") == "neighbours"
    a, b = (x[..., 0:width:2], x[..., 1:width:2]) if neighbours else (x[..., :half], x[..., half:width])
    cos, sin = factor * angle.cos(), factor * angle.sin()
    turned = a * cos - b * sin, b * cos + a * sin
    turned = torch.stack(turned, -1).flatten(-2) if neighbours else torch.cat(turned, -1)
    return torch.cat([turned, x[..., width:]], -1)


def slopes(c):
    """As BLOOM has them: a power of two of them, then every other one of twice as many."""
    whole = 2 ** (c["heads"].bit_length() - 1)
    powers = [*range(1, whole + 1), *(i + 0.5 for i in range(c["heads"] - whole))]
    return 2.0 ** (-c["alibi_max"] * torch.tensor(powers, dtype=torch.float64) / whole)


def cap(x, bound):
    return bound * (x / bound).tanh() if bound else x


class Linear(nn.Module):
    def __init__(self, n_in, n_out, bias):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out, bias=bias)

    def forward(self, x):
        return self.linear(x)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, width, groups = c, c["heads"] * c["head_dim"], c["n_kv_heads"] * c["head_dim"]
        self.query = Linear(c["d_model"], width, c["bias"])
        self.key, self.value = Linear(c["d_model"], groups, c["bias"]), Linear(c["d_model"], groups, c["value_bias"])
        self.output = nn.Linear(width, c["d_model"], bias=c["output_bias"])
        if c["qk_norm"]:
            self.query_norm, self.key_norm = (RMSNorm(c["head_dim"], c["layer_norm_eps"]) for _ in range(2))

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (-1, self.c["head_dim"])) for part in (self.query(x), self.key(x), self.value(x)))
        if self.c["qk_norm"]:
            q, k = self.query_norm(q), self.key_norm(k)
        if self.c["rope"]:
            q, k = rotate(q, self.c), rotate(k, self.c)
        k, v = (part.repeat_interleave(q.shape[2] // part.shape[2], 2) for part in (k, v))
        scores = cap(torch.einsum("ibhd,jbhd->bhij", q, k) * (self.c.get("attention_scale") or self.c["head_dim"] ** -0.5), self.c.get("softcap"))
        if self.c.get("alibi"):
            n = torch.arange(len(x))
            scores = scores + slopes(self.c)[:, None, None].to(scores) * (n - n[:, None])
        seen = torch.ones(len(x), len(x), dtype=torch.bool).tril()
        hidden = ~(seen.triu(1 - self.c["window"]) if self.c.get("window") else seen)
        y = torch.einsum("bhij,jbhd->ibhd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v)
        return self.output(y.flatten(-2))


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.layer1, self.layer2 = nn.Linear(c["d_model"], c["d_ff"], c["bias1"]), nn.Linear(c["d_ff"], c["d_model"], c["bias2"])
        if c["is_gated"]:
            self.linear_v = nn.Linear(c["d_model"], c["d_ff"], c["bias_gate"])
        self.act = {"silu": F.silu, "gelu": F.gelu}[c["activation"]]

    def forward(self, x):
        y = self.act(self.layer1(x))
        return self.layer2(y * self.linear_v(x) if hasattr(self, "linear_v") else y)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm_self_attn, self.norm_ff = (make_norm(c, c["d_model"]) for _ in range(2))
        self.self_attn, self.feed_forward, self.parallel = Attention(c), FeedForward(c), c["parallel"]
        self.post_norm_self_attn, self.post_norm_ff = (
            make_norm(c, c["d_model"]) if c.get("post_norm") else nn.Identity() for _ in range(2))

    def forward(self, x):
        y = x + self.post_norm_self_attn(self.self_attn(self.norm_self_attn(x)))
        return y + self.post_norm_ff(self.feed_forward(self.norm_ff(x if self.parallel else y)))


def of_layer(c, i):
    """The configuration of layer i."""
    c = dict(c)
    for key, flags in (("window", c.get("window_layers")), ("rope", c.get("rope_layers"))):
        if flags and not flags[i % len(flags)]:
            c[key] = 0
    if c.get("window") and c.get("rope_local_theta"):
        c.update(rope_theta=c["rope_local_theta"], rope_scaling="none")
    return c


class DecoderLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.src_embed = nn.Embedding(c["n_vocab"], c["d_model"], padding_idx=c.get("padding_idx"))
        self.encoder = nn.Module()
        self.encoder.layers, self.encoder.norm = nn.ModuleList(Layer(of_layer(c, i)) for i in range(c["n_layers"])), make_norm(c, c["d_model"])
        self.generator = nn.Module()
        self.generator.projection = nn.Linear(c["d_model"], c["n_vocab"], bias=False)

    def forward(self, tokens):
        x = self.src_embed(tokens)
        for layer in self.encoder.layers:
            x = layer(x)
        return cap(self.generator.projection(self.encoder.norm(x)), self.c.get("logit_softcap"))

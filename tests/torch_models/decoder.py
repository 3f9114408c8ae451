# SPDX-License-Identifier: MIT
"""Decoder-only language models as Llama, Qwen 3 and GPT-NeoX have them: RMS norm, rotary positions, grouped heads."""
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
    half = width // 2
    frequency = 1 / c["rope_theta"] ** (torch.arange(0, width, 2).float() / width)
    if c.get("rope_scaling") == "linear":
        frequency = frequency / c["rope_factor"]
    angle = (torch.arange(len(x)).float()[:, None] * frequency).to(x.dtype)[:, None, None]
    neighbours = c.get("rope_pairs") == "neighbours"
    a, b = (x[..., 0:width:2], x[..., 1:width:2]) if neighbours else (x[..., :half], x[..., half:width])
    turned = a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()
    turned = torch.stack(turned, -1).flatten(-2) if neighbours else torch.cat(turned, -1)
    return torch.cat([turned, x[..., width:]], -1)


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
        q, k = rotate(q, self.c), rotate(k, self.c)
        k, v = (part.repeat_interleave(q.shape[2] // part.shape[2], 2) for part in (k, v))
        scores = torch.einsum("ibhd,jbhd->bhij", q, k) / self.c["head_dim"] ** 0.5
        hidden = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
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

    def forward(self, x):
        y = x + self.self_attn(self.norm_self_attn(x))
        return y + self.feed_forward(self.norm_ff(x if self.parallel else y))


class DecoderLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.src_embed = nn.Embedding(c["n_vocab"], c["d_model"])
        self.encoder = nn.Module()
        self.encoder.layers, self.encoder.norm = nn.ModuleList(Layer(c) for _ in range(c["n_layers"])), make_norm(c, c["d_model"])
        self.generator = nn.Module()
        self.generator.projection = nn.Linear(c["d_model"], c["n_vocab"], bias=False)

    def forward(self, tokens):
        x = self.src_embed(tokens)
        for layer in self.encoder.layers:
            x = layer(x)
        return self.generator.projection(self.encoder.norm(x))

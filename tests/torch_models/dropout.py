# SPDX-License-Identifier: MIT
"""Dropout with the library's masks, which are functions of seed, step, site and place (attncl/dropout.h): here by numpy,
from that description, so that PyTorch computes with the same bits."""
import functools
import math

import numpy as np
import torch
from torch import nn

from .attention import MHA, einsum_attention
from .recurrent import Seq2Seq


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011): counter [N, 4] and key (2 words) to words [N, 4], all uint64 below 2^32."""
    low = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = counter.T
    k0, k1 = key
    for i in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        round_key = [np.uint64((k + i * w) % 2**32) for k, w in ((k0, 0x9E3779B9), (k1, 0xBB67AE85))]
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ round_key[0], b & low, (a >> 32) ^ c3 ^ round_key[1], a & low
    return np.stack((c0, c1, c2, c3), 1)


class Site(nn.Module):
    """One place of a model at one step.  Called with a value and, of a larger one, its first row."""

    def __init__(self, masks, number):
        super().__init__()
        self.masks, self.number = masks, number

    def factors(self, shape, first_row):
        m, rows, blocks = self.masks, math.prod(shape[:-1]), (shape[-1] + 3) // 4
        counter = np.zeros((rows * blocks, 4), np.uint64)
        counter[:, 0] = first_row * blocks + np.arange(rows * blocks)  # below 2^32: the high word stays 0
        counter[:, 2:] = self.number, m.step
        words = philox(counter, m.key).reshape(rows, 4 * blocks)[:, :shape[-1]]
        return torch.from_numpy((words >= m.p * 2**32) / (1 - m.p)).reshape(shape)

    def forward(self, x, first_row=0):
        return x * self.factors(x.shape, first_row)


class Masks:
    """Gives out the sites 0, 1, ..."""

    def __init__(self, p, seed, step):
        self.p, self.key, self.step, self.n = p, (seed % 2**32, seed >> 32), step, 0

    def next_site(self):
        self.n += 1
        return Site(self, self.n - 1)


def attend_dropped(drop, q, k, v, mask=None):
    """einsum_attention; the weights' mask is [B, H, T, S]."""
    p = einsum_attention(q, k, v, mask)[1]
    return torch.einsum("ijbh,jbhd->ibhd", drop(p.permute(2, 3, 0, 1)).permute(2, 3, 0, 1), v), p


class BatchFirst(nn.Module):
    """A site of a value [B, T, C] that is [T, B, C] here."""

    def __init__(self, site):
        super().__init__()
        self.site = site

    def forward(self, x):
        return self.site(x.transpose(0, 1)).transpose(0, 1)


def drop_layers(layers, masks, wrap=lambda site: site):
    """Gives each Layer its sites, in the order of the forward pass."""
    for layer in layers:
        if isinstance(layer.self_attn, MHA):
            layer.self_attn.core = functools.partial(attend_dropped, masks.next_site())
        layer.drop_attn = wrap(masks.next_site())
        if layer.src_attn:
            layer.src_attn.core = functools.partial(attend_dropped, masks.next_site())
            layer.drop_src = wrap(masks.next_site())
        layer.feed_forward.drop = wrap(masks.next_site())
        layer.drop_ff = wrap(masks.next_site())


class Step(nn.Module):
    """A site of a step of a sequence: each call is the next row t of [T, B, C], from `first` on.  With `n_memories` what
    is dropped are weights [j, B, H] of the t memories there are, of [T, B, H, n_memories]."""

    def __init__(self, site, first, n_memories=None):
        super().__init__()
        self.site, self.t, self.n_memories = site, first, n_memories

    def forward(self, x):
        t, self.t = self.t, self.t + 1
        if self.n_memories is None:
            return self.site(x, t * len(x))
        factors = self.site.factors((*x.shape[1:], self.n_memories), t * x[0].numel())
        return x * factors[..., :len(x)].permute(2, 0, 1)


def drop_feedback_layers(layers, masks, n_steps):
    """drop_layers() for one pass of a feedback transformer's sequence, whose first step has no attention."""
    for layer in layers:
        layer.attn.drop = Step(masks.next_site(), 1, n_steps - 1)
        layer.drop_attn = Step(masks.next_site(), 1)
        layer.feed_forward.drop = Step(masks.next_site(), 0)
        layer.drop_ff = Step(masks.next_site(), 0)


class DroppedSeq2Seq(Seq2Seq):
    """Layer by layer and step by step.  forward() gives the logits."""

    def place(self, masks):
        between = range(1, self.encoder.rnn.num_layers)
        self.drop_encoder = {k: masks.next_site() for k in between}
        self.drop_weights = masks.next_site()
        self.drop_decoder = {k: masks.next_site() for k in between}

    def forward(self, source, target, lens):
        x, state = self.encoder.embedding(source), []
        for k in range(self.encoder.rnn.num_layers):
            x = self.drop_encoder[k](x) if k else x  # [B, S, H]
            h, outputs = x.new_zeros(len(x), self.encoder.rnn.hidden_size), []
            for x_t in x.unbind(1):
                h = cell(self.encoder.rnn, k, x_t, h)
                outputs.append(h)
            x = torch.stack(outputs, 1)
            state.append(h)
        y = [self.decode(t, token, state, x, lens) for t, token in enumerate(target.T)]
        return self.decoder.dense(torch.stack(y, 1))

    def decode(self, t, token, state, keys, lens):
        """Step t, of row t of the values [T, B, 1, S] and [T, B, H] that are dropped."""
        d, a, n = self.decoder, self.decoder.attention, len(token)
        features = torch.tanh(a.W_q(state[-1])[:, None] + a.W_k(keys))
        hidden = torch.arange(keys.shape[1])[None] >= lens[:, None]
        p = torch.softmax(a.w_v(features)[..., 0].masked_fill(hidden, -1e6), -1)[:, None]
        x = torch.cat([(self.drop_weights(p, t * n) @ keys)[:, 0], d.embedding(token)], -1)
        for k in range(len(state)):
            x = self.drop_decoder[k](x, t * n) if k else x
            x = state[k] = cell(d.rnn, k, x, state[k])
        return x


def cell(rnn, k, x, h):
    """A step of layer k of nn.GRU."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return torch.gru_cell(x, h, *(getattr(rnn, f"{name}_l{k}") for name in names))

# SPDX-License-Identifier: MIT
"""nn.GRU, and d2l's decoder with Bahdanau's attention."""
import torch
from torch.nn import functional as f
from torch_models.attention import additive, masked_softmax

from .registry import formulation


def gru_of(c, n_in):
    return c.fill(torch.nn.GRU(n_in, c.C, c.layers), lambda name: f"rnn.{name}")


@formulation("gru", "nn.GRU", compiles=False)
def gru(c):
    x, rnn = c.uniform("x", 1, c.T, c.B, c.E), gru_of(c, c.E)
    return lambda: rnn(x)[0]


def decoder(c):
    """A Bahdanau decoder's data, and its loop over the steps of a context."""
    tokens, lens = c.indices("tokens", 0, c.V, c.B, c.T), c.indices("valid_lens", 1, c.S + 1, c.B)
    source = c.uniform("enc_outputs", 1, c.B, c.S, c.C)
    state = torch.stack([c.uniform(f"rnn.state_l{k}", 1, c.B, c.C) for k in range(c.layers)])
    maps = c.map("W_q", c.C, c.C), c.map("W_k", c.C, c.C), c.map("w_v", 1, c.C)
    dense = c.map("dense.weight", c.V, c.C), c.uniform("dense.bias", 1, c.V)
    embedding, rnn = c.uniform("embedding", 1, c.V, c.E), gru_of(c, c.C + c.E)

    def loop(context):
        """context(query [B, C]) -> [B, C]"""
        hidden, outputs = state, []
        for x in f.embedding(tokens, embedding).transpose(0, 1):
            out, hidden = rnn(torch.cat((context(hidden[-1]), x), -1).unsqueeze(0), hidden)
            outputs.append(out)
        return f.linear(torch.cat(outputs), *dense).transpose(0, 1)
    return source, lens, maps, loop


@formulation("bahdanau", "attention over raw outputs in every step (d2l)", reference=True, compiles=False)
def bahdanau(c):
    source, lens, maps, loop = decoder(c)
    return lambda: loop(lambda query: additive(query.unsqueeze(1), source, source, lens, *maps)[0].squeeze(1))


@formulation("bahdanau", "keys projected once", compiles=False)
def bahdanau_hoisted(c):
    source, lens, (w_q, w_k, w_v), loop = decoder(c)

    def run():
        keys = f.linear(source, w_k)

        def context(query):
            scores = f.linear(torch.tanh(f.linear(query, w_q).unsqueeze(1) + keys), w_v)
            return torch.bmm(masked_softmax(scores.transpose(1, 2), lens), source).squeeze(1)
        return loop(context)
    return run

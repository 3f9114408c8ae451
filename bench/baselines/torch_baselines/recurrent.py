# SPDX-License-Identifier: MIT
"""nn.GRU, and d2l's decoder with Bahdanau's attention."""
import torch
from torch.nn import functional as f

from .attention import additive
from .registry import formulation
from .rows import sequence_softmax


def make_gru(c, n_in, batch_first=False):
    gru = torch.nn.GRU(n_in, c.C, c.layers, batch_first=batch_first, device=c.device)
    for k in range(c.layers):
        parts = {"weight_ih": c.map(f"rnn.weight_ih_l{k}", 3 * c.C, c.C if k else n_in),
                 "weight_hh": c.map(f"rnn.weight_hh_l{k}", 3 * c.C, c.C),
                 "bias_ih": c.uniform(f"rnn.bias_ih_l{k}", 0.5, 3 * c.C),
                 "bias_hh": c.uniform(f"rnn.bias_hh_l{k}", 0.5, 3 * c.C)}
        for name, value in parts.items():
            getattr(gru, f"{name}_l{k}").data.copy_(value)
    return gru


@formulation("gru", "nn.GRU", compiles=False)
def gru(c):
    x, rnn = c.uniform("x", 1, c.T, c.B, c.E), make_gru(c, c.E)
    return lambda: rnn(x)[0]


def decoder_inputs(c):
    tokens = c.indices("tokens", 0, c.V, c.B, c.T)
    outputs = c.uniform("enc_outputs", 1, c.B, c.S, c.C)
    lens = c.indices("valid_lens", 1, c.S + 1, c.B)
    state = torch.stack([c.uniform(f"rnn.state_l{k}", 1, c.B, c.C) for k in range(c.layers)])
    maps = c.map("W_q", c.C, c.C), c.map("W_k", c.C, c.C), c.map("w_v", 1, c.C)
    return tokens, outputs, lens, state, maps


def decoder_ends(c):
    dense = c.map("dense.weight", c.V, c.C), c.uniform("dense.bias", 1, c.V)
    return c.uniform("embedding", 1, c.V, c.E), dense


@formulation("bahdanau", "attention over raw outputs in every step (d2l)", reference=True,
             compiles=False)
def bahdanau(c):
    tokens, source, lens, state, maps = decoder_inputs(c)
    (embedding, dense), rnn = decoder_ends(c), make_gru(c, c.C + c.E)

    def run():
        hidden, outputs = state, []
        for x in f.embedding(tokens, embedding).permute(1, 0, 2):
            context = additive(hidden[-1].unsqueeze(1), source, source, lens, *maps)
            x = torch.cat((context, x.unsqueeze(1)), -1)
            out, hidden = rnn(x.permute(1, 0, 2), hidden)
            outputs.append(out)
        return f.linear(torch.cat(outputs), *dense).permute(1, 0, 2)
    return run


@formulation("bahdanau", "keys projected once", compiles=False)
def bahdanau_hoisted(c):
    tokens, source, lens, state, (w_q, w_k, w_v) = decoder_inputs(c)
    (embedding, dense), rnn = decoder_ends(c), make_gru(c, c.C + c.E)

    def run():
        hidden, outputs, keys = state, [], f.linear(source, w_k)
        for x in f.embedding(tokens, embedding).transpose(0, 1):
            scores = f.linear(torch.tanh(f.linear(hidden[-1], w_q).unsqueeze(1) + keys), w_v)
            weights = sequence_softmax(scores.transpose(1, 2), lens)
            context = torch.bmm(weights, source).squeeze(1)
            out, hidden = rnn(torch.cat((context, x), -1).unsqueeze(0), hidden)
            outputs.append(out)
        return f.linear(torch.cat(outputs), *dense).transpose(0, 1)
    return run

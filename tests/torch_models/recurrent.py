# SPDX-License-Identifier: MIT
"""d2l's sequence to sequence model with Bahdanau's attention, batch first."""
import torch
from torch import nn

from .attention import additive


class Seq2Seq(nn.Module):
    """Bahdanau et al. 2014 with gated recurrent units: the decoder reads cat(context, embedding)."""

    def __init__(self, src_vocab_size, tgt_vocab_size, embed_size, num_hiddens, num_layers):
        super().__init__()
        e, h = embed_size, num_hiddens
        self.encoder, self.decoder, attention = nn.Module(), nn.Module(), nn.Module()
        self.encoder.embedding = nn.Embedding(src_vocab_size, e)
        self.encoder.rnn = nn.GRU(e, h, num_layers, batch_first=True)
        self.decoder.attention = attention
        attention.W_k = nn.Linear(h, h, bias=False)
        attention.W_q = nn.Linear(h, h, bias=False)
        attention.w_v = nn.Linear(h, 1, bias=False)
        self.decoder.embedding = nn.Embedding(tgt_vocab_size, e)
        self.decoder.rnn = nn.GRU(e + h, h, num_layers, batch_first=True)
        self.decoder.dense = nn.Linear(h, tgt_vocab_size)

    def encode(self, tokens):
        return self.encoder.rnn(self.encoder.embedding(tokens))

    def step(self, token, state, keys, lens):
        """One token [B]: logits, state and weights."""
        d = self.decoder
        maps = (m.weight for m in (d.attention.W_q, d.attention.W_k, d.attention.w_v))
        context, p = additive(state[-1][:, None], keys, keys, lens, *maps)
        y, state = d.rnn(torch.cat([context, d.embedding(token)[:, None]], -1), state)
        return d.dense(y), state, p

    def forward(self, source, target, lens):
        keys, state = self.encode(source)
        logits, weights = [], []
        for token in target.T:
            y, state, p = self.step(token, state, keys, lens)
            logits.append(y), weights.append(p)
        return torch.cat(logits, 1), state, keys, torch.cat(weights, 1)

# SPDX-License-Identifier: MIT
"""Decoding as PyTorch's users do it: a step reads one token and what earlier steps kept.  Softmax attention keeps keys and
values; AFT sums over all positions and the exponentials within its window; gMLP the rows that its gate multiplies."""
import torch
from torch.nn import functional as f
from torch_models.aft import AFT
from torch_models.attention import MHA
from torch_models.gmlp import SGU


class KeptAttention:
    def __init__(self, mha, n, batch):
        self.kept, self.n, self.t = None, n, 0

    def __call__(self, q, k, v, mask):
        """A token, or at position 0 a prompt."""
        n = len(q)
        if self.kept is None:
            self.kept = torch.empty(2, *q.shape[1:3], self.n, q.shape[3], device=q.device)
        for kept, new in zip(self.kept, (k, v)):
            kept[:, :, self.t:self.t + n] = new.permute(1, 2, 0, 3)
        self.t += n
        keys, values = self.kept[:, :, :, :self.t]
        y = f.scaled_dot_product_attention(q.permute(1, 2, 0, 3), keys, values, is_causal=n > 1).permute(2, 0, 1, 3)
        return y, y


class KeptAFT:
    """sum_j e^(w_ij + k_j) v_j = sum_j e^k_j v_j + sum over the window of (e^w_ij - 1) e^k_j v_j."""

    def __init__(self, aft, n, batch):
        width, device = aft.value.out_features, aft.value.weight.device
        if aft.kind == "aft_simple":
            self.weight, self.window = None, 0
        else:
            w = aft.pos_bias.data * aft.local_mask if aft.kind == "aft_local" else aft.pos_bias.data
            self.weight = torch.exp(w) - 1
            self.window = int(aft.local_mask[0].sum()) if aft.kind == "aft_local" else n
        self.terms, self.sums, self.t = torch.empty(n, 2, batch * width, device=device), torch.zeros(2, batch * width, device=device), 0

    def __call__(self, q, k, v, mask):
        if self.t == 0:
            self.sums.zero_()
        e = torch.exp(k[0])
        self.terms[self.t] = torch.stack((e * v[0], e)).flatten(1)
        self.sums += self.terms[self.t]
        self.t += 1
        sums = self.sums
        if self.weight is not None:
            first = max(0, self.t - self.window)
            sums = torch.addmv(sums.flatten(), self.terms[first:self.t].flatten(1).T, self.weight[self.t - 1, first:self.t])
        num, den = sums.view(2, *q.shape)
        return torch.sigmoid(q) * num / den


class KeptGate:
    def __init__(self, gate, n, batch):
        self.gate, self.rows, self.t = gate, torch.empty(n, batch, gate.norm.normalized_shape[0], device=gate.weight.device), 0

    def __call__(self, u, mask):
        self.rows[self.t] = u[0]
        self.t += 1
        weight, bias = self.gate.weight.data[self.t - 1, :self.t], self.gate.bias.data[self.t - 1]
        return torch.addmv(bias.expand(u.numel()), self.rows[:self.t].flatten(1).T, weight).view_as(u)


KEPT = {MHA: KeptAttention, AFT: KeptAFT, SGU: KeptGate}


def keep_state(model, n, batch):
    """Replaces the cores of an LM; returns take(tokens [n, B], position) -> logits [B, V] of the last token.  Positions ascend from 0,
    one token a call.  A model of attention alone also takes a prompt at 0, and goes back to earlier positions."""
    cores = [m for m in model.modules() if type(m) in KEPT]
    for m in cores:
        m.core = KEPT[type(m)](m, n, batch)
    embed = model.src_embed

    def take(tokens, t):
        for m in cores:
            m.core.t = t
        x = embed.norm(embed.linear(tokens) * embed.scale + embed.positional_encodings[t:t + len(tokens)])
        return model.generator.projection(model.encoder(x, None)[-1])
    return take

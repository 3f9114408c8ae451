# SPDX-License-Identifier: MIT
"""The best that PyTorch offers for what the models compute: cores and forwards that baselines put in the place of
the published ones.  Biases, weights and filters that do not change from call to call are prepared."""
import itertools
import math

import torch
from torch.nn import functional as f
from torch_models.aft import AFT
from torch_models.attention import MHA
from torch_models.gmlp import SGU
from torch_models.transformer import causal_mask


def prepared_bias(w, causal):
    """exp(w - max w) of each row, which does not change from call to call."""
    if causal:
        w = w.masked_fill(~causal_mask(len(w), w.device)[..., 0], -math.inf)
    return torch.exp(w - w.amax(1, keepdim=True))


def gemm_mix(q, k, v, exp_bias):
    """One product for both sums."""
    exp_key = torch.exp(k - k.amax(0, keepdim=True))
    sums = exp_bias @ torch.stack((exp_key * v, exp_key)).flatten(2).transpose(0, 1).flatten(1)
    num, den = sums.view(len(q), 2, *q.shape[1:]).unbind(1)
    return torch.sigmoid(q) * num / den


def simple_mix(q, k, v, causal):
    if not causal:
        return torch.sigmoid(q) * (torch.softmax(k, 0) * v).sum(0, keepdim=True)
    exp_key = torch.exp(k - k.amax(0, keepdim=True))
    return torch.sigmoid(q) * (exp_key * v).cumsum(0) / exp_key.cumsum(0)


def prepared_filter(w, width, causal):
    """exp(w) - 1 for each channel, as conv1d takes it."""
    taps = torch.exp(w) - 1
    if causal:
        taps = taps * (torch.arange(w.shape[1], device=w.device) <= (w.shape[1] - 1) // 2)
    return taps.repeat_interleave(width, 0).unsqueeze(1)


def conv_mix(q, k, v, taps, head_taps, causal):
    """The paper's eq. 6: a convolution of exp(w) - 1 beside the sum over all positions."""
    def sums(x, w):
        y = x.permute(1, 2, 0)
        total = y.cumsum(-1) if causal else y.sum(-1, keepdim=True)
        y = f.conv1d(y, w, padding=w.shape[-1] // 2, groups=len(w)) + total
        return y.permute(2, 0, 1)

    width = q.shape[2] // k.shape[2]
    exp_key = torch.exp(k - k.amax(0, keepdim=True))
    num = sums(exp_key.repeat_interleave(width, 2) * v, taps)
    return torch.sigmoid(q) * num / sums(exp_key, head_taps).repeat_interleave(width, 2)


def fused_attention(q, k, v, mask):
    """In place of einsum_attention; what takes no mask or a causal one, and gives no weights."""
    q, k, v = (x.permute(1, 2, 0, 3) for x in (q, k, v))
    y = f.scaled_dot_product_attention(q, k, v, is_causal=mask is not None).permute(2, 0, 1, 3)
    return y, y


# Of the Feedback Transformer with keys and values kept: labml's projects every memory again in every step.

def attend(x, keys, values, attn):
    """keys, values [B, H, S, D]: two batched GEMMs; positions are shared by the batch."""
    n, split = keys.shape[2], attn.key_pos_bias is not None
    q = attn.query(x)
    biased = q + attn.query_pos_bias
    positions = attn.key_pos_embeddings[-n:].transpose(0, 1)  # [H, S, D]
    scores = torch.matmul(keys, biased.unsqueeze(-1)).squeeze(-1)
    queries = q if split else biased
    scores = scores + torch.bmm(queries.transpose(0, 1), positions.transpose(1, 2)).transpose(0, 1)
    if split:
        scores = scores + attn.key_pos_bias[-n:].transpose(0, 1)
    weights = torch.softmax(scores / math.sqrt(q.shape[-1]), -1)
    return attn.output(torch.matmul(weights.unsqueeze(2), values).flatten(1))


def keep_keys(model):
    """Replaces a Feedback's forward: keys and values of a memory once, by one GEMM for all layers, appended in place."""
    sets = [model] if model.shared else [layer.attn for layer in model.layers]
    maps = [m.linear for s in sets for m in (s.key, s.value)]
    weight, heads = torch.cat([m.weight.data for m in maps]), model.layers[0].attn.query.heads
    zeros = weight.new_zeros(len(maps[0].weight))
    bias = torch.cat([zeros if m.bias is None else m.bias.data for m in maps])

    def forward(x_seq):
        n, batch, width = x_seq.shape
        cache = x_seq.new_empty(len(maps), batch, heads, n, width // heads)
        share, results = torch.softmax(model.weights, 0), torch.empty_like(x_seq)
        for t, x in enumerate(x_seq):
            memory = share[0] * x
            for i, layer in enumerate(model.layers):
                if t:
                    keys, values = cache[0 if model.shared else 2 * i:][:2]
                    x = x + attend(layer.norm_self_attn(x), keys[:, :, :t], values[:, :, :t], layer.attn)
                x = x + layer.feed_forward(layer.norm_ff(x))
                memory = memory + share[i + 1] * x
            projected = f.linear(memory, weight, bias)
            cache[:, :, :, t] = projected.view(batch, len(cache), heads, -1).transpose(0, 1)
            results[t] = x
        return model.norm(results), None
    model.forward = forward


def use_best(model, causal=True):
    """Replaces the cores; AFT-conv's by use_conv1d() only."""
    for m in model.modules():
        if isinstance(m, SGU):
            m.core = gemm_gate(m, causal)
        elif isinstance(m, MHA):
            m.core = fused_attention
        elif isinstance(m, AFT) and m.kind != "aft_conv":
            m.core = best_mix(m, causal)


def use_best_to_train(model, causal=True):
    """The same for training: nothing is prepared, since weights and biases change in every step."""
    def mix_of(aft):
        def core(q, k, v, mask):
            w = aft.pos_bias * aft.local_mask if aft.kind == "aft_local" else aft.pos_bias
            return gemm_mix(q, k, v, prepared_bias(w[:len(q), :len(q)], causal))
        return core

    def gate_of(gate):
        def core(u, mask):
            weight = gate.weight[:len(u), :len(u)]
            return torch.addmm(gate.bias[:len(u), None], weight.tril() if causal else weight, u.flatten(1)).view_as(u)
        return core

    for m in model.modules():
        if isinstance(m, SGU):
            m.core = gate_of(m)
        elif isinstance(m, MHA):
            m.core = fused_attention
        elif isinstance(m, AFT) and m.kind in ("aft_full", "aft_local"):
            m.core = mix_of(m)


def use_conv1d(model):
    """AFT-conv of causal models by convolutions, as the paper has it; the module's own matrix is for short sequences."""
    for m in model.modules():
        if isinstance(m, AFT) and m.kind == "aft_conv":
            taps = prepared_filter(m.w.data, m.value.out_features // len(m.w), True), prepared_filter(m.w.data, 1, True)
            m.core = lambda q, k, v, mask, taps=taps: conv_mix(q, k, v, *taps, True)


def gemm_gate(gate, causal):
    """The bias goes in with the GEMM."""
    weight, bias = gate.weight.data.tril() if causal else gate.weight.data, gate.bias.data[:, None]
    return lambda u, mask: torch.addmm(bias[:len(u)], weight[:len(u), :len(u)], u.flatten(1)).view_as(u)


def best_mix(aft, causal):
    if aft.kind == "aft_simple":
        return lambda q, k, v, mask: simple_mix(q, k, v, causal)
    w = aft.pos_bias.data * aft.local_mask if aft.kind == "aft_local" else aft.pos_bias.data
    exp_bias = prepared_bias(w, causal)
    return lambda q, k, v, mask: gemm_mix(q, k, v, exp_bias[:len(q), :len(q)])


class Packed(torch.nn.Module):
    """A linear map: MKL's GEMM, which nn.Linear calls, does not use AVX-512 on every CPU that has it; oneDNN's, which
    torch.compile uses for other types, does."""

    def __init__(self, linear, rows, gelu):
        super().__init__()
        self.weight, self.bias = torch.ops.mkldnn._reorder_linear_weight(linear.weight.data, rows), linear.bias
        self.after = ("gelu", [], gelu) if gelu else ("none", [], "")

    def forward(self, x):
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, *self.after)


def pack(module, rows):
    """Every linear map by oneDNN, with the GELU after the first one."""
    linears = [n for n, m in module.named_children() if isinstance(m, torch.nn.Linear)]
    for name, child in module.named_children():
        if name in linears:
            gelu = getattr(getattr(module, "activation", None), "approximate", None)  # of nn.GELU: "none" or "tanh"
            setattr(module, name, Packed(child, rows, gelu if name == linears[0] else None))
        else:
            pack(child, rows)
    if linears and isinstance(getattr(module, "activation", None), torch.nn.GELU):
        module.activation = torch.nn.Identity()
    return Packed(module, rows, None) if isinstance(module, torch.nn.Linear) else module


def peak_bytes(step, model):
    """What tensors take at most in a step of train(): weights, Adam's two moments, and what the step allocates."""
    with torch.autograd.profiler.profile(use_kineto=True, profile_memory=True) as profile:
        step()
    found = [(e.start_ns(), e.nbytes()) for e in profile.kineto_results.events() if e.name() == "[memory]"]
    sums = itertools.accumulate(n for _, n in sorted(found, key=lambda e: e[0]))
    return 3 * sum(p.nbytes for p in model.parameters()) + max(sums)


def project_keys_once(model):
    """Replaces a Seq2Seq's forward: the keys of the whole text and the scores of all tokens by one GEMM each."""
    d = model.decoder

    def forward(source, target, lens):
        outputs, state = model.encode(source)
        keys, seen = d.attention.W_k(outputs), torch.arange(source.shape[1], device=source.device) < lens[:, None]
        results = []
        for x in d.embedding(target).unbind(1):
            scores = d.attention.w_v(torch.tanh(d.attention.W_q(state[-1])[:, None] + keys)).squeeze(-1)
            p = torch.softmax(scores.masked_fill(~seen, -1e6), -1)
            context = torch.bmm(p[:, None], outputs)
            y, state = d.rnn(torch.cat([context, x[:, None]], -1), state)
            results.append(y)
        return d.dense(torch.cat(results, 1))
    model.forward = forward


def train(model, targets, *inputs):
    """A step gives the loss before it: cross entropy, gradients clipped to norm 1, Adam in one kernel.  The losses of the
    first eight are the check."""
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step():
        adam.zero_grad()
        logits = model(*inputs)
        logits = getattr(logits, "logits", logits)
        logits = logits[0] if isinstance(logits, tuple) else logits
        loss = f.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        return loss.detach()
    return step, lambda loss: torch.stack([loss] + [step() for _ in range(7)])

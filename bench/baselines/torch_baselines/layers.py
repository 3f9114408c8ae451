# SPDX-License-Identifier: MIT
"""AFT, softmax attention, gMLP, the encoder layer, GRUs and d2l's decoder with Bahdanau's attention: the published code, and what PyTorch can do better."""
import torch
from torch.nn import functional as f
from torch_models.aft import mix
from torch_models.attention import MHA, BatchFirstMHA, additive, einsum_attention, masked_softmax
from torch_models.gmlp import GMLP, SGU
from torch_models.transformer import Layer, causal_mask

from . import faster
from .ops import call
from .registry import formulation


def mask_of(c):
    return causal_mask(c.T, c.device) if c.causal else None


# -- the AFT mixing

def window_of(c):
    """Where a position bias counts, [T, T]."""
    i = torch.arange(c.T, device=c.device)
    return (i[:, None] - i).abs() < (c.T if c.family == "aft_full" else c.window)


def qkv(c, *shape):
    return [c.uniform(name, 2, *shape) for name in "qkv"]


@formulation(("aft_local", "aft_full", "aft_simple"), "einsum (labml)", reference=True)
def mix_einsum(c):
    q, k, v = qkv(c, c.T, c.B, c.C)
    simple = c.family == "aft_simple"
    w = torch.zeros(c.T, c.T, device=c.device) if simple else c.uniform("pos_bias", 1, c.T, c.T)
    window, mask = window_of(c), mask_of(c)
    return lambda: mix(q, k, v, w * window, mask)


@formulation(("aft_local", "aft_full"), "one product, bias prepared")
def mix_gemm(c):
    q, k, v = qkv(c, c.T, c.B, c.C)
    w, window = c.uniform("pos_bias", 1, c.T, c.T), window_of(c)
    prepared = None if c.backward else faster.prepared_bias(w * window, c.causal)
    return lambda: faster.gemm_mix(q, k, v, faster.prepared_bias(w * window, c.causal) if c.backward else prepared)


formulation("aft_simple", "softmax or cumsum")(lambda c: call(faster.simple_mix, *qkv(c, c.T, c.B, c.C), c.causal))


@formulation("aft_conv", "conv1d", reference=True)
def mix_conv(c):
    q, v = c.uniform("q", 2, c.T, c.B, c.C), c.uniform("v", 2, c.T, c.B, c.C)
    k, w = c.uniform("k", 2, c.T, c.B, c.heads), c.uniform("pos_bias", 1, c.heads, c.window)

    def filters():
        return [faster.prepared_filter(w, n, c.causal) for n in (c.C // c.heads, 1)]
    prepared = None if c.backward else filters()
    return lambda: faster.conv_mix(q, k, v, *(prepared or filters()), c.causal)


# -- softmax attention

@formulation("attention", "scaled_dot_product_attention")
def attention(c):
    q, k, v = qkv(c, c.B, c.heads, c.T, c.C // c.heads)
    return ((lambda: f.scaled_dot_product_attention(q, k, v, is_causal=c.causal)),
            lambda y: y.transpose(1, 2).flatten(2))


@formulation("attention", "einsum (labml)", reference=True)
def attention_einsum(c):
    if c.backward:
        return None  # its copies of q, k, v are made once
    q, k, v = (x.permute(2, 0, 1, 3).contiguous() for x in qkv(c, c.B, c.heads, c.T, c.C // c.heads))
    mask = mask_of(c)
    return (lambda: einsum_attention(q, k, v, mask)[0]), lambda y: y.transpose(0, 1).flatten(2)


def mha(c, core):
    x, model, mask = c.uniform("x", 1, c.T, c.B, c.C), MHA(c.C, c.heads), mask_of(c)
    model.core = core
    model = c.fill(model, lambda name: name.replace(".linear", ""))
    return lambda: model(x, x, x, mask)


formulation("mha_labml", "einsum (labml)", reference=True)(lambda c: mha(c, einsum_attention))
formulation("mha_labml", "scaled_dot_product_attention", packed=True)(lambda c: mha(c, faster.fused_attention))


def d2l_mha(c):
    names = {"q": "query", "k": "key", "v": "value", "o": "output"}
    model = c.fill(BatchFirstMHA(c.C, c.heads), lambda name: f"{names[name[2]]}.weight")
    return c.uniform("x", 1, c.B, c.T, c.C), model, c.indices("valid_lens", 1, c.T + 1, c.B)


@formulation("mha_d2l", "bmm (d2l)", reference=True)
def mha_bmm(c):
    x, model, lens = d2l_mha(c)
    return lambda: model(x, x, x, lens)[0]


@formulation("mha_d2l", "scaled_dot_product_attention", packed=True)
def mha_d2l_fused(c):
    x, model, lens = d2l_mha(c)
    seen = torch.arange(c.T, device=c.device) < lens[:, None, None, None]

    def run():
        q, k, v = (m(x).unflatten(-1, (c.heads, -1)).transpose(1, 2) for m in (model.W_q, model.W_k, model.W_v))
        return model.W_o(f.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2))
    return run


@formulation("additive_attention", "tanh of all sums (d2l)", reference=True)
def additive_attention(c):
    queries, keys = c.uniform("queries", 1, c.B, c.T, c.C), c.uniform("keys", 1, c.B, c.S, c.C)
    values, lens = c.uniform("values", 1, c.B, c.S, c.C), c.indices("valid_lens", 1, c.S + 1, c.B)
    maps = c.map("W_q", c.C, c.C), c.map("W_k", c.C, c.C), c.map("w_v", 1, c.C)
    return lambda: additive(queries, keys, values, lens, *maps)[0]


def points(c):
    return c.uniform("x_train", 5, c.N), c.uniform("y_train", 2, c.N), c.uniform("x_val", 5, c.M)


@formulation("attention_pooling", "kernel over its sum (d2l)", reference=True)
def attention_pooling(c):
    x, y, at = points(c)

    def run():
        k = torch.exp(-(x.reshape(-1, 1) - at.reshape(1, -1)) ** 2 / 2)
        return y @ (k / k.sum(0))
    return run


formulation("attention_pooling", "softmax")(lambda c: call(
    lambda x, y, at: torch.softmax(-(at[:, None] - x) ** 2 / 2, -1) @ y, *points(c)))


# -- gMLP and the encoder layer

def masked(family, make, best, packed=True):
    """The published code and the best of what make(c) gives: input, model, mask."""
    def forward(c, prepare=None):
        x, model, mask = make(c)
        if prepare:
            prepare(model, c.causal)
        return lambda: model(x, mask)
    formulation(family, "einsum (labml)", reference=True)(forward)
    formulation(family, best, packed=packed)(
        lambda c: forward(c, faster.use_best_to_train if c.backward else faster.use_best))


def gate(c):
    return c.uniform("z", 2, c.T, c.B, c.F), c.fill(SGU(c.F, c.T), lambda name: f"sgu.{name}"), mask_of(c)


def block(c):
    return c.uniform("x", 1, c.T, c.B, c.C), c.fill(GMLP(c.C, c.F, c.T)), mask_of(c)


def encoder(c):
    config = {"layer": "aft_local", "d_model": c.C, "d_ff": c.F, "seq_len": c.T, "local_window_size": c.window}
    rename = lambda name: name.removeprefix("self_attn.").removeprefix("feed_forward.")  # noqa: E731
    return c.uniform("x", 1, c.T, c.B, c.C), c.fill(Layer(config), rename), mask_of(c)


masked("spatial_gate", gate, "addmm, weight prepared", packed=False)
masked("gmlp_block", block, "addmm, weight prepared")
masked("encoder_layer", encoder, "one product, bias prepared")


# -- recurrent networks

def gru_of(c, n_in):
    return c.fill(torch.nn.GRU(n_in, c.C, c.layers), lambda name: f"rnn.{name}").train(c.backward)  # else cuDNN has no gradient


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

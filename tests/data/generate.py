#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the golden files of this directory: models, inputs and what PyTorch computes for them in float64.

    python3 tests/data/generate.py [DIRECTORY]

One file per case.  It is a model file (metadata attncl.arch and attncl.config, parameters under their PyTorch names)
that also holds the inputs as input.NAME and the results as expected.NAME.  The cases of GRADIENTS are written as
NAME_grad, with cotangents among the inputs and what autograd gives for them among the results; readers leave those out for the case
without gradients.  Needs torch and numpy;
seeds are fixed.
"""
import json
import math
import os
import sys
import zlib

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from support.safetensors_file import write  # noqa: E402
from torch_models.aft import AFT  # noqa: E402
from torch_models.attention import MHA, BatchFirstMHA, additive, attend, masked_softmax  # noqa: E402
from torch_models.decoder import DecoderLM  # noqa: E402
from torch_models.dropout import BatchFirst, DroppedSeq2Seq, Masks, drop_feedback_layers, drop_layers  # noqa: E402
from torch_models.feedback import Feedback, FeedbackAttention, FeedbackLayer, FeedbackLM  # noqa: E402
from torch_models.gmlp import GMLP, SGU  # noqa: E402
from torch_models.recurrent import Seq2Seq  # noqa: E402
from torch_models.transformer import (LM, Classifier, Encoder, FeedForward, Layer, Seq2SeqTransformer, TokenEncoder,  # noqa: E402
                                      sinusoid)

DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "bool": "BOOL",
          "uint8": "U8", "bfloat16": "BF16"}


def raw(t):
    t = t.detach().contiguous()
    if t.dtype == torch.bfloat16:
        return t.view(torch.int16).numpy().tobytes()
    return t.numpy().tobytes()


DIRECTORY = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))


def as_file_type(t):
    return t.float() if t.is_floating_point() else t


GRADIENTS = {
    "softmax", "masked_softmax", "layer_norm", "gelu", "linear", "bmm", "embedding", "cross_entropy", "relative_shift",
    "cross_entropy_smoothed",
    "attention_pooling_gaussian", "attention_pooling_boxcar", "attention_pooling_epanechikov", "aft_local", "aft_full",
    "aft_simple", "aft_conv", "spatial_gating_unit", "gmlp_block", "feed_forward", "transformer_layer",
    "layer_transformer", "encoder_gmlp", "encoder_transformer", "basic_self_attention", "raschka_self_attention",
    "raschka_multi_head", "dot_product_attention", "additive_attention", "multi_head_attention", "mha", "mha_bias", "gru",
    "seq2seq_bahdanau", "feedback_attention_joint", "feedback_attention_split", "feedback_layer",
    "feedback_transformer", "feedback_transformer_kv", "lm_aft_local", "lm_transformer_learned", "layer_post_norm",
    "encoder_post_norm", "encoder_no_norm", "encoder_bert", "lm_gpt2", "mha_batch_first", "gru_batch_first",
    "encoder_aft_batch_first", "lm_post_norm", "encoder_tokens_batch_first",
    "lm_feedback_eps", "gelu_tanh", "feed_forward_gelu_tanh",
    "lm_aft_post_norm", "lm_feedback_tied", "classes_mean", "classes_mean_batch_first", "classes_first",
    "classes_none", "classes_mean_lens", "classes_mean_batch_first_lens", "classes_none_lens", "mha_shared", "lm_shared",
    "gru_bidirectional", "rnn_tanh", "rnn_relu_bidirectional", "bilinear_attention", "lm_rotary",
    "lm_windows", "lm_alibi", "lm_padded", "lm_longrope", "rms_norm", "seq2seq_transformer", "seq2seq_transformer_post_norm", "seq2seq_transformer_vectors",
    "multi_head_additive", "multi_head_additive_queries"}


def case(name, arch, config, params, inputs, expected, **how):
    if name not in GRADIENTS:
        return write_case(name, arch, config, params, inputs, expected, **how)
    random = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    cotangents = {k: torch.randn(y.shape, generator=random).double() for k, y in expected.items()}
    leaves = {k: x for k, x in {**inputs, **params}.items() if x.requires_grad}
    assert all(x.requires_grad for x in inputs.values() if x.is_floating_point()), name
    total = sum((y * cotangents[k]).sum() for k, y in expected.items())
    found = torch.autograd.grad(total, leaves.values(), allow_unused=True, materialize_grads=True)
    write_case(name + "_grad", arch, config, params, {**inputs, **{"cotangent." + k: g for k, g in cotangents.items()}},
               {**expected, **{"grad." + k: g for k, g in zip(leaves, found)}})


def write_case(name, arch, config, params, inputs, expected, keep_types=False, metadata={}):
    tensors = dict(params) if keep_types else {k: as_file_type(v) for k, v in params.items()}
    tensors.update({"input." + k: as_file_type(v) for k, v in inputs.items()})
    tensors.update({"expected." + k: as_file_type(v) for k, v in expected.items()})
    names = sorted(tensors, key=lambda n: (-tensors[n].element_size(), n))
    write(os.path.join(DIRECTORY, name + ".safetensors"),
          {n: (DTYPES[str(tensors[n].dtype).split(".")[1]], tensors[n].shape, raw(tensors[n])) for n in names},
          {"attncl.arch": arch, "attncl.config": json.dumps(config), **metadata})


def leaf(t):
    """What has a gradient, exactly a float32."""
    return t.detach().float().double().requires_grad_()


def randn(*shape):
    return leaf(torch.randn(*shape))


def state(m):
    return m.state_dict(keep_vars=True)


def module(m, seed_norms=True):
    """In float64, with parameters that are exactly float32 and no norm left at 1 and 0."""
    for key, p in m.named_parameters():
        if seed_norms and "norm" in key:
            p.data += 0.2 * torch.randn_like(p)
    return m.float().double()


def with_eps(m, c):
    for norm in m.modules():
        if isinstance(norm, nn.LayerNorm):
            norm.eps = c.get("layer_norm_eps", 1e-5)
    return m


def primitives():
    x = randn(5, 7, 3)
    case("softmax", "softmax", {"dim": 1}, {}, {"x": x}, {"output": torch.softmax(x, 1)})

    x, lens = randn(2, 3, 5), torch.tensor([[0, 2, 5], [1, 7, 3]])
    case("masked_softmax", "masked_softmax", {}, {}, {"X": x, "valid_lens": lens},
         {"output": masked_softmax(x.clone(), lens)})

    x, m = randn(3, 4, 6), module(nn.LayerNorm([4, 6]))
    m.weight.data, m.bias.data = randn(4, 6).data, randn(4, 6).data
    case("layer_norm", "layer_norm", {"normalized_shape": [4, 6]}, state(m), {"x": x}, {"output": m(x)})

    x = randn(3, 11) * 3
    case("gelu", "activation", {"kind": "gelu"}, {}, {"x": x}, {"output": F.gelu(x)})

    x, m = randn(5, 2, 7), module(nn.Linear(7, 3))
    case("linear", "linear", {"in_features": 7, "out_features": 3}, state(m), {"x": x}, {"output": m(x)})

    a, b = randn(2, 3, 4), randn(2, 4, 5)
    case("bmm", "bmm", {}, {}, {"a": a, "b": b}, {"output": a @ b})

    w, tokens = randn(6, 4), torch.tensor([[5, 0, 3]], dtype=torch.int32)
    case("embedding", "embedding", {"num_embeddings": 6, "embedding_dim": 4}, {"weight": w}, {"tokens": tokens},
         {"output": F.embedding(tokens.long(), w)})

    x, table = randn(2, 9, 5), sinusoid(9, 5)
    case("positional_encoding", "positional_encoding", {"layout": "d2l", "num_hiddens": 5}, {}, {"x": x},
         {"output": x + table, "encoding": table})

    logits, targets = randn(4, 3, 6), torch.randint(0, 6, (4, 3))
    targets[0, 0] = 2
    each = F.cross_entropy(logits.reshape(-1, 6), targets.reshape(-1), reduction="none").reshape(4, 3)
    real = targets != 2
    case("cross_entropy", "cross_entropy", {"pad": 2}, {}, {"logits": logits, "targets": targets},
         {"loss": each[real].mean()})


def aft():
    q, k, v = randn(7, 2, 6), randn(7, 2, 6), randn(7, 2, 6)
    mask = torch.rand(7, 7, 2) < 0.4
    mask[3, :, 1] = False
    m = module(AFT("aft_local", 6, 9, 3))
    case("aft_local", "aft_local", {"d_model": 6, "seq_len": 9, "local_window_size": 3}, state(m),
         {"query": q, "key": k, "value": v, "mask": mask}, {"output": m(q, k, v, mask)})
    m = module(AFT("aft_full", 6, 9, bias=False))
    case("aft_full", "aft_full", {"d_model": 6, "seq_len": 9, "bias": False}, state(m),
         {"query": q, "key": k, "value": v}, {"output": m(q, k, v, None)})
    m = module(AFT("aft_simple", 6))
    row = (torch.rand(1, 7, 1) < 0.5).to(torch.uint8)
    row[0, 2] = 7  # any value but 0 is visible
    case("aft_simple", "aft_simple", {"d_model": 6}, state(m), {"query": q, "key": k, "value": v, "mask": row},
         {"output": m(q, k, v, row)})


def gmlp():
    z, mask = randn(7, 2, 10), torch.rand(7, 7, 1) < 0.5
    mask[2] = False
    m = module(SGU(10, 9))
    case("spatial_gating_unit", "spatial_gating_unit", {"d_z": 10, "seq_len": 9}, state(m),
         {"z": z, "mask": mask}, {"output": m(z, mask)})
    x = randn(7, 2, 6)
    m = module(GMLP(6, 10, 9))
    case("gmlp_block", "gmlp_block", {"d_model": 6, "d_ffn": 10, "seq_len": 9}, state(m), {"x": x},
         {"output": m(x, None)})


def stacks():
    x = randn(2, 3, 6)
    c = {"d_model": 6, "d_ff": 10, "activation": "SiLU", "is_gated": True, "bias1": False, "bias2": True,
         "bias_gate": False}
    m = module(FeedForward(**c))
    case("feed_forward", "feed_forward", c, state(m), {"x": x}, {"output": m(x)})

    x, mask = randn(7, 2, 6), torch.tril(torch.ones(7, 7, dtype=torch.bool))[:, :, None]
    c = {"layer": "aft_full", "d_model": 6, "seq_len": 8, "d_ff": 10, "activation": "GELU", "is_gated": True}
    m = module(Layer(c))
    case("transformer_layer", "transformer_layer", c, state(m), {"x": x, "mask": mask}, {"output": m(x, mask)})

    for c in ({"layer": "aft_local", "d_model": 8, "seq_len": 9, "local_window_size": 2, "d_ff": 12, "n_layers": 2},
              {"layer": "gmlp", "d_model": 8, "seq_len": 9, "d_ffn": 12, "n_layers": 2}):
        m, x = module(Encoder(c)), randn(7, 2, 8)
        case("encoder_" + c["layer"], "encoder", c, state(m), {"x": x, "mask": mask}, {"output": m(x, mask)})


LMS = {
    "lm_aft_local": {"layer": "aft_local", "local_window_size": 3, "d_ff": 6, "seq_len": 12, "max_len": 20},
    "lm_aft_window_0": {"layer": "aft_local", "local_window_size": 0, "d_ff": 6, "seq_len": 12, "pos": "no_pos", "n_layers": 1},
    "lm_aft_window_over": {"layer": "aft_local", "local_window_size": 40, "d_ff": 6, "seq_len": 12, "n_layers": 1},
    "lm_aft_full": {"layer": "aft_full", "d_ff": 6, "seq_len": 12, "activation": "GELU"},
    "lm_aft_simple": {"layer": "aft_simple", "d_ff": 6, "pos": "learned_pos", "max_len": 12, "n_layers": 1},
    "lm_gmlp": {"layer": "gmlp", "d_ffn": 14, "seq_len": 12},
}


TRANSFORMER_LMS = {
    "lm_transformer": {"pos": "fixed_pos"},
    "lm_transformer_learned": {"pos": "learned_pos", "bias": False, "activation": "GELU", "n_layers": 1},
    "lm_transformer_no_pos": {"pos": "no_pos", "n_layers": 1},
}


def without_tied(params, c):
    tied = ("generator.projection.weight", "generator.weight") if c.get("tie_generator") else ()
    return {k: v for k, v in params.items() if k not in tied}


def language_model(name, c, model=LM):
    m = with_eps(module(model(c)), c)
    params = without_tied(state(m), c)
    if "max_len" not in c:  # the table of 5000 rows is left to be derived
        params.pop("src_embed.positional_encodings", None)
    tokens, targets = torch.randint(0, 11, (5, 3)), torch.randint(0, 11, (5, 3))
    y = m(tokens)
    case(name, "lm", c, params, {"tokens": tokens, "targets": targets},
         {"output": y, "loss": F.cross_entropy(y.reshape(-1, 11), targets.reshape(-1))})


def language_models(which=LMS):
    for name, keys in which.items():
        language_model(name, {**keys, "d_model": 8, "n_layers": keys.get("n_layers", 2), "n_vocab": 11})


def half_precision():
    """The same linear map with parameters of other types, each exactly representable."""
    x = randn(5, 7)
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f64", torch.float64)):
        w, b = torch.randn(3, 7).to(dtype), torch.randn(3).to(dtype)
        if dtype == torch.float64:
            w, b = w.float().double(), b.float().double()
        case("linear_" + name, "linear", {"in_features": 7, "out_features": 3}, {"weight": w, "bias": b}, {"x": x},
             {"output": F.linear(x, w.double(), b.double())}, keep_types=True)


def greedy(name, c, n_prompt, model=LM):
    m = with_eps(module(model(c)), c)
    start = torch.randint(0, c["n_vocab"], (n_prompt, 3))
    tokens = start
    for _ in range(c["steps"]):
        tokens = torch.cat([tokens, m(tokens)[-1].argmax(-1)[None]])
    case(name, "lm_sample", c, without_tied(state(m), c), {"tokens": start}, {"tokens": tokens})


def sample():
    c = {"layer": "aft_local", "local_window_size": 3, "d_ff": 12, "seq_len": 12, "d_model": 8, "n_layers": 2,
         "n_vocab": 11, "max_len": 20}
    greedy("lm_sample", dict(c, steps=9), 4)


def self_attention():
    torch.manual_seed(21)
    for name, x in (("basic_self_attention", randn(2, 7, 5)), ("basic_self_attention_2d", randn(7, 5))):
        y, p = attend(x, x, x, scale=1)
        case(name, "basic_self_attention", {}, {}, {"x": x}, {"output": y, "attention_weights": p})

    x, u = randn(7, 5), {"U_" + name: leaf(torch.rand(5, 5)) for name in ("query", "key", "value")}
    y, p = attend(*(x @ w.T for w in u.values()))
    case("raschka_self_attention", "raschka_self_attention", {"d": 5}, u, {"x": x},
         {"output": y, "attention_weights": p})

    u = {"multihead_U_" + name: leaf(torch.rand(3, 5, 5)) for name in ("query", "key", "value")}
    z, p = attend(*(x @ w.transpose(1, 2) for w in u.values()))
    m = module(nn.Linear(15, 5))
    case("raschka_multi_head", "raschka_multi_head", {"d": 5, "heads": 3},
         {**u, "linear.weight": m.weight, "linear.bias": m.bias}, {"x": x},
         {"output": m(z.transpose(0, 1).flatten(1)), "z": z, "attention_weights": p})


def attention():
    q, k, v, lens = randn(3, 4, 6), randn(3, 7, 6), randn(3, 7, 5), torch.randint(0, 9, (3, 4))
    lens[0, 0], lens[1, 1], lens[2, 3] = 0, 7, 8  # equal weights; nothing hidden, twice
    y, p = attend(q, k, v, lens)
    case("dot_product_attention", "dot_product_attention", {}, {},
         {"queries": q, "keys": k, "values": v, "valid_lens": lens}, {"output": y, "attention_weights": p})

    few, k = torch.tensor([0, 3, 7], dtype=torch.int32), randn(3, 7, 5)
    w_q, w_k, w_v = module(nn.Linear(6, 9, bias=False)), module(nn.Linear(5, 9, bias=False)), randn(1, 9)
    y, p = additive(q, k, v, few, w_q.weight, w_k.weight, w_v)
    case("additive_attention", "additive_attention", {"query_size": 6, "key_size": 5, "num_hiddens": 9},
         {"W_q.weight": w_q.weight, "W_k.weight": w_k.weight, "w_v.weight": w_v},
         {"queries": q, "keys": k, "values": v, "valid_lens": few}, {"output": y, "attention_weights": p})

    c = {"num_hiddens": 12, "num_heads": 3, "bias": True, "query_size": 6, "key_size": 5, "value_size": 5}
    m = module(BatchFirstMHA(**c))
    y, p = m(q, k, v, lens)
    case("multi_head_attention", "multi_head_attention", c, state(m),
         {"queries": q, "keys": k, "values": v, "valid_lens": lens}, {"output": y, "attention_weights": p})

    q, k, v, mask = randn(4, 3, 6), randn(7, 3, 6), randn(7, 3, 6), torch.rand(4, 7, 3) < 0.4
    mask[2, :, 1] = False
    m = module(MHA(6, 2, bias=False))
    y, p = m.weighted(q, k, v, mask)
    case("mha", "mha", {"d_model": 6, "heads": 2, "bias": False}, state(m),
         {"query": q, "key": k, "value": v, "mask": mask}, {"output": y, "attn": p})


def transformers():
    c = {"layer": "transformer", "d_model": 6, "heads": 3, "d_ff": 10, "seq_len": 5}  # no limit
    x, mask = randn(7, 2, 6), torch.rand(1, 7, 2) < 0.6
    m = module(Layer(c))
    case("layer_transformer", "transformer_layer", c, state(m), {"x": x, "mask": mask}, {"output": m(x, mask)})

    c, x, mask = dict(c, n_layers=2, bias=False), randn(7, 2, 6), torch.rand(7, 7, 1) < 0.6
    mask[4] = False
    m = module(Encoder(c))
    case("encoder_transformer", "encoder", c, state(m), {"x": x, "mask": mask}, {"output": m(x, mask)})

    keys = {"layer": "transformer", "heads": 2, "d_ff": 6, "max_len": 12}
    language_models({name: {**keys, **more} for name, more in TRANSFORMER_LMS.items()})
    # Without positions max_len is no limit of what is drawn.
    greedy("lm_sample_transformer", dict(keys, d_model=8, n_layers=1, n_vocab=11, pos="no_pos", max_len=6, steps=9), 4)


def aft_conv():
    torch.manual_seed(21)
    q, k, v = randn(7, 2, 6), randn(7, 2, 6), randn(7, 2, 6)
    mask = torch.rand(7, 7, 2) < 0.4
    mask[3, :, 1] = False
    m = module(AFT("aft_conv", 6, window=5, heads=3))
    case("aft_conv", "aft_conv", {"d_model": 6, "heads": 3, "window_size": 5}, state(m),
         {"query": q, "key": k, "value": v, "mask": mask}, {"output": m(q, k, v, mask)})
    c = {"layer": "aft_conv", "heads": 2, "window_size": 7, "d_ff": 6, "d_model": 8, "n_layers": 1, "n_vocab": 11,
         "max_len": 20}
    m = module(LM(c))
    tokens = torch.randint(0, 11, (4, 3))
    y, start = m(tokens), tokens
    case("lm_aft_conv", "lm", c, state(m), {"tokens": tokens}, {"output": y})
    for _ in range(9):
        tokens = torch.cat([tokens, m(tokens)[-1].argmax(-1)[None]])
    case("lm_sample_aft_conv", "lm_sample", dict(c, steps=9), state(m), {"tokens": start}, {"tokens": tokens})


def recurrent():
    x, h0 = randn(5, 3, 4), randn(2, 3, 6)
    m = module(nn.GRU(4, 6, 2))
    y, h = m(x, h0)
    c = {"input_size": 4, "hidden_size": 6, "num_layers": 2}
    case("gru", "gru", c, state(m), {"input": x, "h0": h0}, {"output": y, "h_n": h})
    y, h = m(x)
    case("gru_from_zeros", "gru", c, state(m), {"input": x}, {"output": y, "h_n": h})

    c = {"src_vocab_size": 11, "tgt_vocab_size": 9, "embed_size": 5, "num_hiddens": 7, "num_layers": 2}
    m, n = module(Seq2Seq(**c)), 5
    source, lens = torch.randint(0, 11, (n, 3)), torch.randint(0, 5, (n,))
    target = torch.randint(0, 9, (n, 9))  # more steps than are joined at once
    lens[0], lens[1] = 0, 2**40  # equal weights; nothing hidden, and no int
    names = ("output", "hidden_state", "enc_outputs", "attention_weights")
    case("seq2seq_bahdanau", "seq2seq_bahdanau", c, state(m),
         {"enc_X": source, "dec_X": target, "enc_valid_lens": lens}, dict(zip(names, m(source, target, lens))))

    for name, seen, layers in (("seq2seq_predict", lens, 2), ("seq2seq_predict_all", torch.full((n,), 3), 1)):
        c = dict(c, num_layers=layers)
        m = module(Seq2Seq(**c))
        for p in m.parameters():  # sequences that do not settle at once
            p.data *= 3
        m.decoder.dense.bias.data *= 0
        keys, s = m.encode(source)
        tokens, weights = [torch.full((n,), 4)], []
        for _ in range(11):
            y, s, p = m.step(tokens[-1], s, keys, seen)
            tokens.append(y[:, 0].argmax(-1)), weights.append(p)
        inputs = {"enc_X": source.int(), "enc_valid_lens": lens.clamp(max=9).int()}
        if layers == 1:
            del inputs["enc_valid_lens"]
        case(name, "seq2seq_predict", dict(c, bos=4, num_steps=11), state(m), inputs,
             {"tokens": torch.stack(tokens[1:], 1), "attention_weights": torch.cat(weights, 1)})


KERNELS = {"gaussian": lambda u: torch.exp(-u * u / 2), "boxcar": lambda u: (u.abs() < 1).double(),
           "constant": torch.ones_like, "epanechikov": lambda u: (1 - u.abs()).clamp(min=0)}


def d2l_pieces():
    x, table = randn(3, 4, 6), sinusoid(9, 6)
    turned = torch.empty_like(x)
    for j in range(3):
        angle = -5 * 10000 ** (-2 * j / 6)
        turned[..., 2 * j] = math.cos(angle) * x[..., 2 * j] + math.sin(angle) * x[..., 2 * j + 1]
        turned[..., 2 * j + 1] = -math.sin(angle) * x[..., 2 * j] + math.cos(angle) * x[..., 2 * j + 1]
    case("relative_shift", "relative_shift", {"num_hiddens": 6, "delta": -5}, {}, {"x": x}, {"output": turned})
    case("relative_shift_table", "relative_shift", {"num_hiddens": 6, "delta": 3}, {}, {"x": table[:6].float().double()},
         {"output": table[3:]})

    x, y, z = leaf(torch.rand(11) * 5), randn(11), torch.rand(7) * 5
    z[2] = 40.0  # far from every key
    z = leaf(z)
    for kernel, of in KERNELS.items():
        config = {"kernel": kernel}
        k = of(x[:, None] - z[None])
        w = k / torch.where(k.sum(0) > 0, k.sum(0), torch.ones_like(z))
        if kernel == "gaussian":
            config["sigma"] = 0.4
            w = torch.softmax(-(x[:, None] - z[None]) ** 2 / (2 * 0.4 ** 2), 0)
        case("attention_pooling_" + kernel, "attention_pooling", config, {}, {"x_train": x, "y_train": y, "x_val": z},
             {"y_hat": y @ w, "attention_w": w})

    x = randn(2, 5, 12)
    split = x.reshape(2, 5, 3, 4).permute(0, 2, 1, 3).reshape(6, 5, 4)
    case("transpose_qkv", "transpose_qkv", {"num_heads": 3}, {}, {"X": x}, {"output": split})
    case("transpose_output", "transpose_output", {"num_heads": 3}, {}, {"X": split}, {"output": x})

    ones = torch.ones(7, 7, dtype=torch.bool)
    case("subsequent_mask", "subsequent_mask", {"seq_len": 7}, {}, {}, {"output": ones.tril()[..., None]})
    for window in (0, 3):
        case("local_mask_%d" % window, "local_mask", {"seq_len": 7, "local_window_size": window}, {}, {},
             {"output": ones.tril(window - 1) & ones.triu(1 - window)})


def feedback():
    for score, precomputed in (("joint", False), ("split", True)):
        c = {"d_model": 6, "heads": 2, "P": 9, "score": score, "kv_precomputed": precomputed}
        m = module(FeedbackAttention(c, precomputed))
        shape = (5, 2, 2, 3) if precomputed else (5, 2, 6)
        q, k, v = randn(2, 6), randn(*shape), randn(*shape)
        y, p = m(q, k, v)
        case("feedback_attention_" + score, "feedback_attention", c, state(m), {"query": q, "key": k, "value": v},
             {"output": y, "attn": p})
    c = {"d_model": 6, "heads": 3, "d_ff": 10, "P": 5, "activation": "GELU"}
    m, x, memory = module(FeedbackLayer(c)), randn(2, 6), randn(5, 2, 6)
    case("feedback_layer", "feedback_layer", c, state(m), {"x": x, "mem": memory},
         {"output": m(x, memory, memory)})
    case("feedback_layer_first", "feedback_layer", c, state(m), {"x": x}, {"output": m(x, None, None)})
    # As many steps as there can be; more values to mix than one call takes.
    c = {"d_model": 6, "heads": 2, "d_ff": 10, "P": 8, "n_layers": 2, "score": "split"}
    for name, keys, shared in (("feedback_transformer", {}, False), ("feedback_transformer_kv", {}, True),
                               ("feedback_transformer_deep", {"n_layers": 9, "score": "joint", "d_model": 4, "d_ff": 5}, False)):
        k = dict(c, **keys)
        m, x = module(Feedback(k, shared)), randn(9, 2, k["d_model"])
        y, memory = m(x)
        case(name, "feedback_transformer_kv" if shared else "feedback_transformer", k, state(m), {"x_seq": x},
             {"output": y, "memory": memory})


def feedback_models():
    c = {"d_model": 8, "heads": 2, "d_ff": 6, "n_layers": 2, "n_vocab": 11, "P": 11}
    for name, keys in (("lm_feedback", {"layer": "feedback"}),
                       ("lm_feedback_kv", {"layer": "feedback_kv", "score": "split"})):
        k = dict(c, **keys)
        language_model(name, k, FeedbackLM)
        greedy(name.replace("lm_", "lm_sample_"), dict(k, steps=9), 3, FeedbackLM)


def adam_step(p, g, m, v, top, taken, lr, betas=(0.9, 0.999), eps=1e-8, optimized=True, decay=0, decoupled=True):
    t = taken + 1
    p, g = (p * (1 - lr[0] * decay), g) if decoupled else (p, g + decay * p)
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
    top = None if top is None else torch.maximum(top, v)
    root, left = (v if top is None else top).sqrt(), [1 - b ** t for b in betas]
    if optimized:
        p = p - lr[1] * math.sqrt(left[1]) / left[0] * m / (root + eps)
    else:
        p = p - lr[1] / left[0] * m / (root / math.sqrt(left[1]) + eps)
    return {"param": p, "exp_avg": m, "exp_avg_sq": v} | ({} if top is None else {"max_exp_avg_sq": top})


@torch.no_grad()
def optimizers():
    noam = 2 * 32 ** -0.5 * min(6 ** -0.5, 6 * 10 ** -1.5)
    for name, config, rate, more in (
            ("adam", {"kind": "adam"}, 0.02, {}),
            ("adam_torch", {"kind": "adam", "optimized_update": False, "weight_decay": 0.2, "weight_decouple": False},
             0.02, {"optimized": False, "decay": 0.2, "decoupled": False}),
            ("adam_amsgrad", {"kind": "adam", "amsgrad": True, "betas": [0.8, 0.95], "weight_decay": 0.2, "eps": 1e-3},
             0.02, {"betas": (0.8, 0.95), "decay": 0.2, "eps": 1e-3}),
            ("noam", {"kind": "noam", "d_model": 32, "warmup": 10, "weight_decay": 0.1}, 2, {"decay": 0.1})):
        p, g, m, v, top = randn(5, 7), randn(5, 7), randn(5, 7), randn(5, 7).abs(), randn(5, 7).abs()
        inputs = {"param": p, "grad": g, "exp_avg": m, "exp_avg_sq": v, "step": torch.tensor(5)}
        if "amsgrad" in config:
            inputs["max_exp_avg_sq"] = top
        y = adam_step(p, g, m, v, inputs.get("max_exp_avg_sq"), 5, (rate, noam if name == "noam" else rate), **more)
        case("optimizer_step_" + name, "optimizer_step", dict(config, learning_rate=rate), {}, inputs, y)

    grads = {"g.a": randn(5, 7), "g.b": randn(3), "g.c": randn(1)}
    norm = math.sqrt(sum(float((g * g).sum()) for g in grads.values()))
    for name, style, limit, factor in (("torch", None, 1.5, 1.5 / (norm + 1e-6)), ("d2l", "d2l", 1.5, 1.5 / norm),
                                       ("within", "torch", 100, 1)):
        config = {"max_norm": limit} | ({"style": style} if style else {})
        case("clip_grad_norm_" + name, "clip_grad_norm", config, {}, grads,
             {k: g * factor for k, g in grads.items()} | {"total_norm": torch.tensor(norm, dtype=torch.float64)})


@torch.no_grad()
def torch_optimizers():
    """Steps of torch.optim itself."""
    torch.manual_seed(31)
    sgd, adamw = {"kind": "sgd", "learning_rate": 0.1}, {"kind": "adamw", "learning_rate": 0.02}
    for name, config, taken in (
            ("sgd", sgd, 5),
            ("sgd_momentum", dict(sgd, momentum=0.9, dampening=0.3, weight_decay=0.1), 5),
            ("sgd_first", dict(sgd, momentum=0.9, dampening=0.3), 0),
            ("sgd_nesterov", dict(sgd, momentum=0.9, nesterov=True, weight_decay=0.1), 5),
            ("adamw", adamw, 5),
            ("adamw_amsgrad", dict(adamw, betas=[0.8, 0.95], eps=1e-3, weight_decay=0.3, amsgrad=True), 5)):
        p, g = randn(5, 7), randn(5, 7)
        inputs = {"param": p.clone(), "grad": g, "step": torch.tensor(taken)}
        optimizer = torch_optimizer([p], **config)
        if config["kind"] == "sgd":
            kept = {"momentum_buffer": randn(5, 7)} if "momentum" in config and taken else {}
        else:
            kept = {"exp_avg": randn(5, 7)} | {k: randn(5, 7).abs() for k in ("exp_avg_sq", "max_exp_avg_sq")
                                               if "max" not in k or "amsgrad" in config}
            optimizer.state[p]["step"] = torch.tensor(float(taken))
        inputs.update(kept)
        optimizer.state[p].update({k: v.clone() for k, v in kept.items()})
        p.grad = g
        optimizer.step()
        after = {k: v for k, v in optimizer.state[p].items() if k != "step" and v is not None}
        case("optimizer_step_" + name, "optimizer_step", config, {}, inputs, {"param": p, **after})


def label_smoothing():
    torch.manual_seed(32)
    logits, targets = randn(4, 3, 6).requires_grad_(), torch.randint(0, 6, (4, 3))
    targets[1, 1] = targets[3, 0] = 2
    loss = F.cross_entropy(logits.reshape(-1, 6), targets.reshape(-1), ignore_index=2, label_smoothing=0.2)
    case("cross_entropy_smoothed", "cross_entropy", {"pad": 2, "label_smoothing": 0.2}, {},
         {"logits": logits, "targets": targets}, {"loss": loss})


def clipped(grads, limit, style):
    norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
    factor = min(1, limit / (norm + 1e-6)) if style == "torch" else limit / norm if norm > limit else 1
    return [g * factor for g in grads], norm


def torch_optimizer(params, kind, learning_rate, weight_decay=0, **keys):
    optimizers = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
    return optimizers[kind](params, learning_rate, weight_decay=weight_decay, **keys)


def train(name, c, m, inputs, output, **settings):
    """A step for each entry of the inputs' first axis; output(m, batch) are the logits."""
    config = {"model": c, **settings}
    params = list(m.parameters())
    start = without_tied({k: v.detach().clone() for k, v in m.state_dict().items()}, c)
    optimizer, pad = settings["optimizer"], settings.get("pad", -1)
    lr, decay = optimizer["learning_rate"], optimizer.get("weight_decay", 0)
    theirs = torch_optimizer(params, **optimizer) if optimizer["kind"] in ("sgd", "adamw") else None
    keys = {"betas": optimizer.get("betas", (0.9, 0.999)), "eps": optimizer.get("eps", 1e-8), "decay": decay,
            "optimized": optimizer.get("optimized_update", True), "decoupled": optimizer.get("weight_decouple", True)}
    means = [[torch.zeros_like(p) for _ in range(3)] for p in params]
    losses, norms = [], []
    for t in range(len(inputs["targets"])):
        batch = {k: x[t] for k, x in inputs.items()}
        logits, real = output(m, batch), batch["targets"].flatten() != pad
        each = F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten(), reduction="none")
        loss = each[real].sum() / real.sum().clamp(min=1)
        grads = torch.autograd.grad(loss, params, allow_unused=True, materialize_grads=True)
        grads, norm = clipped(grads, settings.get("grad_norm_clip", 1), settings.get("clip", "torch"))
        losses.append(loss), norms.append(norm)
        if theirs:
            for p, g in zip(params, grads):
                p.grad = g
            theirs.step()
            continue
        rate = lr
        if optimizer["kind"] == "noam":
            rate *= optimizer["d_model"] ** -0.5 * min((t + 1) ** -0.5, (t + 1) * optimizer["warmup"] ** -1.5)
        for p, g, mean in zip(params, grads, means):
            top = mean[2] if optimizer.get("amsgrad") else None
            after = adam_step(p.data, g, mean[0], mean[1], top, t, (lr, rate), **keys)
            p.data, mean[:] = after["param"], [after["exp_avg"], after["exp_avg_sq"], after.get("max_exp_avg_sq")]
    model = {k: v for k, v in c.items() if k != "arch"}
    case("train_" + name, "train", config, start, inputs,
         {"losses": torch.stack(losses), "grad_norms": torch.tensor(norms, dtype=torch.float64)},
         metadata={"attncl.train": json.dumps({"arch": c["arch"], "model": model, "train": settings})})


def training():
    torch.manual_seed(22)
    c = {"arch": "lm", "d_model": 6, "n_layers": 2, "n_vocab": 7, "max_len": 9}
    adam, logits = {"kind": "adam", "learning_rate": 0.01}, lambda m, batch: m(batch["tokens"])
    for name, layer, settings in (
            ("lm_aft_local", {"layer": "aft_local", "local_window_size": 3, "seq_len": 8, "d_ff": 8},
             {"optimizer": adam, "grad_norm_clip": 0.5}),
            ("lm_transformer", {"layer": "transformer", "heads": 2, "d_ff": 8, "pos": "learned_pos"},
             {"optimizer": {"kind": "noam", "learning_rate": 0.3, "d_model": 6, "warmup": 3, "weight_decay": 0.1},
              "clip": "d2l"}),
            ("lm_gmlp", {"layer": "gmlp", "d_ffn": 8, "seq_len": 8, "pos": "no_pos"},
             {"optimizer": dict(adam, betas=[0.8, 0.95], amsgrad=True), "grad_norm_clip": 100, "pad": 3}),
            ("lm_feedback_kv", {"layer": "feedback_kv", "heads": 2, "d_ff": 8, "P": 9, "score": "split"},
             {"optimizer": dict(adam, optimized_update=False, weight_decay=0.2, weight_decouple=False)})):
        k = {**c, **layer}
        m = module(FeedbackLM(k) if "feedback" in name else LM(k))
        tokens = torch.randint(0, 7, (4, 7, 2))
        train(name, k, m, {"tokens": tokens, "targets": torch.randint(0, 7, (4, 7, 2))}, logits, **settings)

    c = {"src_vocab_size": 8, "tgt_vocab_size": 7, "embed_size": 4, "num_hiddens": 5, "num_layers": 2}
    targets, lens = torch.randint(0, 7, (4, 3, 5)), torch.randint(1, 5, (4, 3))
    targets[2] = 1  # a batch of padding alone
    inputs = {"enc_X": torch.randint(0, 8, (4, 3, 4)), "dec_X": torch.randint(0, 7, (4, 3, 5)),
              "enc_valid_lens": lens, "targets": targets}
    train("seq2seq_bahdanau", {"arch": "seq2seq_bahdanau", **c}, module(Seq2Seq(**c)), inputs,
          lambda m, batch: m(batch["enc_X"], batch["dec_X"], batch["enc_valid_lens"])[0],
          optimizer=dict(adam, optimized_update=False), clip="d2l", grad_norm_clip=0.2, pad=1)


def torch_training():
    torch.manual_seed(33)
    c = {"arch": "lm", "d_model": 6, "n_layers": 1, "n_vocab": 7, "max_len": 9, "layer": "aft_local",
         "local_window_size": 3, "seq_len": 8, "d_ff": 8}
    for name, optimizer in (
            ("lm_sgd", {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
            ("lm_adamw", {"kind": "adamw", "learning_rate": 0.01, "weight_decay": 0.01})):
        tokens, targets = torch.randint(0, 7, (4, 7, 2)), torch.randint(0, 7, (4, 7, 2))
        train(name, c, module(LM(c)), {"tokens": tokens, "targets": targets}, lambda m, batch: m(batch["tokens"]),
              optimizer=optimizer)


def torch_layer(m, c):
    """PyTorch's own layer with the weights of ours."""
    own = nn.TransformerEncoderLayer(
        c["d_model"], c["heads"], c["d_ff"], 0.0, nn.GELU() if c["activation"] == "GELU" else nn.ReLU(),
        c["layer_norm_eps"], norm_first=c["norm_first"], dtype=torch.float64)
    a, names = m.self_attn, ("query", "key", "value")
    with torch.no_grad():
        own.self_attn.in_proj_weight.copy_(torch.cat([getattr(a, n).linear.weight for n in names]))
        own.self_attn.in_proj_bias.copy_(torch.cat([getattr(a, n).linear.bias for n in names]))
    for mine, theirs in ((a.output, own.self_attn.out_proj), (m.feed_forward.layer1, own.linear1),
                         (m.feed_forward.layer2, own.linear2), (m.norm_self_attn, own.norm1), (m.norm_ff, own.norm2)):
        theirs.load_state_dict(mine.state_dict())
    return own


def torch_modules():
    """What models of other libraries need: each case agrees with PyTorch's own modules."""
    torch.manual_seed(23)
    c = {"layer": "transformer", "d_model": 6, "heads": 3, "d_ff": 10, "norm_first": False, "layer_norm_eps": 0.01,
         "activation": "ReLU"}
    m, x, mask = with_eps(module(Layer(c)), c), randn(7, 2, 6), torch.rand(7, 7, 1) < 0.6
    mask |= torch.eye(7, dtype=torch.bool)[..., None]
    y = m(x, mask)
    assert torch.allclose(y, torch_layer(m, c)(x, ~mask[..., 0]), atol=1e-12)
    case("layer_post_norm", "transformer_layer", c, state(m), {"x": x, "mask": mask}, {"output": y})

    for name, keys in (("encoder_post_norm", {"n_layers": 2, "batch_first": True}),
                       ("encoder_post_norm_final", {"final_norm": None, "final_norm_eps": 0.3}),
                       ("encoder_no_norm", {"norm_first": True, "final_norm": False, "activation": "GELU"})):
        k = {**c, "n_layers": 1, **keys}
        m = with_eps(module(Encoder({**k, "final_norm": True} if "final" in name else k)), k)
        m.norm.eps = k.get("final_norm_eps", k["layer_norm_eps"])
        y = own = m(x, mask)
        own = x
        for layer in m.layers:
            own = torch_layer(layer, k)(own, ~mask[..., 0])
        assert torch.allclose(y, m.norm(own), atol=1e-12)
        if "final" in name:  # the file says so
            del k["final_norm"]
        given, y = x, m(x, mask)
        if k.get("batch_first"):
            given = leaf(x.transpose(0, 1))
            y = m(given.transpose(0, 1), mask).transpose(0, 1)
        case(name, "encoder", k, state(m), {"x": given, "mask": mask}, {"output": y})

    k = {"layer": "aft_full", "d_model": 6, "seq_len": 9, "d_ff": 10, "n_layers": 1, "batch_first": True,
         "norm_first": False, "layer_norm_eps": 0.01}
    m, given = with_eps(module(Encoder(k)), k), leaf(x.transpose(0, 1))
    case("encoder_aft_batch_first", "encoder", k, state(m), {"x": given},
         {"output": m(given.transpose(0, 1), None).transpose(0, 1)})

    k = {"layer": "transformer", "d_model": 6, "heads": 2, "d_ff": 10, "n_layers": 1, "norm_first": False, "n_vocab": 11,
         "pos": "learned_pos", "max_len": 9, "embed_scale": 1, "embed_norm": True, "layer_norm_eps": 1e-12,
         "activation": "GELU"}
    m, tokens = with_eps(module(TokenEncoder(k)), k), torch.randint(0, 11, (7, 2))
    seen = torch.tensor([[True, True]] * 5 + [[True, False]] * 2)[None]  # the second sequence is shorter
    case("encoder_bert", "encoder", k, state(m), {"tokens": tokens, "mask": seen}, {"output": m(tokens, seen)})
    table = leaf(m.src_embed.positional_encodings[:, 0])  # [max_len, d]
    del m.src_embed.positional_encodings
    m.src_embed.positional_encodings = table[:, None]
    params = {**state(m), "src_embed.positional_encodings": table}
    case("encoder_tokens_batch_first", "encoder", dict(k, batch_first=True), params, {"tokens": tokens.T.contiguous()},
         {"output": m(tokens, None).transpose(0, 1)})

    keys = {"layer": "transformer", "heads": 2, "d_ff": 6, "d_model": 8, "n_layers": 1, "n_vocab": 11, "max_len": 12}
    gpt2 = dict(keys, pos="learned_pos", embed_scale=1, tie_generator=True, activation="gelu_tanh")
    language_model("lm_gpt2", gpt2)
    greedy("lm_sample_gpt2", dict(gpt2, steps=7), 4)
    language_model("lm_post_norm", dict(keys, norm_first=False, embed_norm=True, embed_scale=0.5, tie_generator=True,
                                        generator_bias=True, layer_norm_eps=0.01))
    language_model("lm_no_bias", dict(keys, generator_bias=False, pos="no_pos", final_norm=False))

    small = {"d_model": 8, "n_layers": 1, "n_vocab": 11, "layer_norm_eps": 0.05}
    language_model("lm_gmlp_eps", dict(small, layer="gmlp", d_ffn=14, seq_len=12, final_norm=False))
    language_model("lm_feedback_eps", dict(small, layer="feedback", heads=2, d_ff=6, P=11), FeedbackLM)

    m, q, k, v = module(MHA(6, 2)), randn(2, 5, 6), randn(2, 7, 6), randn(2, 7, 6)
    mask = torch.rand(5, 7, 2) < 0.6
    y, p = m.weighted(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), mask)
    case("mha_batch_first", "mha", {"d_model": 6, "heads": 2, "batch_first": True}, state(m),
         {"query": q, "key": k, "value": v, "mask": mask}, {"output": y.transpose(0, 1), "attn": p})
    m, x, h0 = module(nn.GRU(4, 6, 2, batch_first=True)), randn(3, 5, 4), randn(2, 3, 6)
    y, h = m(x, h0)
    case("gru_batch_first", "gru", {"input_size": 4, "hidden_size": 6, "num_layers": 2, "batch_first": True}, state(m),
         {"input": x, "h0": h0}, {"output": y, "h_n": h})

    x = leaf(randn(3, 11) * 3)
    case("gelu_tanh", "activation", {"kind": "gelu_tanh"}, {}, {"x": x},
         {"output": F.gelu(x, approximate="tanh")})
    c = {"d_model": 6, "d_ff": 10, "activation": "gelu_tanh", "is_gated": True}
    m, x = module(FeedForward(**c)), randn(2, 3, 6)
    case("feed_forward_gelu_tanh", "feed_forward", c, state(m), {"x": x}, {"output": m(x)})

    c = {"arch": "lm", **dict(gpt2, d_model=6, d_ff=8, n_vocab=7, max_len=9)}
    tokens = torch.randint(0, 7, (4, 7, 2))
    train("lm_tied", c, module(LM(c)), {"tokens": tokens, "targets": torch.randint(0, 7, (4, 7, 2))},
          lambda m, batch: m(batch["tokens"]), optimizer={"kind": "adam", "learning_rate": 0.01})

    tied = {"d_model": 8, "n_vocab": 11, "d_ff": 6, "tie_generator": True, "embed_scale": 2}
    language_model("lm_aft_post_norm", dict(tied, layer="aft_local", local_window_size=3, seq_len=12, n_layers=1,
                                            pos="no_pos", norm_first=False, final_norm=True))
    del tied["embed_scale"]
    language_model("lm_feedback_tied", dict(tied, layer="feedback", heads=2, P=11, n_layers=1), FeedbackLM)


def classifiers():
    """Encoders with scores of classes."""
    torch.manual_seed(29)
    keys = {"d_model": 6, "d_ff": 10, "n_layers": 1, "n_vocab": 11, "max_len": 9, "n_classes": 5}
    tokens = torch.randint(0, 11, (7, 2))
    for name, more in (("mean", {"layer": "gmlp", "d_ffn": 10, "seq_len": 8}),
                       ("mean_batch_first", {"layer": "transformer", "heads": 2, "batch_first": True}),
                       ("first", {"layer": "transformer", "heads": 2, "pool": "first"}),
                       ("none", {"layer": "aft_full", "seq_len": 8, "pool": "none", "batch_first": True})):
        c = {**keys, **more}
        m = module(Classifier(c))
        m.pool = c.get("pool", "mean")
        y = m(tokens, None)
        case("classes_" + name, "encoder", c, state(m), {"tokens": tokens.T.contiguous() if "batch_first" in c else tokens},
             {"output": y.transpose(0, 1) if name == "none" else y})
    # Sequences of which the last positions are padding.
    torch.manual_seed(35)
    lens = torch.tensor([4, 7])
    for name, more in (("mean", {}), ("mean_batch_first", {"batch_first": True}), ("none", {"pool": "none"})):
        c = {**keys, "layer": "transformer", "heads": 2, **more}
        m = module(Classifier(c))
        m.pool = c.get("pool", "mean")
        case(f"classes_{name}_lens", "encoder", c, state(m), {
            "tokens": tokens.T.contiguous() if "batch_first" in c else tokens, "valid_lens": lens.int()},
            {"output": m(tokens, (torch.arange(7)[:, None] < lens).unsqueeze(0))})


def shared_heads():
    """Query heads that share their keys and values."""
    torch.manual_seed(36)
    q, k, v, mask = randn(4, 2, 12), randn(7, 2, 12), randn(7, 2, 12), torch.rand(4, 7, 2) < 0.6
    m = module(MHA(12, 6, n_kv_heads=2))
    y, p = m.weighted(q, k, v, mask)
    case("mha_shared", "mha", {"d_model": 12, "heads": 6, "n_kv_heads": 2}, state(m),
         {"query": q, "key": k, "value": v, "mask": mask}, {"output": y, "attn": p})
    language_model("lm_shared", {"layer": "transformer", "heads": 4, "n_kv_heads": 2, "d_ff": 6, "d_model": 8, "n_layers": 2,
                                 "n_vocab": 11, "max_len": 12})


def recurrent_directions():
    torch.manual_seed(36)
    for name, cls, batch_first, more in (("gru_bidirectional", nn.GRU, False, {"bidirectional": True}),
                                         ("rnn_tanh", nn.RNN, False, {}),
                                         ("rnn_relu_bidirectional", nn.RNN, True, {"bidirectional": True, "nonlinearity": "relu"})):
        m = module(cls(4, 6, 2, batch_first=batch_first, **more))
        x, h0 = randn(*((3, 5) if batch_first else (5, 3)), 4), randn(4 if m.bidirectional else 2, 3, 6)
        y, h = m(x, h0)
        c = {"input_size": 4, "hidden_size": 6, "num_layers": 2, "batch_first": batch_first, **more}
        case(name, cls.__name__.lower(), c, state(m), {"input": x, "h0": h0}, {"output": y, "h_n": h})


def printed(t, numbers):
    """The numbers that a text prints, to its last digit."""
    assert torch.allclose(t.flatten(), torch.tensor([float(x) for x in numbers.split()]), rtol=2e-5, atol=1e-4), t


def chapter_16():
    """The worked example of Raschka's chapter, in float32 as printed there, and the same in double."""
    torch.manual_seed(123)
    x = torch.nn.Embedding(10, 16)(torch.tensor([0, 7, 1, 2, 5, 6, 4, 3])).detach()
    torch.manual_seed(123)
    u = {"U_" + name: torch.rand(16, 16) for name in ("query", "key", "value")}
    q, k, v = (x @ w.T for w in u.values())
    printed(q[1] @ k.T, "-25.1623 9.3602 14.3667 32.1482 53.8976 46.6626 -1.2131 -32.9391")
    printed(attend(q, k, v)[0][1], "-1.2226 -3.4387 -4.3928 -5.2125 -1.1249 -3.3041 -1.4316 -3.2765 "
            "-2.5114 -2.6105 -1.5793 -2.8433 -2.4142 -0.3998 -1.9917 -3.3499")
    wide = x.double()
    y, p = attend(*(wide @ w.double().T for w in u.values()))
    case("raschka_chapter", "raschka_self_attention", {"d": 16}, u, {"x": x}, {"output": y, "attention_weights": p})

    torch.manual_seed(123)
    torch.rand(16, 16)  # one_U_query
    u = {"multihead_U_" + name: torch.rand(8, 16, 16) for name in ("query", "key", "value")}
    printed((u["multihead_U_key"] @ x[1])[2], "-1.9619 -0.7701 -0.7280 -1.6840 -1.0801 -1.6778 0.6763 0.6547 "
            "1.4445 -2.7016 -1.1364 -1.1204 -2.4430 -0.5982 -0.8292 -1.4401")
    torch.rand(8, 16)  # multihead_z_2
    m = nn.Linear(128, 16)
    z, p = attend(*(wide @ w.double().transpose(1, 2) for w in u.values()))
    case("raschka_chapter_heads", "raschka_multi_head", {"d": 16, "heads": 8},
         {**u, "linear.weight": m.weight, "linear.bias": m.bias}, {"x": x},
         {"output": m.double()(z.transpose(0, 1).flatten(1)), "z": z, "attention_weights": p})


def bilinear():
    torch.manual_seed(37)
    q, k, v, m = randn(3, 4, 6), randn(3, 7, 5), randn(3, 7, 5), randn(6, 5)
    lens = torch.tensor([0, 3, 7], dtype=torch.int32)
    y, p = attend(q @ m, k, v, lens, scale=1)
    case("bilinear_attention", "bilinear_attention", {"query_size": 6, "key_size": 5}, {"M": m},
         {"queries": q, "keys": k, "values": v, "valid_lens": lens}, {"output": y, "attention_weights": p})


def with_masks(name, arch, c, m, place, p, inputs, logits):
    """The loss and its gradients with the library's own masks."""
    seed, step = 0x123456789ABCDEF, 7
    place(Masks(p, seed, step))
    params = {k: v for k, v in state(m).items() if v.requires_grad}
    loss = F.cross_entropy(logits(m).flatten(0, 1), inputs["targets"].flatten())
    grads = torch.autograd.grad(loss, params.values())
    write_case("dropout_" + name, arch, c, {k: as_file_type(v) for k, v in params.items()} | {
        "dropout.p": torch.tensor([p], dtype=torch.float64), "dropout.seed": torch.tensor([seed]),
        "dropout.step": torch.tensor([step], dtype=torch.int32)}, {k: x.int() for k, x in inputs.items()},
        {"loss": loss, **{"grad." + k: g for k, g in zip(params, grads)}}, keep_types=True)


def dropout_feedback(c):
    torch.manual_seed(35)
    for layer, p, n in (("feedback", 0.2, 8), ("feedback_kv", 0.1, 6)):
        k = {**c, "layer": layer, "heads": 2, "P": 12}
        m = module(FeedbackLM(k))
        tokens, targets = torch.randint(0, 7, (n, 2)), torch.randint(0, 7, (n, 2))
        with_masks("lm_" + layer, "lm", k, m, lambda masks: drop_feedback_layers(m.transformer.layers, masks, n), p,
                   {"tokens": tokens, "targets": targets}, lambda m: m(tokens))


def dropout():
    """Axes of no multiple of four; keys that fill whole vectors and leave a rest."""
    torch.manual_seed(34)
    c = {"d_model": 6, "n_layers": 2, "n_vocab": 7, "d_ff": 7}
    for name, p, n, keys in (
            ("lm_transformer", 0.3, 37, {"layer": "transformer", "heads": 2, "pos": "no_pos", "activation": "GELU"}),
            ("lm_aft_local", 0.1, 9, {"layer": "aft_local", "seq_len": 9, "local_window_size": 4, "max_len": 9,
                                      "pos": "learned_pos", "norm_first": False, "is_gated": True})):
        k = {**c, **keys}
        m = module(LM(k))
        tokens, targets = torch.randint(0, 7, (n, 2)), torch.randint(0, 7, (n, 2))
        with_masks(name, "lm", k, m, lambda masks: drop_layers(m.encoder.layers, masks), p,
                   {"tokens": tokens, "targets": targets}, lambda m: m(tokens))

    feedback = c
    c = {"src_vocab_size": 8, "tgt_vocab_size": 7, "embed_size": 4, "num_hiddens": 5, "num_layers": 3}
    m = module(DroppedSeq2Seq(**c))
    source, target, targets = torch.randint(0, 8, (3, 6)), torch.randint(0, 7, (3, 4)), torch.randint(0, 7, (3, 4))
    lens = torch.tensor([6, 3, 5])
    with_masks("seq2seq_bahdanau", "seq2seq_bahdanau", c, m, m.place, 0.2,
               {"enc_X": source, "dec_X": target, "enc_valid_lens": lens, "targets": targets},
               lambda m: m(source, target, lens))
    dropout_feedback(feedback)


def embed_dropout():
    torch.manual_seed(38)
    c = {"d_model": 6, "n_layers": 1, "n_vocab": 7, "d_ff": 7, "layer": "transformer", "heads": 2, "pos": "learned_pos", "max_len": 9,
         "embed_dropout": True}
    m, tokens, targets = module(LM(c)), torch.randint(0, 7, (9, 2)), torch.randint(0, 7, (9, 2))

    def place(masks):
        m.drop_embed = masks.next_site()
        drop_layers(m.encoder.layers, masks)
    with_masks("lm_embed", "lm", c, m, place, 0.25, {"tokens": tokens, "targets": targets}, lambda m: m(tokens))


def decoders():
    """Norms of heads and grouped heads of an own width; a parallel layer, positions in part."""
    torch.manual_seed(37)
    c = {"layer": "transformer", "heads": 4, "d_model": 8, "d_ff": 12, "n_layers": 2, "n_vocab": 11, "pos": "no_pos",
         "max_len": 12, "embed_scale": 1, "generator_bias": False, "rope": True}
    none = dict.fromkeys(("bias", "value_bias", "output_bias", "bias1", "bias2", "bias_gate"), False)
    language_model("lm_rotary", {**c, **none, "n_kv_heads": 2, "head_dim": 6, "norm": "rms", "qk_norm": True, "is_gated": True,
                                  "activation": "silu", "layer_norm_eps": 1e-6, "rope_width": 6, "rope_theta": 100,
                                  "rope_scaling": "linear", "rope_factor": 2, "parallel": False}, DecoderLM)
    language_model("lm_parallel", {**c, "heads": 2, "n_kv_heads": 1, "head_dim": 4, "norm": "layer", "qk_norm": False, "bias": True,
                                   "value_bias": True, "output_bias": True, "is_gated": False, "activation": "gelu", "bias1": True,
                                   "bias2": True, "bias_gate": False, "layer_norm_eps": 1e-5, "rope_width": 2, "rope_theta": 10000,
                                   "rope_pairs": "neighbours", "parallel": True}, DecoderLM)
    x, m = randn(3, 4, 6), module(nn.RMSNorm([4, 6], eps=0.01))
    m.weight.data = randn(4, 6).data
    case("rms_norm", "rms_norm", {"normalized_shape": [4, 6], "eps": 0.01}, state(m), {"x": x}, {"output": m(x)})


def windows():
    """Layers with a window and a theta of their own, with all positions, and without rotations; soft caps; post norms."""
    torch.manual_seed(40)
    c = dict.fromkeys(("bias", "value_bias", "output_bias", "bias1", "bias2", "bias_gate", "qk_norm", "parallel", "generator_bias"), False)
    language_model("lm_windows", {
        **c, "layer": "transformer", "heads": 4, "n_kv_heads": 2, "head_dim": 4, "d_model": 8, "d_ff": 12, "n_layers": 3, "n_vocab": 11,
        "pos": "no_pos", "max_len": 12, "embed_scale": 1, "norm": "rms", "is_gated": True, "activation": "silu", "layer_norm_eps": 1e-6,
        "rope": True, "rope_width": 4, "rope_theta": 1000, "rope_scaling": "linear", "rope_factor": 2, "rope_local_theta": 20,
        "window": 2, "window_layers": [1, 0, 0], "rope_layers": [1, 0, 1], "attention_scale": 0.7, "softcap": 0.8,
        "post_norm": True, "logit_softcap": 1.5}, DecoderLM)


def linear_biases():
    """ALiBi, of heads that are no power of two; a bias of each head, with a mask."""
    torch.manual_seed(43)
    c = dict.fromkeys(("bias", "value_bias", "output_bias", "bias1", "bias2", "bias_gate", "qk_norm", "parallel", "generator_bias",
                       "is_gated", "rope"), False)
    language_model("lm_alibi", {
        **c, "layer": "transformer", "heads": 6, "n_kv_heads": 2, "head_dim": 4, "d_model": 12, "d_ff": 10, "n_layers": 2, "n_vocab": 11,
        "pos": "no_pos", "max_len": 12, "embed_scale": 1, "norm": "layer", "activation": "gelu", "layer_norm_eps": 1e-5, "alibi": True,
        "alibi_max": 6}, DecoderLM)
    q, k, v, mask, bias = randn(4, 2, 8), randn(7, 2, 8), randn(7, 2, 8), torch.rand(4, 7, 2) < 0.6, randn(1, 4, 4, 7)
    mask[:, 0] = True
    m = module(MHA(8, 4))

    def core(q, k, v, mask):
        scores = torch.einsum("ibhd,jbhd->ijbh", q, k) / math.sqrt(q.shape[-1]) + bias.permute(2, 3, 0, 1)
        p = scores.masked_fill(~mask.unsqueeze(-1), -math.inf).softmax(1)
        return torch.einsum("ijbh,jbhd->ibhd", p, v), p
    m.core = core
    y, p = m.weighted(q, k, v, mask)
    case("mha_bias", "mha", {"d_model": 8, "heads": 4}, state(m), {"query": q, "key": k, "value": v, "mask": mask, "bias": bias},
         {"output": y, "attn": p})


def torch_transformer(params):
    """Our parameters by the names of nn.Transformer, of which it has three in one."""
    names = {"output": "out_proj", "feed_forward": "", "layer1": "linear1", "layer2": "linear2", "norm_self_attn": "norm1",
             "src_attn": "multihead_attn"}
    found = {}
    for name, p in params.items():
        after = {"norm_src_attn": "norm2", "norm_ff": "norm3" if name.startswith("decoder") else "norm2"}
        theirs = ".".join(filter(None, ({**names, **after}.get(part, part) for part in name.split("."))))
        if ".query.linear." in theirs:
            p = torch.cat([params[name.replace("query", part)] for part in ("query", "key", "value")])
        if ".key." not in theirs and ".value." not in theirs:
            found[theirs.replace("query.linear.", "in_proj_")] = p
    return found


def transformer_pairs():
    torch.manual_seed(39)
    c = {"src_vocab_size": 11, "tgt_vocab_size": 9, "d_model": 6, "heads": 3, "d_ff": 10, "n_layers": 2, "n_decoder_layers": 1, "max_len": 9}
    source, target, lens = torch.randint(0, 11, (4, 5)), torch.randint(0, 9, (4, 7)), torch.tensor([5, 1, 2**40, 3])
    m = module(Seq2SeqTransformer(c))
    case("seq2seq_transformer", "seq2seq_transformer", c, state(m), {"enc_X": source, "dec_X": target, "enc_valid_lens": lens},
         {"output": m(source, target, lens)})
    k = dict(c, n_layers=1, n_decoder_layers=2, norm_first=False, pos="learned_pos", tie_generator=True, embed_scale=1, activation="gelu",
             is_gated=True, layer_norm_eps=0.01, final_norm=True)
    m = with_eps(module(Seq2SeqTransformer(k)), k)
    case("seq2seq_transformer_post_norm", "seq2seq_transformer", k, without_tied(state(m), k), {"enc_X": source, "dec_X": target},
         {"output": m(source, target, torch.full((4,), 5))})

    k = {"src_vocab_size": 0, "d_model": 6, "heads": 2, "d_ff": 9, "n_layers": 2, "n_decoder_layers": 1, "norm_first": False,
         "layer_norm_eps": 0.01, "activation": "gelu", "final_norm": True}
    stacks = {"encoder": Encoder(dict(k, layer="transformer")), "decoder": Encoder(dict(k, layer="transformer", n_layers=1), True)}
    params = {f"{name}.{key}": p for name, m in stacks.items() for key, p in state(module(m)).items()}
    x, y, lens = randn(5, 4, 6), randn(7, 4, 6), torch.tensor([5, 1, 4, 3])
    hidden, future = torch.arange(5)[None] >= lens[:, None], torch.ones(7, 7, dtype=torch.bool).triu(1)
    out = torch.func.functional_call(
        nn.Transformer(6, 2, 2, 1, 9, 0.0, "gelu", layer_norm_eps=0.01, dtype=torch.float64), torch_transformer(params), (x, y),
        {"tgt_mask": future, "src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}, strict=True)
    case("seq2seq_transformer_vectors", "seq2seq_transformer", k, params, {"enc_X": x, "dec_X": y, "enc_valid_lens": lens}, {"output": out})

    targets, lens = torch.randint(0, 9, (4, 3, 6)), torch.randint(1, 6, (4, 3))
    targets[2] = 1  # a batch of padding alone
    train("seq2seq_transformer", {"arch": "seq2seq_transformer", **c}, module(Seq2SeqTransformer(c)),
          {"enc_X": torch.randint(0, 11, (4, 3, 5)), "dec_X": torch.randint(0, 9, (4, 3, 6)), "enc_valid_lens": lens, "targets": targets},
          lambda m, batch: m(batch["enc_X"], batch["dec_X"], batch["enc_valid_lens"]),
          optimizer={"kind": "adam", "learning_rate": 0.01}, grad_norm_clip=0.5, pad=1)

    def place(masks):
        drop_layers(m.encoder.layers, masks, BatchFirst), drop_layers(m.decoder.layers, masks, BatchFirst)
    m, lens = module(Seq2SeqTransformer(c)), torch.tensor([5, 1, 4, 3])
    with_masks("seq2seq_transformer", "seq2seq_transformer", c, m, place, 0.2,
               {"enc_X": source, "dec_X": target, "enc_valid_lens": lens, "targets": torch.randint(0, 9, (4, 7))},
               lambda m: m(source, target, lens))


def search(m, source, lens, bos, n_steps, n_beams, eos, penalty):
    """Beam search that computes the whole prefix at each step.  The tokens and the log probability of each sequence."""
    tokens, scores = [], []
    for row, seen in zip(source[:, None], lens[:, None]):
        memory = m.encode(row, seen)
        beams = [([], 0.0)]
        for _ in range(n_steps):
            found = []
            for words, score in beams:
                if eos in words:
                    found.append((words, score))
                    continue
                p = torch.log_softmax(m.decode(torch.tensor([[bos] + words]), *memory)[0, -1], -1)
                found += [(words + [word], score + p[word].item()) for word in range(len(p))]
            found.sort(key=lambda beam: -beam[1])
            assert len(found) == n_beams or found[n_beams - 1][1] - found[n_beams][1] > 1e-4  # no rounding decides
            beams = found[:n_beams]
        words, score = max(beams, key=lambda beam: beam[1] / len(beam[0]) ** penalty)
        tokens.append(words + [eos] * (n_steps - len(words))), scores.append(score)
    return {"tokens": torch.tensor(tokens, dtype=torch.int32), "scores": torch.tensor(scores, dtype=torch.float64)}


def transformer_search():
    c = {"src_vocab_size": 11, "tgt_vocab_size": 9, "d_model": 6, "heads": 3, "d_ff": 10, "n_layers": 2, "n_decoder_layers": 2, "max_len": 12}
    for name, seed, k, how in (  # seeds: sequences that do not settle at once, of many lengths, and other ones than with one beam
            ("predict", 41, c, {"num_steps": 11, "bos": 4}),
            ("beams", 51, dict(c, norm_first=False, final_norm=True),
             {"num_steps": 9, "bos": 1, "eos": 6, "beams": 3, "length_penalty": 0.5}),
            ("beams_all", 41, c, {"num_steps": 7, "bos": 0, "beams": 9})):
        torch.manual_seed(seed)
        inputs = {"enc_X": torch.randint(0, 11, (5, 4)), "enc_valid_lens": torch.tensor([4, 1, 9, 3, 2]) if name != "beams_all" else
                  torch.full((5,), 4)}
        m = module(Seq2SeqTransformer(k))
        for p in m.parameters():
            p.data *= 2
        with torch.no_grad():
            expected = search(m, *inputs.values(), how["bos"], how["num_steps"], how.get("beams", 1), how.get("eos", -1),
                              how.get("length_penalty", 0.75))
        if name == "beams_all":  # nothing is hidden
            del inputs["enc_valid_lens"]
        case("seq2seq_transformer_" + name, "seq2seq_transformer_predict", dict(k, **how), state(m), inputs, expected)


def additive_heads():
    """d2l's exercise: heads that score additively; lengths of a row, of a query."""
    for name, lens, size in (("", [0, 3, 7], {}), ("_queries", [[0, 3, 7, 1], [7, 2, 1, 4], [5, 5, 6, 0]], {"additive_size": 9})):
        torch.manual_seed(31)
        c = {"num_hiddens": 12, "num_heads": 3, "bias": True, "query_size": 6, "key_size": 5, "value_size": 5}
        m = module(BatchFirstMHA(**c, additive_size=size.get("additive_size", 4)))
        q, k, v, lens = randn(3, 4, 6), randn(3, 7, 5), randn(3, 7, 5), torch.tensor(lens, dtype=torch.int32)
        y, p = m(q, k, v, lens)
        case("multi_head_additive" + name, "multi_head_attention", {**c, **size, "score": "additive"}, state(m),
             {"queries": q, "keys": k, "values": v, "valid_lens": lens}, {"output": y, "attention_weights": p})


# An odd width of rotations.
SCALED = {
    **dict.fromkeys(("bias", "value_bias", "output_bias", "bias1", "bias2", "bias_gate", "qk_norm", "parallel", "generator_bias"), False),
    "layer": "transformer", "heads": 2, "n_kv_heads": 1, "head_dim": 8, "d_model": 8, "d_ff": 12, "n_layers": 2, "n_vocab": 11,
    "pos": "no_pos", "max_len": 12, "embed_scale": 1, "norm": "rms", "is_gated": True, "activation": "silu", "layer_norm_eps": 1e-6,
    "rope": True, "rope_width": 7, "rope_theta": 100}


def padded_decoder():
    """A padding token; YaRN's ramp between pairs."""
    torch.manual_seed(47)
    language_model("lm_padded", {**SCALED, "rope_scaling": "yarn", "rope_factor": 4, "rope_truncate": False,
                                 "rope_original_max_position_embeddings": 30, "padding_idx": 1}, DecoderLM)


def long_positions():
    """LongRoPE: texts of five tokens that are long, and just not."""
    torch.manual_seed(53)
    c = {**SCALED, "rope_scaling": "longrope", "rope_factor": 4, "rope_short_factor": [1.0, 1.1, 1.5, 2.0], "rope_long_factor": [1.2, 2.5, 6.0, 9.0]}
    language_model("lm_longrope", {**c, "rope_original_max_position_embeddings": 4}, DecoderLM)
    language_model("lm_longrope_short", {**c, "rope_original_max_position_embeddings": 5, "rope_attention_factor": 1.3}, DecoderLM)


def main():
    torch.manual_seed(20)
    for make in (primitives, aft, gmlp, stacks, language_models, half_precision, sample, aft_conv, self_attention,
                 attention, transformers, recurrent, d2l_pieces, feedback, feedback_models, optimizers, training,
                 torch_modules, torch_optimizers, label_smoothing, torch_training,
                 classifiers, dropout, recurrent_directions, chapter_16, bilinear, embed_dropout, shared_heads, decoders, transformer_pairs, transformer_search,
                 windows, linear_biases, additive_heads, padded_decoder, long_positions):
        make()


if __name__ == "__main__":
    main()

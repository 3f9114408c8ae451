# SPDX-License-Identifier: MIT
"""The Feedback Transformer and language models: the whole text, and token by token with what earlier steps kept."""
import torch
from torch_models.decoder import DecoderLM
from torch_models.feedback import Feedback, FeedbackLM
from torch_models.recurrent import Seq2Seq
from torch_models.transformer import LM

from . import faster
from .decode import keep_state
from .registry import formulation

LLAMA = {"norm": "rms", "layer_norm_eps": 1e-5, "activation": "silu", "is_gated": True, "rope": True, "rope_theta": 10000.0, "qk_norm": False,
         "parallel": False, **{f"{name}bias": False for name in ("", "value_", "output_")},
         **{f"bias{name}": False for name in ("1", "2", "_gate")}}
BIAS = 0.5  # the spread of biases in bench/cases/lm_model.c


def feedback(c, prepare=None):
    """All layers' projections are rows of one weight; a key's bias would change nothing."""
    config = {"d_model": c.C, "heads": c.heads, "P": c.T, "d_ff": c.F, "n_layers": c.layers}
    model = c.fill(Feedback(config))
    weight = c.map("key_value.weight", 2 * c.layers * c.C, c.C).view(c.layers, 2, c.C, c.C)
    bias = c.uniform("key_value.bias", 1, 2 * c.layers * c.C).view(c.layers, 2, c.C)
    for layer, w, b in zip(model.layers, weight, bias):
        layer.attn.key.linear.weight.data, layer.attn.value.linear.weight.data = w
        layer.attn.value.linear.bias.data = b[1]
    if prepare:
        prepare(model)
    x = c.uniform("x", 1, c.T, c.B, c.C)
    return lambda: model(x)[0]


formulation("feedback", "every memory projected in every step (labml)", reference=True, compiles=False)(feedback)
formulation("feedback", "keys and values kept", compiles=False)(lambda c: feedback(c, faster.keep_keys))


# -- language models

def model_of(c, reference):
    """tokens [at most T, B] -> logits."""
    config = {"layer": c.layer, "n_vocab": c.V, "d_model": c.C, "n_layers": c.layers, "seq_len": c.T, "P": c.T,
              "local_window_size": c.window, "heads": c.heads, "d_ff": c.F, "d_ffn": c.F,
              "score": "split" if c.layer == "feedback_kv" else "joint"}
    if c.layer.startswith("feedback"):
        prepare = None if reference else lambda model: faster.keep_keys(model.transformer)
        return c.fill(FeedbackLM(config), bias=BIAS, prepare=prepare)
    if c.layer == "llama":
        return c.fill(DecoderLM({**config, **LLAMA, "n_kv_heads": c.heads // 4, "head_dim": c.C // c.heads, "rope_width": c.C // c.heads}))

    def prepare_layers(model):
        faster.use_conv1d(model)
        if not reference:
            (faster.use_best_to_train if c.trains else faster.use_best)(model)
    return c.fill(LM(config), bias=BIAS, prepare=prepare_layers)


def train(c, reference):
    if c.layer.startswith("feedback") and not reference:
        return None  # it writes over what gradients need
    if c.layer == "seq2seq":
        model = c.fill(Seq2Seq(c.V, c.V, c.E, c.C, c.layers), bias=BIAS)
        if not reference:
            faster.project_keys_once(model)
        texts = (c.indices("enc_X", 0, c.V, c.B, c.S).long(), c.indices("dec_X", 0, c.V, c.B, c.T).long(),
                 c.indices("enc_valid_lens", 1, c.S + 1, c.B))
        targets = c.indices("targets", 0, c.V, c.B, c.T).long()
    else:
        model, texts = model_of(c, reference), (c.indices("tokens", 0, c.V, c.T, c.B),)
        targets = c.indices("targets", 0, c.V, c.T, c.B).long()
    return faster.train(model, targets, *texts)


def forward(c, reference):
    tokens, model = c.indices("tokens", 0, c.V, c.T, c.B), model_of(c, reference)
    return lambda: model(tokens)


def decode(c):
    """A text of T tokens, one a step; the logits of all steps are the check."""
    tokens = c.indices("tokens", 0, c.V, c.T, c.B)
    if c.layer.startswith("feedback"):
        model = model_of(c, False)
        return lambda: model(tokens)  # a step each, by its nature
    take = keep_state(model_of(c, True), c.T, c.B)
    return lambda: torch.stack([take(tokens[t:t + 1], t) for t in range(c.T)])


formulation("lm", "published code", reference=True)(lambda c: forward(c, True))
formulation("lm", "best layers", packed=True)(lambda c: forward(c, False))
formulation("lm_decode", "keys, values and rows kept", reference=True, compiles=False)(decode)
formulation("train_step", "published code, fused Adam", reference=True, compiles=False)(lambda c: train(c, True))
formulation("train_step", "best layers, fused Adam")(lambda c: train(c, False))

# SPDX-License-Identifier: MIT
"""GPT-2: a prompt, steps after one, a start; by a model that keeps keys and values, and by transformers."""
import functools
import inspect
import os
import tempfile

import torch
from torch_models.transformer import LM

from . import data
from .decode import keep_state
from .models import BIAS
from .registry import formulation


def eager_model(c):
    return LM({"layer": "transformer", "n_vocab": c.V, "d_model": c.C, "n_layers": c.layers, "heads": c.heads, "d_ff": c.F,
               "max_len": c.N, "pos": "learned_pos", "embed_scale": 1, "activation": "gelu_tanh", "tie_generator": True})


def eager_load(c, directory):
    """take(tokens [n, B], position) of a model file."""
    path = os.path.join(directory, "model.pt")
    if not os.path.exists(path):
        torch.save(c.fill(eager_model(c), bias=BIAS).state_dict(), path)
    with torch.device("meta"):
        model = eager_model(c)
    model.load_state_dict(torch.load(path, mmap=True, weights_only=True), assign=True)
    return keep_state(model.eval(), c.N, c.B)


def eager(c):
    return keep_state(c.fill(eager_model(c), bias=BIAS), c.N, c.B)


def published_state(c):
    weights = data.gpt2({letter: getattr(c, letter) for letter in ("C", "F", "V", "N", "layers")}, c.half)
    state = {"transformer.wte.weight": weights["tokens"], "transformer.wpe.weight": weights["positions"],
             "lm_head.weight": weights["tokens"], **{f"transformer.ln_f.{k}": x for k, x in weights["norm"].items()}}
    names = {"norm_1": "ln_1", "qkv": "attn.c_attn", "out": "attn.c_proj", "norm_2": "ln_2", "up": "mlp.c_fc", "down": "mlp.c_proj"}
    for i, layer in enumerate(weights["layers"]):
        for name, map_ in layer.items():
            for kind, x in map_.items():
                state[f"transformer.h.{i}.{names[name]}.{kind}"] = x.T if x.ndim == 2 else x  # Conv1D has [in, out]
    return {name: torch.from_numpy(x).contiguous() for name, x in state.items()}


def transformers_take(model):
    from transformers import DynamicCache
    name, kept = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values", None

    def take(tokens, t):
        nonlocal kept
        if t == 0:
            kept = DynamicCache(config=model.config)
        elif kept.get_seq_length() > t:
            kept.crop(t - kept.get_seq_length())
        return model(tokens.t(), **{name: kept}, use_cache=True, logits_to_keep=1).logits[:, -1]
    return take


def transformers_load(c, directory):
    from transformers import GPT2Config, GPT2LMHeadModel
    if not os.listdir(directory):
        config = GPT2Config(vocab_size=c.V, n_positions=c.N, n_embd=c.C, n_layer=c.layers, n_head=c.heads, n_inner=c.F)
        model = GPT2LMHeadModel(config)
        model.load_state_dict(published_state(c))
        model.save_pretrained(directory)
    return transformers_take(GPT2LMHeadModel.from_pretrained(directory, attn_implementation="sdpa").eval())


def transformers_model(c):
    with tempfile.TemporaryDirectory() as directory:
        return transformers_load(c, directory)


def prefill(c, model):
    take, tokens = model(c), c.indices("tokens", 0, c.V, c.T, c.B)
    return lambda: take(tokens, 0)


def steps(c, model):
    take, tokens = model(c), c.indices("tokens", 0, c.V, c.T, c.B)
    take(tokens[:c.S], 0)
    return lambda: [take(tokens[t:t + 1], t) for t in range(c.S, c.T)][-1]


def start(c, load):
    directory, tokens = tempfile.TemporaryDirectory(), c.indices("tokens", 0, c.V, c.T, c.B)
    return lambda: load(c, directory.name)(tokens, 0)


for family, make, sides in (("lm_prefill", prefill, (eager, transformers_model)), ("lm_step", steps, (eager, transformers_model)),
                            ("lm_start", start, (eager_load, transformers_load))):
    for program, name, side in zip(("PyTorch", "transformers"), ("keys and values kept", "GPT2LMHeadModel, DynamicCache"), sides):
        formulation(family, name, compiles=False, packed=family != "lm_start" and program == "PyTorch", program=program)(
            functools.partial(make, **{"load" if family == "lm_start" else "model": side}))

# SPDX-License-Identifier: MIT
"""Models of Llama's form by transformers, whose attention is PyTorch's fused one."""
from . import faster
from .registry import formulation

# In this order, since "norm" is a part of other names.
NAMES = (("model.embed_tokens", "src_embed"), ("model.layers", "encoder.layers"), ("model.norm", "encoder.norm"),
         ("lm_head", "generator.projection"), ("q_proj", "query.linear"), ("k_proj", "key.linear"), ("v_proj", "value.linear"),
         ("o_proj", "output"), ("mlp.gate_proj", "feed_forward.layer1"), ("mlp.up_proj", "feed_forward.linear_v"),
         ("mlp.down_proj", "feed_forward.layer2"), ("input_layernorm", "norm_self_attn"), ("post_attention_layernorm", "norm_ff"))


def name_of(name):
    for theirs, ours in NAMES:
        name = name.replace(theirs, ours)
    return name


def model_of(c):
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=c.V, hidden_size=c.C, num_hidden_layers=c.layers, num_attention_heads=c.heads,
                         num_key_value_heads=c.heads // 4, intermediate_size=c.F, max_position_embeddings=c.T, rms_norm_eps=1e-5,
                         tie_word_embeddings=False, use_cache=False, attn_implementation="sdpa")
    return c.fill(LlamaForCausalLM(config), name_of)


@formulation("lm", "LlamaForCausalLM", compiles=False, program="transformers")
def forward(c):
    if c.layer != "llama":
        return None
    model, tokens = model_of(c), c.indices("tokens", 0, c.V, c.T, c.B).t()
    return lambda: model(tokens).logits.transpose(0, 1)


@formulation("train_step", "LlamaForCausalLM, fused Adam", compiles=False, program="transformers")
def train(c):
    if c.layer != "llama":
        return None
    model, tokens, targets = model_of(c), *(c.indices(name, 0, c.V, c.T, c.B).t() for name in ("tokens", "targets"))
    return faster.train(model, targets.long(), tokens)

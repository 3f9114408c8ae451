# SPDX-License-Identifier: MIT
"""Converts models of the transformers package; all take `tokens` [T, B], except Marian and BART `enc_X` and `dec_X` [B, T].

The families of attncl.decoders become arch lm, BertModel arch encoder with n_vocab, Marian and BART arch
seq2seq_transformer.  Classes are recognised by name, without importing the package.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from ..decoders import FAMILIES, plan
from ..model import as_array
from ..nn import as_tensor
from .parameters import Conversion, activation_name, only, refuse, some

T, B = 7, 2


def _positions(weight: torch.Tensor) -> torch.Tensor:
    return weight.unsqueeze(1)  # [max_len, 1, C]


def convert_bert(model: Any, out: Conversion) -> None:
    c = model.config
    only("position_embedding_type", getattr(c, "position_embedding_type", "absolute"), "absolute",
         "arch encoder adds positions to the embedding")
    only("is_decoder", c.is_decoder, False, "arch encoder is not causal")
    only("add_cross_attention", bool(c.add_cross_attention), False, "arch encoder attends to itself")
    width, layers = c.hidden_size, model.encoder.layer
    out.arch = "encoder"
    out.config = {
        "layer": "transformer", "n_vocab": c.vocab_size, "d_model": width, "heads": c.num_attention_heads,
        "n_layers": len(layers), "d_ff": c.intermediate_size,
        "activation": activation_name(layers[0].intermediate.intermediate_act_fn, "hidden_act"),
        "norm_first": False, "final_norm": False, "layer_norm_eps": c.layer_norm_eps, "pos": "learned_pos",
        "max_len": c.max_position_embeddings, "embed_scale": 1, "embed_norm": True,
    }
    with out.scope("embeddings.", "src_embed."):
        out.copy("word_embeddings.weight", "linear.weight")
        types = out.take("token_type_embeddings.weight")
        out.put("positional_encodings", _positions(out.take("position_embeddings.weight") + types[0]))
        out.affine("LayerNorm.", "norm.", width)
    out.notes.append(f"all tokens are of type 0: its row of embeddings.token_type_embeddings.weight is added to the "
                     f"positions, its {len(types) - 1} others are left out")
    for i in range(len(layers)):
        with out.scope(f"encoder.layer.{i}.", f"layers.{i}."):
            for name in ("query", "key", "value"):
                out.affine(f"attention.self.{name}.", f"self_attn.{name}.linear.")
            out.affine("attention.output.dense.", "self_attn.output.")
            out.affine("attention.output.LayerNorm.", "norm_self_attn.", width)
            out.affine("intermediate.dense.", "feed_forward.layer1.")
            out.affine("output.dense.", "feed_forward.layer2.")
            out.affine("output.LayerNorm.", "norm_ff.", width)
    out.leave_out("the output is last_hidden_state", "pooler.")


def probe_bert(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    tokens = torch.randint(model.config.vocab_size, (min(T, model.config.max_position_embeddings), B))
    return {"tokens": tokens}, {"output": model(tokens.t()).last_hidden_state.transpose(0, 1)}


def convert_translator(model: Any, out: Conversion) -> None:
    """Converts Marian, whose file holds its fixed table of positions, and BART, whose table begins with two unused rows."""
    c, parts = model.config, {"encoder": model.model.encoder, "decoder": model.model.decoder}
    for key in ("attention_heads", "ffn_dim"):
        only(f"decoder_{key}", getattr(c, f"decoder_{key}"), getattr(c, f"encoder_{key}"), "encoder and decoder have the same layers")
    width, first, is_bart = c.d_model, parts["encoder"].layers[0], c.model_type == "bart"
    tied = model.lm_head.weight.data_ptr() == parts["decoder"].embed_tokens.weight.data_ptr()
    out.arch = "seq2seq_transformer"
    out.config = {
        "src_vocab_size": parts["encoder"].embed_tokens.num_embeddings, "tgt_vocab_size": parts["decoder"].embed_tokens.num_embeddings,
        "d_model": width, "heads": c.encoder_attention_heads, "d_ff": c.encoder_ffn_dim, "n_layers": len(parts["encoder"].layers),
        "n_decoder_layers": len(parts["decoder"].layers), "activation": activation_name(first.activation_fn, "activation_function"),
        "norm_first": False, "final_norm": False, "layer_norm_eps": first.final_layer_norm.eps, "max_len": c.max_position_embeddings,
        "pos": "learned_pos" if is_bart else "fixed_pos", "embed_scale": width ** 0.5 if c.scale_embedding else 1, "embed_norm": is_bart,
        "tie_generator": tied,
    }
    for name, part in parts.items():
        with out.scope(f"model.{name}.", "src_embed." if name == "encoder" else "tgt_embed."):
            out.copy("embed_tokens.weight", "linear.weight")
            out.put("positional_encodings", _positions(out.take("embed_positions.weight")[2 if is_bart else 0:]))
            if is_bart:
                out.affine("layernorm_embedding.", "norm.", width)
        for i in range(len(part.layers)):
            with out.scope(f"model.{name}.layers.{i}.", f"{name}.layers.{i}."):
                _put_translator_layer(width, name == "decoder", out)
    out.put("generator.projection.bias", out.take("final_logits_bias")[0])
    generator = out.take("lm_head.weight")
    if not tied:
        out.put("generator.projection.weight", generator)
    out.leave_out("the embeddings are those of encoder and decoder", "model.shared.")
    out.notes.append(f"arch seq2seq_transformer_predict takes bos {c.decoder_start_token_id} and eos {c.eos_token_id}")


def _put_translator_layer(width: int, reads_memory: bool, out: Conversion) -> None:
    for source, target in (("self_attn", "self_attn"), ("encoder_attn", "src_attn"))[:1 + reads_memory]:
        for letter, name in (("q", "query.linear"), ("k", "key.linear"), ("v", "value.linear"), ("out", "output")):
            out.affine(f"{source}.{letter}_proj.", f"{target}.{name}.")
        out.affine(f"{source}_layer_norm.", f"norm_{target}.", width)
    for source, target in (("fc1.", "feed_forward.layer1."), ("fc2.", "feed_forward.layer2."), ("final_layer_norm.", "norm_ff.")):
        out.affine(source, target)


def probe_translator(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    n, c = min(T, model.config.max_position_embeddings), model.config
    sizes = {"enc_X": c.vocab_size, "dec_X": model.lm_head.out_features}
    inputs = {name: torch.randint(size, (B, n)) for name, size in sizes.items()}
    return inputs, {"output": model(inputs["enc_X"], decoder_input_ids=inputs["dec_X"], use_cache=False).logits}


def convert_decoder(model: Any, out: Conversion) -> None:
    out.arch = "lm"
    out.config, moves = plan(model.config.to_dict())
    for target, source, cut in moves:
        tensor = out.take(source)
        out.put(target, tensor if cut is None else as_tensor(cut(as_array(tensor))))
    out.leave_out("the generator's weight is the embedding's", "lm_head.weight", "embed_out.weight")


def probe_decoder(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    tokens = torch.randint(model.config.vocab_size, (min(T, model.config.max_position_embeddings), B))
    return {"tokens": tokens}, {"output": model(tokens.t(), use_cache=False).logits.transpose(0, 1)}


MODELS = {"GPT2LMHeadModel": (convert_decoder, probe_decoder), "BertModel": (convert_bert, probe_bert),
          **dict.fromkeys(("MarianMTModel", "BartForConditionalGeneration"), (convert_translator, probe_translator)),
          **{f"{name}ForCausalLM": (convert_decoder, probe_decoder)
             for name in ("Llama", "Mistral", "Qwen2", "Qwen3", "SmolLM3", "Gemma", "Gemma2", "Gemma3", "Phi3", "GPTNeoX")}}
# By config.json's model_type: the class, and the ending of a tensor's name that identifies it without model_type.
OF_TYPE = {"gpt2": ("GPT2LMHeadModel", "wte.weight"), "bert": ("BertModel", "embeddings.word_embeddings.weight"),
           "bart": ("BartForConditionalGeneration", "encoder.layernorm_embedding.weight"),
           "marian": ("MarianMTModel", "encoder.embed_positions.weight")}


@contextlib.contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Silences progress bars and reports of loading; from_checkpoint() reports what matters."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def from_checkpoint(state: dict[str, torch.Tensor], config: dict[str, Any]) -> tuple[Any, list[str]]:
    """The model that config.json describes with a checkpoint's tensors, and the names of unused tensors."""
    import transformers
    if not isinstance(config, dict):
        refuse("config.json holds no JSON object")
    told = (kind for kind, (_, tensor) in OF_TYPE.items() if any(name.endswith(tensor) for name in state))
    kind = config.get("model_type") or next(told, None)
    if kind not in OF_TYPE:
        refuse(f"config.json: model_type {kind!r} is none of {', '.join(dict.fromkeys((*OF_TYPE, *FAMILIES)))}")
    cls = getattr(transformers, OF_TYPE[kind][0])
    settings = {key: value for key, value in config.items() if key not in ("architectures", "torch_dtype", "dtype")}
    with _quiet(transformers.utils.logging):
        model, info = cls.from_pretrained(None, config=cls.config_class(**settings), state_dict=state, output_loading_info=True,
                                          ignore_mismatched_sizes=True)
    if info["mismatched_keys"]:
        refuse("shapes of the checkpoint differ from config.json: "
               + some(f"{name} {list(got)}, expected {list(want)}" for name, got, want in sorted(info["mismatched_keys"])))
    missing = sorted(name for name in info["missing_keys"] if not name.startswith("pooler."))
    if missing:
        refuse(f"the checkpoint lacks {some(missing)}")
    return model, [name for name in info["unexpected_keys"] if name in state]

# SPDX-License-Identifier: MIT
"""architectures.py TOOL [ROOT]: prints docs/architectures.md, from what `attncl inspect --arch` prints of each architecture
and of each switch of its configuration.  With ROOT, compares with its document, and the names in shapes with numbers."""
import json
import pathlib
import re
import subprocess
import sys

HEAD = """# Architectures

<!-- Written by tests/tools/architectures.py: `python3 tests/tools/architectures.py attncl >docs/architectures.md`. -->

What `attncl inspect --arch NAME` prints: the keys of the configuration, then every tensor of the model file, then inputs and
outputs, for a small example; below it what a key with another value adds (`+`) and removes (`-`). Names in shapes are the
example's keys, `{i}` is each layer, letters are free axes: B batch, T positions or queries, S keys or source positions, Q and
K queries and keys of batch-first attention, `...` any number. A buffer follows from the configuration: a file may lack it.
With `--config JSON` shapes are those of your model; `docs/model-files.md` says what the keys mean.

`P.*, as NAME` stands for the tensors of section NAME, with P before their names, and for what its keys change there;
`those of NAME` for its keys. `attncl inspect` prints them one by one.

Parameters have the names of the modules that an architecture follows, so that a `state_dict()` fits as it is. A boolean mask
says what is visible; PyTorch's own masks (`attn_mask`, `key_padding_mask`) say what is hidden (True = hidden).
"""

LABML, D2L = "https://nn.labml.ai/", "https://d2l.ai/chapter_attention-mechanisms-and-transformers/"
TORCH = "https://docs.pytorch.org/docs/stable/generated/torch."
RASCHKA = "https://github.com/rasbt/machine-learning-book/tree/main/ch16"
# Of each architecture: whose module, its name, the page.
SOURCES = {
    **{arch: ("PyTorch", module, f"{TORCH}{module}.html") for arch, module in (
        ("softmax", "nn.Softmax"), ("layer_norm", "nn.LayerNorm"), ("rms_norm", "nn.RMSNorm"), ("linear", "nn.Linear"), ("bmm", "bmm"),
        ("embedding", "nn.Embedding"), ("cross_entropy", "nn.CrossEntropyLoss"), ("gru", "nn.GRU"), ("rnn", "nn.RNN"), ("activation", "nn.GELU"),
        ("clip_grad_norm", "nn.utils.clip_grad_norm_"))},
    **{arch: ("labml.ai", module, f"{LABML}{page}.html") for arch, module, page in (
        ("aft_local", "AFTLocal", "transformers/aft/index"), ("local_mask", "AFTLocal", "transformers/aft/index"),
        ("spatial_gating_unit", "SpacialGatingUnit", "transformers/gmlp/index"),
        ("gmlp_block", "GMLPBlock", "transformers/gmlp/index"), ("mha", "MultiHeadAttention", "transformers/mha"),
        ("subsequent_mask", "subsequent_mask", "transformers/utils"),
        ("feed_forward", "FeedForward", "transformers/feed_forward"),
        ("transformer_layer", "TransformerLayer", "transformers/models"), ("encoder", "Encoder", "transformers/models"),
        ("lm", "AutoregressiveTransformer", "transformers/aft/experiment"),
        ("seq2seq_transformer", "EncoderDecoder", "transformers/models"),
        ("seq2seq_transformer_predict", "EncoderDecoder", "transformers/models"),
        ("feedback_attention", "FeedbackAttention", "transformers/feedback/index"),
        ("feedback_layer", "FeedbackTransformerLayer", "transformers/feedback/index"),
        ("feedback_transformer", "FeedbackTransformer", "transformers/feedback/index"),
        ("feedback_transformer_kv", "FeedbackTransformerKV", "transformers/feedback/index"),
        ("optimizer_step", "Adam", "optimizers/adam"))},
    **{arch: ("d2l", module, f"{D2L}{page}.html") for arch, module, page in (
        ("masked_softmax", "masked_softmax", "attention-scoring-functions"),
        ("dot_product_attention", "DotProductAttention", "attention-scoring-functions"),
        ("bilinear_attention", "q^T M k", "attention-scoring-functions"),
        ("additive_attention", "AdditiveAttention", "attention-scoring-functions"),
        ("multi_head_attention", "MultiHeadAttention", "multihead-attention"),
        ("transpose_qkv", "transpose_qkv", "multihead-attention"),
        ("transpose_output", "transpose_output", "multihead-attention"),
        ("attention_pooling", "nadaraya_watson", "attention-pooling"),
        ("seq2seq_bahdanau", "Seq2SeqAttentionDecoder", "bahdanau-attention"),
        ("seq2seq_predict", "Seq2SeqAttentionDecoder", "bahdanau-attention"),
        ("positional_encoding", "PositionalEncoding", "self-attention-and-positional-encoding"),
        ("relative_shift", "PositionalEncoding", "self-attention-and-positional-encoding"))},
    **{arch: ("Raschka's chapter 16", "ch16-part1-self-attention", RASCHKA) for arch in (
        "basic_self_attention", "raschka_self_attention", "raschka_multi_head")},
    **{arch: ("the AFT paper", "section 3.2", "https://arxiv.org/abs/2105.14103") for arch in (
        "aft_full", "aft_simple", "aft_conv")},
}
# What another layer needs besides the example.
LAYERS = {"aft_local": {"seq_len": 40, "local_window_size": 8}, "aft_full": {"seq_len": 40}, "aft_simple": {},
          "aft_conv": {"window_size": 7}, "gmlp": {"seq_len": 40, "d_ffn": 192}, "feedback": {"P": 24}, "feedback_kv": {"P": 24}}
LAYERS_SHOWN = {"transformer_layer": ("aft_local", "aft_full", "aft_simple", "aft_conv", "gmlp"), "lm": ("feedback", "feedback_kv")}
SAME_AS_LM = {"lm_sample": "The model is [lm](#lm): its keys and tensors, and",
              "train": "The model inside is [lm](#lm), [seq2seq_bahdanau](#seq2seq_bahdanau) or\n[seq2seq_transformer](#seq2seq_transformer): "
                       "their keys and tensors, and"}


def inspect(tool, arch, *options):
    done = subprocess.run([tool, "inspect", "--arch", arch, *options], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def items(text):
    """The lines, each with its continuations."""
    return [item for item in re.split(r"\n(?! {14})", text.rstrip()) if item]


def entry(item):
    return re.sub(" +", " ", re.sub(r"\n {14}", " ", item))


def entries(text):
    """The lines of tensors, inputs and outputs."""
    return [entry(item) for item in items(text) if item.split()[0] in ("parameter", "buffer", "input", "output")]


def is_tensor(item):
    return item.startswith(("parameter", "buffer"))


def below(prefix, lines):
    """The lines of tensors with a prefix before their names."""
    return {re.sub(r"^([-+] )?(parameter|buffer) ", lambda kind: kind[0] + prefix, line) for line in lines}


class Known:
    """The sections so far, each in full: lines of keys, tensors, and of changes by "key = value"."""

    def __init__(self):
        self.keys, self.tensors, self.changes = {}, {}, {}

    def parts(self, lines):
        """Which sections' tensors are among these, as prefix and name, the largest first."""
        names = [line.split()[1] for line in lines]
        prefixes = sorted({name[:dot] for name in names for dot in [0, *(at.end() for at in re.finditer(r"\.", name))]}, key=len)
        found, left = [], set(lines)
        for prefix in prefixes:
            here = {line for line in left if line.split()[1].startswith(prefix)}
            for arch, tensors in self.tensors.items():
                if len(tensors) > 1 and below(prefix, tensors) == here:
                    found.append((prefix, arch))
                    left -= here
                    break
        return found

    def refer(self, found, tensors):
        """The lines of tensors, those of a part as one."""
        out = []
        for item in tensors:
            part = next(((p, arch) for p, arch in found if entry(item) in below(p, self.tensors[arch])), None)
            line = f"{'parameter':<14}{part[0]}*, as {part[1]}" if part else item
            out += [line] if line not in out else []
        return out

    def said(self, found, change):
        """What the sections of the parts say of a change of tensors."""
        return {line for prefix, arch in found
                for line in below(prefix, (made for made in self.changes[arch].get(change, ()) if is_tensor(made[2:])))}


def other_values(key):
    if key["type"] == "true or false":
        return [key.get("default") != "true"]
    if key["type"] == "word" and key["name"] != "layer":
        return [word for word in key["choices"].split(", ") if word != key.get("default")]
    sizes = {"n_vocab": [100], "src_vocab_size": [0]}
    return sizes.get(key["name"], []) if not key["required"] else []


def changes(tool, arch, key, value, config, base):
    """What a value of a key removes and adds."""
    text = inspect(tool, arch, "--symbols", "--config", json.dumps({**config, key: value}))
    lines = entries(text) if text else base
    return [*(f"- {e}" for e in base if e not in lines), *(f"+ {e}" for e in lines if e not in base)]


def without_model(tool, text):
    """The lines but keys and tensors of the models inside."""
    models = [json.loads(inspect(tool, model, "--json")) for model in ("lm", "seq2seq_bahdanau", "seq2seq_transformer")]
    keys = {key["name"] for model in models for key in model["keys"]}
    lines = re.sub(r"\n {14}", "\0", text).splitlines()
    kept = [line for line in lines if not line.startswith(("parameter", "buffer"))
            and not (line.startswith("key") and line.split()[1].strip(":").removeprefix("model.") in keys)]
    return "\n".join(kept).replace("\0", "\n" + " " * 14)


def section(tool, arch, known):
    described = json.loads(inspect(tool, arch, "--json"))
    text, config = inspect(tool, arch), json.loads(described["config"])
    head = ["", f"## {arch}", ""]
    if arch in SAME_AS_LM:
        return [*head, SAME_AS_LM[arch], "", "```text", *without_model(tool, text).splitlines()[1:], "```"]
    whose, module, page = SOURCES[arch]
    example, *lines = items(text)[1:]
    keys, tensors = [item for item in lines if item.startswith("key")], [item for item in lines if is_tensor(item)]
    base = entries(text)
    all_changes = {f"{key['name']} = {json.dumps(value)}": changes(tool, arch, key["name"], value, config, base)
                   for key in described["keys"] for value in other_values(key)}
    parts = known.parts([entry(item) for item in tensors])
    same_keys = next((part for _, part in parts if set(known.keys[part]) <= set(keys)), None)
    out = [*head, f"After {whose}: [{module}]({page}).", "", "```text", example]
    if same_keys:
        out.append(f"{'key':<14}those of {same_keys}")
    out += [item for item in keys if not same_keys or item not in known.keys[same_keys]]
    out += [*known.refer(parts, tensors), *(item for item in lines if item not in keys + tensors)]
    for change, made in all_changes.items():
        new = [line for line in made if line not in known.said(parts, change)]
        out += ["", change, *new] if new else []
    for layer in LAYERS_SHOWN.get(arch, ()):
        other = inspect(tool, arch, "--symbols", "--config", json.dumps({**config, "layer": layer, **LAYERS[layer]}))
        other = [e for e in entries(other) if is_tensor(e)]
        out += ["", f'layer = "{layer}", all tensors', *(entry(item) for item in known.refer(known.parts(other), other))]
    known.keys[arch], known.tensors[arch], known.changes[arch] = keys, [entry(item) for item in tensors], all_changes
    return [*out, "```"]


def times_3(value):
    """A configuration with all its integers three times as large: still even, odd, divisible."""
    if isinstance(value, dict):
        return {key: times_3(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [times_3(inner) for inner in value]
    return 3 * value if isinstance(value, int) and not isinstance(value, bool) else value


def integers(config):
    for key, value in config.items():
        if isinstance(value, dict):
            yield from integers(value)
        elif isinstance(value, list) and len(value) == 1 or isinstance(value, int):
            yield key, value if isinstance(value, int) else value[0]


def in_numbers(extent, values):
    """"3*hidden_size" as 96, "num_heads*B" as "12*B"."""
    text = re.sub(r"[A-Za-z_]{2,}|[dP]", lambda word: str(values.get(word[0], word[0])), str(extent))
    return eval(text.replace("/", "//")) if re.fullmatch("[0-9*/ +]+", text) else text


def check_names(tool, arch):
    """What the names in the example's shapes say of another configuration is what that has."""
    example = json.loads(inspect(tool, arch, "--json"))
    config = times_3(json.loads(example["config"]))
    other, values = json.loads(inspect(tool, arch, "--config", json.dumps(config), "--json")), dict(integers(config))
    for kind in ("tensors", "inputs", "outputs"):
        shapes = {entry["name"]: entry["shape"] for entry in other[kind]}
        for entry in example[kind]:
            said = [in_numbers(extent, values) for extent in entry["shape"]]
            if said != shapes[entry["name"]]:
                sys.exit(f"{arch}: {entry['name']} is {shapes[entry['name']]}, but {entry['shape']} says {said}")


def main(tool, root=None):
    known = pathlib.Path(__file__).parents[2] / "lib/model/arch_list.def"
    archs = re.findall(r"^ARCH\(\w+, (\w+)\)", known.read_text(), re.M)
    known = Known()
    text = HEAD + "\n".join(line for arch in archs for line in section(tool, arch, known)) + "\n"
    if not root:
        sys.stdout.write(text)
        return
    for arch in archs:
        check_names(tool, arch)
    if (pathlib.Path(root) / "docs/architectures.md").read_text() != text:
        sys.exit(f"docs/architectures.md is not what attncl inspect prints: python3 {__file__} {tool} >docs/architectures.md")


if __name__ == "__main__":
    main(*sys.argv[1:])

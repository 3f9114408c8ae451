#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A model of Llama's form with 1.1 billion random weights against llama.cpp, interleaved: a prompt, and steps behind it.

llama_form.py DIRECTORY writes the model there in F16 and, by llama.cpp, in F32, Q8_0 and Q4_0; attncl-convert makes the library's
files of these, weights of 8 and 4 bits as they are: 16 GB in all.  Needs numpy, gguf, llama-cpp-python and the attncl package."""
import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import time

import attncl
import gguf
import llama_cpp
import numpy as np

# As TinyLlama's.
VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS = 32000, 2048, 5632, 22, 32, 4
TYPES = ["Q4_0", "Q8_0", "F32", "F16"]


def write_f16(path):
    random, narrow = np.random.default_rng(0), WIDTH * KV_HEADS // HEADS
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("none")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)

    def matrix(name, *shape):
        writer.add_tensor(name + ".weight", (0.02 * random.standard_normal(shape, dtype=np.float32)).astype(np.float16))

    def norm(name):
        writer.add_tensor(name + ".weight", np.ones(WIDTH, np.float32))

    matrix("token_embd", VOCABULARY, WIDTH)
    matrix("output", VOCABULARY, WIDTH)
    norm("output_norm")
    for i in range(LAYERS):
        block = f"blk.{i}."
        norm(block + "attn_norm")
        norm(block + "ffn_norm")
        matrix(block + "attn_q", WIDTH, WIDTH)
        matrix(block + "attn_k", narrow, WIDTH)
        matrix(block + "attn_v", narrow, WIDTH)
        matrix(block + "attn_output", WIDTH, WIDTH)
        matrix(block + "ffn_gate", HIDDEN, WIDTH)
        matrix(block + "ffn_up", HIDDEN, WIDTH)
        matrix(block + "ffn_down", WIDTH, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def prepare(directory):
    os.makedirs(directory, exist_ok=True)
    for kind in reversed(TYPES):
        file = os.path.join(directory, kind)
        if kind == "F16" and not os.path.exists(file + ".gguf"):
            write_f16(file + ".gguf")
        elif not os.path.exists(file + ".gguf"):
            settings = llama_cpp.llama_model_quantize_default_params()
            settings.ftype = getattr(llama_cpp, "LLAMA_FTYPE_" + ("ALL_" if kind == "F32" else "MOSTLY_") + kind)
            settings.pure = True
            if llama_cpp.llama_model_quantize(os.path.join(directory, "F16.gguf").encode(), (file + ".gguf").encode(),
                                              ctypes.byref(settings)):
                sys.exit(f"llama_form.py: llama.cpp does not quantise to {kind}")
        if not os.path.exists(file + ".safetensors"):
            subprocess.run([sys.executable, "-m", "attncl.convert", file + ".gguf", file + ".safetensors", "--dtype",
                            kind.removesuffix("_0").lower(), "--no-tokenizer"], check=True)


class Llama:
    def __init__(self, path, threads, state):
        settings = llama_cpp.llama_model_default_params()
        settings.n_gpu_layers = 0
        model = llama_cpp.llama_model_load_from_file(path.encode(), settings)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_threads, settings.n_threads_batch = 1024, threads, threads
        settings.n_batch = settings.n_ubatch = 512
        if state == "F32":
            settings.type_k = settings.type_v = 0  # GGML_TYPE_F32
        self.context = llama_cpp.llama_init_from_model(model, settings)

    def take(self, tokens, t):
        llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(self.context), 0, t, -1)
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(array, len(tokens))):
            sys.exit("llama_form.py: llama_decode fails")
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, -1), (VOCABULARY,)).copy()


class Ours:
    def __init__(self, path, state):
        self.decoder = attncl.Model(path).decoder(1, state_dtype=state)

    def take(self, tokens, t):
        if t == 0:
            self.decoder.reset()
            return self.decoder.prefill(np.array(tokens, np.int32)[:, None])
        return np.asarray(self.decoder.step(np.array(tokens, np.int32))).ravel()


def seconds(model, tokens, prompt):
    """Of the prompt, of each step; the last scores."""
    times, scores = [], None
    for first, end in [(0, prompt)] + [(t, t + 1) for t in range(prompt, len(tokens))]:
        began = time.perf_counter()
        scores = model.take(tokens[first:end], first)
        times.append(time.perf_counter() - began)
    return times[0], times[1:], scores


def compare(kind, o):
    file = os.path.join(o.directory, kind)
    sides = {"ours": Ours(file + ".safetensors", o.state), "llama.cpp": Llama(file + ".gguf", o.threads, o.state)}
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, o.prompt + o.steps).tolist()
    prompts, steps, last = {s: [] for s in sides}, {s: [] for s in sides}, {}
    for turn in range(o.rounds + 1):
        for side, model in sides.items():
            time.sleep(0.3)  # the other's threads go to sleep
            prompt, each, last[side] = seconds(model, tokens, o.prompt)
            if turn:  # the first one compiles
                prompts[side].append(prompt)
                steps[side] += each
    of = {name: {s: 1e3 * statistics.median(x) for s, x in found.items()} for name, found in (("p", prompts), ("s", steps))}
    off = np.abs(last["ours"] - last["llama.cpp"]).max() / np.abs(last["llama.cpp"]).max()
    print(f"| {kind} | " + " | ".join(f"{of[k]['ours']:.4g} | {of[k]['llama.cpp']:.4g} | {of[k]['llama.cpp'] / of[k]['ours']:.2f}"
                                   for k in "sp") + f" | {off:.1e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", help="of the models, which are made there if they are not there yet")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--state", choices=["F16", "F32"], default="F16", help="type of keys and values, on both sides")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of llama.cpp")
    o = parser.parse_args()
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, None)
    llama_cpp.llama_backend_init()
    prepare(o.directory)
    print(f"| weights | step, ms | llama.cpp | ratio | prompt of {o.prompt}, ms | llama.cpp | ratio | scores differ by |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in TYPES:
        compare(kind, o)


if __name__ == "__main__":
    main()

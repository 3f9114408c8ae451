#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""llama.cpp on the GPT-2 cases, for bench/baselines/measure.py; it answers as torch_worker.py does.

The type of the case's weights keeps keys and values in F32: the library's equal.  The others are what people use, by llama.cpp's
own quantisation, keys and values in F16 as is its default: shown, not compared."""
import argparse
import ctypes
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_baselines"))
from torch_worker import probe, seconds_of, serve, timed  # noqa: E402

# Name in llama.h's enum llama_ftype, and how far scores may be from the library's over the largest: rounded weights, and a GELU
# from a table of F16.
TYPES = {"F32": ("ALL_F32", 1e-3), "F16": ("MOSTLY_F16", 2e-3), "Q8_0": ("MOSTLY_Q8_0", 3e-2), "Q4_0": ("MOSTLY_Q4_0", 0.2)}
NAMES = {"norm_1": "attn_norm", "qkv": "attn_qkv", "out": "attn_output", "norm_2": "ffn_norm", "up": "ffn_up", "down": "ffn_down"}


def write_gguf(path, data, sizes, half):
    import gguf
    writer, weights = gguf.GGUFWriter(path, "gpt2"), data.gpt2(sizes, half)
    writer.add_context_length(sizes["N"])
    writer.add_embedding_length(sizes["C"])
    writer.add_block_count(sizes["layers"])
    writer.add_feed_forward_length(sizes["F"])
    writer.add_head_count(sizes["heads"])
    writer.add_layer_norm_eps(1e-5)
    writer.add_vocab_size(sizes["V"])
    writer.add_tokenizer_model("none")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tensor("token_embd.weight", weights["tokens"])
    writer.add_tensor("position_embd.weight", weights["positions"])
    for prefix, map_ in [("output_norm", weights["norm"])] + [
            (f"blk.{i}.{NAMES[name]}", map_) for i, layer in enumerate(weights["layers"]) for name, map_ in layer.items()]:
        for kind, x in map_.items():
            writer.add_tensor(f"{prefix}.{kind}", x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Model:
    """take(tokens, position): the scores after the last token."""

    def __init__(self, lib, path, sizes, threads, exact):
        self.lib = lib
        settings = lib.llama_model_default_params()
        settings.n_gpu_layers = 0
        self.model = lib.llama_model_load_from_file(path.encode(), settings)
        settings = lib.llama_context_default_params()
        settings.n_ctx, settings.n_threads, settings.n_threads_batch = sizes["N"], threads, threads
        settings.n_batch = settings.n_ubatch = max(sizes["T"], 32)
        if exact:
            settings.type_k = settings.type_v = 0  # GGML_TYPE_F32
        self.context = self.model and lib.llama_init_from_model(self.model, settings)
        if not self.context:
            raise RuntimeError(f"llama.cpp does not load {path}")

    def __del__(self):
        self.lib.llama_free(self.context)
        self.lib.llama_model_free(self.model)

    def take(self, tokens, t):
        self.lib.llama_memory_seq_rm(self.lib.llama_get_memory(self.context), 0, t, -1)
        array = (self.lib.llama_token * len(tokens))(*tokens)  # the batch points to it
        if self.lib.llama_decode(self.context, self.lib.llama_batch_get_one(array, len(tokens))):
            raise RuntimeError("llama_decode fails")
        return self.lib.llama_get_logits_ith(self.context, -1)


class Worker:
    def __init__(self, threads):
        import data  # of torch_baselines; needs numpy
        import gguf  # noqa: F401  # not there: told before anything is measured
        import llama_cpp
        self.data, self.lib, self.threads = data, llama_cpp, threads
        self.running, self.directory = {}, None
        self.silent = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self.silent, None)
        llama_cpp.llama_backend_init()

    def describe(self, _request):
        version, built = self.lib.__version__, self.lib.llama_print_system_info().decode()
        return {"program": "llama.cpp", "version": f"(llama-cpp-python {version})", "type": "cpu", "where": "CPU",
                "name": f"llama-cpp-python {version}", "settings": {"threads": self.threads, "built": built}}

    def open(self, request):
        case, sizes = request["case"], request["case"]["sizes"]
        self.running, self.directory, self.repeats, answers = {}, None, 1, []
        if sizes.get("layer") != "gpt2" or sizes["B"] != 1:
            return {"formulations": []}
        self.directory = tempfile.TemporaryDirectory()
        tokens = self.data.indices("tokens", 0, sizes["V"], (sizes["T"],)).tolist()
        write_gguf(self.path("F32"), self.data, sizes, case["dtype"] == "f16")
        of_case = TYPES[case["dtype"].upper()][1]  # the library's weights are rounded so too
        for name, (kind, limit) in TYPES.items():
            answer = {"variant": name, "reference": False, "equal": name.lower() == case["dtype"], "limit": max(limit, of_case)}
            try:
                run = self.prepared(case["family"], sizes, tokens, name, kind, answer["equal"])
                scores = self.data.numpy.ctypeslib.as_array(run(), (sizes["V"],))
                answer.update(probe(scores))
                self.running[name] = run
            except (RuntimeError, OSError) as error:
                answer["error"] = str(error)
            answers.append(answer)
        return {"formulations": answers}

    def path(self, name):
        return os.path.join(self.directory.name, name + ".gguf")

    def prepared(self, family, sizes, tokens, name, kind, exact):
        if name != "F32":
            settings = self.lib.llama_model_quantize_default_params()
            settings.ftype, settings.nthread = getattr(self.lib, "LLAMA_FTYPE_" + kind), self.threads
            if self.lib.llama_model_quantize(self.path("F32").encode(), self.path(name).encode(), ctypes.byref(settings)):
                raise RuntimeError(f"llama.cpp does not quantise to {name}")
        load = lambda: Model(self.lib, self.path(name), sizes, self.threads, exact)  # noqa: E731
        if family == "lm_start":
            return lambda: self.started(load(), tokens)
        model = load()
        if family == "lm_prefill":
            return lambda: model.take(tokens, 0)
        self.repeats = sizes["T"] - sizes["S"]
        model.take(tokens[:sizes["S"]], 0)
        return lambda: [model.take(tokens[t:t + 1], t) for t in range(sizes["S"], sizes["T"])][-1]

    def started(self, model, tokens):
        self.latest = model  # the one before goes now
        return model.take(tokens, 0)

    def time(self, request):
        return timed(self.running, request, lambda run: seconds_of(run) / self.repeats, self.running)

    def close(self, _request):
        self.running, self.directory, self.latest = {}, None, None
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    return serve(lambda: Worker(arguments.threads))


if __name__ == "__main__":
    sys.exit(main())

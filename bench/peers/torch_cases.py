#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The benchmark's cases in PyTorch on the CPU, as its users would write them.

    attncl-bench --list > cases.json
    peers/torch_cases.py --cases cases.json --json torch.json [--only TEXT] [--threads N] [--tuned-malloc]

Each case is forward only, in inference mode, on random data of the same shapes.  --tuned-malloc starts
the program again with a malloc that keeps freed memory (MALLOC_*_THRESHOLD_), which removes PyTorch's
page faults on fresh results: the stronger peer.  Needs nothing but the package torch.
"""
import argparse
import json
import math
import os
import statistics
import sys
import time

MALLOC = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592",
          "MALLOC_TOP_PAD_": "268435456"}


def start_again_with_tuned_malloc():
    if os.environ.get("MALLOC_MMAP_THRESHOLD_") != MALLOC["MALLOC_MMAP_THRESHOLD_"]:
        os.environ.update(MALLOC)
        os.execv(sys.executable, [sys.executable] + sys.argv)


def linear_maps(torch, *shapes):
    """(weight [out, in], bias [out]) for each (out, in)."""
    return [(torch.randn(o, i) / math.sqrt(i), torch.randn(o)) for o, i in shapes]


def softmax(torch, s):
    x = torch.randn(s["M"], s["N"])
    return lambda: torch.softmax(x, -1)


def masked_softmax(torch, s):
    """The d2l form: scores beyond the valid length become -1e6 (in place, on a copy), then softmax."""
    x = torch.randn(s["B"], s["M"], s["N"])
    lens = torch.randint(0, s["N"] + 1, (s["B"], s["M"], 1))
    place = torch.arange(s["N"])
    return lambda: torch.softmax(x.masked_fill(place >= lens, -1e6), -1)


def layer_norm(torch, s):
    x, w, b = torch.randn(s["M"], s["N"]), torch.randn(s["N"]), torch.randn(s["N"])
    return lambda: torch.nn.functional.layer_norm(x, (s["N"],), w, b)


def gelu(torch, s):
    x = torch.randn(s["M"], s["N"])
    return lambda: torch.nn.functional.gelu(x)


def embedding(torch, s):
    tokens, w = torch.randint(0, s["V"], (s["M"],)), torch.randn(s["V"], s["C"])
    return lambda: torch.nn.functional.embedding(tokens, w) * math.sqrt(s["C"])


def cross_entropy(torch, s):
    x, y = torch.randn(s["M"], s["V"]), torch.randint(0, s["V"], (s["M"],))
    return lambda: torch.nn.functional.cross_entropy(x, y, reduction="none")


def gemm(torch, s):
    a = torch.randn(s["M"], s["K"])
    if s["transposed"]:
        b = torch.randn(s["N"], s["K"])
        return lambda: torch.nn.functional.linear(a, b)
    b = torch.randn(s["K"], s["N"])
    return lambda: a @ b


def bmm(torch, s):
    a, b = torch.randn(s["B"], s["M"], s["K"]), torch.randn(s["B"], s["K"], s["N"])
    return lambda: torch.bmm(a, b)


def linear(torch, s):
    x, ((w, b),) = torch.randn(s["M"], s["K"]), linear_maps(torch, (s["N"], s["K"]))
    return lambda: torch.nn.functional.linear(x, w, b)


def feed_forward(torch, s):
    f = torch.nn.functional
    x = torch.randn(s["M"], s["C"])
    (w1, b1), (w2, b2) = linear_maps(torch, (s["F"], s["C"]), (s["C"], s["F"]))
    return lambda: f.linear(f.gelu(f.linear(x, w1, b1)), w2, b2)


def window_bias(torch, s):
    n = s["T"]
    w = torch.randn(n, n)
    if "window" in s:
        i = torch.arange(n)
        w = w * ((i[:, None] - i).abs() < s["window"])
    if s["causal"]:
        w = w.masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -math.inf)
    return w


def aft_mix(torch, q, k, v, w):
    """The usual form: the maxima taken out, then two products over positions.  w [T, T], the rest [T, B, C]."""
    ek = torch.exp(k - k.amax(0, keepdim=True))
    ew = torch.exp(w - w.amax(1, keepdim=True))
    num = torch.einsum("ij,jbc->ibc", ew, ek * v)
    den = torch.einsum("ij,jbc->ibc", ew, ek)
    return torch.sigmoid(q) * num / den


def aft_local(torch, s):
    q, k, v = (torch.randn(s["T"], s["B"], s["C"]) for _ in range(3))
    w = window_bias(torch, s)
    return lambda: aft_mix(torch, q, k, v, w)


def aft_simple(torch, s):
    q, k, v = (torch.randn(s["T"], s["B"], s["C"]) for _ in range(3))
    if s["causal"]:
        w = window_bias(torch, dict(s, window=0))
        return lambda: aft_mix(torch, q, k, v, w)
    return lambda: torch.sigmoid(q) * (torch.softmax(k, 0) * v).sum(0, keepdim=True)


def gate_parameters(torch, s):
    n, f = s["T"], s["F"] // 2
    return torch.randn(f), torch.randn(f), torch.randn(n, n) * 0.1, torch.randn(n)


def gate(torch, z, parameters, causal):
    norm_w, norm_b, w, b = parameters
    z1, z2 = z.chunk(2, dim=-1)
    u = torch.nn.functional.layer_norm(z2, norm_w.shape, norm_w, norm_b)
    w = w.tril() if causal else w
    return z1 * (torch.einsum("ij,jbc->ibc", w, u) + b[:, None, None])


def spatial_gate(torch, s):
    z, parameters = torch.randn(s["T"], s["B"], s["F"]), gate_parameters(torch, s)
    return lambda: gate(torch, z, parameters, s["causal"])


def gmlp_block(torch, s):
    f = torch.nn.functional
    x, parameters = torch.randn(s["T"], s["B"], s["C"]), gate_parameters(torch, s)
    norm_w, norm_b = torch.randn(s["C"]), torch.randn(s["C"])
    (w1, b1), (w2, b2) = linear_maps(torch, (s["F"], s["C"]), (s["C"], s["F"] // 2))

    def run():
        z = f.gelu(f.linear(f.layer_norm(x, (s["C"],), norm_w, norm_b), w1, b1))
        return x + f.linear(gate(torch, z, parameters, s["causal"]), w2, b2)
    return run


def aft_layer(torch, s):
    """The parameters and the forward of one layer x -> x."""
    f, c = torch.nn.functional, s["C"]
    maps = linear_maps(torch, (c, c), (c, c), (c, c), (c, c), (s["F"], c), (c, s["F"]))
    norms = [torch.randn(c) for _ in range(4)]
    w = window_bias(torch, dict(s, causal=True))

    def run(x):
        h = f.layer_norm(x, (c,), norms[0], norms[1])
        q, k, v = (f.linear(h, *maps[i]) for i in range(3))
        x = x + f.linear(aft_mix(torch, q, k, v, w[:len(x), :len(x)]), *maps[3])
        h = f.layer_norm(x, (c,), norms[2], norms[3])
        return x + f.linear(torch.relu(f.linear(h, *maps[4])), *maps[5])
    return run


def gmlp_layer(torch, s):
    f, c = torch.nn.functional, s["C"]
    parameters = gate_parameters(torch, s)
    norm_w, norm_b = torch.randn(c), torch.randn(c)
    (w1, b1), (w2, b2) = linear_maps(torch, (s["F"], c), (c, s["F"] // 2))

    def run(x):
        z = f.gelu(f.linear(f.layer_norm(x, (c,), norm_w, norm_b), w1, b1))
        u, n = parameters[:2], len(x)
        z = gate(torch, z, (*u, parameters[2][:n, :n], parameters[3][:n]), True)
        return x + f.linear(z, w2, b2)
    return run


def encoder_layer(torch, s):
    x, layer = torch.randn(s["T"], s["B"], s["C"]), aft_layer(torch, s)
    return lambda: layer(x)


def lm_layers(torch, s):
    """tokens [at most T, B] -> logits."""
    f, c = torch.nn.functional, s["C"]
    layers = [gmlp_layer(torch, s) if s["layer"] == "gmlp" else aft_layer(torch, s)
              for _ in range(s["layers"])]
    embed, positions = torch.randn(s["V"], c), torch.randn(s["T"], 1, c)
    norm_w, norm_b = torch.randn(c), torch.randn(c)
    ((w, b),) = linear_maps(torch, (s["V"], c))

    def run(tokens):
        x = f.embedding(tokens, embed) * math.sqrt(c) + positions[:len(tokens)]
        for layer in layers:
            x = layer(x)
        return f.linear(f.layer_norm(x, (c,), norm_w, norm_b), w, b)
    return run


def lm(torch, s):
    tokens, model = torch.randint(0, s["V"], (s["T"], s["B"])), lm_layers(torch, s)
    return lambda: model(tokens)


def lm_decode(torch, s):
    """What the reference does: the whole prefix is computed again for every token."""
    tokens, model = torch.randint(0, s["V"], (s["T"], s["B"])), lm_layers(torch, s)

    def run():
        for t in range(1, s["T"] + 1):
            logits = model(tokens[:t])[-1]
        return logits
    return run


FAMILIES = {f.__name__: f for f in (
    softmax, masked_softmax, layer_norm, gelu, embedding, cross_entropy, gemm, bmm, linear,
    feed_forward, aft_local, aft_simple, spatial_gate, gmlp_block, encoder_layer, lm, lm_decode)}
FAMILIES["aft_full"] = aft_local  # without "window" the whole table counts


def times_of(run, budget_s, min_runs):
    start = time.perf_counter()
    run()
    if time.perf_counter() - start < budget_s:
        run()
    samples, start = [], time.perf_counter()
    while True:
        before = time.perf_counter()
        run()
        samples.append(time.perf_counter() - before)
        elapsed = time.perf_counter() - start
        if len(samples) >= min_runs and elapsed >= budget_s or elapsed >= 4 * budget_s:
            return {"runs": len(samples), "min_s": min(samples),
                    "median_s": statistics.median(samples)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", required=True, help="output of attncl-bench --list")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("--only", default="", help="cases or families that contain this")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds per case")
    parser.add_argument("--runs", type=int, default=5, help="least number of runs")
    parser.add_argument("--tuned-malloc", action="store_true", help="keep freed memory")
    arguments = parser.parse_args()
    if arguments.tuned_malloc:
        start_again_with_tuned_malloc()

    import torch
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    with open(arguments.cases, encoding="utf-8") as file:
        cases = json.load(file)
    results = []
    for case in cases:
        only = arguments.only.lower()
        if case["set"] != ("quick" if arguments.quick else "full"):
            continue
        if only not in case["case"].lower() and only not in case["family"]:
            continue
        with torch.inference_mode():
            timing = times_of(FAMILIES[case["family"]](torch, case["sizes"]), arguments.budget,
                              arguments.runs)
        results.append({"case": case["case"], **timing})
        print(f"{case['case']:<44} {1e3 * timing['min_s']:10.4g} ms, median "
              f"{1e3 * timing['median_s']:.4g}", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"peer": f"PyTorch {torch.__version__}", "threads": arguments.threads,
                       "tuned_malloc": arguments.tuned_malloc, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""Reports as docs/benchmark-reports.md describes them, made up: figures follow a formula, nothing was run."""
import copy

HOST = {"os": "Debian GNU/Linux 12 (bookworm)", "kernel": "Linux 6.1.0 x86_64", "cpu": "Example 9000",
        "cores": 2, "threads": 2, "memory_bytes": 8 << 30}
PEAK, COPY = 4e11, 3e10  # FLOP/s, bytes/s
SMALL = "softmax 64x256"  # bound by launches


def cases():
    """(name, suite, family, sizes, flop, bytes)"""
    yield "softmax 4096x1024", "op", "softmax", {"M": 4096, "N": 1024}, 2.1e7, 3.4e7
    yield "layer norm 4096x1024", "op", "layer_norm", {"M": 4096, "N": 1024}, 3e7, 3.4e7
    yield "bias + GELU 4096x1024", "op", "bias_gelu", {"M": 4096, "N": 1024}, 6e7, 3.4e7
    for n in (512, 1024):
        yield f"product NN {n}", "op", "gemm", {"M": n, "N": n, "K": n}, 2.0 * n**3, 12.0 * n * n
    yield "linear + bias 4096x512->2048", "op", "linear", {"M": 4096, "K": 512, "N": 2048}, 8.6e9, 4.6e7
    for t in (1024, 2048):
        for causal in (False, True):
            yield (f"attention BH=16 T={t} d=64" + causal * " causal", "op", "attention",
                   {"T": t, "S": t, "B": 16, "causal": causal}, 4.0 * 16 * t * t * 64 / (1 + causal), 16.0 * 4 * t * 64)
    for t in (512, 1024, 4096):
        for causal in (False, True):
            yield (f"AFT-local s=64 T={t} B=8" + causal * " causal", "layer", "aft_local",
                   {"T": t, "B": 8, "C": 512, "window": 64, "causal": causal}, 512.0 * 8 * t * 260, 16.0 * 8 * t * 512)
    yield "gMLP block d=512 f=2048 T=256 B=32", "layer", "gmlp_block", {"T": 256, "B": 32, "C": 512}, 2.6e10, 1.4e8
    yield "lm decode AFT-local d=128 4 layers B=1", "model", "lm_decode", {"T": 128, "B": 1}, 1e8, 1e8
    yield SMALL, "op", "softmax", {"M": 64, "N": 256}, 8.2e4, 1.3e5
    yield "softmax 65536x1024", "op", "softmax", {"M": 65536, "N": 1024}, 3.4e8, 5.4e8


def result(case, slowness, baseline=False):
    name, suite, family, sizes, flop, n_bytes = case
    least = max(flop / PEAK, n_bytes / COPY)
    seconds = 1.4 * slowness * least + 2e-5
    entry = {
        "case": name, "suite": suite, "family": family, "set": "small" if name == SMALL else "full",
        "headline": "4096x1024" in name, "dtype": "f32", "sizes": sizes, "outcome": "ok",
        "error": 3e-8, "error_limit": 6e-5, "runs": 60, "rounds": 3,
        "wall": {"min_s": seconds, "q1_s": 1.02 * seconds, "median_s": 1.04 * seconds, "q3_s": 1.1 * seconds,
                 "p95_s": 1.5 * seconds, "max_s": 2 * seconds},
        "samples_s": [seconds * (1 + 0.002 * i) for i in range(41)],
        "latency": {"n": 60, "median_s": 1e-3, "p95_s": 2e-3, "p99_s": 3e-3} if family == "lm_decode" else None,
        "sensors": {"clock_mhz": 2400.0, "power_w": None, "temperature_c": 61.5, "throttled": False},
        "event": {"min_s": 0.95 * seconds, "median_s": seconds}, "compile": {"cold_s": 0.3, "cached_s": 0.004},
        "flop": flop, "bytes": n_bytes, "gflop_s": flop / seconds / 1e9, "gb_s": n_bytes / seconds / 1e9,
        "bound": "compute" if flop / PEAK > n_bytes / COPY else "memory", "roofline_percent": 100 * least / seconds,
        "memory": {"io_bytes": int(n_bytes), "weights_bytes": 1 << 20, "activations_bytes": int(n_bytes / 3),
                   "scratch_bytes": 1 << 18, "arena_bytes": int(n_bytes / 3) + (1 << 18), "state_bytes": 0},
        "tokens": None, "tokens_per_s": None}
    if baseline:
        entry.update(memory=None, compile=None, event=None, bound=None, roofline_percent=None)
    return entry


def scale(r, factor):
    """The result in FACTOR times its time."""
    r["wall"] = {name: factor * x for name, x in r["wall"].items()}
    r["samples_s"] = [factor * x for x in r["samples_s"]]


def device(address, name, slowness):
    return {
        "device": address, "kind": "opencl", "type": "cpu", "name": name, "platform": "Portable Computing Language",
        "vendor": "Example", "driver": "3.1", "opencl": "OpenCL 3.0 PoCL", "compute_units": 2, "clock_mhz": 2400,
        "global_memory_bytes": 8 << 30, "local_memory_bytes": 1 << 19, "sizes": "full", "settings": {},
        "roofline": {"copy_bytes_per_s": COPY, "copies": [{"footprint_bytes": 1 << 28, "bytes_per_s": COPY},
                                                              {"footprint_bytes": 1 << 20, "bytes_per_s": 4 * COPY}],
                     "fma_flop_per_s": PEAK, "launch_s": 2.7e-5, "launch_queued_s": 1.5e-6,
                     "to_device_bytes_per_s": COPY, "from_device_bytes_per_s": COPY,
                     "gemm": [{"provider": "native", "flop_per_s": 3.6e11}, {"provider": "clblast", "flop_per_s": 3e10}]},
        "results": [result(c, slowness) for c in cases()]}


def report(devices, program="attncl-bench", version="0.1.0", label=None, host=HOST):
    return {"schema": 2, "program": program, "version": version, "revision": "abc1234", "date": "2026-01-02T03:04:05Z",
            "command": [program, "--json", "out.json"], "label": label, "host": host, "devices": devices}


def ours(name="pthread-Example 9000", slowness=1.0, **more):
    return report([device("0:0", name, slowness)], **more)


def baseline(name="PyTorch 2.13.0 CPU, eager", slowness=3.0, mode="eager", **more):
    """A baseline that is a little slower than the library on one case, and faster on another."""
    results = [result(c, slowness, baseline=True) for c in cases()]
    scale(results[1], 0.25)
    for r in list(results):
        r.update(variant="fused", reference=False, memory={"arena_bytes": 3 << 20})
        if r["family"] in ("attention", "aft_local"):
            slow = copy.deepcopy(r)
            slow.update(variant="einsum (published)", reference=True)
            scale(slow, 4)
            results.append(slow)
    return report([{"device": "torch-eager", "kind": "baseline", "type": "cpu", "name": name, "sizes": "full",
                    "settings": {"threads": 2, "allocator": "tuned", "mode": mode}, "roofline": None,
                    "results": results}],
                  program="PyTorch", version="2.13.0", **more)

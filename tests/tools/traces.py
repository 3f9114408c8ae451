#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""traces.py TOOL ROOT: `attncl train` takes the steps that PyTorch took (tests/data/traces), loss by loss to LIMIT.  Standard
library only; skipped (77) without a device."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

LIMIT = 1e-3  # of a loss, relative; rounding alone makes 1e-5


def losses_of(tool, trace, directory):
    from support import traces
    config, init, batches = (directory / name for name in ("config.json", "init.safetensors", "batches.safetensors"))
    config.write_text(json.dumps(trace["config"]))
    traces.write_weights(init, trace)
    traces.write_batches(batches, trace["config"])
    out = directory / "run"
    done = subprocess.run([tool, "train", "--config", config, "--init", init, "--batches", batches, "--out", out],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    if done.returncode:
        sys.exit(f"attncl train says {done.returncode}: {done.stdout}")
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def main(tool, root):
    sys.path.insert(0, os.path.join(root, "tests"))
    sys.dont_write_bytecode = True
    from support import traces
    if subprocess.run([tool, "devices"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        print("skipped: no device", file=sys.stderr)
        return 77
    failed = 0
    names = sorted(path.stem for path in traces.DIRECTORY.glob("*.json"))
    for name in names:
        trace = traces.read_trace(name)
        with tempfile.TemporaryDirectory() as directory:
            got = losses_of(tool, trace, pathlib.Path(directory))
        want = trace["losses"]
        apart = [abs(a - b) / abs(b) if math.isfinite(a) else math.inf for a, b in zip(got, want)]
        worst = max(range(len(apart)), key=apart.__getitem__) if apart else 0
        good = len(got) == len(want) and apart[worst] <= LIMIT
        print(f"{name}: {len(got)} of {len(want)} steps, at most {max(apart, default=0):.1e} apart, at step {worst + 1}")
        failed += not good
    return bool(failed or not names)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

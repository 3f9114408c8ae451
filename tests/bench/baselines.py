#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""baselines.py BENCH SOURCE [--torch]: the baselines' side of the benchmark.  Without PyTorch the library alone is
measured; a baseline with another result is reported wrong, without times.  --torch, where it is installed: every
configuration gets attncl-bench's numbers and result."""
import os
import subprocess
import sys
import tempfile

from small_run import baselines, check, options, read

sys.path.insert(0, baselines)
import measure  # noqa: E402


def run(directory, **environment):
    """(exit status, what was said, ours, torch's) of one small case."""
    command = [sys.executable, os.path.join(baselines, "measure.py"), "--baseline-budget", "0.01", "--no-compile",
               *options(directory, "softmax 64")]
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 3:
        sys.exit(77)
    reports = [read(directory, name) if os.path.exists(os.path.join(directory, name)) else None
               for name in ("ours.json", "torch.json")]
    return (done.returncode, done.stdout, *reports)


def without_torch():
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "torch.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('not here')\n")
        status, said, ours, torch = run(os.path.join(directory, "out"), PYTHONPATH=directory)
    check(status == 0 and "PyTorch is not measured: ImportError: not here" in said, f"says so: {said}")
    check(ours["devices"][0]["results"][0]["outcome"] == "ok", "the library is measured")
    check(torch is None, "PyTorch has no report")
    return ours["devices"][0]["results"][0]


def ended_before_it_was_asked():
    """A baseline that ends at once, before its first question, is still heard."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "torch.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('not here')\n")
        baseline = measure.Baseline("ended", {"PYTHONPATH": directory}, [])
        baseline.process.wait()
        check(baseline.describe().get("error") == "ImportError: not here", f"the reason is heard: {baseline.about}")
        baseline.stop()


def judged(result):
    case = {key: result[key] for key in ("case", "suite", "family", "set", "sizes")}
    f = {"variant": "softmax", "reference": False, "probe": list(result["probe"]), "largest": 0.02}
    check(measure.result_of(case, f, [2.0, 1.0], 1, result)["wall"]["min_s"] == 1.0, "equal is timed")
    for wrong in (f["probe"][0] + 1e-5, float("nan")):
        bad = measure.result_of(case, {**f, "probe": [wrong, *f["probe"][1:]]}, [1.0], 1, result)
        check(bad["outcome"] == "wrong" and "wall" not in bad, f"{wrong} is wrong")
    failed = measure.result_of(case, {"variant": "softmax", "reference": False, "error": "no"}, None, 1, result)
    check(failed["outcome"] == "failed" and failed["reason"] == "no", "what cannot run says why")


def with_torch(directory):
    status, said, _, torch = run(directory)
    check(status == 0, said)
    check(torch is not None, "PyTorch is measured")
    for device in torch["devices"]:
        for result in device["results"]:
            check(result["outcome"] == "ok" and result["error"] is not None and result["error"] < 1e-6,
                  f"{device['name']} computes the same: {result}")


def main():
    ended_before_it_was_asked()
    judged(without_torch())
    if "--torch" in sys.argv:
        with tempfile.TemporaryDirectory() as directory:
            with_torch(directory)


if __name__ == "__main__":
    main()

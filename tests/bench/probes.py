#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""probes.py BENCH SOURCE [--full] [--only WORD]: every formulation of every small case gives the library's result; --full: of
every full-size case, which takes half an hour and more; --only: of those whose name has the word.  Skipped without PyTorch."""
import argparse
import os
import subprocess
import sys
import tempfile

from small_run import baselines, bench, check, read

sys.path.insert(0, baselines)
import measure  # noqa: E402
import torch_worker  # noqa: E402


def only():
    """The word of --only; None: every case."""
    return sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else None


def library_results():
    device = os.environ.get("ATTNCL_DEVICE")
    with tempfile.TemporaryDirectory() as directory:
        command = [bench, "--full" if "--full" in sys.argv else "--small", "--suite", "op,layer,model", "--no-cold",
                   "--no-roofline", "--budget", "0.01", "--runs", "1", "--rounds", "1", "--json",
                   os.path.join(directory, "ours.json"), *(["--device", device] if device else []),
                   *(["--only", only()] if only() else [])]
        status = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
        if status == 3:
            sys.exit(77)
        check(status == 0, f"attncl-bench: exit status {status}")
        return read(directory, "ours.json")["devices"][0]["results"]


def known_names():
    """An array is what it was first: another spread or shape under its name would compare different numbers."""
    from torch_baselines import Case
    case = Case({"family": "softmax", "sizes": {}})
    check(case.uniform("x", 1, 2, 3) is case.uniform("x", 1, 2, 3), "a known array is made again")
    for spread, shape in ((2, (2, 3)), (1, (3, 2))):
        try:
            case.uniform("x", spread, *shape)
        except ValueError:
            continue
        check(False, f"x is there; spread {spread}, shape {shape} was not refused")


def compiled_steps(torch, cases):
    """A compiled step of training is run once more than an eager one; the losses compared are the first ones all the same."""
    torch.compile = lambda run, **_: run
    options = argparse.Namespace(device="cpu", threads=1, compile=True, setting="")
    worker = torch_worker.Worker(torch, options)
    for case in cases:
        for f in worker.open({"case": case})["formulations"]:
            check(measure.distance(f, case) <= measure.PROBE_LIMIT, f"{case['case']}, compiled: {measure.distance(f, case)}")
            check(f["memory"]["peak_bytes"] > case["memory"]["weights_bytes"], f"{case['case']}: memory {f['memory']}")
        worker.close({})


def main():
    try:
        import torch
    except ImportError as error:
        print(f"skipped: PyTorch is not installed: {error}")
        sys.exit(77)
    known_names()
    options = argparse.Namespace(device="cpu", threads=len(os.sched_getaffinity(0)), compile=False, setting="")
    worker, n, faults, cases = torch_worker.Worker(torch, options), 0, [], library_results()
    for case in cases:
        found = worker.open({"case": case})["formulations"]
        worker.close({})
        n += len(found)
        for f in found:
            far = measure.distance(f, case) if "error" not in f else f["error"]
            if not isinstance(far, float) or far > measure.PROBE_LIMIT:
                faults.append(f"{case['case']}, {f['variant']}: {far}")
    check(not faults and n > (0 if only() else 60), f"{n} formulations compared:\n" + "\n".join(faults))
    compiled_steps(torch, [case for case in cases if case["family"] == "train_step"])


if __name__ == "__main__":
    main()

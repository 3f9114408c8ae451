# SPDX-License-Identifier: MIT
"""What the tests of the baselines share: attncl-bench and the source tree as arguments, a run of small cases."""
import json
import os
import sys

bench, source = sys.argv[1:3]
baselines = os.path.join(source, "bench", "baselines")


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def read(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        return json.load(file)


def options(directory, only):
    """measure.py's, for two short rounds on the tested device."""
    device = os.environ.get("ATTNCL_DEVICE")
    return ["--bench", bench, "--out", directory, "--small", "--no-cold", "--no-roofline", "--budget", "0.1", "--runs", "1",
            "--rounds", "2", "--only", only, *(["--device", device] if device else [])]

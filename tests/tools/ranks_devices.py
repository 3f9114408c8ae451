#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks_devices.py TOOL ROOT: two ranks on devices of different kinds, PoCL and rusticl's llvmpipe.

Standard library only.  Exit status 77 when one of them or mpirun is missing.
"""
import os
import re
import subprocess
import sys

from ranks import compare, losses, main, train

DRIVERS = ("Portable Computing Language", "rusticl")


def find_devices(tool):
    """The first device of each driver, as --device has it, by driver."""
    found, address = {}, None
    for line in subprocess.run([tool, "devices"], capture_output=True, text=True, check=False).stdout.splitlines():
        begin = re.match(r"(\d+:\d+) ", line)
        if begin:
            address = begin.group(1)
        for driver in DRIVERS:
            if line.strip().startswith(driver):
                found.setdefault(driver, address)
    return found


def test_two_kinds(ranks, _root):
    """Losses are those of PoCL alone, whichever is rank 0."""
    found = find_devices(ranks.tool)
    pocl, rusticl = (found[driver] for driver in DRIVERS)
    ranks.works(0, *train(ranks, "one", "--device", pocl))
    want = losses(ranks.at("one"))
    for name, devices in (("first", (pocl, rusticl)), ("second", (rusticl, pocl))):
        ranks.works(2, *train(ranks, name, "--device", ",".join(devices)))
        compare(ranks, name, want)


def start(tool, root):
    os.environ.setdefault("RUSTICL_ENABLE", "llvmpipe")
    os.environ.pop("ATTNCL_DEVICE", None)  # the two are asked for by name
    missing = [driver for driver in DRIVERS if driver not in find_devices(tool)]
    if missing:
        print("skipped: no device of %s" % " and ".join(missing), file=sys.stderr)
        return 77
    return main((test_two_kinds,), tool, root)


if __name__ == "__main__":
    sys.exit(start(*sys.argv[1:]))

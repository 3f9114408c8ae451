#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""threads.py PROGRAM: the golden models' results are the same bits on one thread of PoCL and on two.  PROGRAM runs the test
model.golden.  Skipped (77) where it is, and on drivers whose threads are not known to be counted so."""
import os
import subprocess
import sys
import tempfile


def digests(program, threads, path):
    environment = dict(os.environ, POCL_MAX_PTHREAD_COUNT=str(threads), ATTNCL_DIGESTS=path, OMP_NUM_THREADS=str(threads))
    status = subprocess.run([program, "model.golden"], env=environment, stdout=subprocess.DEVNULL, check=False).returncode
    if status:
        sys.exit(status)
    with open(path) as file:
        return dict(line.split() for line in file)


def main(program):
    if os.cpu_count() < 2:
        print("skipped: one CPU", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as directory:
        one, two = (digests(program, n, os.path.join(directory, str(n))) for n in (1, 2))
    different = [name for name in one if one[name] != two.get(name)]
    if different:
        print(f"{len(different)} of {len(one)} models differ by the number of threads: {', '.join(different[:20])}")
    return 1 if different or one.keys() != two.keys() else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

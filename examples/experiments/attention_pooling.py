#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""attention_pooling.py [ATTNCL]: Nadaraya-Watson regression of generated data, by arch attention_pooling.

50 keys in [0, 5) with values f(x) + noise, f(x) = 2 sin x + x; queries are 0, 0.1 ... 4.9.  Prints the mean squared distance
from f for each kernel and, for the Gaussian one, each width: the least is at a width of about 0.3.  Nothing is trained.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import pathlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from support.safetensors_file import read, write  # noqa: E402

KERNELS = [{"kernel": "constant"}, {"kernel": "boxcar"}, {"kernel": "epanechikov"}]
KERNELS += [{"kernel": "gaussian", "sigma": sigma} for sigma in (0.1, 0.2, 0.3, 0.5, 1.0)]


def f(x):
    return 2 * math.sin(x) + x


def main(command="attncl"):
    source = random.Random(1)
    keys = sorted(5 * source.random() for _ in range(50))
    values = [f(x) + source.gauss(0, 1) / 2 for x in keys]
    queries = [i / 10 for i in range(50)]
    with tempfile.TemporaryDirectory() as directory:
        model, inputs, outputs = (os.path.join(directory, name + ".safetensors") for name in ("model", "in", "out"))
        write(inputs, {"x_train": ("F32", [50], keys), "y_train": ("F32", [50], values), "x_val": ("F32", [50], queries)})
        for kernel in KERNELS:
            write(model, {}, {"attncl.arch": "attention_pooling", "attncl.config": json.dumps(kernel)})
            subprocess.run([command, "run", model, inputs, outputs], check=True, stdout=subprocess.DEVNULL)
            error = sum((y - f(x)) ** 2 for x, y in zip(queries, read(outputs, "y_hat"))) / len(queries)
            name = kernel["kernel"] + (f", sigma {kernel['sigma']}" if "sigma" in kernel else "")
            print(f"{name:22} {error:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:2])

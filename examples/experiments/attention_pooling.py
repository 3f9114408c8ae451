#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""attention_pooling.py [ATTNCL [DIRECTORY]]: Nadaraya-Watson regression of generated data, by arch attention_pooling, as
d2l's chapter on attention pooling has it.

40 keys in [0, 5) with values f(x) + noise of variance 1, f(x) = 2 sin x + x; queries are 0, 0.1 ... 4.9.  Prints the mean
squared distance from f for each kernel and each width of the Gaussian one.  With DIRECTORY, draws the estimates and their
weights there, kernels.svg and widths.svg (needs gnuplot).  Nothing is trained.
"""
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from support.safetensors_file import read, write  # noqa: E402

KERNELS = ("gaussian", "boxcar", "constant", "epanechikov")
WIDTHS = (0.1, 0.2, 0.5, 1)


def f(x):
    return 2 * math.sin(x) + x


def main(command="attncl", pictures=None):
    source = random.Random(1)
    keys = sorted(5 * source.random() for _ in range(40))
    values = [f(x) + source.gauss(0, 1) for x in keys]
    queries = [i / 10 for i in range(50)]
    data = {"x_train": ("F32", [40], keys), "y_train": ("F32", [40], values), "x_val": ("F32", [50], queries)}
    with tempfile.TemporaryDirectory() as directory:
        model, inputs, outputs = (os.path.join(directory, name + ".safetensors") for name in ("model", "in", "out"))
        write(inputs, data)
        for config in [{"kernel": kernel} for kernel in KERNELS] + [{"kernel": "gaussian", "sigma": width} for width in WIDTHS]:
            write(model, {}, {"attncl.arch": "attention_pooling", "attncl.config": json.dumps(config)})
            subprocess.run([command, "run", model, inputs, outputs], check=True, stdout=subprocess.DEVNULL)
            error = sum((y - f(x)) ** 2 for x, y in zip(queries, read(outputs, "y_hat"))) / len(queries)
            name = config["kernel"] + (f", sigma {config['sigma']}" if "sigma" in config else "")
            print(f"{name:22} {error:.4f}")
        if pictures:
            os.makedirs(pictures, exist_ok=True)
            write(inputs, {**data, "y_val": ("F32", [50], [f(x) for x in queries])})
            for name, key, settings in (("kernels", "kernel", KERNELS), ("widths", "sigma", WIDTHS)):
                subprocess.run([command, "plot", model, inputs, os.path.join(pictures, name + ".svg"), "--vary",
                                f"{key}={','.join(map(str, settings))}"], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])

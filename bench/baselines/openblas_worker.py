#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OpenBLAS on the GEMMs, for bench/baselines/measure.py; it answers as torch_worker.py does."""
import ctypes
import ctypes.util
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_baselines"))
from torch_worker import probe, seconds_of, serve, timed  # noqa: E402

ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112


class Worker:
    def __init__(self):
        import data  # of torch_baselines; needs numpy
        self.data, self.running = data, {}
        self.blas = ctypes.CDLL(ctypes.util.find_library("openblas") or "libopenblas.so.0")
        self.blas.openblas_get_config.restype = ctypes.c_char_p

    def describe(self, _request):
        config = self.blas.openblas_get_config().decode()
        return {"program": "OpenBLAS", "version": config.split()[1], "name": config, "type": "cpu", "where": "CPU",
                "settings": {"threads": self.blas.openblas_get_num_threads()}}

    def open(self, request):
        sizes, self.running = request["case"]["sizes"], {}
        if request["case"]["family"] != "gemm":
            return {"formulations": []}
        m, n, k = (sizes[letter] for letter in "MNK")
        transposed = sizes["transposed"]
        a = self.data.uniform("a", 1, (m, k))
        b = self.data.uniform("b", math.sqrt(3 / k), (n, k)) if transposed else self.data.uniform("b", 1, (k, n))
        c = self.data.uniform("c", 1, (m, n))
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, c)]
        one, zero = ctypes.c_float(1), ctypes.c_float(0)

        def run(_keep=(a, b, c)):
            self.blas.cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE if transposed else NO_TRANSPOSE, m, n, k, one,
                                  pointers[0], k, pointers[1], k if transposed else n, zero, pointers[2], n)
        run()
        self.running = {"sgemm": run}
        return {"formulations": [{"variant": "sgemm", "reference": False, **probe(c.reshape(-1))}]}

    def time(self, request):
        return timed(self.running, request, seconds_of)

    def close(self, _request):
        self.running = {}
        return {}


if __name__ == "__main__":
    sys.exit(serve(Worker))

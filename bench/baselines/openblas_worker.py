#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OpenBLAS on the GEMMs, for bench/baselines/measure.py; it answers as torch_worker.py does."""
import ctypes
import ctypes.util
import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_baselines"))
ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112
PROBES = 8


class Worker:
    def __init__(self):
        import data  # of torch_baselines; needs numpy
        self.data, self.run = data, None
        self.blas = ctypes.CDLL(ctypes.util.find_library("openblas") or "libopenblas.so.0")
        self.blas.openblas_get_config.restype = ctypes.c_char_p

    def describe(self, _request):
        config = self.blas.openblas_get_config().decode()
        return {"program": "OpenBLAS", "version": config.split()[1], "name": config, "type": "cpu", "where": "CPU",
                "settings": {"threads": self.blas.openblas_get_num_threads()}}

    def open(self, request):
        sizes, self.run = request["case"]["sizes"], None
        if request["case"]["family"] != "gemm":
            return {"formulations": []}
        m, n, k = (sizes[letter] for letter in "MNK")
        transposed = sizes["transposed"]
        a = self.data.uniform("a", 1, (m, k))
        b = self.data.uniform("b", math.sqrt(3 / k), (n, k)) if transposed else self.data.uniform("b", 1, (k, n))
        c = self.data.uniform("c", 1, (m, n))
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, c)]
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        keep = a, b, c

        def run():
            assert keep
            self.blas.cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE if transposed else NO_TRANSPOSE, m, n, k, one,
                                  pointers[0], k, pointers[1], k if transposed else n, zero, pointers[2], n)
        run()
        self.run, flat = run, c.reshape(-1)
        step = (flat.size - 1) // (PROBES - 1)
        return {"formulations": [{"variant": "sgemm", "reference": False, "largest": float(abs(flat).max()), "probe": [
            float(flat[flat.size - 1 - step * (PROBES - 1 - i)]) for i in range(PROBES)]}]}

    def time(self, request):
        samples, begin = [], time.perf_counter()
        while self.run and (len(samples) < request["runs"] or time.perf_counter() - begin < request["budget_s"]):
            start = time.perf_counter()
            self.run()
            samples.append(time.perf_counter() - start)
        return {"samples": {"sgemm": samples[1:] or samples} if samples else {}}

    def close(self, _request):
        self.run = None
        return {}


def main():
    try:
        worker = Worker()
    except (ImportError, OSError) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return 1
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(worker, request["do"])(request)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wide_loads.py VARIANTS: kernels that take weights of 16 bits as they are read four at once on GPUs, where rows are aligned.
clang compiles them, to LLVM's instructions; no GPU is needed.  Skipped (77) without clang and libclc."""
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from compilers import clang_or_skip, launches  # noqa: E402
from shuffles import instructions  # noqa: E402

# {kernel: loads of eight bytes in it, at least}
# Of tiles: one before the loop and one in it.
KERNELS = {"gemv_dot": 4, "gemv_axpy": 1, "gemm_gpu_tile": 2, "gemm_gpu_mma_tile": 2, "embedding_rows_fwd": 1}


def main():
    clang = clang_or_skip()
    faults, checked = [], set()
    with tempfile.TemporaryDirectory() as directory:
        for source, device, kernel, group, *_ in launches(sys.argv[1], directory):
            device = device.split("-")[0]  # of matrix instructions: another kernel for the same compiler
            if device not in ("nvidia", "cdna") or kernel not in KERNELS or int(group) < 32:
                continue
            with open(os.path.join(directory, source)) as file:
                text = file.read()
            macro = {name: int(value) for name, value in re.findall(r"^#define (VW|WTYPE|ALIGNED) (\d+)$", text, re.M)}
            key = (device, kernel, macro["WTYPE"])
            # Rows of an embedding that are not of whole vectors are read one element at a time, and so are unaligned ones.
            odd = not macro.get("ALIGNED", 1) or (kernel == "embedding_rows_fwd" and macro["VW"] == 1)
            if macro["WTYPE"] == 0 or odd or key in checked:
                continue
            checked.add(key)
            found = len(re.findall(r"= load (?:<2 x i32>|<4 x i16>|i32), .*align 8\b", instructions(clang, text, kernel, device)))
            if found < KERNELS[kernel]:
                faults.append(f"{kernel}, WTYPE {macro['WTYPE']}, {device}: {found} loads of 8 bytes, expected {KERNELS[kernel]}")
    faults += [f"no case of {kernel} has weights of 16 bits" for kernel in KERNELS if not any(k == kernel for _, k, _ in checked)]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(checked)} kernels: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""offline.py DIRECTORY [--intel]: every specialised kernel source in DIRECTORY, as ATTNCL_DUMP_CL writes them, compiles without warnings for
NVIDIA (nvptx64), AMD (amdgcn) and Intel and the rest (spir64).  No GPU is needed.

Sources of the CPU variant alone, of which no group has two work-items, are compiled for the last: no GPU gets them.  That one
has no machine code, whose limits optimising would meet: it is left out.  Where the tests ran on a GPU, shuffles that the other
makers' compilers do not know are local memory here, and matrix instructions are compiled for their own maker alone.  With --intel
Intel's own compiler, ocloc, compiles for Arc what GPUs get, and nothing else does.

What compiled before (compilers.py) is not compiled again.

exit status: 0; 1 when a source is refused; 77 without the compiler or when DIRECTORY holds nothing
"""
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from compilers import Results, clang_or_skip, clang_version, code_of, ocloc_version  # noqa: E402

CLANG_OPTIONS = "-x cl -cl-std=CL1.2 -Wall -Wno-unused-function -Wno-pass-failed -Werror".split()
TARGETS = {"spir64": "-target spir64 -O0 -emit-llvm -c",
           "nvptx64": "-target nvptx64-nvidia-nvcl -march=sm_75 -O1 -S",
           "nvptx64-mma": "-target nvptx64-nvidia-nvcl -march=sm_80 -O1 -S",
           "amdgcn": "-target amdgcn-amd-amdhsa -mcpu=gfx1030 -nogpulib -O1 -S",
           "amdgcn-mma": "-target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -O1 -S"}
OCLOC_OPTIONS = ["-device", "dg2", "-options", "-cl-std=CL1.2 -Werror"]


def defined(text, pattern):
    return re.search(rf"^#define {pattern}", text, re.M) is not None


def targets_of(text):
    """Those that a source is compiled for."""
    if defined(text, r"MMA [1-6]"):
        # 3 to 6: tests/kernels/gpu-resources, by later compilers than these.
        return ["nvptx64-mma"] if defined(text, "MMA 1") else ["amdgcn-mma"] if defined(text, "MMA 2") else []
    on_gpus = defined(text, r"LS ([2-9]|1\d)")
    return ["spir64", "nvptx64", "amdgcn", "dg2"] if on_gpus else ["spir64"]


def text_of(path, target):
    with open(path) as file:
        text = file.read()
    if defined(text, r"SHUFFLE [^0]"):
        text = re.sub(r"^#define SHUFFLE.*\n", "", text, flags=re.M)
    if target == "dg2":
        # PoCL alone gets prefetches (lib/device/quirks.c), which Intel's compiler does not know.
        text = re.sub(r"^#define USE_PREFETCH 1", "#define USE_PREFETCH 0", text, flags=re.M)
    return text


def refusal(compiler, text, target):
    """None, or what the compiler said."""
    if target == "dg2":
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "arc.cl")
            with open(source, "w") as file:
                file.write(text)
            done = subprocess.run([compiler, "compile", "-q", "-file", source, "-out_dir", directory, "-output", "arc",
                                   "-output_no_suffix", *OCLOC_OPTIONS], capture_output=True, text=True)
    else:
        done = subprocess.run([compiler, *CLANG_OPTIONS, *TARGETS[target].split(), "-", "-o", os.devnull], input=text,
                              capture_output=True, text=True)
    return "\n".join((done.stdout + done.stderr).split("\n")[:5]) if done.returncode else None


def main():
    directory, intel = sys.argv[1], "--intel" in sys.argv
    if intel:
        compiler = shutil.which("ocloc")
        if not compiler:
            print("skipped: [dg2] ocloc is not installed", file=sys.stderr)
            return 77
        rules = [ocloc_version(compiler), OCLOC_OPTIONS]
    else:
        compiler = clang_or_skip()
        rules = [clang_version(compiler)[0], CLANG_OPTIONS, TARGETS]
    sources = sorted(glob.glob(os.path.join(directory, "**", "*.cl"), recursive=True))
    if not sources:
        print(f"skipped: no kernel sources in '{directory}'; run the op tests with ATTNCL_DUMP_CL={directory}", file=sys.stderr)
        return 77
    passed, asked, counts = Results("offline-kernels.json"), {}, collections.Counter()
    for source in sources:
        with open(source) as file:
            targets = targets_of(file.read())
        for target in (t for t in targets if (t == "dg2") == intel):
            text = text_of(source, target)
            key = passed.key(rules, target, code_of(text))
            counts[target] += 1
            if not passed.get(key):
                asked[key] = source, target, text

    def compile_one(item):
        key, (source, target, text) = item
        said = refusal(compiler, text, target)
        if said is None:
            passed.put(key, True)
            return False
        print(f"{source} does not compile for {target}:\n{said}", file=sys.stderr)
        return True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        n_refused = sum(pool.map(compile_one, asked.items()))
    print(f"{len(sources)} kernel sources ({', '.join(f'{n} for {target}' for target, n in sorted(counts.items()))}): "
          f"{len(asked)} were not known to compile, {n_refused} are refused")
    return 1 if n_refused else 0


if __name__ == "__main__":
    sys.exit(main())

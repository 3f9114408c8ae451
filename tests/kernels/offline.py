#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""offline.py DIRECTORY: every specialised kernel source in DIRECTORY, as ATTNCL_DUMP_CL writes them, compiles without warnings for
NVIDIA (nvptx64), AMD (amdgcn) and Intel and the rest (spir64).  No GPU is needed.

Sources of the CPU variant alone, of which no group has two work-items, are compiled for the last: no GPU gets them.  That one
has no machine code, whose limits optimising would meet: it is left out.  Where the tests ran on a GPU, shuffles that the other
makers' compilers do not know are local memory here, and matrix instructions are compiled for their own maker alone.  Where
Intel's own compiler, ocloc, is installed, it compiles for Arc what GPUs get.

What offline.known has (known.py) is not compiled again, but with --all.  --write-known adds what compiles to it.

exit status: 0; 1 when a source is refused; 77 without clang or when DIRECTORY holds nothing
"""
import argparse
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
from known import Known, code_of, digest, intel_versions  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
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
    if defined(text, r"MMA [1-6]") and not defined(text, "EMULATED 1"):
        # 3 to 6: tests/kernels/gpu-resources, by later compilers than these.
        return ["nvptx64-mma"] if defined(text, "MMA 1") else ["amdgcn-mma"] if defined(text, "MMA 2") else []
    on_gpus = defined(text, r"LS ([2-9]|1\d)")
    return ["spir64", "nvptx64", "amdgcn", "dg2"] if on_gpus else ["spir64"]


def text_of(path, target):
    with open(path) as file:
        text = file.read()
    if defined(text, r"SHUFFLE [^036]"):
        text = re.sub(r"^#define SHUFFLE.*\n", "", text, flags=re.M)
    if target == "dg2":
        # PoCL alone gets prefetches (lib/device/quirks.c), which Intel's compiler does not know.
        text = re.sub(r"^#define USE_PREFETCH 1", "#define USE_PREFETCH 0", text, flags=re.M)
    return text


class Compilers:
    def __init__(self, clang, ocloc):
        self.clang, self.ocloc = clang, ocloc
        said = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()
        self.versions = {target: said for target in TARGETS}
        if ocloc:
            self.versions["dg2"] = intel_versions(ocloc)

    def options(self, target):
        return OCLOC_OPTIONS if target == "dg2" else CLANG_OPTIONS + TARGETS[target].split()

    def refusal(self, text, target):
        """None, or what the compiler said."""
        if target == "dg2":
            with tempfile.TemporaryDirectory() as directory:
                source = os.path.join(directory, "arc.cl")
                with open(source, "w") as file:
                    file.write(text)
                done = subprocess.run([self.ocloc, "compile", "-q", "-file", source, "-out_dir", directory, "-output", "arc",
                                       "-output_no_suffix", *self.options(target)], capture_output=True, text=True)
        else:
            done = subprocess.run([self.clang, *self.options(target), "-", "-o", os.devnull], input=text, capture_output=True, text=True)
        return "\n".join((done.stdout + done.stderr).split("\n")[:5]) if done.returncode else None


def find_clang():
    return next((c for c in [f"clang-{v}" for v in range(14, 20)] + ["clang"] if shutil.which(c)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--known", metavar="FILE", default=os.path.join(HERE, "offline.known"), help="another offline.known")
    parser.add_argument("--all", action="store_true", help="compile what is known to compile too")
    parser.add_argument("--write-known", action="store_true", help="add what compiles to offline.known")
    options = parser.parse_args()

    clang, ocloc = find_clang(), shutil.which("ocloc")
    if not clang:
        print("skipped: no clang", file=sys.stderr)
        return 77
    sources = sorted(glob.glob(os.path.join(options.directory, "**", "*.cl"), recursive=True))
    if not sources:
        print(f"skipped: no kernel sources in '{options.directory}'; run the op tests with ATTNCL_DUMP_CL={options.directory}",
              file=sys.stderr)
        return 77
    if not ocloc:
        print("ocloc is not installed: Intel's compiler is not asked")
    compilers, known = Compilers(clang, ocloc), Known(options.known)
    keys = {}
    for source in sources:
        with open(source) as file:
            targets = targets_of(file.read())
        for target in targets:
            if target in compilers.versions:
                keys[source, target] = digest(*compilers.options(target), code_of(text_of(source, target)))
    asked = [(source, target) for (source, target), key in keys.items()
             if options.all or not known.holds(target, compilers.versions[target], key)]
    refused = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for (source, target), said in zip(asked, pool.map(lambda pair: compilers.refusal(text_of(*pair), pair[1]), asked)):
            if said is not None:
                refused.add((source, target))
                print(f"{source} does not compile for {target}:\n{said}", file=sys.stderr)
    if options.write_known:
        for target, versions in compilers.versions.items():
            known.add(target, versions, {key for pair, key in keys.items() if pair[1] == target and pair not in refused})
        known.write(["Kernels of the op tests that compile; tests/kernels/offline.py --write-known adds to this (known.py)."])
    for difference in filter(None, (known.differs(target, versions) for target, versions in compilers.versions.items())):
        print(difference)
    counts = collections.Counter(target for _, target in keys)
    print(f"{len(sources)} kernel sources ({', '.join(f'{n} for {target}' for target, n in sorted(counts.items()))}): "
          f"{len(keys) - len(asked)} compilations are known to succeed, of {len(asked)} others {len(refused)} are refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())

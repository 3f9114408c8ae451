# SPDX-License-Identifier: MIT
"""Compilers of kernels for GPUs that are not here, and which kernels they found no fault in before.

clang is taken only together with a libclc of its major version, 15 or later: older ones lack built-in functions of OpenCL C 1.2,
and one that does not fit its libclc fails at the first vload_half."""
import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST_CLANG = 15
LIBRARIES = {"nvptx": "nvptx64--nvidiacl.bc", "amdgcn": "amdgcn--amdhsa.bc"}
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.S)
CHAR6 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"


def made_by(library):
    """LLVM's major version that wrote a library: a word of six bits a letter, near the beginning."""
    with open(library, "rb") as file:
        bits = int.from_bytes(file.read(64), "little")
    for at in range(32, 256):
        word = "".join(CHAR6[bits >> at + 6 * i & 63] for i in range(8))
        if re.match(r"LLVM\d\d\.", word):
            return int(word[4:6])
    return 0


def find_library(kind, directory=None):
    found = [path for where in ([directory] if directory else ["/usr/lib/clc", "/usr/share/clc", "/usr/lib/llvm-*/lib/clc"])
             for path in sorted(glob.glob(f"{where}/{LIBRARIES[kind]}"))]
    return found[0] if found else None


def clang_version(name):
    """A line, and the major version."""
    said = subprocess.run([name, "--version"], capture_output=True, text=True).stdout.split("\n")[0].strip()
    return said, int((re.search(r"version (\d+)", said) or [0, 0])[1])


def find_clang(directory=None):
    """(the clang that fits libclc, None), or (None, what is missing)."""
    found = [path for path in (find_library(kind, directory) for kind in LIBRARIES) if path]
    if not found:
        return None, "libclc is not installed"
    wanted = made_by(found[0])
    if wanted < FIRST_CLANG:
        return None, f"{found[0]} is of LLVM {wanted}; {FIRST_CLANG} is the first that is used"
    for name in (f"clang-{wanted}", "clang"):
        if shutil.which(name) and clang_version(name)[1] == wanted:
            return name, None
    return None, f"libclc is of LLVM {wanted}, clang-{wanted} is not installed"


def clang_or_skip():
    clang, missing = find_clang()
    if not clang:
        print(f"skipped: {missing}", file=sys.stderr)
        sys.exit(77)
    return clang


def ocloc_version(ocloc):
    """Of the packages of Intel's compiler, which does not say."""
    try:
        owner = subprocess.run(["dpkg-query", "-S", os.path.realpath(ocloc)], capture_output=True, text=True, check=True).stdout
        said = subprocess.run(["dpkg-query", "-f", "${Package} ${Version}, ", "-W", owner.split(":")[0], "libigc1"],
                              capture_output=True, text=True, check=True).stdout
        return said.rstrip(", ")
    except (OSError, subprocess.CalledProcessError):
        return f"unknown version, of {os.path.getsize(ocloc)} bytes"


def code_of(text):
    """A source without comments, blank lines and line numbers."""
    text = COMMENT.sub(lambda hit: hit[1] or " ", text)
    lines = (line.rstrip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("#line "))


def launches(program, directory):
    """A row of words for each launch of attncl-gpu-variants: source, device, kernel, group, local memory by arguments, step, case.  The
    sources are written to the directory."""
    done = subprocess.run([program, directory], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


class Results:
    """Lines {key: result} of a file in build-cache/, added as compilations end.  A key covers all that a result depends on."""

    def __init__(self, name):
        directory = os.path.join(ROOT, "build-cache")
        os.makedirs(directory, exist_ok=True)
        self.path, self.results, self.lock = os.path.join(directory, name), {}, threading.Lock()
        if os.path.exists(self.path):
            with open(self.path) as file:
                for line in file:
                    with contextlib.suppress(ValueError):  # a run may have been killed while it wrote
                        key, result = json.loads(line)
                        self.results[key] = result

    @staticmethod
    def key(*parts):
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def get(self, key):
        return self.results.get(key)

    def put(self, key, result):
        with self.lock, open(self.path, "a") as file:
            file.write(json.dumps([key, result]) + "\n")

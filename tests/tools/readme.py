#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""readme.py TOOL ROOT: runs every command block of README.md as printed, one after another.

A block is fenced as `sh`.  One whose first line is a comment that begins with "as root", "takes" or "needs" is only parsed:
this is said.  The others run in a directory that looks like a clean clone, with the library built: `cmake -B build` configures a
directory of its own with the options given, `cmake --build build` finds TOOL's build.  Indented commands are refused, but in
what bench/report wrote.  Blocks of Python are for tests/python/convert.py.  Skipped (77) without a device or gnuplot.  Standard library only.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NOT_RUN = re.compile(r"# *(as root|takes|needs)\b")
GENERATED = re.compile(r"<!-- bench/report.*?<!-- end of bench/report -->", re.S)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)

# In place of cmake.  $CMAKE is the real one.
CMAKE = """#!/bin/sh
set -eu
case "$*" in
"--build build"*) [ -f build/CMakeCache.txt ] ;;
"-B build"*) shift 2; exec "$CMAKE" -S . -B configured "$@" ;;
*) echo "cmake $*: not known to tests/tools/readme.py" >&2; exit 1 ;;
esac
"""


def clone(root, build, directory):
    """The tree, by links, without what a build left in it; `build` is the one that there is."""
    tracked = subprocess.run(["git", "-C", root, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if tracked.returncode == 0:
        names = {name.split("/")[0] for name in tracked.stdout.splitlines()}
    else:
        names = {name for name in os.listdir(root) if not name.startswith((".", "build"))}
    os.mkdir(directory)
    for name in names:
        os.symlink(os.path.join(root, name), os.path.join(directory, name))
    os.symlink(build, os.path.join(directory, "build"))


def main(tool, root):
    build = os.path.dirname(os.path.dirname(os.path.abspath(tool)))
    text = GENERATED.sub("", pathlib.Path(root, "README.md").read_text())
    failures, ran, parsed = [], 0, 0
    for line in FENCED.sub("", text).split("\n"):
        if re.match(r"(    |\t)\S", line):
            failures.append("an indented block, fence it: " + line.strip())
    blocks = [body for language, body in FENCED.findall(text) if language == "sh"]
    if any(language not in ("sh", "python", "c", "text") for language, _ in FENCED.findall(text)):
        failures.append("a fenced block without a language: sh, python, c or text")
    if subprocess.run([tool, "devices"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no device", file=sys.stderr)
        return 77
    if not shutil.which("gnuplot"):
        print("skipped: no gnuplot", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        os.mkdir(os.path.join(tmp, "bin"))
        with open(os.path.join(tmp, "bin", "cmake"), "w") as f:
            f.write(CMAKE)
        os.chmod(os.path.join(tmp, "bin", "cmake"), 0o755)
        tree, out = os.path.join(tmp, "tree"), ""
        clone(root, build, tree)
        env = dict(os.environ, CMAKE=shutil.which("cmake"), PATH=os.path.join(tmp, "bin") + os.pathsep + os.environ["PATH"])
        for block in blocks:
            if NOT_RUN.match(block):
                done = subprocess.run(["sh", "-n"], input=block, stderr=subprocess.PIPE, text=True)
                parsed += 1
                print("parsed only: " + block.split("\n")[0])
            else:
                done = subprocess.run(["sh", "-ec", block], cwd=tree, env=env, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
                out += done.stdout
                ran += 1
            if done.returncode != 0 or done.stderr.strip():
                failures.append("status %d of\n%s%s" % (done.returncode, block, done.stderr))
        # What the first screen promises.
        if not re.search(r"^ROMEO:\n(.*\n)+", out, re.M):
            failures.append("no text was sampled")
        if not list(pathlib.Path(tree, "pictures").glob("*.png")):
            failures.append("no heat map was drawn")
    if ran < 2:
        failures.append("%d blocks ran" % ran)
    for what in failures:
        print("FAIL", what)
    print("%d blocks ran, %d were parsed" % (ran, parsed))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

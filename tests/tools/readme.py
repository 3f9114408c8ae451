#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""readme.py TOOL ROOT: runs every command block of the documents below, one after another.

Blocks of `sh` run as printed, in a directory that looks like a clean clone, with the library built.  What would change the machine
or take long is replaced by a program that checks its arguments and says which test runs the real one: packages are not installed,
`cmake --build build` finds TOOL's build.  A command that is not known is not replaced.  Training takes a hundredth of the steps.
Indented commands are refused.  Blocks of Python are for tests/python/convert.py; lines of C stand in examples or headers.  Skipped
(77) without a device or gnuplot.  Standard library only.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DOCUMENTS = ("README.md", "docs/install.md", "docs/tutorial.md", "docs/c-guide.md")
LANGUAGES = ("sh", "python", "c", "json", "text")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)

# In place of commands in PATH.  $CMAKE is the real one, $ROOT the source's directory; $REPLACED takes what was not run.
STUBS = {
    "cmake": """case "$*" in
"--build build"*) [ -f build/CMakeCache.txt ] ;;
"--install build --prefix /"*) echo "cmake --install: api.installed" >>"$REPLACED" ;;
"-B build"*) shift 2; exec "$CMAKE" -S . -B configured "$@" ;;
*) exit 1 ;;
esac""",
    "cpack": 'case "$*" in "" | "-G TGZ") ;; *) exit 1 ;; esac; [ -f CPackConfig.cmake ] && echo "cpack: api.packages" >>"$REPLACED"',
    "ldconfig": '[ $# = 0 ]',
    "pip": """case "$*" in "install ./tools/python" | "install ./tools/python[convert]" | "install ./tools/python[gguf]") echo "pip: python.wheel" >>"$REPLACED" ;;
*) exit 1 ;;
esac""",
    "sudo": 'exec "$@"',
    # Of install-packages, names of packages.txt; of the packages that cpack makes, their path.
    "apt-get": """for word; do
    case $word in
    update | install | -*) ;;
    ./build/*.deb) echo "apt-get install: api.packages" >>"$REPLACED" ;;
    *) grep -q " $word\\$" "$ROOT/cmake/packages.txt" || exit 1 ;;
    esac
done""",
}
# In place of programs of the tree.
REPLACED_PROGRAMS = {"bench/run": "bench.small and bench.setup", "tests/run": "it runs this test"}


def write_program(path, text):
    with open(path, "w") as f:
        f.write("#!/bin/sh\nset -eu\n" + text + "\n")
    os.chmod(path, 0o755)


def clone(root, build, directory):
    """The tree, by links, without what a build left in it; `build` is the one that there is."""
    tracked = subprocess.run(["git", "-C", root, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if tracked.returncode == 0:
        names = {name.split("/")[0] for name in tracked.stdout.splitlines()}
    else:
        names = {name for name in os.listdir(root) if not name.startswith((".", "build"))}
    os.mkdir(directory)
    replaced = {os.path.dirname(program): os.path.basename(program) for program in REPLACED_PROGRAMS}
    for name in names - replaced.keys():
        os.symlink(os.path.join(root, name), os.path.join(directory, name))
    for name, program in replaced.items():
        os.mkdir(os.path.join(directory, name))
        for inner in set(os.listdir(os.path.join(root, name))) - {program}:
            os.symlink(os.path.join(root, name, inner), os.path.join(directory, name, inner))
        what = name + "/" + program
        write_program(os.path.join(directory, what), f'[ $# = 0 ] && echo "{what}: {REPLACED_PROGRAMS[what]}" >>"$REPLACED"')
    os.symlink(build, os.path.join(directory, "build"))


def main(tool, root):
    build = os.path.dirname(os.path.dirname(os.path.abspath(tool)))
    failures, blocks, ran = [], [], 0
    for document in DOCUMENTS:
        text = pathlib.Path(root, document).read_text()
        found = FENCED.findall(text)
        for line in FENCED.sub("", text).split("\n"):
            if re.match(r"(    |\t)\S", line):
                failures.append(f"{document}: an indented block, fence it: {line.strip()}")
        if any(language not in LANGUAGES for language, _ in found):
            failures.append(f"{document}: a fenced block without a language: {', '.join(LANGUAGES)}")
        sources = [path.read_text() for pattern in ("examples/*.c", "include/attncl/*.h") for path in pathlib.Path(root).glob(pattern)]
        for line in "".join(body for language, body in found if language == "c").splitlines():
            if not any(line.strip() in source for source in sources):
                failures.append(f"{document}: in no example and no header: {line}")
        for language, body in found:
            if language == "json" and body != pathlib.Path(root, "examples/small.json").read_text():
                failures.append(f"{document}: not what examples/small.json is")
        blocks += [re.sub(r"(?<=--steps )(\d+)00\b", r"\1", body) for language, body in found if language == "sh"]
    if subprocess.run([tool, "devices"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no device", file=sys.stderr)
        return 77
    if not shutil.which("gnuplot"):
        print("skipped: no gnuplot", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        programs, replaced = os.path.join(tmp, "bin"), os.path.join(tmp, "replaced")
        os.mkdir(programs)
        for name, stub in STUBS.items():
            write_program(os.path.join(programs, name), stub)
        tree, out = os.path.join(tmp, "tree"), ""
        clone(root, build, tree)
        env = dict(os.environ, CMAKE=shutil.which("cmake"), ROOT=root, REPLACED=replaced, XDG_CONFIG_HOME=tmp,
                   PATH=programs + os.pathsep + os.environ["PATH"])
        env.pop("ATTNCL_TUNE", None)
        for block in blocks:
            done = subprocess.run(["sh", "-ec", block], cwd=tree, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
            out += done.stdout
            ran += 1
            if done.returncode != 0 or done.stderr.strip():
                failures.append("status %d of\n%s%s" % (done.returncode, block, done.stderr))
        print(pathlib.Path(replaced).read_text(), end="")
        # What the documents promise.
        if not re.search(r"^ROMEO:\n(.*\n)+", out, re.M):
            failures.append("no text was sampled")
        if not list(pathlib.Path(tree, "pictures").glob("*.png")):
            failures.append("no heat map was drawn")
        if not re.search(r"^nll [0-9.]+ +perplexity", out, re.M):
            failures.append("nothing was evaluated")
    if ran < 8:
        failures.append("%d blocks ran" % ran)
    for what in failures:
        print("FAIL", what)
    print("%d blocks ran" % ran)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

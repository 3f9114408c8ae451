# SPDX-License-Identifier: MIT
"""adding_an_op.py ROOT WORK: adds the op of docs/dev/adding-an-op.md to a copy of the tree in WORK, as the page
says: three files and a line.  Runs the op's test in both variants and all that looks at the tree as a whole, and takes
the op out."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

LIST = "lib/op/op_list.def"


def blocks(page):
    """{path: code}: the code after a line that ends with "In `path`:"."""
    return dict(re.findall(r"[Ii]n `([^`]+)`:\n\n```c\n(.*?)```", page.read_text(), re.S))


def content(tree):
    return {p.relative_to(tree).as_posix(): p.read_bytes() for p in tree.rglob("*")
            if p.is_file() and p.parent.name != "__pycache__"}


def run(*command, **environment):
    done = subprocess.run(command, env=os.environ | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode not in (0, 77):
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}")
    return done.returncode


def main(root, work):
    root, work = pathlib.Path(root), pathlib.Path(work)
    tree, build = work / "tree", work / "build"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(root, tree, symlinks=True, ignore=shutil.ignore_patterns("build*", ".git", "__pycache__", "shared"))
    before = content(tree)

    files = blocks(tree / "docs/dev/adding-an-op.md")
    line = files.pop(LIST)
    for path, code in files.items():
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(code)
    (tree / LIST).write_text((tree / LIST).read_text() + line)

    after = content(tree)
    changed = {p for p in after if before.get(p) != after[p]}
    if len(files) != 3 or changed != {LIST, *files} or set(files) & set(before) or line.count("\n") != 1:
        sys.exit(f"not three new files and a line: {sorted(changed)}")

    name = re.match(r"OP\(\w+/(\w+),", line)[1]
    start = time.monotonic()
    run("cmake", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0",
        "-DATTNCL_BUILD_BENCH=OFF") # with the tool, whose tests mutants.tsv names
    run("cmake", "--build", build, "-j", str(os.cpu_count()), "--target", "attncl-tests",
        "attncl-gpu-variants")
    built = time.monotonic()
    tests = build / "tests/attncl-tests"
    skipped = [run(tests, f"op.{name}@{variant}") for variant in ("cpu", "gpu")]
    run(tests, "op.registry")
    # The copy's own rules: structure, layers, op files, kernels, format ...; not this test again.
    run("ctest", "--test-dir", build, "-R", "^style[.]|^kernels[.]gpu_coverage$", "-E", "object_cycles|exports", "--output-on-failure")

    for path in files:
        (tree / path).unlink()
    (tree / LIST).write_text((tree / LIST).read_text().replace(line, ""))
    assert content(tree) == before
    shutil.rmtree(work)
    print(f"{name}: 3 files and a line; built in {built - start:.0f} s, all in {time.monotonic() - start:.0f} s"
          + (", not run: no device" if any(skipped) else ""))


if __name__ == "__main__":
    main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""structure.py ROOT [MANY [LONG]]: what holds for the tree as a whole.

Sources of lib/, and those of directories of ten (MANY) or more files without a README, say on top what they do; a README
has at most a page; docs/dev/architecture.md and lib/README.md allow lib/ what tests/style/layers.cmake allows it; functions
and files of lib/, tools/ and bench/ are short (LONG); every status code has a test that provokes it; sources name their
licence."""
import re
import sys
from pathlib import Path

TOPS = ("bench", "cl", "cmake", "docs", "examples", "include", "lib", "tests", "tools")
PAGE = 90
MAX_PARAMETERS, MAX_FILE = 7, 350
SOURCES = (".c", ".h", ".cl", ".clh", ".def", ".cmake", ".py", ".sh")
STATUS, STATUS_TEST = "include/attncl/status.h", "tests/model/test_status.c"
ALLOWED, DOCUMENT, PICTURE = "tests/style/layers.cmake", "docs/dev/architecture.md", "lib/README.md"


def files(root):
    """All files below the top directories but what running Python leaves."""
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and "__pycache__" not in name:
                yield name, path


def text_of(root, name):
    return (root / name).read_text() if (root / name).exists() else ""


def says_what(path):
    """A source, or the header of a .c file, has a comment or a docstring below its licence."""
    sources = [path.with_suffix(".h"), path] if path.suffix == ".c" else [path]
    tops = [line for s in sources if s.exists() for line in s.read_text().splitlines()[:6]]
    return any(re.match(r'(// *|# +|""")\w', line) and "SPDX-License" not in line for line in tops)


def check_readmes(root, many):
    in_directory = {}
    for name, path in files(root):
        in_directory.setdefault(path.parent, []).append((name, path))
    for directory, inside in in_directory.items():
        readme = directory / "README.md"
        for name, path in inside:
            needs = len(inside) >= many and not readme.exists() or name.startswith("lib/") and path.suffix == ".c"
            if needs and path.suffix in (".c", ".cl", ".clh", ".py", ".sh") and not says_what(path):
                yield f"{name}: does not say on top what it does"
        is_guide = directory.parent.name != "examples"  # experiments have their results there
        if len(inside) >= many and is_guide and readme.exists() and readme.read_text().count("\n") > PAGE:
            yield f"{readme.relative_to(root)}: longer than {PAGE} lines"


def check_layers(root):
    allowed = {d: set(may.split()) for d, may in
               re.findall(r'^set\(may_(\w+) +"?([\w ]*)"?\)', text_of(root, ALLOWED), re.M)}
    said = {DOCUMENT: {}, PICTURE: {}}
    for directory, may in re.findall(r"^\| `lib/(\w+)` \|[^|]*\| ([^|]*) \|", text_of(root, DOCUMENT), re.M):
        said[DOCUMENT][directory] = set(re.findall(r"[a-z]+", re.sub(r"\(.*?\)", "", may)))
    for line in text_of(root, PICTURE).partition("```")[2].partition("```")[0].splitlines():
        columns = re.split(r"  +", re.sub(r"  +->.*", "", re.sub(r"\(.*?\)", "", line)).strip())
        if columns[0] in allowed:
            said[PICTURE][columns[0]] = set(columns[2].split()) if len(columns) > 2 else set()
    for document, table in said.items():
        for directory, may in allowed.items():
            if table.get(directory) != may:
                there = " ".join(sorted(table.get(directory, ["(no row)"])))
                yield f"{document}: {directory} may include {there}; {ALLOWED} has {' '.join(sorted(may))}"


def n_parameters(head):
    inner = re.sub(r"\([^()]*\)", "", head[head.index("(") + 1:head.rindex(")")])  # without those of callbacks
    return inner.count(",") + 1


def check_sizes(root, long):
    for name, path in files(root):
        if path.suffix not in (".c", ".h") or not name.startswith(("lib/", "tools/", "bench/")):
            continue
        text = path.read_text()
        if text.count("\n") > MAX_FILE:
            yield f"{name}: longer than {MAX_FILE} lines"
        for head, function, body in re.findall(r"^([a-z][^;{}=]*?\b([a-z]\w*)\([^;{}]*\))\n\{\n(.*?)^\}", text, re.M | re.S):
            if body.count("\n") > long:
                yield f"{name}: {function}() is longer than {long} lines"
            if n_parameters(head) > MAX_PARAMETERS:
                yield f"{name}: {function}() has more than {MAX_PARAMETERS} parameters"


def check_status(root):
    tested = "".join(path.read_text() for path in sorted((root / "tests").glob("*/test_*.c")))
    for code in re.findall(r"\bX\((\w+), \d+,", text_of(root, STATUS)):
        if code != "OK" and not re.search(rf"ck_fails\([^;]*\bATTNCL_{code}\b", tested):
            yield f"{STATUS_TEST}: nothing provokes ATTNCL_{code}"


def check_licences(root):
    for name, path in files(root):
        if path.suffix in SOURCES and "SPDX-License-Identifier: MIT" not in path.read_text()[:200]:
            yield f"{name}: no SPDX-License-Identifier on top"


def main(root, many="10", long="60"):
    root = Path(root)
    findings = [*check_readmes(root, int(many)), *check_layers(root), *check_sizes(root, int(long)), *check_status(root), *check_licences(root)]
    print("\n".join(findings) or "as it should be")
    return bool(findings)


sys.exit(main(*sys.argv[1:]))

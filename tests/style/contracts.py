#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contracts.py ROOT: the comment of each public function says Errors and Since; it or its file's says Threads.  It says
the shape of a value that it returns, and who owns what it gives through **x_ret or returns as a pointer.

Also: structs that cross the boundary start with their size and have an initializer, no function has more than
seven parameters, no header more than 250 lines."""
import re
import sys
from pathlib import Path

FIXED = {"attncl_value", "attncl_shape", "attncl_array"}  # passed by value or in arrays: never change
FILLED = {"attncl_profile_row", "attncl_tune_result"}  # the library's own: no initializer
MAX_PARAMETERS, MAX_LINES = 7, 250


def check_results(name, found, said):
    """The shape of a value, the owner of an object."""
    returned, function, parameters = found[1], found[2], found[3]
    if returned.strip() == "attncl_value" and not re.search(r"\[|shape|scalar", said):
        yield f"{name}: {function}() does not say the shape of its value"
    if re.search(r"\*\*\w*_ret\b", parameters) and not re.search("[Oo]wned|[Bb]orrowed", said):
        yield f"{name}: {function}() does not say who owns its result"
    if returned.rstrip().endswith("*") and not re.search("[Oo]wned|[Bb]orrowed|[Ss]tatic|valid until", said):
        yield f"{name}: {function}() does not say who owns its result"


def check_functions(name, text):
    about = re.search(r"/\*\*(?:(?!\*/).)*@file(?:(?!\*/).)*\*/", text, re.S)
    for found in re.finditer(r"^ATTNCL_API ([^;]*?)\b(attncl_\w+)\(([^;]*)\);", text, re.M):
        comment = re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*\Z", text[:found.start()], re.S)
        said = comment.group(1) if comment else ""
        for word in ("Errors:", "Since:", "Threads:"):
            if word not in said and not (word == "Threads:" and about and word in about.group(0)):
                yield f"{name}: {found[2]}() does not say '{word}'"
        if found[3].count(",") >= MAX_PARAMETERS:
            yield f"{name}: {found[2]}() has more than {MAX_PARAMETERS} parameters"
        yield from check_results(name, found, said)


def check_structs(name, text):
    for struct, body in re.findall(r"^typedef struct (attncl_\w+) \{\n(.*?)^\}", text, re.M | re.S):
        if struct in FIXED:
            continue
        if not body.lstrip().startswith("size_t struct_size;"):
            yield f"{name}: {struct} does not start with its size"
        if struct not in FILLED and f"#define {struct.upper()}_INIT" not in text:
            yield f"{name}: {struct} has no initializer"


def main():
    findings = []
    for path in sorted(Path(sys.argv[1], "include/attncl").glob("*.h")):
        text = path.read_text()
        findings += [*check_functions(path.name, text), *check_structs(path.name, text)]
        if text.count("\n") > MAX_LINES:
            findings.append(f"{path.name}: longer than {MAX_LINES} lines")
    print("\n".join(findings))
    return 1 if findings else 0


sys.exit(main())

# SPDX-License-Identifier: MIT
"""kernel_variants.py ROOT: each cl/*/*.cl compiles alone, as `clang -x cl -Icl -DMACRO=VALUE...`, for each row of
its macro table and those of the files it includes: every value of a macro once, the others at their first; and with the
flags that .clangd gives editors, as far as it knows the macros.  Skipped (77) without clang and libclc.

Values are alternatives, "1 | 4 | 8" or "1, 4", of: a number or word; a range "1 .. 256" (its ends; all of up to eight); a
product of macros "TX TY"; "a multiple of VW / NS"; "a power of two".  Values with "(CPU)" or "(GPU)" after them go
together; "4 where LS > 1" and "1 where LS is 1" hold under that condition only.  A remark follows ";"."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "kernels"))
from compilers import clang_or_skip  # noqa: E402

NAME = r"[A-Z][A-Z0-9_]*"


def macro_table(path, cl):
    """{macro: values} of the contract on top of a file, and of what it includes; less what the file defines itself."""
    rows, inside, text = {}, False, path.read_text()
    for line in text.splitlines():
        row = re.match(rf"//   ({NAME}(?: {NAME})*) +(\S.*)", line) if inside else None
        if row:
            rows |= {name: re.split(r"  +", row[2])[-1] for name in row[1].split()}
        inside = line.startswith("//") and (inside or line.startswith("//   Macro "))
    for header in re.findall(r'^#include "(.*)"', text, re.M):
        rows = macro_table(cl / header, cl) | {n: v for n, v in rows.items() if not v.startswith("as in")}
    return {n: v for n, v in rows.items() if not re.search(rf"^# *define +{n}\b", text, re.M)}


def alternatives(text):
    """[(value, "CPU", "GPU" or None, condition)] of a row; a value is a number, a word or a product of macros."""
    kind, found = None, []
    for part in reversed(re.split(r" *[|,] *", text.split(";")[0].strip())):
        tag = re.search(r" \((CPU|GPU)\)", part)
        kind = tag[1] if tag else kind
        part, _, condition = part.replace(tag[0] if tag else "", "").partition(" where ")
        ends = re.fullmatch(r"(\S+) \.\. (\S+)", part)
        if not ends:
            part = "8" if part == "a power of two" else part.replace("a multiple of ", "4 * ")
            values = [re.sub(r"(?<=\w) (?=\w)", " * ", part)]
        elif all(e.isdigit() for e in ends.groups()) and int(ends[2]) - int(ends[1]) in range(8):
            values = map(str, range(int(ends[1]), int(ends[2]) + 1))
        else:
            values = ends.groups()
        found = [(v, kind, condition) for v in values] + found
    return found


def evaluate(chosen):
    """Replaces macros within values by theirs."""
    for _ in chosen:
        for name, text in chosen.items():
            text = re.sub(rf"\b{NAME}\b", lambda m: chosen.get(m[0], m[0]), text)
            chosen[name] = str(eval(text.replace("/", "//"))) if re.fullmatch(r"\d+( [*/] \d+)+", text) else text
    return chosen


def holds(condition, kind, option, ls):
    return option[1] in (None, kind or option[1]) and {"LS is 1": ls == "1", "LS > 1": ls != "1"}.get(option[2], True)


def combinations(table):
    options = {name: alternatives(text) for name, text in table.items()}
    for fixed, choices in options.items():
        for value, kind, condition in choices:
            def first(name, ls):
                return next((o[0] for o in options[name] if holds(condition, kind, o, ls)), options[name][0][0])
            ls = value if fixed == "LS" else first("LS", None) if "LS" in options else None
            if condition:
                ls = "1" if condition == "LS is 1" else options["LS"][-1][0]
            chosen = {name: ls if name == "LS" else first(name, ls) for name in options} | {fixed: value}
            yield evaluate(chosen)


def editor_flags(clangd, file):
    """What the fragments of .clangd add for a file."""
    def matches(key, fragment):
        pattern = re.search(rf"{key}: (.*)", fragment)
        return pattern and re.fullmatch(pattern[1], file)
    for fragment in clangd.split("---"):
        added = re.search(r"Add: \[(.*?)\]", fragment, re.S)
        if added and matches("PathMatch", fragment) and not matches("PathExclude", fragment):
            yield from re.split(r",\s+", added[1])


def undecided(clangd, root):
    """Kernel files to which no fragment of .clangd gives a variant, or several do."""
    for file in sorted(root.glob("cl/*/*.cl*")):
        name = file.relative_to(root).as_posix()
        sizes = [flag for flag in editor_flags(clangd, name) if flag.startswith("-DLS=")]
        if len(sizes) != 1:
            yield f".clangd gives {name} {len(sizes)} values of LS"


def main(root):
    clang = clang_or_skip()
    cl = pathlib.Path(root, "cl")
    clangd = pathlib.Path(root, ".clangd")
    complaints = [*undecided(clangd.read_text(), clangd.parent)] if clangd.exists() else []
    commands = {}
    for file in sorted(cl.glob("*/*.cl")):
        for chosen in combinations(macro_table(file, cl)):
            macros = [f"-D{n}={v}" for n, v in chosen.items()]
            command = [clang, "-x", "cl", f"-I{cl}", "-fsyntax-only", "-Wall", "-Wno-unused-function", "-Werror", *macros,
                       str(file)]
            commands[" ".join(command)] = command
        if clangd.exists():
            flags = [f.replace("-I..", f"-I{file.parent}/..") for f in editor_flags(clangd.read_text(), f"cl/{file.relative_to(cl)}")]
            flags += [m for m in macros if not any(f.startswith(m.split("=")[0] + "=") for f in flags)]
            command = [clang, "-fsyntax-only", "-Wall", "-Wno-unused-function", "-Werror", *flags, str(file)]
            commands[" ".join(command)] = command

    def failure(command):
        run = subprocess.run(command, capture_output=True, text=True)
        return run.returncode and f"{' '.join(command)}\n{run.stderr[:600]}"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = complaints + [f for f in pool.map(failure, commands.values()) if f]
    print("\n".join(failures) or f"{len(commands)} variants compile")
    return bool(failures) or not commands


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu_coverage.py ROOT VARIANTS: the cases of attncl-gpu-variants launch every kernel of cl/ that a GPU can get, with every
value of its macros that its contract names.  Kernels with "cpu" in their names are the CPU variant's.  Nothing is compiled."""
import collections
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from compilers import launches  # noqa: E402

NAME = r"[A-Z][A-Z0-9_]*"
# Sizes, of which the rows of the library choose some.
SIZES = {"VW", "LS", "LANES_PER_ROW", "VECS_PER_LANE", "N_X"}
# What no GPU gets, by its macro: prefetching, several vectors and tails of vectors are the
# CPU variant's; there is no launch of the activation that changes nothing; all products with an activation have a
# transposed B; the kernel of weights in 8 and 4 bits reads no others, and its activations are those of all epilogues.
NEVER = {("USE_PREFETCH", "1"), ("HAS_TAIL", "1"), ("NV", "2"), ("NV", "3"), ("NV", "4"), ("KIND", "0", "activation"),
         ("KIND", "0", "activation_bwd")} | {("ACT", str(act), "gemv_axpy") for act in range(1, 7)} | \
        {("ACT", str(act), "gemm_gpu_quantised") for act in range(2, 7)} | \
        {("WTYPE", str(kind), "gemm_gpu_quantised") for kind in range(3)}


def macro_table(path, cl):
    """{macro: values} of the contract on top of a file, of what it includes and of cl/README.md, of this what the file has an
    #error for; less what the file defines itself."""
    rows, inside, text = {}, False, path.read_text()
    for line in text.splitlines():
        row = re.match(rf"//   ({NAME}) +(\S.*)", line) if inside else None
        if row:
            rows[row[1]] = re.split(r"  +", row[2])[-1]
        inside = line.startswith("//") and (inside or line.startswith("//   Macro "))
    for header in re.findall(r'^#include "(.*)"', text, re.M):
        rows = macro_table(cl / header, cl) | rows
    for name, values in re.findall(rf"^\| `({NAME})` \|.*\| (.*) \|$", (cl / "README.md").read_text(), re.M):
        if re.search(rf"# *ifndef +{name}\n# *error|!defined *\(?{name}\b", text):
            rows.setdefault(name, values)
    return {n: v for n, v in rows.items() if not re.search(rf"^# *define +{n}\b", text, re.M)}


def alternatives(text):
    """[(value, "CPU", "GPU" or None, condition)] of a row: alternatives, "1 | 4 | 8" or "1, 4", of a number or word; a range "1 .. 256"
    (its ends; all of up to eight); a product of macros "TX TY"; "a multiple of VW / NS"; "a power of two".  Values with "(CPU)" or
    "(GPU)" after them go together; "4 where LS > 1" holds under that condition only.  A remark follows ";"."""
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


def kernels_of(path):
    return re.findall(r"^KERNEL\s+void\s+(\w+)", path.read_text(), re.M)


def launched(program):
    """{kernel} and {file: {macro: values}} of all cases."""
    kernels, values = set(), collections.defaultdict(lambda: collections.defaultdict(set))
    with tempfile.TemporaryDirectory() as directory:
        for source, kernel in {(row[0], row[2]) for row in launches(program, directory)}:
            kernels.add(kernel)
            for line in pathlib.Path(source).read_text().splitlines():
                macro = re.match(r"#define (\w+) (-?\w+)$", line)
                if not macro:
                    break
                values[pathlib.Path(source).name.split(".")[0]][macro[1]].add(macro[2])
    return kernels, values


def main():
    cl = pathlib.Path(sys.argv[1]) / "cl"
    kernels, values = launched(sys.argv[2])
    faults, n_kernels, n_values = [], 0, 0
    for path in sorted(cl.glob("*/*.cl")):
        mine = [k for k in kernels_of(path) if "cpu" not in k]
        n_kernels += len(mine)
        faults += [f"{path}: no case launches {kernel}" for kernel in mine if kernel not in kernels]
        if not any(kernel in kernels for kernel in mine):
            continue
        for macro, text in macro_table(path, cl).items():
            for value in {o[0] for o in alternatives(text) if o[1] != "CPU" and re.fullmatch(r"\d+|[a-z]+", o[0])}:
                if macro in SIZES or {(macro, value), (macro, value, path.stem)} & NEVER or "LS" in text.split(";")[0]:
                    continue
                n_values += 1
                if value not in values[path.stem][macro]:
                    faults.append(f"{path}: no case has {macro} {value}")
    for fault in faults:
        print(fault, file=sys.stderr)
    if not n_kernels or not n_values:
        print(f"{cl}: no kernel was found", file=sys.stderr)
    print(f"{n_kernels} kernels and {n_values} values of their macros: {len(faults)} are not launched")
    return 1 if faults or not n_kernels or not n_values else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: MIT
"""object_cycles.py OBJECTS: the object files of lib/ form no cycle, and each uses symbols of the directories
that the table in layers.cmake allows only.

OBJECTS lists the object files, one per line."""
import pathlib
import re
import subprocess
import sys


def symbols(objects):
    """{source: (defined, undefined)}, by nm."""
    out = subprocess.run(["nm", "-A", "-P", *objects], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in out.splitlines():
        path, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        defined, undefined = found.setdefault(re.sub(r"^.*/lib/|\.o(bj)?$", "", path), (set(), set()))
        if kind == "U":
            undefined.add(name)
        elif kind.isupper():
            defined.add(name)
    return found


def cycles(uses):
    """The strongly connected components of more than one file (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in uses[v]:
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            found.append(sorted(stack[stack.index(v):]))
            del stack[stack.index(v):]

    for v in uses:
        if v not in index:
            visit(v)
    return [c for c in found if len(c) > 1]


def main(objects):
    files = symbols([o for o in pathlib.Path(objects).read_text().split() if "/lib/" in o])
    owner = {name: file for file, (defined, _) in files.items() for name in defined}
    uses = {file: {owner[n]: n for n in sorted(undefined) if n in owner} for file, (_, undefined) in files.items()}
    complaints = []
    for cycle in cycles(uses):
        edges = [f"  {a} uses {name} of {b}" for a in cycle for b, name in uses[a].items() if b in cycle]
        complaints.append("object files form a cycle:\n" + "\n".join(edges))

    layers = re.sub("#.*", "", pathlib.Path(__file__).with_name("layers.cmake").read_text())
    table = {name: words.split() for name, words in re.findall(r"set\((may_\w+|directories|use_api)\s+([^)]*)\)", layers)}
    for a, edges in uses.items():
        up = a.split("/")[0]
        for b, name in edges.items():
            down = b.split("/")[0]
            order = table["directories"]
            public = up in table["use_api"] and order.index(down) < order.index(up) and not name.startswith("attncl__")
            if up != down and down not in table[f"may_{up}"] and not public:
                complaints.append(f"{a} uses {name} of {b}: {up}/ must not use {down}/")
    print("\n".join(complaints) or f"{len(files)} object files, no cycle")
    return bool(complaints) or not files


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: MIT
"""vocabulary.py ROOT: no file of the tree says what vocabulary.txt lists, but where that allows it."""
import fnmatch
import pathlib
import re
import sys

TREE = ("lib", "cl", "include", "tests", "bench", "tools", "examples", "docs")
TEXT = (".c", ".h", ".cl", ".clh", ".def", ".py", ".sh", ".md", ".txt", ".cmake", ".json", ".in", "")
NOT_READ = ("tests/style/vocabulary.*", "tests/style/bad/*", "tools/rename/*", "*/__pycache__/*")


def main(root):
    root, rows = pathlib.Path(root), []
    for line in pathlib.Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line and not line.startswith("# "):
            pattern, instead, *allowed = re.split(r"  +", line)
            rows.append((re.compile(pattern), instead, allowed[0].split() if allowed else []))
    files = [f for top in TREE for f in sorted((root / top).rglob("*"))] + sorted(root.glob("*.md"))
    n = 0
    for file in files:
        name = file.relative_to(root).as_posix()
        if not file.is_file() or file.suffix not in TEXT or any(fnmatch.fnmatch(name, p) for p in NOT_READ):
            continue
        text = f"{name}\n{file.read_text(errors='replace')}"
        for pattern, instead, allowed in rows:
            for m in pattern.finditer(text):
                if not any(fnmatch.fnmatch(name, p) for p in allowed):
                    line = text.count("\n", 0, m.start())
                    print(f"{name}:{line}: '{m[0]}': say {instead}")
                    n += 1
    return n > 0 or not files


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

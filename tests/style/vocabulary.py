# SPDX-License-Identifier: MIT
"""vocabulary.py ROOT: no file of the tree says what vocabulary.txt lists, but where that allows it."""
import fnmatch
import pathlib
import re
import subprocess
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
    tops = [top for top in TREE if (root / top).exists()] + sorted(p.name for p in root.glob("*.md"))
    # GNU grep is ten times faster than Python's expressions: it names the files that are worth a look.
    some = "|".join(f"(?:{pattern.pattern})" for pattern, _, _ in rows)
    found = subprocess.run(["grep", "-rlP", some, *tops], cwd=root, capture_output=True, text=True)
    if found.returncode > 1:
        sys.exit(found.stderr)
    names = [p.relative_to(root).as_posix() for top in tops for p in [root / top, *(root / top).rglob("*")] if p.is_file()]
    texts = {name: name for name in names} | {name: f"{name}\n{(root / name).read_text(errors='replace')}"
                                              for name in found.stdout.splitlines()}
    n = 0
    for name, text in texts.items():
        if pathlib.Path(name).suffix not in TEXT or any(fnmatch.fnmatch(name, p) for p in NOT_READ):
            continue
        for pattern, instead, allowed in rows:
            for m in pattern.finditer(text):
                if not any(fnmatch.fnmatch(name, p) for p in allowed):
                    print(f"{name}:{text.count(chr(10), 0, m.start())}: '{m[0]}': say {instead}")
                    n += 1
    return n > 0 or not names


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

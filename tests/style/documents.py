# SPDX-License-Identifier: MIT
"""documents.py ROOT: the files that documents name exist: paths from the root or the document, or names alone, in
backticks or code, `*` and {a,b} as in a shell; and the targets of links.  A path with X, NAME, NNNN ... in it is a pattern, not a file."""
import fnmatch
import pathlib
import re
import sys

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "*/README.md", "*/*/README.md")
IGNORED = ("build", ".git", "tests/style/bad")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])(X|NAME|NNNN|MODEL|FAMILY|DIRECTORY)(?![A-Za-z])|\.\.\.|[<>$]")


def expand(path):
    """{a,b} as a shell has it."""
    m = re.match(r"(.*)\{([^{}]*)\}(.*)", path)
    return [e for one in m[2].split(",") for e in expand(m[1] + one + m[3])] if m else [path]


def named(text, tops):
    """Paths in the text: those below one of the directories `tops`, names of files, and link targets."""
    for quoted in re.findall(r"`([^`\n]+)`|^(?:    |\$ )(.*)$", text, re.M):
        for word in re.split(r"[\s()=,:;\"']+(?![^{]*\})", quoted[0] or quoted[1]):
            if re.match(rf"(\./)?({tops})/.", word) or re.fullmatch(r"[a-z0-9_*]+\.(c|h|cl|clh|def|py|sh)", word):
                yield word.removeprefix("./").rstrip(".,"), False
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if ":" not in link:
            yield link, True


def main(root):
    root = pathlib.Path(root)
    def directories(parent):
        return {d.name for d in parent.iterdir() if d.is_dir() and not d.name.startswith(IGNORED)}
    names = {p.name for top in directories(root) for p in (root / top).rglob("*")}
    complaints, n = [], 0
    for document in sorted({d for pattern in DOCUMENTS for d in root.glob(pattern)}):
        name = str(document.relative_to(root))
        if name.startswith(IGNORED):
            continue
        text = document.read_text()
        given = re.findall(r"[Ii]n `([^`]+)`:\n\n```", text)  # files whose text the document has
        tops = "|".join(map(re.escape, directories(root) | directories(document.parent)))
        for path, is_link in named(text, tops):
            n += 1
            for one in expand(path):
                known = one in given or not is_link and (PLACEHOLDER.search(one) or fnmatch.filter(names, one))
                bases = (document.parent,) if is_link else (root, document.parent)
                if not known and not any(list(base.glob(one.rstrip("/"))) or (base / one).exists() for base in bases):
                    complaints.append(f"{name} names {one}, which does not exist")
    print("\n".join(complaints) or f"{n} names of files")
    return bool(complaints) or not n


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: MIT
"""documents.py ROOT [LINES]: the files that documents name exist: paths from the root or the document, or names alone, in
backticks or code, `*` and {a,b} as in a shell; and the targets of links.  A path with X, NAME, NNNN ... in it is a pattern, not a file.
README.md has at most LINES lines (130), and its rows of figures are rows of docs/benchmarks.md.  No sentence of README.md and docs/*.md
is longer than 40 words; tables and code do not count."""
import fnmatch
import pathlib
import re
import sys

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "*/README.md", "*/*/README.md")
FOR_USERS = ("README.md", "docs/*.md")
IGNORED = ("build", ".git")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])(X|NAME|NNNN|MODEL|FAMILY|DIRECTORY)(?![A-Za-z])|\.\.\.|[<>$]")
MAX_WORDS = 40


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


def sentences(text):
    """Those of paragraphs, list items and headings, with code in backticks as one word."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.M | re.S)
    text = re.sub(r"`[^`]+`", "code", re.sub(r"^ *\|.*$|^(?:    |\t).*$", "", text, flags=re.M))
    for block in re.split(r"\n\s*\n|^ *(?:[-*]|\d+\.|#+) ", text, flags=re.M):
        yield from re.split(r"(?<=[.!?])[\"')*]*\s+", " ".join(block.split()))


def figures(text):
    """Rows of a table with a time in the second cell."""
    return re.findall(r"^\|[^|]+\| *\d[\d.]* *\|.*$", text, re.M)


def prose(root, max_lines):
    readme, benchmarks = root / "README.md", root / "docs/benchmarks.md"
    n = len(readme.read_text().splitlines())
    if n > int(max_lines):
        yield f"README.md has {n} lines, at most {max_lines} are allowed"
    measured = figures(benchmarks.read_text()) if benchmarks.exists() else []
    for row in figures(readme.read_text()):
        if row not in measured:
            yield f"README.md has a row that docs/benchmarks.md has not: {row}"
    for document in sorted({d for pattern in FOR_USERS for d in root.glob(pattern)}):
        for sentence in sentences(document.read_text()):
            if len(sentence.split()) > MAX_WORDS:
                yield f"{document.relative_to(root)}: a sentence of {len(sentence.split())} words: {sentence}"


def main(root, max_lines="130"):
    root = pathlib.Path(root)
    def directories(parent):
        return {d.name for d in parent.iterdir() if d.is_dir() and not d.name.startswith(IGNORED)}
    names = {p.name for top in directories(root) for p in (root / top).rglob("*")}
    complaints, n = list(prose(root, max_lines)), 0
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

# SPDX-License-Identifier: MIT
"""documents.py ROOT: the files that documents name exist: `lib/op/op_list.def` in backticks or code, `*` and {a,b} as in a
shell, and the targets of links.  A path with X, NAME, NNNN ... in it is a pattern, not a file."""
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
    """Paths in the text: those below a directory of the tree, and link targets."""
    for quoted in re.findall(r"`([^`\n]+)`|^(?:    |\$ )(.*)$", text, re.M):
        for word in re.split(r"[\s()=,:;\"']+(?![^{]*\})", quoted[0] or quoted[1]):
            if re.match(rf"(\./)?({tops})/.", word):
                yield word.removeprefix("./").rstrip(".,"), False
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if ":" not in link:
            yield link, True


def main(root):
    root = pathlib.Path(root)
    tops = "|".join(re.escape(d.name) for d in root.iterdir() if d.is_dir() and not d.name.startswith(IGNORED))
    complaints, n = [], 0
    for document in sorted({d for pattern in DOCUMENTS for d in root.glob(pattern)}):
        name = str(document.relative_to(root))
        if name.startswith(IGNORED):
            continue
        text = document.read_text()
        given = re.findall(r"[Ii]n `([^`]+)`:\n\n```", text)  # files whose text the document has
        for path, is_link in named(text, tops):
            n += 1
            base = document.parent if is_link else root
            for one in expand(path):
                generic = one in given or not is_link and PLACEHOLDER.search(one)
                if not generic and not list(base.glob(one.rstrip("/"))) and not (base / one).exists():
                    complaints.append(f"{name} names {one}, which does not exist")
    print("\n".join(complaints) or f"{n} names of files")
    return bool(complaints) or not n


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

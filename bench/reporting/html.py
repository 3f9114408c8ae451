# SPDX-License-Identifier: MIT
"""Elements of a page as a tree: the serialiser escapes texts and attributes, so that none can be forgotten."""
import xml.etree.ElementTree as ET


def el(tag, *content, **attributes):
    """<TAG>: content is elements, texts, lists of them, or None; class_ and for_ lose their underscore."""
    e = ET.Element(tag, {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items() if v is not None})
    add(e, content)
    return e


def add(e, content):
    for c in content:
        if c is None:
            continue
        if isinstance(c, (list, tuple)):
            add(e, c)
        elif isinstance(c, str):
            if len(e):
                e[-1].tail = (e[-1].tail or "") + c
            else:
                e.text = (e.text or "") + c
        else:
            e.append(c)


def serialise(root):
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def table(head, rows, words=1):
    """The first WORDS columns are text, the others numbers.  A cell may be an element; a row may be (class, cells)."""
    def cell(i, content):
        if isinstance(content, ET.Element) and content.tag in ("td", "th"):
            return content
        if i == 0:
            return el("th", content, scope="row")
        return el("td", content, class_=None if i < words else "number")

    body = []
    for row in rows:
        class_, cells = row if isinstance(row, tuple) else (None, row)
        body.append(el("tr", [cell(i, c) for i, c in enumerate(cells)], class_=class_))
    heads = [el("th", h, scope="col", class_=None if i < words else "number") for i, h in enumerate(head)]
    return el("div", el("table", el("thead", el("tr", heads)), el("tbody", body)), class_="scroll", tabindex="0",
              role="region", aria_label=head[0])

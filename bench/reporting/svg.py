# SPDX-License-Identifier: MIT
"""Runs gnuplot, and makes of its pictures elements of a page: named colours, texts, titles, ids of their own."""
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ET

from . import chart

# Light, dark.  Distinct for people with the common colour deficiencies, and by shape as well.
PALETTE = {
    "ink": ("#1c1e21", "#e8eaed"), "muted": ("#5b626b", "#a7adb5"), "axis": ("#8a9199", "#767d86"),
    "grid": ("#e3e6ea", "#30353b"), "stem": ("#c3cad2", "#4a525b"), "paper": ("#ffffff", "#16181b"),
    "s1": ("#0067a8", "#58abe8"), "s2": ("#c34e00", "#ff9149"), "s3": ("#00785a", "#2fc59a"),
    "s4": ("#9a3f80", "#e592cb"), "s5": ("#866a00", "#e2c344"), "s6": ("#2f8fc7", "#a5d8ff"),
    "s7": ("#5a5d66", "#b9bcc4"), "s8": ("#7b3d1f", "#d8a283")}
SENTINELS = {name: f"#01{i:02x}7f" for i, name in enumerate(PALETTE)}


class CannotMake(Exception):
    """Why a picture or a file could not be created, in one line."""


def commands(script, path):
    """SCRIPT for gnuplot, its colours' names as values that svg.py knows again."""
    return re.sub(r"rgb '(\w+)'", lambda m: f"rgb '{SENTINELS[m[1]]}'", script.write(path))


def draw(scripts):
    """An svg element for each of SCRIPTS, by one gnuplot."""
    with tempfile.TemporaryDirectory() as directory:
        source = "".join(commands(s, f"{i}.svg") for i, s in enumerate(scripts)) + "set output\n"
        try:
            ran = subprocess.run(["gnuplot", "-"], input=source, cwd=directory, capture_output=True,
                                 encoding="utf-8", errors="replace", check=False,
                                 env=dict(os.environ, GNUTERM="svg", LC_ALL="C.UTF-8"))
        except OSError:
            raise CannotMake("pictures are drawn by gnuplot, which is not installed") from None
        if ran.returncode or ran.stderr.strip():
            words = " ".join(ran.stderr.split()) or f"status {ran.returncode}"
            raise CannotMake(f"gnuplot failed: {words[:400]}")
        return [element(s, os.path.join(directory, f"{i}.svg")) for i, s in enumerate(scripts)]


def element(script, path):
    root = ET.parse(path).getroot()
    for e in root.iter():
        e.tag = e.tag.split("}")[-1]
        for name in list(e.attrib):
            e.attrib[name.split("}")[-1]] = e.attrib.pop(name)
    prefix = f"{script.chart.id}-{script.width}"
    take_texts(root, script.texts)
    take_colours(root)
    name_points(root, script.chart)
    take_ids(root, prefix)
    title = ET.Element("title", {"id": prefix + "-title"})
    title.text = script.chart.title
    about = ET.Element("desc", {"id": prefix + "-desc"})
    about.text = script.chart.about
    root[:] = [title, about] + [e for e in root if e.tag not in ("title", "desc")]
    root.attrib.update({"role": "img", "aria-labelledby": f"{title.get('id')} {about.get('id')}"})
    return root


def take_texts(root, texts):
    for e in root.iter("text"):
        words = "".join(e.itertext())
        words = re.sub(r"@(\d+)@", lambda m: texts[int(m[1])], words)
        e[:] = []
        e.text = words.strip()
    for e in root.iter():
        for name in ("font-family", "font-size"):
            e.attrib.pop(name, None)


def take_colours(root):
    """Colours by name: the page or the picture itself defines --s1 and so on."""
    names = {tuple(int(v[i:i + 2], 16) for i in (1, 3, 5)): n for n, v in SENTINELS.items()}

    def named(m):
        name = names.get(tuple(int(part) for part in m[1].split(",")))
        return f"var(--{name})" if name else m[0]
    for e in root.iter():
        style = []
        for name in ("color", "fill", "stroke"):
            value = re.sub(r"rgb\(([^)]*)\)", named, e.get(name, ""))
            if value.startswith("var("):
                del e.attrib[name]
                style.append(f"{name}:{value}")
            elif value == "black":
                e.set(name, "currentColor" if name != "color" else "inherit")
        if style:
            e.set("style", ";".join(style))


def name_points(root, c):
    """What is said of a point becomes its title, which a pointer over it shows."""
    plots = [g for g in root.iter("g") if re.fullmatch(r"gnuplot_plot_\d+\w?", g.get("id", ""))]
    named = [s for s in c.series if s.points]
    drawn = [uses for uses in ([u for u in g.iter("use")] for g in plots) if uses]
    for s, uses in zip(named, drawn):
        points = uses[-len(s.points):]  # a key's sample comes first
        for use, point in zip(points, s.points):
            title = ET.SubElement(use, "title")
            title.text = point[2]
    for g in plots:
        g[:] = [e for e in g if e.tag != "title"]


def take_ids(root, prefix):
    for e in root.iter():
        if e.get("id"):
            e.set("id", f"{prefix}-{e.get('id')}")
        if e.get("href"):
            e.set("href", f"#{prefix}-{e.get('href')[1:]}")
        for name in ("text", "tail"):
            words = getattr(e, name)
            if words and not words.strip():
                setattr(e, name, None)


def custom_properties(which):
    return "".join(f"--{name}:{values[which]};" for name, values in PALETTE.items())


def standalone(script):
    """A file of its own, light or dark as the reader's system is."""
    root = draw([script])[0]
    root.set("xmlns", "http://www.w3.org/2000/svg")
    style = ET.Element("style")
    style.text = (f"svg{{{custom_properties(0)}background:var(--paper);color:var(--ink);"
                  "font:11px system-ui,'Segoe UI',Roboto,sans-serif}"
                  "text{paint-order:stroke;stroke:var(--paper);stroke-width:3px}"
                  f"@media(prefers-color-scheme:dark){{svg{{{custom_properties(1)}}}}}")
    root.insert(2, style)
    for e in root.iter():
        if e.get("href"):
            e.set("xlink:href", e.attrib.pop("href"))
            root.set("xmlns:xlink", "http://www.w3.org/1999/xlink")
    return ET.tostring(root, encoding="unicode") + "\n"


def scripts_of(c):
    return [chart.Script(c, width, False) for width in c.widths]
